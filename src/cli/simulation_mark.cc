#include "cli/simulation_mark.h"

#include <sys/stat.h>

#include "base/file_sample.h"
#include "base/input_files.h"
#include "base/output_file.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = ".stageline-simulation";
constexpr const char* kFirstLine = "stageline-simulation 1";

// Returns size and sum of a plain file. A link counts as no file, because its target belongs to the user.
std::pair<int64_t, uint32_t> like(const fs::path& file) {
  struct stat st;
  if (lstat(file.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return {-1, 0};
  return {st.st_size, file_sample(file.string(), st.st_size, true)};
}

}  // namespace

SimulationMark::SimulationMark(fs::path folder) : folder_(std::move(folder)) {
  const std::string text = own_file((folder_ / kName).string()).value_or("");
  const std::vector<std::string_view> lines = split(text, '\n');
  for (size_t i = 1; i < lines.size() && lines[0] == kFirstLine && !lines[i].empty(); ++i) {
    const std::string_view line = lines[i];
    int64_t size = 0;
    uint32_t sum = 0;
    const char* const end = line.data() + line.size();
    const auto [after_size, bad_size] = std::from_chars(line.data(), end, size);
    if (bad_size != std::errc{} || after_size == end) return;
    const auto [after_sum, bad_sum] = std::from_chars(after_size + 1, end, sum, 16);
    if (bad_sum != std::errc{} || after_sum == end) return;
    files_.emplace(std::string(after_sum + 1, end), std::pair{size, sum});
  }
}

bool SimulationMark::wrote(const fs::path& file) const {
  const auto [first, last] = files_.equal_range(file.lexically_relative(folder_).string());
  return first != last && std::any_of(first, last, [now = like(file)](const auto& one) { return one.second == now; });
}

Status SimulationMark::leave(const fs::path& folder, const Files& files) {
  std::string text = std::string(kFirstLine) + "\n";
  for (const auto& [name, now_at] : files) {
    const auto [size, sum] = like(now_at);
    char hex[16];
    snprintf(hex, sizeof hex, " %08x ", sum);
    text += std::to_string(size) + hex + fs::path(name).lexically_relative(folder).string() + "\n";
  }
  return write_file((folder / kName).string(), text);
}

}  // namespace stageline
