// The shared data of all queries of one run: times as SQL shows them, the slices, and results that took long to
// compute.
//
// Times count from the run's first slice (where every rank counts from its own zero, from the rank's first), on the
// common clock where clocks were aligned. A slice's id is the rank's place · 2³² + its place in the rank, as in Python.
#pragma once

#include <mutex>

#include "facts/run.h"

namespace stageline::sql {

class Rows;  // sql/row_table.h

class RunData {
 public:
  // `run` and its trace must not change. `owner` may keep them alive. `paths` are what the user named, for use in
  // commands.
  RunData(std::shared_ptr<const Run> run, std::shared_ptr<const void> owner, std::vector<std::string> paths);
  RunData(const RunData&) = delete;
  RunData& operator=(const RunData&) = delete;

  const Trace& trace() const { return run_->trace(); }
  const std::shared_ptr<const Run>& run() const { return run_; }
  const std::vector<std::string>& paths() const { return paths_; }
  int64_t epoch_ns() const { return epoch_ns_; }  // the timestamp, as recorded, that start_ns = 0 stands for
  bool is_mapped() const { return trace().alignment == AlignState::kMapped; }
  int64_t zero_ns(size_t part) const { return zero_ns_[part]; }
  int64_t time_ns(size_t part, int64_t stamp_ns) const;

  bool has_part(size_t part) const { return in_filter_[part]; }
  // The slices of a part that --ranks, --steps and --range leave, ascending; null: all of them.
  const std::vector<uint32_t>* chosen_rows(size_t part) const;
  // Returns the rows that are device work.
  const std::vector<uint32_t>& device_rows(size_t part) const;
  bool is_device(size_t part, size_t slice) const;
  // For each lane the longest duration, and for every kBlock slices the latest end, as recorded: a search by time uses
  // them to skip slices.
  static constexpr size_t kBlock = 1024;
  struct Bounds {
    std::vector<int64_t> longest_ns, latest_end_ns;
  };
  const Bounds& bounds(size_t part) const;
  // Returns the slice around this one on its lane; kNoSliceIndex: none.
  uint32_t enclosing(size_t part, size_t slice) const;
  size_t lane_of(size_t part, size_t slice) const;
  int64_t self_ns(size_t part, size_t lane, size_t slice) const;  // O(slices within it)

  static constexpr size_t kMaxMade = 512;
  using Made = Result<std::shared_ptr<const Rows>>;
  // Returns the result of `make` for a key, made once for each key; an error is kept as well. Any thread may call;
  // others wait for the same key. Beyond kMaxMade keys, unused results are dropped.
  Made made(const std::string& key, const std::function<Made()>& make) const;

 private:
  struct Slot {
    std::mutex mutex;
    std::unique_ptr<Made> value;
  };
  template <class Value> struct PerPart {
    std::once_flag once;
    Value value;
  };

  std::shared_ptr<const Run> run_;
  std::shared_ptr<const void> owner_;
  std::vector<std::string> paths_;
  std::vector<int64_t> zero_ns_;
  std::vector<bool> in_filter_, is_device_;  // for each part; for each category
  int64_t epoch_ns_ = 0;
  mutable std::vector<PerPart<std::vector<uint32_t>>> chosen_, device_;
  mutable std::vector<PerPart<Bounds>> bounds_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<Slot>> slots_;
};

}  // namespace stageline::sql
