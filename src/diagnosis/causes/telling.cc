#include "diagnosis/causes/telling.h"

#include "diagnosis/causes/place_text.h"
#include "model/run_extent.h"

namespace stageline {
namespace {

Text times(double ratio) { return words("times", Args().set("ratio", fixed(ratio, 2))); }

}  // namespace

TellContext::TellContext(const Trace& of, const CauseList& causes, const Recognition& recognised)
    : trace(of), list(causes), recognition(recognised) {
  for (const Part& part : of.parts) {
    replicas = std::max(replicas, part.dp + 1);
    stages = std::max(stages, part.stage + 1);
  }
}

Text TellContext::share(double ns) const {
  return words("cause.amount", Args().set("time", human_duration(ns)).set("share", percent(ns / list.step_ns)));
}

int32_t TellContext::step_number(size_t index) const {
  return index < list.step_numbers.size() ? list.step_numbers[index] : static_cast<int32_t>(index);
}

Text TellContext::rank(int32_t rank, bool with_peers) const {
  const auto own = std::ranges::find_if(trace.parts, [&](const Part& part) { return part.rank == rank; });
  std::string peers, machine;
  int64_t count = 0;
  if (own != trace.parts.end()) {
    machine = own->machine_name;
    for (const Part& other : trace.parts)
      if (with_peers && &other != &*own && other.stage == own->stage && other.dp == own->dp)
        peers += (count++ > 0 ? ", " : "") + std::to_string(other.rank);
  }
  Args args;
  args.set("rank", int64_t{rank}).set("machine", machine).set("peers", peers).flag("one_peer", count == 1);
  return words(count > 0 ? "worker.peers" : "worker", args);
}

Text TellContext::schedule() const {
  if (recognition.candidates.empty()) return words("schedule.the");
  return {recognition.best().name, recognition.best().name};
}

Args TellContext::args(const Cause& c) const {
  const auto known = [](int32_t number) { return number == kUnknown ? std::string() : std::to_string(number); };
  const CauseFigures& f = c.figures;
  const Place& place = c.place();
  const auto of_all = f.count / static_cast<double>(std::max<int64_t>(f.of, 1));
  const auto of_steps = f.count / static_cast<double>(std::max<int64_t>(list.steps, 1));
  Args args;
  args.set("lost", share(c.price.lost_ns)).set("saving", c.price.saving_ns > 0 ? share(c.price.saving_ns) : Text());
  args.set("ratio", times(f.ratio)).set("pause", human_duration(f.each_ns));
  args.set("stage", known(place.stage)).set("from", std::to_string(place.from_stage));
  args.set("replica", known(place.replica)).set("chunk", known(place.chunk)).set("name", place.name);
  args.set("count", grouped(f.count))
      .set("of", grouped(f.of))
      .set("share", percent(of_all))
      .set("each", fixed(of_steps, 1));
  args.set("steps", grouped(c.in_steps.all)).set("slow_steps", grouped(c.in_steps.count));
  args.set("in_steps", in_steps_text(c.in_steps));
  args.set("course", course(c.course, c.in_steps.count == c.in_steps.all));
  args.flag("unmovable", c.price.unmovable).set("movable", c.price.movable_ns > 0 ? share(c.price.movable_ns) : Text());
  args.flag("unpriced", list.unpriced);
  args.flag("sometimes", c.sometimes).flag("both_ways", place.both_ways).set("schedule", schedule());
  if (place.from_stage != kUnknown) {
    args.set("where", place_text(place, trace.context_parallel > 1));
    args.flag("one_host", link_machines(trace, place.from_stage, place.stage) == LinkMachines::kSame);
  }
  if (f.rank != kUnknown) args.set("rank", int64_t{f.rank}).set("worker", rank(f.rank, false));
  return args;
}

Args TellContext::course_args(const Course& c) const {
  Args args;
  args.flag("rises", c.high > c.low).set("low", times(c.low)).set("high", times(c.high));
  args.set("at", int64_t{step_number(c.from)}).set("nth", nth_text(c.every));
  return args.set("steps", grouped(c.high_count));
}

// "from step 10 on (1.00× before, 1.31× after)"; "" where it is always the same. `always`: it was slow before as well,
// and the step only says when it became slower.
Text TellContext::course(const Course& c, bool always) const {
  Args args = course_args(c);
  switch (c.kind) {
    case CourseKind::kOnset: {
      const bool rises = c.high > c.low;
      const char* since = always ? (rises ? "more" : "less") : (rises ? "from" : "until");
      return words("course.onset", args.set("since", words(std::string("course.onset.") + since, args)));
    }
    case CourseKind::kTrend: return words("course.trend", args);
    case CourseKind::kEvery: return words("course.every", args);
    case CourseKind::kSome: return words("course.some", args);
    case CourseKind::kConstant: return {};
  }
  return {};
}

Text TellContext::when(const Course& c) const {
  switch (c.kind) {
    case CourseKind::kOnset: return words("when.onset", course_args(c));
    case CourseKind::kTrend: return words("when.trend", course_args(c));
    case CourseKind::kEvery: return words("when.every", course_args(c));
    default: return {};
  }
}

Text in_steps_text(const StepShare& steps) {
  Args args;
  args.flag("one", steps.all == 1).set("slow", grouped(steps.count)).set("all", grouped(steps.all));
  return words("in_steps", args);
}

Text nth_text(size_t every) {
  const std::string name = "nth." + std::to_string(every);
  return has_words(name) ? words(name) : words("nth", Args().set("n", every));
}

std::string some_of(const std::vector<std::string>& all, size_t max) {
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), max); ++i) text += (i == 0 ? "" : ", ") + all[i];
  return all.size() > max ? text + ", …" : text;
}

Text cell_text(CellKind kind) { return words("cell." + std::string(kind_code(kind))); }

Telling say_cause(std::string_view id, const std::string& name, Args args) {
  const std::string own(id);
  if (has_words(name + ".saves"))
    args.set("saves", words(args.of("unpriced", false).empty() ? name + ".saves" : "cause.unpriced", args));
  Telling telling;
  telling.id = id;
  telling.title = words(name + ".title", args);
  telling.fix = words((has_words(name + ".fix") ? name : own) + ".fix", args);
  if (has_words(name + ".detail")) telling.detail = words(name + ".detail", args);
  if (has_words(own + ".assumption")) telling.assumption = words(own + ".assumption", args);
  return telling;
}

}  // namespace stageline
