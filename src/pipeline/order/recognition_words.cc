// What a recognition says in words: the schedule, its sizes, how much of the run follows it, and what is nearly as
// near.
#include <algorithm>

#include "base/counted.h"
#include "base/number.h"
#include "pipeline/order/recognise.h"

namespace stageline {

std::string labels_text(const Recognition& r) {
  if (!r.recognised || !r.own_labels) return {};
  return "micro-batches are labelled " + std::to_string(r.lowest_label) + " to " + std::to_string(r.highest_label) +
         "; the schedule counts those of a step from 0" + (r.renumbered ? ", by the order of their forwards" : "");
}

std::string runner_up_text(const Recognition& r) {
  if (!r.recognised || r.best().score >= 1 || r.candidates.size() < 2) return {};
  for (size_t c = 1; c < r.candidates.size(); ++c) {
    const ScheduleCandidate& other = r.candidates[c];
    const bool same = std::find(r.same_as.begin(), r.same_as.end(), other.name) != r.same_as.end();
    if (same || other.score < r.best().score - kNearlyAsNear ||
        other.order_score < r.best().order_score - kNearlyAsNear)
      continue;
    return other.name + " (" + fixed(other.score * 100, 1) + "\u202f%)";
  }
  return {};
}

std::string recognition_share(const Recognition& r) {
  if (!r.recognised) return {};
  const double equal = static_cast<double>(r.best().equal_lists) / static_cast<double>(std::max<int64_t>(1, r.lists));
  return r.best().name + ", " + fixed(equal * 100, equal == 1 ? 0 : 1) + "\u202f%";
}

std::string recognition_text(const Recognition& r) {
  if (r.candidates.empty()) return {};
  const ScheduleCandidate& best = r.best();
  const auto sizes = [](const ScheduleCandidate& c) {
    std::string text = ", " + counted(c.sizes.stages, "stage", "stages") + ", " +
                       counted(c.sizes.micro_batches, "micro-batch", "micro-batches");
    if (c.sizes.chunks > 1)
      text += c.layout == ChunkLayout::kBidirectional ? ", 2 directions"
                                                      : ", " + std::to_string(c.sizes.chunks) + " chunks";
    if (c.sizes.group > 0 && c.sizes.group != c.sizes.stages) text += ", groups of " + std::to_string(c.sizes.group);
    return text;
  };
  if (!r.recognised)
    return "not recognised; nearest is " + best.name + " with " + fixed(best.score * 100, 1) + "\u202f%";
  const double equal = static_cast<double>(best.equal_lists) / static_cast<double>(std::max<int64_t>(1, r.lists));
  std::string text = best.name + sizes(best) + ", " + fixed(equal * 100, equal == 1 ? 0 : 1) + "\u202f% of lists match";
  if (best.equal_lists < r.lists) text += " (score " + fixed(best.score * 100, 1) + "\u202f%)";
  for (const std::string& other : r.same_as) text += (&other == &r.same_as.front() ? "; as well " : ", ") + other;
  if (const std::string near = runner_up_text(r); !near.empty()) text += "; " + near + " is nearly as near";
  if (r.renumbered) text += "; micro-batches renumbered by their order";
  return text;
}

}  // namespace stageline
