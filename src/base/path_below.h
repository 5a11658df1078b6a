// Checks paths that come from outside: from a page in a browser, or from an agent. They may lead only below certain
// folders.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

inline constexpr size_t kMaxPathEntries = 1'000'000;

// Returns true when a real path is one of the `roots` (real paths of folders) or lies below one.
bool is_below(const std::vector<std::string>& roots, std::string_view real_path);

// Returns the real path of a file or folder below the roots. Everything in a folder is examined, because no link in it
// may lead out; a folder of more than `max_entries` entries is refused. 0 is for callers that do not read the folder:
// then its content is not examined. Errors: kNotFound, in words that follow a path; for a path outside, the message
// does not reveal if it exists. O(entries).
Result<std::string> path_below(const std::vector<std::string>& roots, const std::string& path,
                               size_t max_entries = kMaxPathEntries);

}  // namespace stageline
