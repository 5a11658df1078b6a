#include <algorithm>

#include "diagnosis/causes/slow_link/slow_link.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

namespace {

Args args_of(const Cause& c, const Told& told) {
  const auto& own = c.own.as<SlowLinkOwn>();
  Args args = told.args(c);
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
bool is_one_direction(std::span<const Cause* const> all, const Told& told) {
  if (told.stages < 3 || all.size() + 1 != static_cast<size_t>(told.stages)) return false;
  const int32_t way = all.front()->place().from_stage < all.front()->place().stage ? 1 : -1;
  return std::all_of(all.begin(), all.end(), [&](const Cause* c) {
    const Place& place = c->place();
    return !place.both_ways && place.replica == kUnknown && place.stage - place.from_stage == way;
  });
}

}  // namespace

Telling tell_slow_link(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  Args args = args_of(c, told);
  Telling said = say_cause("link.slow", "link.slow", args);
  if (c.own.as<SlowLinkOwn>().unrecorded) said.title = words("link.slow.inferred.title", args);
  if (is_one_direction(causes, told) && !c.lost_course.varies()) {
    const bool forward = c.place().from_stage < c.place().stage;
    said.title = words(forward ? "link.slow.forward.title" : "link.slow.backward.title", args);
    said.detail = words("link.slow.direction.detail", args);
  }
  for (const Cause* further : causes.subspan(1)) {
    said.more += words("link.slow.further", args_of(*further, told));
  }
  if (causes.size() > 1 && c.price.joint_ns > 0) {
    Args joint;
    joint.set("joint", told.share(c.price.joint_ns)).set("alone", told.share(c.price.lost_ns));
    said.more += words("link.slow.joint", joint);
  }
  said.table = {"links", ""};
  return said;
}

}  // namespace stageline
