// Puts a recognition into words: the schedule, its sizes, how much of the run follows it, and which schedule is nearly
// as near.
#include "model/pipeline_words.h"
#include "pipeline/order/recognise.h"

namespace stageline {

std::string labels_text(const Recognition& recognition) {
  if (!recognition.recognised || !recognition.own_labels) return {};
  return "micro-batches are labelled " + std::to_string(recognition.lowest_label) + " to " +
         std::to_string(recognition.highest_label) + "; the schedule counts those of a step from 0" +
         (recognition.renumbered ? ", by the order of their forwards" : "");
}

std::string runner_up_text(const Recognition& recognition) {
  if (!recognition.recognised || recognition.best().score >= 1 || recognition.candidates.size() < 2) return {};
  for (size_t c = 1; c < recognition.candidates.size(); ++c) {
    const ScheduleCandidate& other = recognition.candidates[c];
    const bool same = std::ranges::find(recognition.same_as, other.name) != recognition.same_as.end();
    if (same || other.score < recognition.best().score - kNearlyAsNear ||
        other.order_score < recognition.best().order_score - kNearlyAsNear)
      continue;
    return other.name + " (" + fixed(other.score * 100, 1) + "\u202f%)";
  }
  return {};
}

std::string equal_lists_text(const Recognition& recognition) {
  const double equal = recognition.best().equal_lists / static_cast<double>(std::max<int64_t>(1, recognition.lists));
  return fixed(equal * 100, equal == 1 ? 0 : 1) + "\u202f%";
}

Text recognition_text(const Recognition& recognition) {
  if (recognition.candidates.empty()) return {};
  const ScheduleCandidate& best = recognition.best();
  const std::string score = fixed(best.score * 100, 1) + "\u202f%";
  Args args;
  args.set("schedule", best.name).set("score", score);
  if (!recognition.recognised) return words("recognition.none", args);
  const ScheduleSizes& sizes = best.sizes;
  std::string same;
  for (const std::string& other : recognition.same_as) same += (same.empty() ? "" : ", ") + other;
  const std::string near = runner_up_text(recognition);
  args.set("sizes", sizes_text(sizes, best.layout, sizes.group != sizes.stages ? sizes.group : 0));
  args.set("equal", equal_lists_text(recognition)).set("score", best.equal_lists < recognition.lists ? score : "");
  args.set("same", same).set("near", near);
  Text more;
  if (!same.empty()) more += words("recognition.same", args);
  if (!near.empty()) more += words("recognition.near", args);
  if (recognition.renumbered) more += words("recognition.renumbered");
  return words("recognition", args.set("more", more));
}

Text why_not_recognised(const Recognition& recognition) {
  if (recognition.lists == 0) return words("unknown.no_cells");
  if (recognition.candidates.empty()) return words("unknown.sizes");
  return words("unknown.not_recognised", Args().set("recognition", recognition_text(recognition)));
}

}  // namespace stageline
