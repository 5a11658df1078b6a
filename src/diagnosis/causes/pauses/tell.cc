#include "diagnosis/causes/pauses/pauses.h"
#include "diagnosis/causes/place_text.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

// "rank 1's F0, rank 2's B1 and 3 more"
Text places_text(const PausesOwn& own, const Trace& trace) {
  constexpr size_t kShown = 2;
  Text text;
  for (size_t i = 0; i < std::min(own.at.size(), kShown); ++i) {
    const Cell cell = trace.cells.at(own.at[i]);
    Args args;
    args.set("rank", int64_t{trace.parts[cell.part].rank}).set("cell", cell_label(cell, cell.chunk > 0));
    const Text next = words("place", args);
    const bool last = own.at.size() == kShown;
    text = i == 0 ? next : words(last ? "place.and" : "place.comma", Args().set("some", text).set("next", next));
  }
  if (own.at.size() > kShown) text += words("place.more", Args().set("more", grouped(own.at.size() - kShown)));
  return text;
}

Telling tell(const Cause& c, const PausesOwn& own, Args& args, const TellContext& context) {
  const int32_t rank = c.figures.rank;
  Telling telling;
  if (own.first_of_step) {  // of one rank: what it does before its step begins
    args.set("name", c.places.back().name).set("late_in_steps", in_steps_text(c.in_steps));
    telling = say_cause("host.pauses", "host.pauses.first", args);
    telling.rank = rank;
  } else if (!own.at.empty()) {  // a garbage collector would not choose one place either
    args.set("places", places_text(own, context.trace)).flag("one_place", own.at.size() == 1);
    args.flag("numbered", context.trace.diagnostics.count("cells.schedule") > 0);
    telling = say_cause("host.pauses", "host.pauses.place", args);
    telling.rank = context.trace.parts[context.trace.cells.at(own.at[0]).part].rank;
  } else if (rank != kUnknown) {  // one rank alone, which no garbage collector would choose
    args.set("named", own.name.empty() ? Text{} : words("host.pauses.named", args));
    telling = say_cause("host.pauses", "host.pauses.rank", args);
  } else {
    telling = say_cause("host.pauses",
                        own.collector       ? "host.pauses.collector"
                        : c.or_else.empty() ? "host.pauses.many"
                                            : "host.pauses.guessed",
                        args);
  }
  if (!own.at_steps.empty()) telling.step = own.at_steps.front();
  return telling;
}

}  // namespace

Telling tell_pauses(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<PausesOwn>();
  Args args = context.args(c);
  args.set("name", own.name).set("ranks", grouped(own.ranks)).flag("guessed", !c.or_else.empty());
  if (!c.or_else.empty()) {
    const Place& link = c.or_else.front();
    args.set("from", int64_t{link.from_stage}).set("stage", int64_t{link.stage}).flag("both_ways", link.both_ways);
    args.set("where", place_text(link, context.trace.context_parallel > 1));
  }
  std::vector<std::string> steps;
  for (const int32_t step : own.at_steps) steps.push_back(std::to_string(step));
  if (!steps.empty()) args.set("in", some_of(steps, steps.size())).flag("in_one", steps.size() == 1);
  Telling telling = tell(c, own, args, context);
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
