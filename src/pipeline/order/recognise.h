// Which schedule did this run follow, and where did it leave it?
//
// Every rank's list of forwards and backwards in every step is compared with the lists of the schedules that the number
// of its warm-up forwards makes plausible. Weight gradients may legitimately move and are left out of the comparison;
// they, and whether backwards were split or overlapped, decide between schedules that are equal otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/words.h"
#include "model/schedule.h"
#include "model/trace.h"
#include "pipeline/order/divergence.h"
#include "pipeline/order/rank_lists.h"

namespace stageline {

struct ScheduleCandidate {
  std::string name;
  ScheduleSizes sizes;
  ChunkLayout layout = ChunkLayout::kLoop;
  double score = 0;        // mean over lists of 1 − edit distance ÷ the longer list's length, of forwards and backwards
  double order_score = 0;  // the same with weight gradients, kinds of backward and overlaps
  int64_t equal_lists = 0;  // lists whose forwards and backwards are exactly those of the schedule
};

struct Recognition {
  int64_t lists = 0;                          // (step, replica, rank) with work
  std::vector<ScheduleCandidate> candidates;  // best first; empty when nothing could be compared
  bool recognised = false;                    // the best one scores at least kRecognisedScore
  LabelRule rule = LabelRule::kDense;         // how the best one numbers the micro-batches
  bool renumbered = false;                    // micro-batch labels were put in the order of their forwards
  // The trace's own labels are not 0, 1, 2, …: the lowest and the highest. Divergences speak of cells by them.
  bool own_labels = false;
  int32_t lowest_label = 0, highest_label = 0;
  // Schedules whose lists are the best one's in every kind and place: nothing in this run tells them apart.
  std::vector<std::string> same_as;
  std::vector<Divergence>
      divergences;  // of the best one, recognised or not, those of most lists first; at most kMostDivergences

  const ScheduleCandidate& best() const { return candidates.front(); }
};

inline constexpr double kRecognisedScore = 0.6;
inline constexpr size_t kMostDivergences = 100;

// Expects sorted cells; stages may be unknown (see work_lists()). Never fails: without lists, with sizes beyond those
// of make_schedule(), or where stages are no more than the order of ranks (Trace::pipeline_stages is 0), there are no
// candidates. Of more than 2048 different lists, evenly spaced ones score the candidates but the best. O(cells log
// cells + candidates · cells · kExactDistance) at worst. `lists` (if given) gets rank_lists() under the rule that the
// best candidate has.
Recognition recognise(const Trace& trace, RankLists* lists = nullptr);

// "1f1b, 4 stages, 8 micro-batches, 100 % of lists match"; "not recognised; nearest …"; "" without candidates.
Text recognition_text(const Recognition& recognition);

// "micro-batches are labelled 100 to 149; the schedule counts them from 0"; "" where labels are the schedule's.
std::string labels_text(const Recognition& recognition);

// The schedule that is nearly as near as one that is not met exactly: "vpp (93.0 %)"; "" when there is none.
std::string runner_up_text(const Recognition& recognition);
inline constexpr double kNearlyAsNear = 0.03;  // of score

// "100 %": the share of lists that match the best candidate. Expects that there is one.
std::string equal_lists_text(const Recognition& recognition);

}  // namespace stageline
