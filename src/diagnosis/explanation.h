// The result of explain for a run: where its time went, and findings in the order of their savings.
#pragma once

#include "diagnosis/account_words.h"
#include "model/finding.h"

namespace stageline {

struct Explanation {
  Headline headline;
  Text run;                       // "1f1b · 4 stages × 2 replicas · 4 micro-batches · 32 steps · 2.21 s a step"
  std::vector<SpanPart> parts;    // of the step, as in the headline
  std::vector<Finding> findings;  // by price.saving_ns, else by lost_ns_per_step. Empty: nothing is wrong
  // No faults: the best other schedule and the best other size that would take less time; priced.
  std::vector<Finding> offers;
  std::vector<Finding> others;  // no faults either: what ranks wait for (the bubble, time outside the pipeline)
  int64_t steps = 0;
  double step_ns = 0;  // mean step without outliers; 0 without pipeline cells
  // The mean step that `parts` are shares of, and its steps: of a pipeline without all outliers, also those that a
  // cause explains; else step_ns and steps.
  double parts_of_ns = 0;
  int64_t parts_of_steps = 0;
  double lost_ns = 0;  // the part that all priced causes lose together; for a profile, what its largest finding loses
  double lost_error_ns = 0;
  // The subject of the findings if it is not a whole run with numbered steps; "" otherwise.
  Text note;
  Text opening;             // what the causes cost together; "" where none has a cost
  Text bubble;              // the schedule's own bubble, where it is a large part of the step; "" otherwise
  double bubble_share = 0;  // of parts_of_ns, where `bubble` is set
  Text doubt;               // what these steps are too few to decide; "" when nothing is left open
  Text next;                // what will cost time once the found causes are gone; "" where nothing will
  Account account;          // of the mean period; empty where causes have no price
  double gap_ns = 0;        // the part of the step between its work and the next step's
  double wall_ns = 0;       // mean period of all steps, including long ones
  std::string why_not;      // in words, why causes were not looked for, or have no cost; "" where they have one
  bool unpriced = false;    // causes were looked for, and have no cost
  bool part_read = false;   // some ranks were not read, and what they cost is unknown
  int64_t left_out = 0;     // steps of a pipeline that some rank did not record; they count by length at most

  double lost_share() const { return wall_ns > 0 ? lost_ns / wall_ns : 0; }
};
// Title where nothing was found: "No problem found"; of a few steps, and of a run with excluded steps, only that these
// steps show no problem.
Text quiet_title(const Explanation& e);
// A sentence on the steps that were excluded, or on what a few steps cannot show; "" for other runs.
Text quiet_limits(const Explanation& e);
inline constexpr size_t kMaxFindings = 12;

}  // namespace stageline
