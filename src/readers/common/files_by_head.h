// Chooses files of formats that are known by their first 64 KiB.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "readers/common/read_files.h"
#include "readers/reader.h"

namespace stageline {

// Certain where `looks` knows the head of a file.
template <class Looks>
Match sniff_heads(const Source& source, Looks looks) {
  for (size_t i = 0; i < source.files.size(); ++i)
    if (looks(source.head(i))) return Match::kCertain;
  return Match::kNo;
}
// The paths of these files, whose bytes are reported to the progress. Others that the user named count as `unusable`.
template <class Looks>
std::vector<std::string> files_that(Looks looks, const Source& source, const ReadOptions& options,
                                    const Problem& unusable, Diagnostics& diagnostics) {
  std::vector<std::string> paths;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (looks(source.head(i)))
      chosen.push_back(i), paths.push_back(source.files[i].path);
    else if (source.files[i].given)
      diagnostics.add(unusable, {source.files[i].path});
  expect_bytes(source, chosen, options.progress);
  return paths;
}

}  // namespace stageline
