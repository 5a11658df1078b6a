#include "diagnosis/causes/long_place/long_place.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_long_place(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LongPlaceOwn>();
  const Place& place = c.place();
  const bool of_stage = place.kind == PlaceKind::kCells;
  const char* id = of_stage ? "cell.slow" : "micro_batch.slow";
  Args args = told.args(c);
  args.set("own", human_duration(own.own_ns)).flag("every", own.every_stage);
  const std::string code(kind_code(place.cells));
  if (place.cells != CellKind::kOther) args.set("kind", cell_text(place.cells));
  Telling said;
  if (own.within.varies()) {
    args.flag("trend", own.within.kind == CourseKind::kTrend).flag("rises", own.within.high > own.within.low);
    said = say_cause(id, "micro_batch.slow.within", args.set("at", static_cast<int64_t>(own.within.from)));
  } else {
    const std::string first = std::to_string(place.first), last = std::to_string(place.last);
    args.set("micro_batch", first).set("cell", code + first).flag("first", place.first == 0);
    if (place.last > place.first) args.set("last", last).set("last_cell", code + last);
    said = say_cause(id, id, args);
  }
  said.table = {"stragglers", "forward-backward"};
  return said;
}

}  // namespace stageline
