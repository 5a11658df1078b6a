// What `stageline pp-chart` is asked for, and what it did to every rank.
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
  std::string output;  // folder of copies
  bool as_msprof = false;
  std::optional<std::vector<int32_t>> ranks;  // absent: all
  std::optional<int64_t> step;
  // Sizes by hand, 0: as the profile says. compat takes tp, pp and dp when all three are given.
  int32_t micro_batches = 0;
  std::string schedule;  // "" as the profile says, "1f1b", "dualpipev", …
  OpenOptions open;      // ours: layout, rules for cells
  Progress* progress = nullptr;
};

struct PpChartRank {
  int32_t rank = 0;
  std::string written;  // the database; "" when nothing was
  int64_t blocks = 0, unlabelled = 0;
  int64_t operations = 0, links = 0;  // rows made in COMMUNICATION_OP; rows of it that have a link
  std::vector<std::string> remarks;   // what first differs from the expected schedule; what is missing
  std::optional<Error> error;
};

struct PpChart {
  std::vector<PpChartRank> ranks;
  std::string schedule;  // what the labels follow: "dualpipev", "forward and backward"
  int64_t removed = 0;   // databases that an earlier run had left in the folder of copies
  std::string steps;     // "10, 11": the steps there are, when one that is not there was asked for
  Diagnostics notes;
  bool any_blocks() const;
  int64_t unlabelled() const;
};

}  // namespace stageline
