#include "cli/simulation_mark.h"

#include <sys/stat.h>

#include <charconv>
#include <fstream>

#include "base/file_sample.h"
#include "base/output_file.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = ".stageline-simulation";
constexpr const char* kFirstLine = "stageline-simulation 1";

// Returns size and sample of a plain file. A link counts as no file, because its target belongs to the user.
std::pair<int64_t, uint32_t> like(const fs::path& file) {
  struct stat st;
  if (lstat(file.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return {-1, 0};
  return {st.st_size, file_sample(file.string(), st.st_size)};
}

}  // namespace

SimulationMark::SimulationMark(fs::path folder) : folder_(std::move(folder)) {
  std::ifstream file(folder_ / kName);
  std::string line;
  if (!std::getline(file, line) || line != kFirstLine) return;
  while (std::getline(file, line)) {
    int64_t size = 0;
    uint32_t sample = 0;
    const char* const end = line.data() + line.size();
    const auto [after_size, bad_size] = std::from_chars(line.data(), end, size);
    if (bad_size != std::errc{} || after_size == end) return;
    const auto [after_sample, bad_sample] = std::from_chars(after_size + 1, end, sample, 16);
    if (bad_sample != std::errc{} || after_sample == end) return;
    files_[std::string(after_sample + 1, end)] = {size, sample};
  }
}

bool SimulationMark::wrote(const fs::path& file) const {
  const auto known = files_.find(file.lexically_relative(folder_).string());
  return known != files_.end() && known->second == like(file);
}

Status SimulationMark::leave(const fs::path& folder, const std::vector<fs::path>& files) {
  std::string text = std::string(kFirstLine) + "\n";
  for (const fs::path& file : files) {
    const auto [size, sample] = like(file);
    char hex[16];
    snprintf(hex, sizeof hex, " %08x ", sample);
    text += std::to_string(size) + hex + file.lexically_relative(folder).string() + "\n";
  }
  return write_file((folder / kName).string(), text);
}

void SimulationMark::remove(const fs::path& folder) {
  std::error_code ec;
  fs::remove(folder / kName, ec);
}

}  // namespace stageline
