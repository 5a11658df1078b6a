// fuzz_replay FOLDER…: every file of FOLDER/<fuzzer>/ goes once through that fuzzer, and every input of the packed
// corpus FOLDER/<fuzzer>.inputs. FOLDER/reader-<name>.inputs is for the fuzzer `reader` with that reader alone.
#include <algorithm>

#include "base/input.h"
#include "fuzz.h"

#define FUZZER(name) int fuzz_##name(const uint8_t* data, size_t size);
#include "fuzzers.def"
#undef FUZZER

namespace {

namespace fs = std::filesystem;

struct Fuzzer {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};
constexpr Fuzzer kFuzzers[] = {
#define FUZZER(name) {#name, fuzz_##name},
#include "fuzzers.def"
#undef FUZZER
};

std::string bytes_of(const std::string& path) {
  FILE* const file = fopen(path.c_str(), "rb");
  FUZZ_CHECK(file != nullptr, path);
  std::string bytes(fs::file_size(path), '\0');
  bytes.resize(fread(bytes.data(), 1, bytes.size(), file));
  fclose(file);
  return bytes;
}

std::vector<std::string> sorted_files(const fs::path& folder) {
  std::error_code missing;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, missing))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

// A vector of exactly this size, so that AddressSanitizer sees a read of the byte after it.
void replay(const Fuzzer& fuzzer, std::string_view bytes, const std::string& place) {
  fprintf(stderr, "%s\n", place.c_str());  // the last place that is named is the one that failed
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  fuzzer.run(exact.data(), exact.size());
}

// Each input of a packed corpus stands after its length, four bytes with the lowest first (run.py writes them).
size_t replay_packed(const Fuzzer& fuzzer, const std::string& path) {
  const std::string bytes = bytes_of(path);
  size_t count = 0;
  for (size_t at = 0; at < bytes.size(); ++count) {
    uint32_t size = 0;
    FUZZ_CHECK(bytes.size() - at >= sizeof size, path);
    memcpy(&size, bytes.data() + at, sizeof size);
    at += sizeof size;
    FUZZ_CHECK(bytes.size() - at >= size, path);
    replay(fuzzer, std::string_view(bytes).substr(at, size), path + ": input " + std::to_string(count));
    at += size;
  }
  return count;
}

size_t replay_folder(const Fuzzer& fuzzer, const fs::path& folder) {
  const std::string name = fuzzer.name;
  size_t count = 0;
  for (const std::string& path : sorted_files(folder / name)) {
    replay(fuzzer, bytes_of(path), path);
    ++count;
  }
  for (const std::string& path : sorted_files(folder)) {
    if (fs::path(path).extension() != ".inputs") continue;
    const std::string stem = fs::path(path).stem().string();
    if (stem == name) count += replay_packed(fuzzer, path);
    if (name == "reader" && stem.starts_with("reader-")) {
      setenv("STAGELINE_FUZZ_READER", stem.c_str() + strlen("reader-"), 1);
      count += replay_packed(fuzzer, path);
      unsetenv("STAGELINE_FUZZ_READER");
    }
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  size_t count = 0;
  for (const Fuzzer& fuzzer : kFuzzers) {
    fuzzer.run(nullptr, 0);
    for (int i = 1; i < argc; ++i) count += replay_folder(fuzzer, argv[i]);
  }
  printf("%zu inputs replayed\n", count);
  return count == 0;
}
