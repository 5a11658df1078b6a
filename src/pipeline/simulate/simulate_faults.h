// Faults change a simulated run: its order, the duration of a cell, the time before a cell, or a
// message.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "pipeline/simulate/simulate_options.h"

namespace stageline {

// Checks that faults name ranks and stages that the run has, and that their numbers are within limits. Errors: kUsage.
Status check_faults(const SimulateOptions& options);

// Returns the schedule as the faults wrong-order and missing-dw leave it. Errors: kUsage where nothing can be swapped
// or merged.
Result<Schedule> faulty_order(const SimulateOptions& options);

// How much faults may stretch one cell at most, and how much they may add to a cell or a message.
struct FaultLimits {
  double factor = 1;
  int64_t cell_ns = 0, message_ns = 0;
};
FaultLimits fault_limits(const SimulateOptions& options);

// Draws everything random from the seed and from what it happens to, so the order of asking does not matter.
class FaultModel {
 public:
  // `place_of` maps a rank to dp · stages + stage. `options` must outlive the model.
  FaultModel(const SimulateOptions& options, const std::vector<int32_t>& place_of);

  // Returns by how much a cell's cost is multiplied. O(faults).
  double cell_factor(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const;
  double optimizer_factor(int32_t step, int32_t place) const;
  // Returns the time between the moment a cell could start and its start.
  int64_t delay_ns(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const;
  // Returns the time of a message from one stage to another.
  int64_t transfer_ns(int32_t dp, int32_t from, int32_t to) const;
  bool delays() const { return delays_; }
  bool slow_links() const { return slow_links_; }

 private:
  const SimulateOptions& options_;
  std::vector<int32_t> fault_place_;  // for each fault of a rank, the place of that rank
  bool delays_ = false, slow_links_ = false;
};

}  // namespace stageline
