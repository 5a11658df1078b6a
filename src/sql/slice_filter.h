// The filter of a query on slices: constraints that SQLite pushes down, as the cursor tests them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sql/slice_rows.h"
#include "sql/table_source.h"

namespace stageline::sql {

// For each KernelClass whether it passes.
using ClassSet = std::array<bool, kKernelClassCount>;

// Holds the conditions on slices. A condition that is not set lets all of them pass.
struct SliceFilter {
  int64_t low_ns = INT64_MIN, high_ns = INT64_MAX;          // start, in SQL's time
  int64_t end_low_ns = INT64_MIN, end_high_ns = INT64_MAX;  // end
  int64_t dur_low_ns = INT64_MIN, dur_high_ns = INT64_MAX;
  int64_t rank_low = INT64_MIN, rank_high = INT64_MAX;
  int64_t step_low = INT64_MIN, step_high = INT64_MAX;
  std::vector<uint8_t> names;       // for each id whether it passes; empty: all do
  std::vector<uint8_t> categories;  // the same for categories
  std::optional<ClassSet> classes;
  std::optional<int64_t> stream, parent, launch, op, correlation, device, name_id, id;
  std::optional<std::string> lane, lane_kind, tid;
  bool nothing = false;  // some condition asks for a value that no slice has

  bool any_step() const { return step_low != INT64_MIN || step_high != INT64_MAX; }
};

// Sets `kept` to whether `fits` accepts each text, asked once per text; texts that an earlier condition left out stay
// out.
template <class Text, class Fits>
void keep_texts(std::vector<uint8_t>& kept, size_t count, const Text& text, const Fits& fits) {
  if (kept.empty()) kept.assign(count, 1);
  for (size_t i = 0; i < count; ++i)
    if (kept[i]) kept[i] = fits(text(i));
}

// The treatment of a constraint on a field: `taken` if it can be pushed down, `exact` if SQLite need not check again.
struct Push {
  bool taken = false, exact = false;
};
Push push_of(SliceColumn field, uint8_t op, bool binary);

// Adds a condition that push_of() takes. Errors: kUsage for a text that is not a regular expression.
Status add_condition(SliceFilter& filter, const Trace& trace, SliceColumn field, uint8_t op, sqlite3_value* value);

}  // namespace stageline::sql
