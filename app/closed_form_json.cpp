#include "app/closed_form_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "stages/common/visible_tiles.hpp"

namespace flash::app {
namespace {

theory::ClosedFormOptions form_options(const Inputs& in, const Options& o) {
  return {o.causal,      o.window,      !in.mask.empty(), !in.slopes.empty(), o.softcap > 0,
          o.first_touch, in.block_mask, o.splits,         o.deterministic};
}

theory::Traffic traffic(const sim::Ledger& ledger) {
  theory::Traffic t{ledger.by_tensor(sim::Access::read), ledger.by_tensor(sim::Access::write),
                    ledger.by_tensor(sim::Access::rmw)};
  for (auto* sums : {&t.read, &t.write, &t.rmw})
    std::erase_if(*sums, [](const auto& entry) { return entry.second == 0; });
  return t;
}

}  // namespace

Law law_of(const Pass& pass, const std::string& law, const Inputs& in, const Options& o) {
  const Blocks tiles = pass.blocks.value_or(Blocks{1, 1});
  Law result{theory::closed_form(law, in.shape, in.dtype, form_options(in, o), tiles.Br, tiles.Bc), false, {}};
  if (result.form)
    result.equal = result.form->traffic == traffic(pass.ledger);
  else
    result.why = fmt::format("no closed form is known for the schedule \"{}\" under these options", law);
  return result;
}

void add_closed_form(nlohmann::ordered_json& json, const Law& law) {
  if (law.form) {
    json["closed_form"] = {{"text", law.form->text}, {"elements", law.form->traffic.elements()}, {"equal", law.equal}};
  } else {
    json["closed_form"] = nullptr;
    json["why"] = law.why;
  }
}

Index visible_pairs(const Inputs& in, const Options& o) {
  const Shape& s = in.shape;
  if (in.mask.empty())
    return theory::visible_pairs(s, form_options(in, o), std::max<Index>(o.br, 1), std::max<Index>(o.bc, 1));
  const rules::Visibility sees = visibility(s, o);
  const auto computed = [&](Index i, Index j) {
    return in.block_mask.empty() || in.block_mask[i / o.br * sim::ceil_div(s.Nk, o.bc) + j / o.bc];
  };
  Index pairs = 0;
  for (std::size_t at = 0; at < in.mask.size(); ++at) {  // [mask_batch, mask_heads, Nq, Nk]
    const Index i = at / s.Nk % s.Nq, j = at % s.Nk;
    pairs += in.mask[at] && rules::visible(sees, i, j) && computed(i, j);
  }
  return pairs * (s.batch / in.mask_batch) * (s.heads / in.mask_heads);
}

}  // namespace flash::app
