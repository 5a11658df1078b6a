// What `stageline simulate` wrote into a folder, so that it replaces that and nothing else.
//
// The list stands in DIR/.stageline-simulation: a line "stageline-simulation 1", then "size sample name" for each file,
// where the sample is that of base/file_sample.h. Nobody has such a file by chance, and a measurement that was put
// under a name of the list is of another size or other bytes. Readers pass hidden files over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stageline {

class SimulationMark {
 public:
  // Of the folder; without a mark it knows no file.
  explicit SimulationMark(std::filesystem::path folder);
  // The file is as a simulation left it.
  bool wrote(const std::filesystem::path& file) const;
  // The list of these files of the folder, as they are now.
  static Status leave(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& files);
  static void remove(const std::filesystem::path& folder);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::pair<int64_t, uint32_t>> files_;
};

}  // namespace stageline
