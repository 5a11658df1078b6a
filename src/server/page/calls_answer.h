// The call trees of a run, and of a second one, as the page draws them: /api/calls (docs/viewer-protocol.md).
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "facts/run.h"
#include "server/http/query.h"

namespace stageline {

class Timeline;

// How much an answer may contain: most values (nodes × ranks); but with few ranks at most `max_nodes` nodes, and with
// many ranks at least `min_nodes`.
struct CallsBudget {
  size_t max_values, max_nodes, min_nodes;
};
inline constexpr CallsBudget kServedCalls{4'000'000, 100'000, 4'000};
// For a report; a value takes some 5 bytes of the compressed file.
inline constexpr CallsBudget kPageCalls{60'000, 10'000, 1'000};

// `other` is a second run whose ranks become columns too; nullptr: none. Errors: kUnavailable where `run` has no calls.
Result<std::string> calls_answer(const Run& run, const Run* other, const CallsBudget& budget);

// The calls of lanes of the timeline within a window of it, of the run as it is drawn. Errors: kUsage.
Result<std::string> area_calls_answer(const Trace& trace, const Timeline& timeline, const Query& query,
                                      const CallsBudget& budget);

}  // namespace stageline
