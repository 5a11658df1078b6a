// What a query asks of slices, as the cursor looks at it: conditions of SQLite's, pushed down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sql/run_data.h"
#include "sql/slice_rows.h"
#include "sql/table_source.h"

namespace stageline::sql {

// What slices have to be. Each condition that is not set lets all pass.
struct SliceTest {
  int64_t low_ns = INT64_MIN, high_ns = INT64_MAX;          // start, as SQL has it
  int64_t end_low_ns = INT64_MIN, end_high_ns = INT64_MAX;  // end
  int64_t dur_low_ns = INT64_MIN, dur_high_ns = INT64_MAX;
  int64_t rank_low = INT64_MIN, rank_high = INT64_MAX;
  int64_t step_low = INT64_MIN, step_high = INT64_MAX;
  std::vector<uint8_t> names;                  // by id, where some are left out
  std::vector<uint8_t> categories;             // likewise
  std::optional<std::array<bool, 8>> classes;  // by KernelClass
  std::optional<int64_t> stream, parent, launch, op, correlation, device, name_id, id;
  std::optional<std::string> lane, lane_kind, tid;
  bool nothing = false;  // a value that no slice has

  bool any_step() const { return step_low != INT64_MIN || step_high != INT64_MAX; }
};

// 1 where `fits` says so of the text, for each text once; what a former condition left out stays out.
template <class Text, class Fits>
void keep_texts(std::vector<uint8_t>& kept, size_t count, const Text& text, const Fits& fits) {
  if (kept.empty()) kept.assign(count, 1);
  for (size_t i = 0; i < count; ++i)
    if (kept[i]) kept[i] = fits(text(i));
}

// Which fields a constraint of an operator can be pushed for, and whether SQLite need not look again.
struct Push {
  bool taken = false, exact = false;
};
Push push_of(SliceColumn field, uint8_t op, bool binary);

// Adds a condition of those that push_of() takes. Errors: kUsage for what is no expression.
Status add_test(SliceTest& test, const Trace& trace, SliceColumn field, uint8_t op, sqlite3_value* value);

}  // namespace stageline::sql
