#include <nlohmann/json.hpp>

#include "app/kernel_report.hpp"
#include "app/ledger_json.hpp"
#include "app/output.hpp"
#include "app/run_report.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;

Json budget_json(const Asked& asked) {
  if (asked.kernels || !asked.stage->forward.sram_bytes) return nullptr;
  return asked.config.machine.budget == sim::Budget::strict ? "strict" : "paper";
}

Json warps_json(const Asked& asked) {
  if (asked.kernels || !asked.stage->takes("warps")) return nullptr;
  return asked.options.warps == Warps::split_k ? "split-k" : "split-q";
}

Json tiles_json(const std::optional<Blocks>& blocks) {
  if (!blocks) return nullptr;
  return {{"br", blocks->Br}, {"bc", blocks->Bc}};
}

/// `n`: 0 for the forward pass, 1 for the backward pass.
void add_pass(Json& json, const Pass& pass, const Law& law, const Asked& asked, std::size_t n) {
  if (!asked.kernels) {
    json["ledger"] = ledger_json(pass.ledger, asked.config.machine.sram_bytes);
    const sim::SramTraffic& exchange = pass.ledger.exchange();
    if (asked.stage->takes("warps"))
      json["ledger"]["sram"]["between_warps"] = {{"read", exchange.read}, {"write", exchange.write}};
    add_closed_form(json, law);
    return;
  }
  const cuda::VirtualDevice* device = asked.kernels->virtual_device;
  json["ledger"] = device ? counted_json(pass.ledger, *device, device->watched()[n]) : Json(nullptr);
  add_closed_form(json, law);
  if (device) json["vgpu"] = vgpu_json(*device, device->watched()[n]);
}

Json check_json(const CheckResult& check) {
  Json json = Json::object();
  for (const OutputCheck& o : check.outputs)
    json[o.name] = {{"error", json_number(o.error)},
                    {"baseline", json_number(o.baseline)},
                    {"tolerance", json_number(o.tolerance)},
                    {"worst", o.worst}};
  return json;
}

}  // namespace

Json problem_json(const Asked& asked) {
  const Inputs& in = asked.inputs;
  const Shape& s = in.shape;
  const Options& o = asked.options;
  return {
      {"source", asked.source},
      {"seed", asked.seed},
      {"batch", s.batch},
      {"heads", s.heads},
      {"kv_heads", s.kv_heads},
      {"n", s.Nq},
      {"nk", s.Nk},
      {"d", s.d},
      {"dv", s.dv},
      {"scale", json_number(softmax_scale(s, o))},
      {"causal", o.causal},
      {"window", {o.window.left, o.window.right}},
      {"softcap", o.softcap},
      {"alibi", !in.slopes.empty()},
      {"mask", !in.mask.empty()},
      {"block_mask", !in.block_mask.empty()},
      {"dropout", o.dropout},
      {"dropout_seed", o.dropout_seed},
      {"first_touch", o.first_touch},
      {"splits", o.splits},
      {"warps", warps_json(asked)},
      {"deterministic", o.deterministic},
      {"budget", budget_json(asked)},
      {"count_only", asked.config.machine.count_only},
      {"backward", asked.config.backward},
  };
}

Json run_json(const Reported& run) {
  const RunResult& result = run.result;
  Json json = {{"stage", run.asked.stage->id},
               {"on", run.asked.on},
               {"dtype", name(run.asked.inputs.dtype)},
               {"problem", problem_json(run.asked)},
               {"tiles", tiles_json(result.forward.blocks)},
               {"visible_pairs", run.visible_pairs}};
  if (!run.asked.config.backward) {
    add_pass(json, result.forward, run.forward, run.asked, 0);
  } else {  // each pass has tiles of its own
    json["forward"] = {{"tiles", tiles_json(result.forward.blocks)}};
    add_pass(json["forward"], result.forward, run.forward, run.asked, 0);
  }
  if (result.backward) {
    json["backward"] = {{"tiles", tiles_json(result.backward->blocks)}};
    add_pass(json["backward"], *result.backward, *run.backward, run.asked, 1);
  }
  if (run.check) json["check"] = check_json(*run.check);
  json["seconds"] = result.seconds;
  return json;
}

}  // namespace flash::app
