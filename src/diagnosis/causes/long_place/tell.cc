#include "diagnosis/causes/long_place/long_place.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_long_place(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LongPlaceOwn>();
  const Place& place = c.place();
  const bool of_stage = place.kind == PlaceKind::kCells;
  const char* id = of_stage ? "cell.slow" : "micro_batch.slow";
  Args args = context.args(c);
  args.set("own", human_duration(own.own_ns)).flag("every", own.every_stage);
  const std::string code(kind_code(place.cells));
  const bool one_kind = place.cells != CellKind::kOther;
  if (one_kind) args.set("kind", cell_text(place.cells));
  Telling telling;
  if (own.within.varies()) {
    const bool rises = own.within.high > own.within.low, trend = own.within.kind == CourseKind::kTrend;
    const char* changes = trend ? (rises ? "slower" : "faster") : (rises ? "from" : "before");
    args.flag("rises", rises).set("at", own.within.from);
    args.set("work", one_kind ? cell_text(place.cells) : words("micro_batch.slow.work"));
    args.set("changes", words(std::string("micro_batch.slow.within.") + changes, args));
    telling = say_cause(id, "micro_batch.slow.within", args);
  } else {
    const std::string first = std::to_string(place.first), last = std::to_string(place.last);
    args.set("micro_batch", first).set("cell", code + first).flag("first", place.first == 0);
    const bool several = place.last > place.first;
    args.set("last", last).set("last_cell", code + last).flag("plural", several && !one_kind);
    const char* what = several ? "several" : "one";
    args.set("what", words((one_kind ? "micro_batch.slow.kind." : "micro_batch.slow.") + std::string(what), args));
    telling = say_cause(id, id, args);
    if (of_stage && several) telling.title = words("cell.slow.several.title", args);
  }
  telling.table = {"stragglers", "forward-backward"};
  return telling;
}

}  // namespace stageline
