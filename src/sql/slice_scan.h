// Walks over the slices that a query wants: first the conditions, then batches of the rows that pass, lane by lane.
//
//   SliceScan scan(data, kernels);
//   scan.ask(columns, pushed);          what is wanted
//   scan.start(mode);                   where that may lie: stretches of rows
//   while (scan.fill()) … scan.rows()   up to 1024 at a time, all of one rank and, but by name, of one lane
#pragma once

#include "sql/slice_rows.h"

namespace stageline::sql {

using ClassSet = std::array<bool, kKernelClassCount>;  // for each KernelClass whether it passes

// The filter of a query on slices: conditions that SQLite pushes down, as the cursor tests them. A condition that is
// not set lets all slices pass.
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

class SliceScan {
 public:
  static constexpr int kByName = 1, kBackwards = 2;  // modes of start()

  SliceScan(std::shared_ptr<const RunData> data, bool kernels);
  // Sets what is wanted. Errors: those of add_condition().
  Status ask(const std::vector<SliceColumnSpec>& columns, const std::vector<Pushed>& given);
  void start(int mode);
  // Returns the same walk in pieces of about `rows` slices each, in order; each piece may be walked by its own thread.
  std::vector<SliceScan> pieces(size_t rows) const;

  // Finds the next rows that pass; false where there are no more.
  bool fill();
  std::span<const uint32_t> rows() const { return {batch_rows_.data(), found_count_}; }
  size_t part() const { return stretches_[row_stretch_].part; }
  size_t lane() const { return stretches_[row_stretch_].lane; }  // SIZE_MAX: rows may be of any lane

 private:
  static constexpr size_t kMaxBatchRows = RunData::kBlock;  // rows that are looked at together

  // Slices of one lane, or of one name in one rank: entries [begin, end) of `rows`, or of the part itself (null).
  struct Stretch {
    size_t part = 0, lane = SIZE_MAX, begin = 0, end = 0;  // lane: SIZE_MAX: any
    const std::vector<uint32_t>* rows = nullptr;
  };

  bool wants_part(size_t p) const;
  bool wants_lane(const Lane& lane) const;
  const std::vector<uint32_t>* rows_of(size_t p) const;
  void find_one(int64_t id);
  void add_lanes(size_t p);
  void narrow_stretch(Stretch& s) const;
  void order_by_name(const std::vector<size_t>& parts, bool backwards);
  void enter(const Stretch& s);
  size_t passing(const Stretch& stretch, size_t count);

  std::shared_ptr<const RunData> data_;
  const Trace* trace_;
  bool kernels_;
  SliceFilter filter_;
  std::vector<Stretch> stretches_;
  std::vector<std::shared_ptr<const std::vector<uint32_t>>> by_name_;
  std::vector<uint8_t> steps_, streams_;  // of the current part: whether each is wanted
  size_t stretch_ = 0, at_ = 0, batch_ = 64;
  size_t found_count_ = 0, row_stretch_ = 0;
  std::array<uint32_t, kMaxBatchRows> batch_rows_ = {};
};

}  // namespace stageline::sql
