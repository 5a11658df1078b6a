// Paths that somebody else names: a page in a browser, an agent. They may lead below certain folders and nowhere else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

inline constexpr size_t kMostPathEntries = 1'000'000;

// Whether a real path is one of the `roots`, which are real paths of folders, or lies below one.
bool is_below(const std::vector<std::string>& roots, std::string_view real_path);

// The real path of a file or folder below the roots. Of a folder everything in it is looked at, at most `most_entries`
// (0: nothing, where nobody reads what is in it): no link may lead out. Errors: kNotFound, in words that follow a path;
// what lies elsewhere is not even said to be there or not. O(entries).
Result<std::string> path_below(const std::vector<std::string>& roots, const std::string& path,
                               size_t most_entries = kMostPathEntries);

}  // namespace stageline
