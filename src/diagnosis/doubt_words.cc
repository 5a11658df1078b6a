#include "diagnosis/doubt_words.h"

#include <algorithm>

#include "base/number.h"
#include "diagnosis/share_findings.h"

namespace stageline {
namespace {

constexpr int64_t kManySteps = 20;  // more of them would tell no more

std::string_view name_of(CauseKind kind) {
  switch (kind) {
    case CauseKind::kSlowStage: return "stage";
    case CauseKind::kSlowWorker: return "worker";
    case CauseKind::kSlowLink: return "link";
    case CauseKind::kLongSequences: return "sequences";
    case CauseKind::kPauses: return "pauses";
    case CauseKind::kLateWorker: return "late_worker";
    case CauseKind::kLateStarts: return "late_starts";
    case CauseKind::kOrder: return "order";
    case CauseKind::kUnsplit: return "unsplit";
    case CauseKind::kBetweenSteps: return "between";
    case CauseKind::kMessageTail: return "message_tail";
    case CauseKind::kPosition: return "position";
    case CauseKind::kRouting: return "routing";
    case CauseKind::kSlowGroup: return "group";
    case CauseKind::kAllSlow: return "all";
    case CauseKind::kBlockingSends: return "sends";
    case CauseKind::kTail: return "tail";
  }
  return "";
}
Text suspicion(const Cause& c) {
  return words("suspicion." + std::string(name_of(c.kind)), Args().set("stage", int64_t{c.stage}));
}

}  // namespace

Text doubt_words(const CauseList& causes, const Headline& headline) {
  if (causes.untold || !(causes.step_ns > 0)) return {};
  Args args;
  args.flag("few", causes.steps < kManySteps);
  args.set("steps", words("steps", Args().set("count", grouped(causes.steps)).flag("one", causes.steps == 1)));
  if (!causes.doubtful.empty()) {
    const Cause& c = causes.doubtful.front();
    args.set("what", suspicion(c)).set("share", percent(c.lost_ns / causes.step_ns));
    return words("doubt.cause", args);
  }
  const double jitter = part_share(headline, "jitter");
  const bool explained = std::any_of(causes.causes.begin(), causes.causes.end(), [](const Cause& c) {
    return c.kind == CauseKind::kLongSequences || c.kind == CauseKind::kSlowWorker;
  });
  if (jitter < kLargePart || explained) return {};
  return words("doubt.jitter", args.set("share", percent(jitter)));
}

Text hidden_words(const CauseList& causes) {
  if (causes.hidden.empty()) return {};
  const Cause& c = causes.hidden.front();
  Args args;
  args.set("what", suspicion(c)).set("share", percent(c.lost_ns / causes.step_ns));
  return words("doubt.hidden", args.flag("one", causes.causes.size() == 1));
}

}  // namespace stageline
