// Parts of what processes say of themselves without a profiler: spans of tasks, as calls of the host.
#pragma once

#include "readers/common/part_builder.h"

namespace stageline {

struct HostSpan {
  int64_t start_ns = 0, end_ns = 0;
  uint64_t task = 0;  // a request of a server, a task of an event loop: tasks overlap each other
  std::string_view name;
  int64_t step = -1;  // of a span that is a whole step
};

// Adds spans in lanes of a process, where those of one lane nest and are of one task until that has ended, so that
// none is drawn inside another task's. Spans that need more than 64 lanes share the last one. The builder's kinds are
// gpu_rows::kKinds. O(64 · n).
void add_host_spans(int64_t pid, std::vector<HostSpan> spans, PartBuilder& builder);

// Makes the builder's rows the next part of the trace.
void finish_host_part(PartBuilder& builder, int64_t rank, const std::string& host, Trace& trace);

// Names the first eight of the ranks below `size` that are missing: "1, 4"; "" if none is.
std::string missing_ranks(const std::set<int64_t>& ranks, int64_t size);

// Numbers the machines. The clock is one where all parts name the same host.
void settle_hosts(Trace& trace);

}  // namespace stageline
