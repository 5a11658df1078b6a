#include "diagnosis/causes/slow_stage/slow_stage.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

// Returns whether the stage, or its chunk, holds the end (or, with `end` false, the start) of the model.
bool is_end(const Place& place, const TellContext& context, bool end) {
  const bool known = !context.recognition.candidates.empty();
  const int32_t chunks = known ? context.recognition.best().sizes.chunks : 1, last = context.stages - 1;
  const ChunkLayout layout = known ? context.recognition.best().layout : ChunkLayout::kLoop;
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

// Returns the advice: move layers, unless that saves little or nothing.
Text advice_text(const Cause& c, const SlowStageOwn& own, const Text& end, Args& args) {
  const bool end_first = c.price.fix_brings_little() && !end.empty();
  if (c.sometimes) return words("stage.slow.do.sometimes", args);
  if (c.price.unmovable && c.price.movable_ns > 0) return words("stage.slow.do.later", args);
  if (c.price.unmovable) return end.empty() ? words("stage.slow.do.device", args) : end;
  if (own.one_kind)
    return words("stage.slow.do.one", args.set("otherwise", end_first ? end : words("stage.slow.do.away")));
  // Where moving layers helps little because those at the end of the model are heavy, that end comes first.
  return words(end_first ? "stage.slow.do.end" : "stage.slow.do.move", args);
}

// How sure it is that the stage is heavy.
Text check_text(const Cause& c, const SlowStageOwn& own, bool alone, const Args& args) {
  if (c.sometimes) return words("stage.slow.check.sometimes");
  if (own.one_kind) return words("stage.slow.check.one", args);
  return alone ? words("stage.slow.check.alone") : Text();
}

}  // namespace

Telling tell_slow_stage(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<SlowStageOwn>();
  const Place& place = c.place();
  const bool two = c.places.size() > 1;  // the same layers, once for each direction
  Args args = context.args(c);
  const bool last = is_end(place, context, true);
  const Text end = last                            ? words("stage.slow.head")
                   : is_end(place, context, false) ? words("stage.slow.embedding")
                                                   : Text();
  args.flag("two", two).set("end", end).flag("as_fast", c.sometimes || c.price.unmovable);
  if (two) args.set("mirror", int64_t{c.places[1].stage});
  if (own.one_kind) args.set("one", cell_text(own.kinds.front().kind));
  args.set("who", words(last ? "stage.slow.who.last" : "stage.slow.who", args));
  args.set("compared", words("stage.slow.compared", args)).set("do", advice_text(c, own, end, args));
  const Text kinds = kinds_text(own);
  args.set("takes", kinds.empty() ? words("stage.slow.takes", args) : kinds).set("layers", c.price.fix.words);
  if (c.price.saving_ns > 0) args.set("evens", words("stage.slow.saves.evens", args));
  const char* unmovable = c.price.movable_ns > 0 ? "stage.slow.unmovable.now" : "stage.slow.unmovable";
  args.set("moving", c.price.unmovable ? words(unmovable, args) : Text());
  args.set("check", check_text(c, own, context.replicas <= 1 && !two, args));
  Telling telling = say_cause("stage.slow", "stage.slow", args);
  if (two) telling.title = words("stage.slow.two.title", args);
  for (const Cause* further : causes.subspan(1)) telling.more += words("stage.slow.further", context.args(*further));
  if (causes.size() > 1 && c.price.joint_ns > 0)
    telling.more += words("stage.slow.joint", Args().set("joint", context.share(c.price.joint_ns)));
  telling.table = {"waterfall", "waterfall-stages"};
  return telling;
}

}  // namespace stageline
