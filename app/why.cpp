// `why STAGE`: one screen on what a stage is for. The words are the head comments', the numbers are counted here.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "app/closed_form_json.hpp"
#include "app/commands.hpp"
#include "app/counted.hpp"
#include "app/output.hpp"
#include "app/stage_name.hpp"
#include "app/table.hpp"

namespace flash::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t prose_columns = 100;

/// A step's traffic on the stated problem, and the law that it follows.
struct Moved {
  Step step;
  Pass pass;
  Law law;

  Index elements() const { return pass.ledger.elements(); }
  Index bytes() const { return pass.ledger.bytes(); }
};

Moved moved(const Step& step, const StatedProblem& problem) {
  Pass pass = count(step, problem);
  Law law = law_of(pass, step.facts().law, problem.inputs(), Options{});
  return {step, std::move(pass), std::move(law)};
}

/// One direction of the stage beside what it extends.
struct Reason {
  Step step;
  HeadComment words;
  std::string problem_left;            ///< what the step before costs; empty for a first one
  std::optional<Moved> before, after;  ///< none of kernels alone: what they move is their stage's
};

Reason reason(const Step& step, const StatedProblem& problem) {
  Reason r{step, head_comment(step), "", std::nullopt, std::nullopt};
  if (step.on_cpu()) r.after = moved(step, problem);
  if (const std::optional<Step> previous = extended(step)) {
    r.problem_left = head_comment(*previous).costs;
    if (r.after) r.before = moved(*previous, problem);
  }
  return r;
}

std::string law_line(const char* label, const Moved& m, const std::string& comparison) {
  const std::string law =
      fmt::format("{}: {}", m.step.stage->short_name(), m.law.form ? m.law.form->text : "no closed form");
  return fmt::format("  {:8}{:34} {} {:>12} elements, {:>8}{}\n", label, law, m.law.equal ? "=" : "≠",
                     grouped(m.elements()), decimal_bytes(m.bytes()), comparison);
}

std::string text(const Reason& r) {
  const Step& step = r.step;
  const std::string extends = step.facts().extends;
  std::string all = fmt::format("{}: {}, {}\n", name(step.direction), step.source(),
                                extends.empty() ? "extends nothing" : "extends " + extends);
  if (all.size() > prose_columns)  // by the number alone
    all = fmt::format("{}: {}, extends {}\n", name(step.direction), step.source(),
                      find_program(extends).first->short_name());
  if (!extends.empty()) all += paragraph("  left    ", r.problem_left, prose_columns);
  all += paragraph("  change  ", r.words.change, prose_columns);
  all += paragraph("  why     ", r.words.why, prose_columns);
  all += paragraph("  cost    ", r.words.costs, prose_columns);
  all += paragraph("  ledger  ", "must say " + r.words.ledger, prose_columns);
  if (r.before) all += law_line("before", *r.before, "");
  if (r.after)
    all += law_line("after", *r.after, r.before ? ", bytes " + times(r.before->bytes(), r.after->bytes()) : "");
  return all;
}

Json json(const Moved& m) {
  Json json = {{"stage", m.step.stage->id},
               {"tiles", blocks_json(m.pass.blocks)},
               {"hbm", {{"elements", m.elements()}, {"bytes", m.bytes()}}}};
  add_closed_form(json, m.law);
  return json;
}

Json json(const Reason& r) {
  const std::string& extends = r.step.facts().extends;
  return {{"source", r.step.source()},
          {"extends", extends.empty() ? Json(nullptr) : Json(extends)},
          {"problem_left", extends.empty() ? Json(nullptr) : Json(r.problem_left)},
          {"change", r.words.change},
          {"why", r.words.why},
          {"costs", r.words.costs},
          {"law", r.words.ledger},
          {"before", r.before ? json(*r.before) : Json(nullptr)},
          {"after", r.after ? json(*r.after) : Json(nullptr)}};
}

void print_why(const Stage& stage, bool as_json) {
  const StatedProblem problem;
  const Reason forward = reason({&stage, Direction::forward}, problem);
  std::optional<Reason> backward;
  if (stage.has_backward() || (!stage.has_forward() && stage.has(Side::cuda, Direction::backward)))
    backward = reason({&stage, Direction::backward}, problem);
  if (as_json) {
    print_json(Json{{"stage", stage.id},
                    {"title", stage.title},
                    {"lesson", fmt::format("stages/{}/lesson.md", stage.folder())},
                    {"problem", to_json(problem)},
                    {"forward", json(forward)},
                    {"backward", backward ? json(*backward) : Json(nullptr)}});
    return;
  }
  std::string all =
      fmt::format("{} {}: stages/{}/lesson.md\n\n{}", stage.short_name(), stage.title, stage.folder(), text(forward));
  if (backward) all += text(*backward);
  if (!forward.after)
    all +=
        fmt::format("\nKernels alone: they move what the stage's programs move.\n  ./flashsteps run {} --on vgpu{}\n",
                    stage.short_name(), backward ? " --backward" : "");
  else
    all += fmt::format("\nCounted on {}{}:\n  ./flashsteps run {} {} --count-only{}\n", problem.text(),
                       forward.after->pass.blocks ? ", " + blocks_text(forward.after->pass.blocks) : "",
                       stage.short_name(), problem.options(), backward ? " --backward" : "");
  print(all);
}

}  // namespace

void add_why(CLI::App& program, int&) {
  struct Typed {
    std::string stage;
    bool json = false;
  };
  const auto typed = std::make_shared<Typed>();
  CLI::App* why =
      program.add_subcommand("why", "one screen: problem left, change, law and bytes before and after, cost");
  why->add_option("STAGE", typed->stage, "3, 03, online_softmax or 03_online_softmax")->required();
  why->add_flag("--json", typed->json, "one JSON document (docs/schema/why.schema.json)");
  why->callback([typed] { print_why(stage_named(typed->stage), typed->json); });
}

}  // namespace flash::app
