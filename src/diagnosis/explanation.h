// What explain says of a run: where its time went, findings in order of what their fix brings.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/account_words.h"
#include "model/finding.h"

namespace stageline {

struct Explanation {
  Headline headline;
  std::string run_en, run_zh;     // "1f1b · 4 stages × 2 replicas · 4 micro-batches · 32 steps · 2.21 s a step"
  std::vector<SpanPart> parts;    // of the step: the headline's
  std::vector<Finding> findings;  // by price.saving_ns, else lost_ns_per_step. Empty: nothing is wrong
  std::vector<Finding> offers;    // no faults: other schedules and sizes that would take less, the best of each; priced
  std::vector<Finding> others;    // what ranks wait for, without a fault: the bubble, what lies outside the pipeline
  int64_t steps = 0;
  double step_ns = 0;  // mean step, outliers left out; 0 without pipeline cells
  double lost_ns = 0;  // of it: to the priced causes together; of a profile: to the largest of its findings
  double lost_error_ns = 0;
  // What the findings stand on where that is not the whole of a run on numbered steps; "" else.
  std::string note_en, note_zh;
  std::string doubt_en, doubt_zh;  // what these steps are too few to tell, a sentence; "" where nothing is left open
  std::string next_en, next_zh;    // what the findings hide and costs time once they are mended; "" where nothing
  Account account;                 // of the mean period; empty where causes have no price
  double gap_ns = 0;               // of the step: between its work and the next one's
  double wall_ns = 0;              // mean period of all steps, long ones too
  std::string why_not;             // why causes were not looked for, in words; "" where they were

  double lost_share() const { return wall_ns > 0 ? lost_ns / wall_ns : 0; }
};
inline constexpr size_t kMostFindings = 12;

}  // namespace stageline
