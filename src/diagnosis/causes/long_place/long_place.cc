// Long place of a step: a micro-batch takes longer in every step, on most stages or on one. Or the times of all
// micro-batches of a step follow a shape.
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct LongPlaceOwn {
  Course within = {};        // the shape over the micro-batches of a step; constant: only some are long
  bool every_stage = false;  // of micro-batches that are long on most stages: they are on all of them
  double own_ns = 0;         // mean time of one long cell
};

}  // namespace

void suspect_long_place(CauseScene& scene, std::vector<Suspect>& out) {
  const CellPositions& positions = scene.times.positions();
  for (size_t i = 0; i < std::min(positions.list.size(), kMaxWorkerCauses); ++i) {
    const CellPosition& position = positions.list[i];
    Suspect suspect;
    suspect.cause.kind = &long_place_cause;
    Place place{.kind = position.stage == kUnknown ? PlaceKind::kMicroBatches : PlaceKind::kCells,
                .stage = position.stage,
                .chunk = position.chunk,
                .first = position.micro_batch,
                .last = position.last_micro_batch,
                .cells = position.kind};
    if (position.within.varies()) place.first = place.last = kUnknown;
    suspect.cause.places = {place};
    suspect.cause.figures = {.ratio = position.ratio, .stage = position.stage};
    suspect.cause.own = LongPlaceOwn{position.within, position.every_stage, position.own_ns};
    suspect.cause.certain = true;
    suspect.cause.price.excess_error = position.excess_error;
    // A micro-batch that is long on most stages is assumed to be long where it was not read.
    suspect.without = [&positions, &scene, number = static_cast<uint8_t>(i + 1),
                       everywhere = position.stage == kUnknown](uint32_t op, double& dur, double& delay) {
      const bool unread = everywhere && scene.holds_unread(op), work = is_compute(scene.graph.kind[op]);
      const uint32_t of = unread && !work ? scene.graph.waits(op).front() : op;
      if (positions.of[of] != number) return;
      if (unread && work) delay /= positions.factor[of];
      dur /= positions.factor[of];
    };
    out.push_back(std::move(suspect));
  }
}

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
