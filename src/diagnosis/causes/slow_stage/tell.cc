#include "diagnosis/causes/slow_stage/slow_stage.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

// Returns whether the stage, or its chunk, holds the end (or, with `end` false, the start) of the model.
bool is_end(const Place& place, const Told& told, bool end) {
  const bool known = !told.recognition.candidates.empty();
  const int32_t chunks = known ? told.recognition.best().sizes.chunks : 1, last = told.stages - 1;
  const ChunkLayout layout = known ? told.recognition.best().layout : ChunkLayout::kLoop;
  if (layout == ChunkLayout::kBidirectional) {
    if (place.chunk == kUnknown) return place.stage == 0 || place.stage == last;
    return place.stage == (end == (place.chunk == 0) ? last : 0);
  }
  const int32_t chunk = end ? chunks - 1 : 0;
  if (place.chunk != kUnknown && place.chunk != chunk) return false;
  const bool turned = layout == ChunkLayout::kV && chunk % 2 == 1;
  return place.stage == (end != turned ? last : 0);
}

Text kinds_text(const SlowStageOwn& own) {
  Text kinds;
  for (const SlowStageOwn::Kind& kind : own.kinds) {
    Args args;
    args.flag("further", !kinds.empty()).set("kind", cell_text(kind.kind));
    args.set("own", human_duration(kind.own_ns)).set("others", human_duration(kind.others_ns));
    kinds += words("stage.slow.kind", args);
  }
  return kinds;
}

}  // namespace

Telling tell_slow_stage(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<SlowStageOwn>();
  const Place& place = c.place();
  const bool two = c.places.size() > 1;  // the same layers, once for each direction
  Args args = told.args(c);
  args.flag("last", is_end(place, told, true)).flag("first", is_end(place, told, false)).flag("two", two);
  if (two) args.set("mirror", int64_t{c.places[1].stage});
  args.flag("alone", told.replicas <= 1 && !two && !own.one_kind && !c.sometimes);
  if (own.one_kind && !c.sometimes) args.set("one", cell_text(own.kinds.front().kind));
  const Text end = words("stage.slow.end", args);
  // Where moving layers helps little because those at the end of the model are heavy, the words on that end come first.
  args.set("end", end).flag("end_first", c.price.fix_brings_little() && !end.empty());
  args.set("kinds", kinds_text(own)).set("layers", c.price.fix.words);
  Telling said = say_cause("stage.slow", "stage.slow", args);
  for (const Cause* further : causes.subspan(1)) {
    said.more += words("stage.slow.further", told.args(*further));
  }
  if (causes.size() > 1 && c.price.joint_ns > 0)
    said.more += words("stage.slow.joint", Args().set("joint", told.share(c.price.joint_ns)));
  said.table = {"waterfall", "waterfall-stages"};
  return said;
}

}  // namespace stageline
