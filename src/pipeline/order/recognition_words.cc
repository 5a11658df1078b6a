// Puts a recognition into words: the schedule, its sizes, how much of the run follows it, and which schedule is nearly
// as near.
#include "model/pipeline_words.h"
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
    const bool same = std::ranges::find(r.same_as, other.name) != r.same_as.end();
    if (same || other.score < r.best().score - kNearlyAsNear ||
        other.order_score < r.best().order_score - kNearlyAsNear)
      continue;
    return other.name + " (" + fixed(other.score * 100, 1) + "\u202f%)";
  }
  return {};
}

std::string equal_lists_text(const Recognition& r) {
  const double equal = r.best().equal_lists / static_cast<double>(std::max<int64_t>(1, r.lists));
  return fixed(equal * 100, equal == 1 ? 0 : 1) + "\u202f%";
}

Text recognition_text(const Recognition& r) {
  if (r.candidates.empty()) return {};
  const ScheduleCandidate& best = r.best();
  const std::string score = fixed(best.score * 100, 1) + "\u202f%";
  Args args;
  args.set("schedule", best.name).set("score", score);
  if (!r.recognised) return words("recognition.none", args);
  const ScheduleSizes& sizes = best.sizes;
  std::string same;
  for (const std::string& other : r.same_as) same += (same.empty() ? "" : ", ") + other;
  const std::string near = runner_up_text(r);
  args.set("sizes", sizes_text(sizes, best.layout, sizes.group != sizes.stages ? sizes.group : 0));
  args.set("equal", equal_lists_text(r)).set("score", best.equal_lists < r.lists ? score : "");
  args.set("same", same).set("near", near);
  Text more;
  if (!same.empty()) more += words("recognition.same", args);
  if (!near.empty()) more += words("recognition.near", args);
  if (r.renumbered) more += words("recognition.renumbered");
  return words("recognition", args.set("more", more));
}

Text why_not_recognised(const Recognition& r) {
  if (r.lists == 0) return words("unknown.no_cells");
  if (r.candidates.empty()) return words("unknown.sizes");
  return words("unknown.not_recognised", Args().set("recognition", recognition_text(r)));
}

}  // namespace stageline
