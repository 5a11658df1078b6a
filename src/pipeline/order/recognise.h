// Recognises which schedule a run followed, and where it left it.
//
// Every rank's list of forwards and backwards in every step is compared with the lists of those schedules that its
// number of warm-up forwards makes plausible. Weight gradients may be moved without breaking a schedule, so they are
// left out of this comparison. They decide, together with whether backwards were split or overlapped, between schedules
// that are otherwise equal.
#pragma once

#include "model/schedule.h"
#include "pipeline/order/rank_lists.h"

namespace stageline {

struct ScheduleCandidate {
  std::string name;
  ScheduleSizes sizes;
  ChunkLayout layout = ChunkLayout::kLoop;
  double score = 0;  // mean over lists of 1 − edit distance ÷ length of the longer list, over forwards and backwards
  double order_score = 0;   // the same with weight gradients, kinds of backward and overlaps
  int64_t equal_lists = 0;  // lists whose forwards and backwards are exactly those of the schedule
};

struct Recognition {
  int64_t lists = 0;                          // how many lists (step, replica, rank) have work
  std::vector<ScheduleCandidate> candidates;  // the best first; empty when nothing could be compared
  bool recognised = false;                    // the best candidate scores at least kRecognisedScore
  LabelRule rule = LabelRule::kDense;         // how the best candidate numbers the micro-batches
  bool renumbered = false;                    // labels of micro-batches were replaced by the order of their forwards
  // True when the trace's own labels are not 0, 1, 2, …; below are the lowest and the highest of them. Divergences use
  // these labels.
  bool own_labels = false;
  int32_t lowest_label = 0, highest_label = 0;
  // Schedules whose lists are those of the best candidate in every kind and place, so that this run cannot distinguish
  // them.
  std::vector<std::string> same_as;
  // Divergences from the best candidate, recognised or not; those in most lists come first; at most kMaxDivergences.
  std::vector<Divergence> divergences;

  const ScheduleCandidate& best() const { return candidates.front(); }
};

inline constexpr double kRecognisedScore = 0.6;
inline constexpr size_t kMaxDivergences = 100;

// Finds the schedule. Expects sorted cells; stages may be unknown (see work_lists()). It never fails. There are no
// candidates if there are no lists, if sizes exceed those of make_schedule(), or if stages are only the order of ranks
// (Trace::pipeline_stages is 0). When there are more than 2048 different lists, evenly spaced ones of them score all
// candidates but the best. It takes at worst O(cells log cells + candidates · cells · kExactDistance). `lists`, if
// given, receives rank_lists() under the best candidate's rule.
Recognition recognise(const Trace& trace, RankLists* lists = nullptr);

// Returns "1f1b, 4 stages, 8 micro-batches, 100 % of lists match" or "not recognised; nearest …"; "" without
// candidates.
Text recognition_text(const Recognition& recognition);
// Returns why no schedule was recognised.
Text why_not_recognised(const Recognition& recognition);

// Returns "micro-batches are labelled 100 to 149; the schedule counts them from 0"; "" where labels are the schedule's.
std::string labels_text(const Recognition& recognition);

// When the best schedule is not met exactly, returns another that is nearly as near, "vpp (93.0 %)"; "" when there is
// none.
std::string runner_up_text(const Recognition& recognition);
inline constexpr double kNearlyAsNear = 0.03;  // in units of score

// Returns the share of lists that match the best candidate, "100 %". Expects that there is a candidate.
std::string equal_lists_text(const Recognition& recognition);

}  // namespace stageline
