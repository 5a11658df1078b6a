// A temporary folder with files made by the test, and shortcuts to read it.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "readers/reader.h"

class Folder {
 public:
  Folder() {
    char pattern[] = "/tmp/stageline_test_XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string add(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline stageline::Source source_of(const std::vector<std::string>& paths) {
  auto source = stageline::scan_source(paths);
  REQUIRE(source);
  return std::move(*source);
}

inline stageline::Match sniffed(const char* reader, const std::vector<std::string>& paths) {
  return stageline::find_reader(reader)->sniff(source_of(paths));
}

inline stageline::Result<stageline::Trace> read_result(const char* reader, const std::vector<std::string>& paths) {
  return stageline::find_reader(reader)->read(source_of(paths), {});
}

inline stageline::Trace read_with(const char* reader, const std::vector<std::string>& paths) {
  auto trace = read_result(reader, paths);
  REQUIRE_MESSAGE(trace, (trace ? "" : trace.error().text()));
  return std::move(*trace);
}

// Counts cells of one kind.
inline int count_kind(const stageline::Trace& trace, stageline::CellKind kind) {
  int count = 0;
  for (const auto k : trace.cells.kind) count += k == kind;
  return count;
}

// Every cell points to a slice with its own times, parts are in order of rank, cells are sorted.
inline void check_consistent(const stageline::Trace& trace) {
  using namespace stageline;
  for (size_t p = 1; p < trace.parts.size(); ++p) CHECK(trace.parts[p - 1].rank < trace.parts[p].rank);
  int64_t wrong = 0;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const Cell cell = trace.cells.at(i);
    const Slices& slices = trace.parts[cell.part].slices;
    wrong += cell.slice >= slices.size() || slices.start_ns[cell.slice] != cell.start_ns ||
             slices.dur_ns[cell.slice] != cell.end_ns - cell.start_ns;
  }
  CHECK(wrong == 0);
  Cells sorted = trace.cells;
  sorted.sort();
  CHECK(sorted.slice == trace.cells.slice);
  CHECK(sorted.start_ns == trace.cells.start_ns);
}
