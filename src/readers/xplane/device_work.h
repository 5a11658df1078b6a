// The kinds of events of a device's lines: kernels, copies, collectives, and ops that enclose others.
#pragma once

#include "readers/common/op_names.h"
#include "readers/common/part_builder.h"
#include "readers/xplane/events.h"

namespace stageline::xplane {

inline constexpr int64_t kMaxPs = INT64_MAX / 4;

// Returns for each event of a line whether others lie in it. Among XLA's ops, a loop or call encloses what it runs; the
// innermost ops are the work.
std::vector<bool> enclosing_events(const Plane& plane, const LineHead& line, const StatKeys& keys);

KernelFact kernel_of(const Facts& facts, uint32_t row, PartBuilder& out);

// The bytes that a copy moves, or that a memset sets; −1: unknown.
int64_t copied_bytes(const Facts& facts, bool is_copy);

CollectiveFact collective_of(const Facts& facts, std::string_view opcode, uint32_t row, PartBuilder& out);

}  // namespace stageline::xplane
