// Source: the files that a user named, with the first bytes of each.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct SourceFile {
  std::string path;  // the path with which it can be opened
  std::string rel;   // relative to the root under which it was found: "machine0/workerlog.1"
  int64_t size_bytes = 0;
  bool given = false;  // it was named on the command line itself, and not found in a folder
};

// Limit of the files of a source.
inline constexpr size_t kMaxSourceFiles = 100'000;
// A file of this name marks a folder as copies that `stageline pp-chart` made of the same measurement.
inline constexpr const char* kPpChartMark = "stageline_pp_chart.json";

// The source that the user named: files, addresses of files or of folders in S3 (base/remote_file.h), or folders, of
// which everything two levels deep counts; in natural order. Below that only files count whose names are those of an
// Ascend profiler (is_ascend_file), of XLA's profiles or of traces (*trace.json): these lie at any depth. A truth.csv
// is skipped (scan_source.cc says why), and so is a folder with kPpChartMark unless it is named itself. Limit:
// kMaxSourceFiles files.
struct Source {
  std::vector<std::string> roots;
  std::vector<SourceFile> files;
  std::vector<std::string> unreadable;  // folders and files that may not be opened
  std::vector<std::string> repeated;    // second names of files that are there already; they are left out
  // The entries below a root that cannot be read or are too deep, with reasons: the first kMaxPassed, and how many.
  static constexpr size_t kMaxPassed = 200;
  struct Passed {
    std::string path, rel;
    const char* why = "";        // the name of a sentence
    bool leads_nowhere = false;  // a link whose target is gone: what it led to may be part of the run
  };
  std::vector<Passed> passed;
  int64_t passed_count = 0;
  std::vector<std::string> copies;  // folders below a root that pp-chart filled with copies; they are left out

  static constexpr size_t kHeadBytes = size_t{1} << 16;
  // Returns the first kHeadBytes of a file, decompressed. They are read once and kept.
  std::string_view head(size_t file) const;
  // Returns the error that ended the head before kHeadBytes and before the end of the file, or nullptr. It is
  // compressed data that are damaged or cut, or a file that cannot be read.
  const Error* head_error(size_t file) const;
  // Returns true when the head's bytes are the file's own, because it is not compressed.
  bool head_as_it_is(size_t file) const;
  // Frees the memory of heads once a reader has been chosen: 64 KiB a file. A later head() reads again.
  void forget_heads() const { heads_.clear(); }

 private:
  struct Head {
    std::string bytes;
    std::optional<Error> error;
    bool read = false, compressed = false;
  };
  const Head& head_of(size_t file) const;
  mutable std::vector<Head> heads_;
};

// Returns true for names of an Ascend profiler's files: "ascend_pytorch_profiler_3.db", "analysis.db",
// "profiler_info_3.json", "kernel_details.csv", ….
bool is_ascend_file(std::string_view name);

// Lists the files that `paths` name, in natural order, without opening them but for archives. Patterns that the shell
// left alone are expanded. Errors: kNotFound, kIo, and kLimit beyond kMaxSourceFiles.
Result<Source> scan_source(const std::vector<std::string>& paths);

}  // namespace stageline
