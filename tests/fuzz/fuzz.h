// Every fuzzer includes this. A fuzzer is one function from bytes to nothing that dies when a promise is broken:
// FUZZ_TARGET(name) { use data, size; return 0; }. With libFuzzer each is a separate program; fuzz_replay links all of
// them and runs the committed inputs (see CMakeLists.txt).
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#ifdef STAGELINE_FUZZ_REPLAY
#define FUZZ_TARGET(name)                            \
  int fuzz_##name(const uint8_t* data, size_t size); \
  int fuzz_##name(const uint8_t* data, size_t size)
#else
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#endif

// `detail` is anything that becomes a std::string; it is only made when the check fails.
#define FUZZ_CHECK(condition, detail)                                                    \
  do {                                                                                   \
    if (!(condition)) ::stageline::fuzz::fail(__FILE__, __LINE__, #condition, (detail)); \
  } while (false)

namespace stageline::fuzz {

[[noreturn]] inline void fail(const char* file, int line, const char* condition, const std::string& detail) {
  fprintf(stderr, "%s:%d: broken promise: %s\n  %s\n", file, line, condition, detail.c_str());
  abort();
}

// Takes small numbers off the front of the input; zeros when it is used up.
struct Bytes {
  const uint8_t* data;
  size_t size;

  uint8_t byte() {
    if (size == 0) return 0;
    --size;
    return *data++;
  }
  int64_t number() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = (value << 8) | byte();
    return static_cast<int64_t>(value);
  }
  std::string_view rest() const { return {reinterpret_cast<const char*>(data), size}; }
};

// Splits one input into several texts: a text starts after FF FE and one byte that chooses its name. The pair never
// occurs in valid UTF-8, so a mutation rarely makes or breaks one at random. Bytes before the first pair are a text
// with choice 0.
struct NamedText {
  uint8_t choice;
  std::string_view text;
};
inline std::vector<NamedText> split_texts(std::string_view bytes) {
  constexpr std::string_view kMark = "\xff\xfe";
  std::vector<NamedText> texts;
  uint8_t choice = 0;
  for (bool first = true;; first = false) {
    const size_t at = bytes.find(kMark);
    if (!first || at != 0) texts.push_back({choice, bytes.substr(0, at)});
    if (at == std::string_view::npos) return texts;
    bytes.remove_prefix(at + kMark.size());
    choice = bytes.empty() ? uint8_t{0} : static_cast<uint8_t>(bytes[0]);
    if (!bytes.empty()) bytes.remove_prefix(1);
  }
}

// A folder of this process, below $TMPDIR, gone at exit.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stageline-fuzz-XXXXXX").string();
    FUZZ_CHECK(mkdtemp(pattern.data()) != nullptr, pattern);
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  void write(std::string_view name, std::string_view bytes) const {
    const std::string path = *this / name;
    FILE* file = fopen(path.c_str(), "wb");
    if (!file) {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      file = fopen(path.c_str(), "wb");
    }
    FUZZ_CHECK(file != nullptr, path);
    FUZZ_CHECK(bytes.empty() || fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(), path);
    fclose(file);
  }
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry.path());
  }

 private:
  std::string path_;
};

}  // namespace stageline::fuzz
