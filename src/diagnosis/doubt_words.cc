#include "diagnosis/doubt_words.h"

#include "base/number.h"
#include "diagnosis/account_words.h"
#include "diagnosis/causes/place_text.h"
#include "diagnosis/share_findings.h"

namespace stageline {
namespace {

constexpr int64_t kManySteps = 20;  // with this many steps, more would not help

Text suspicion(const Cause& c) {
  return words("suspicion." + std::string(c.kind->id), Args().set("where", place_text(c.place())));
}

}  // namespace

Text doubt_words(const CauseList& causes) {
  if (causes.not_analysable || !(causes.step_ns > 0)) return {};
  Args args;
  args.flag("few", causes.steps < kManySteps);
  args.set("steps", words("steps", Args().set("count", grouped(causes.steps)).flag("one", causes.steps == 1)));
  if (!causes.doubtful.empty()) {
    const Cause& c = causes.doubtful.front();
    args.set("what", suspicion(c)).set("share", percent(c.price.lost_ns / causes.step_ns));
    return words("doubt.cause", args);
  }
  // An estimate that may be off by more than the least cost worth telling could hide a cause.
  for (const Cause& c : causes.causes)
    if (const double off_ns = c.price.half_interval_ns(c.price.lost_ns, c.price.lost_error_ns, causes.steps);
        c.estimated && off_ns >= kMinLost * causes.step_ns)
      return words("doubt.estimate", args.set("share", percent(off_ns / causes.step_ns)));
  double jitter = 0;
  for (const AccountLine& line : undealt(causes))
    if (line.id == "jitter") jitter += line.ns / causes.step_ns;
  if (jitter < kLargePart) return {};
  return words("doubt.jitter", args.set("share", percent(jitter)));
}

Text hidden_words(const CauseList& causes) {
  if (causes.hidden.empty()) return {};
  const Cause& c = causes.hidden.front();
  Args args;
  args.set("what", suspicion(c)).set("share", percent(c.price.lost_ns / causes.step_ns));
  return words("doubt.hidden", args.flag("one", causes.causes.size() == 1));
}

}  // namespace stageline
