// The request to `stageline pp-chart`, and its result for every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "engine/engine.h"

namespace stageline {

struct PpChartOptions {
  std::string folder;
  enum class To : uint8_t { kCopies, kTablesAlone, kInPlace } to = To::kCopies;
  std::string output;  // the folder for copies
  bool as_msprof = false;
  std::optional<std::vector<int32_t>> ranks;  // all ranks when absent
  std::optional<int64_t> step;
  // Sizes given by hand; 0 takes the profile's. With as_msprof tp, pp and dp are used when all three are given.
  int32_t micro_batches = 0;
  std::string schedule;  // "1f1b", "dualpipev", …; "" takes the profile's
  OpenOptions open;      // for our own labels: layout, rules for cells
  Progress* progress = nullptr;
};

struct PpChartRank {
  int32_t rank = 0;
  std::string written;  // path of the database; "" when nothing was written
  int64_t blocks = 0, unlabelled = 0;
  int64_t operations = 0, links = 0;  // rows made in COMMUNICATION_OP, and rows of it that have a link
  std::vector<std::string> remarks;   // what first differs from the expected schedule, and what is missing
  std::optional<Error> error;
};

struct PpChart {
  std::vector<PpChartRank> ranks;
  std::string schedule;  // what the labels follow: "dualpipev", "forward and backward"
  int64_t removed = 0;   // databases that an earlier run had left in the folder of copies
  std::string steps;     // when a step was asked for that does not exist, the steps that do: "10, 11"
  Diagnostics notes;
  bool any_blocks() const;
  int64_t unlabelled() const;
};

}  // namespace stageline
