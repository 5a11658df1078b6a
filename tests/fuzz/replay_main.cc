// fuzz_replay FOLDER…: every file of FOLDER/<fuzzer>/ goes once through that fuzzer.
#include <algorithm>

#include "base/input.h"
#include "fuzz.h"

#define FUZZER(name) int fuzz_##name(const uint8_t* data, size_t size);
#include "fuzzers.def"
#undef FUZZER

namespace {

struct Fuzzer {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};
constexpr Fuzzer kFuzzers[] = {
#define FUZZER(name) {#name, fuzz_##name},
#include "fuzzers.def"
#undef FUZZER
};

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  size_t count = 0;
  for (const Fuzzer& fuzzer : kFuzzers) {
    fuzzer.run(nullptr, 0);
    for (int i = 1; i < argc; ++i) {
      const fs::path folder = fs::path(argv[i]) / fuzzer.name;
      std::error_code missing;
      std::vector<std::string> files;
      for (const auto& entry : fs::directory_iterator(folder, missing)) files.push_back(entry.path().string());
      std::sort(files.begin(), files.end());
      for (const std::string& path : files) {
        FILE* const file = fopen(path.c_str(), "rb");
        FUZZ_CHECK(file != nullptr, path);
        std::string bytes(fs::file_size(path), '\0');
        bytes.resize(fread(bytes.data(), 1, bytes.size(), file));
        fclose(file);
        fprintf(stderr, "%s\n", path.c_str());  // the last one named is the one that failed
        const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
        fuzzer.run(exact.data(), exact.size());
        ++count;
      }
    }
  }
  printf("%zu inputs replayed\n", count);
  return count == 0;
}
