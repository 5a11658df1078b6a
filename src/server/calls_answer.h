// The call trees of a run, and of a second one, as the page draws them: /api/calls (docs/viewer-protocol.md).
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "facts/run.h"

namespace stageline {

// How much an answer may hold: nodes times ranks, but of few ranks no more nodes, and of many no fewer.
struct CallsBudget {
  size_t most_values, most_nodes, least_nodes;
};
inline constexpr CallsBudget kServedCalls{4'000'000, 100'000, 4'000};
inline constexpr CallsBudget kPageCalls{60'000, 10'000, 1'000};  // of a report: some 5 B of a compressed file each

// `other`: a second run, whose ranks are columns too; nullptr: none. Errors: kUnavailable where `run` has no calls.
Result<std::string> calls_answer(const Run& run, const Run* other, const CallsBudget& budget);

}  // namespace stageline
