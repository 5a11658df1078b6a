// HTA's own rule for idle time: each gap of a stream has one cause, by the start of the launch that ends it.
#pragma once

#include "model/statistics.h"
#include "model/table.h"
#include "profile/torch_view.h"

namespace stageline {

struct IdleOptions {
  std::vector<int32_t> streams;  // in order; empty: all
  int64_t delay_ns = 30'000;
  bool statistics = false;
  bool wants(int64_t stream) const { return streams.empty() || std::ranges::binary_search(streams, stream); }
};

// "idle-time" and, where they are wanted, "interval-stats". Errors: kBadInput where HTA fails.
Result<std::vector<Table>> hta_idle_tables(const TorchRun& run, const IdleOptions& options);

Description describe_us(const std::vector<int64_t>& gaps_ns);

}  // namespace stageline
