// The items of each part of a profile's bar, step by step: operators with their kernels, collectives, copies, and work
// of the host. The parts themselves are those of the headline.
#pragma once

#include "diagnosis/diff/diff_answer.h"
#include "diagnosis/profile/culprit.h"
#include "facts/run.h"
#include "model/finding.h"

namespace stageline {

struct KernelSum {
  double ns = 0;
  int64_t count = 0;
};

// Times are sums over ranks and steps.
struct PartItem {
  Culprit at;  // where most of it is
  Text label;  // its name for people, where it is not the one that matches
  double ns = 0, at_ns = 0;
  std::map<int32_t, double> of_rank;
  std::map<std::string, KernelSum> kernels;  // by name without parameters; of the host's parts none
  std::vector<double> of_step;               // mean of the ranks
};

struct ProfileParts {
  Headline headline;
  std::vector<int32_t> ranks;
  int32_t late = kUnknown;                             // the rank that the others wait for in collectives
  int64_t steps = 0;                                   // 0: none were recorded, and the recording is one
  int64_t requests = 0;                                // of a server, which stand for steps
  double step_ns = 0;                                  // of a mean step, that shares of the headline's parts refer to
  std::vector<double> lengths;                         // of the steps, mean of the ranks
  std::map<std::string, std::vector<double>> of_step;  // by the part's id: of each step, mean of the ranks
  // By part, and by the name that matches items of two runs: the operator that launched the kernels, the collective,
  // the copy, the call or range in which the host was. The items of a part add up to it.
  std::map<std::pair<std::string, std::string>, PartItem> items;
  std::map<std::string, std::map<int32_t, double>> of_rank;  // of each part, sums over steps
  double recorded_ns = 0;                                    // of all steps and ranks: what sums are parts of

  double step_share(double ns) const { return recorded_ns > 0 ? ns / recorded_ns * step_ns : 0; }
};

// Errors: kBadInput where a run has neither device work nor profiler steps. O(slices) beyond the facts of explain.
Result<ProfileParts> profile_parts(const Run& run, DiffItemsBy by = DiffItemsBy::kOperator);

}  // namespace stageline
