#include "diagnosis/causes/cause.h"

#include <algorithm>

namespace stageline {

std::string_view cause_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kSlowStage: return "slow stage";
    case CauseKind::kSlowWorker: return "slow worker";
    case CauseKind::kSlowLink: return "slow link";
    case CauseKind::kLongSequences: return "long sequences";
    case CauseKind::kPauses: return "pauses";
    case CauseKind::kLateWorker: return "late launches";
    case CauseKind::kLateStarts: return "late starts";
    case CauseKind::kOrder: return "wrong order";
    case CauseKind::kUnsplit: return "unsplit backwards";
    case CauseKind::kBetweenSteps: return "time between steps";
    case CauseKind::kTail: return "exposed tail";
    case CauseKind::kMessageTail: return "late messages";
    case CauseKind::kPosition: return "long place of a step";
    case CauseKind::kRouting: return "uneven data";
    case CauseKind::kSlowGroup: return "slow ranks together";
    case CauseKind::kAllSlow: return "all ranks slower";
    case CauseKind::kBlockingSends: return "blocking sends";
  }
  return "";
}

void sort_causes(std::vector<Cause>& causes) {
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) {
    return a.price_ns() != b.price_ns() ? a.price_ns() > b.price_ns() : a.lost_ns > b.lost_ns;
  });
}

}  // namespace stageline
