// Runs an exporter into a temporary file and returns the bytes.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/input.h"
#include "exporters/exporter.h"

namespace stageline::testing {

// read_all() unpacks gzip, so `suffix` may end in ".gz".
inline std::string export_to_text(const Trace& trace, const char* exporter, const std::string& suffix) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("stageline_test_" + std::to_string(::getpid()) + suffix)).string();
  const Status status = find_exporter(exporter)->write({trace, trace.diagnostics, {}, {}, {}, {}}, path);
  REQUIRE(status);
  const Result<std::string> bytes = read_all(path, size_t{1} << 28);
  std::filesystem::remove(path);
  REQUIRE(bytes);
  return *bytes;
}

}  // namespace stageline::testing
