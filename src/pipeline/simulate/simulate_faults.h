// What faults do to a simulated run: to its order, to a cell's duration, before a cell, to a message.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "pipeline/simulate/simulate_options.h"

namespace stageline {

// Faults name what the run has, and their numbers are within limits. Errors: kUsage.
Status check_faults(const SimulateOptions& options);

// The schedule as wrong-order and missing-dw leave it. Errors: kUsage where nothing can be swapped or merged.
Result<Schedule> faulty_order(const SimulateOptions& options);

// The most that faults may stretch one cell, and add to it or to one message.
struct FaultLimits {
  double factor = 1;
  int64_t cell_ns = 0, message_ns = 0;
};
FaultLimits fault_limits(const SimulateOptions& options);

// Everything random is a function of the seed and of what it happens to, not of the order of asking.
class FaultModel {
 public:
  // `place_of`: rank → dp · stages + stage. `options` must outlive the model.
  FaultModel(const SimulateOptions& options, const std::vector<int32_t>& place_of);

  // How many times its cost a cell takes. O(faults).
  double cell_factor(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const;
  double optimizer_factor(int32_t step, int32_t place) const;
  // Between the moment a cell could start and its start.
  int64_t delay_ns(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const;
  // Time of a message from one stage to another.
  int64_t transfer_ns(int32_t dp, int32_t from, int32_t to) const;
  bool delays() const { return delays_; }
  bool slow_links() const { return slow_links_; }

 private:
  const SimulateOptions& options_;
  std::vector<int32_t> fault_place_;  // by fault: the place that a rank fault happens to
  bool delays_ = false, slow_links_ = false;
};

}  // namespace stageline
