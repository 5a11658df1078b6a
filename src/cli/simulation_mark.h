// The files that `stageline simulate` wrote into a folder, so that it replaces these and nothing else.
//
// The list is in DIR/.stageline-simulation: a line "stageline-simulation 1", then "size sum name" for each file, with
// the sum of all its bytes. While a simulation replaces another, a name has two lines: what is there is one of the two,
// whenever the program is killed. Such a file does not exist by accident, and a measurement under a name of the list
// has another size or other bytes. Readers skip hidden files.
#pragma once

#include <filesystem>

#include "base/vocabulary.h"

namespace stageline {

class SimulationMark {
 public:
  // Reads the mark of the folder; without a mark it lists no file.
  explicit SimulationMark(std::filesystem::path folder);
  // The file is as a simulation left it.
  bool wrote(const std::filesystem::path& file) const;
  // Lists these files of the folder: the final name of each, and where its bytes are now.
  using Files = std::vector<std::pair<std::string, std::string>>;
  static Status leave(const std::filesystem::path& folder, const Files& files);

 private:
  std::filesystem::path folder_;
  std::multimap<std::string, std::pair<int64_t, uint32_t>> files_;
};

}  // namespace stageline
