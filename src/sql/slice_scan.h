// Walks over the slices that a query wants: first the conditions, then batches of the rows that pass, lane by lane.
//
//   SliceScan scan(data, kernels);
//   scan.ask(columns, pushed);          what is wanted
//   scan.start(mode);                   where that may lie: stretches of rows
//   while (scan.fill()) … scan.rows()   up to 1024 at a time, all of one rank and, but by name, of one lane
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sql/run_data.h"
#include "sql/slice_filter.h"
#include "sql/slice_rows.h"
#include "sql/table_source.h"

namespace stageline::sql {

class SliceScan {
 public:
  static constexpr int kByName = 1, kBackwards = 2;  // modes of start()

  SliceScan(std::shared_ptr<const RunData> data, bool kernels);
  // Sets what is wanted. Errors: those of add_condition().
  Status ask(const std::vector<SliceColumnSpec>& columns, const std::vector<Pushed>& given);
  void start(int mode);
  // The same walk in pieces of about `rows` slices each, in order; each piece may be walked by its own thread.
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
