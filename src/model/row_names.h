// Names of recorded rows as people know them.
#pragma once

#include "base/string_pool.h"

namespace stageline {

inline constexpr std::string_view kDataLoader = "DataLoader";

// Returns "DataLoader" for torch's rows around the wait for a batch, "enumerate(DataLoader)#_SingleProcess….__next__",
// and for those of our recorder; other names as they are.
inline std::string_view phase_name(std::string_view row) {
  constexpr std::string_view kEnumerate = "enumerate(";
  if (row == "data wait") return kDataLoader;
  const size_t end = row.find(")#");
  return row.starts_with(kEnumerate) && end != row.npos ? row.substr(kEnumerate.size(), end - kEnumerate.size()) : row;
}

// Whether a DataLoader with worker processes is among the names of a run's rows.
inline bool has_loader_processes(const StringPool& names) {
  for (StringId id = 0; id < names.size(); ++id)
    if (names.text(id).find("_MultiProcessingDataLoaderIter") != std::string_view::npos) return true;
  return false;
}

}  // namespace stageline
