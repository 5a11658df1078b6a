#include <algorithm>

#include "diagnosis/causes/slow_link/slow_link.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

Args args_of(const Cause& c, const TellContext& context) {
  const auto& own = c.own.as<SlowLinkOwn>();
  Args args = context.args(c);
  args.set("own", human_duration(own.own_ns)).set("others", own.others_ns > 0 ? human_duration(own.others_ns) : "");
  args.flag("unrecorded", own.unrecorded);
  args.set("known", words(own.unrecorded ? "link.slow.unrecorded" : "link.slow.recorded"));
  args.set("compared", words(c.sometimes         ? "link.slow.compared.steps"
                             : own.others_ns > 0 ? "link.slow.compared.links"
                                                 : "link.slow.compared.longer",
                             args));
  return args.flag("part_of_steps", c.in_steps.count > 0 && c.in_steps.count < c.in_steps.all);
}

// Returns whether the slow links are all links between neighbouring stages in one direction.
bool is_one_direction(std::span<const Cause* const> all, const TellContext& context) {
  if (context.stages < 3 || all.size() + 1 != static_cast<size_t>(context.stages)) return false;
  const int32_t way = all.front()->place().from_stage < all.front()->place().stage ? 1 : -1;
  return std::ranges::all_of(all, [&](const Cause* c) {
    const Place& place = c->place();
    return !place.both_ways && place.replica == kUnknown && place.stage - place.from_stage == way;
  });
}

}  // namespace

Telling tell_slow_link(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = args_of(c, context);
  Telling telling = say_cause("link.slow", "link.slow", args);
  if (c.own.as<SlowLinkOwn>().unrecorded) telling.title = words("link.slow.inferred.title", args);
  if (is_one_direction(causes, context) && !c.lost_course.varies()) {
    const bool forward = c.place().from_stage < c.place().stage;
    telling.title = words(forward ? "link.slow.forward.title" : "link.slow.backward.title", args);
    telling.detail = words("link.slow.direction.detail", args);
  }
  for (const Cause* further : causes.subspan(1)) telling.more += words("link.slow.further", args_of(*further, context));
  if (causes.size() > 1 && c.price.joint_ns > 0) {
    Args joint;
    joint.set("joint", context.share(c.price.joint_ns)).set("alone", context.share(c.price.lost_ns));
    telling.more += words("link.slow.joint", joint);
  }
  telling.more += c.price.fix.words;
  telling.table = {"links", ""};
  return telling;
}

}  // namespace stageline
