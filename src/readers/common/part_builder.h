// Makes a Part of the rows of a profile, which may come in any order from a database or from text exports.
//
//   add(lane, kind, start, end, name) → row      in any order; facts name rows
//   finish() ── lanes in order ── facts by slice ── parent, partner, step, owner (readers/common/relate_slices.h)
//
// Each rank has its own builder, used by one thread. Times are integer nanoseconds since the epoch.
#pragma once

#include "base/text_interner.h"
#include "readers/common/relate_slices.h"

namespace stageline {

// A kind of row: its category in Kineto's words, and its kernel class where that is known beforehand.
struct RowCategory {
  const char* category;
  Category kind;
  KernelClass kernel_class;  // kNone where the class is found by the row's name
};

inline constexpr uint32_t kNoRow = UINT32_MAX;
// Lanes of communication groups are not streams of the device; where a stream number is needed, they get numbers from
// here on.
inline constexpr int64_t kFirstGroupStream = 10000;

// Its SliceFacts have row numbers in `slice` (and TransferFact::op), with texts from text(); finish() moves them to the
// part.
class PartBuilder : public SliceFacts {
 public:
  // `kinds` must outlive the builder; `reader` is the prefix of diagnostics' names, "ascend".
  PartBuilder(std::string source, std::span<const RowCategory> kinds, std::string reader)
      : kinds_(kinds), reader_(std::move(reader)) {
    part.source = std::move(source);
  }

  uint32_t text(std::string_view value) { return texts_.intern(value); }
  std::string_view text_of(uint32_t id) const { return texts_.text(id); }

  // Lanes are numbered in order of first use. A thread's numbers are those of the operating system.
  uint32_t host_lane(int64_t pid, int64_t tid);
  uint32_t stream_lane(int64_t device, int64_t stream);
  uint32_t named_stream_lane(int64_t device, const std::string& name);  // communication_lane()
  // Returns the thread whose number equals its process's, else the first thread; where there is none yet, one is made.
  uint32_t main_thread();

  // Adds a row and returns its number. Returns kNoRow, and counts this in `notes`, when the row cannot be: its time is
  // before the epoch, or there are too many rows. A row that ends before its start gets length zero and is counted.
  // `name` comes from text(); `kind` is an index into the list of kinds.
  uint32_t add(uint32_t lane, size_t kind, int64_t start_ns, int64_t end_ns, uint32_t name,
               uint32_t correlation = kNoCorrelation);
  // Makes room for as many rows. Room that no row takes is never touched, and costs no memory.
  void reserve(size_t rows);
  size_t row_count() const { return start_.size(); }
  int64_t start_of(uint32_t row) const { return start_[row]; }
  uint32_t name_of(uint32_t row) const { return name_[row]; }

  // Makes the host row and the device row of one thing each other's partner, whatever their correlations say.
  void pair(uint32_t host_row, uint32_t device_row) { pairs_.emplace_back(host_row, device_row); }
  // Says that device work or a launch call belongs to this operator.
  void own(uint32_t row, uint32_t operator_row) { owners_.emplace_back(row, operator_row); }
  void link(uint32_t from_row, uint32_t to_row, SliceLinkKind kind) { links_.push_back({from_row, to_row, kind}); }
  // Adds a step of the host. It becomes an annotation on the main thread, unless that thread has a row with its number.
  void step(int64_t number, int64_t start_ns, int64_t end_ns) { steps_.push_back({number, start_ns, end_ns, 0}); }

  Part part;  // identity, metadata, memory, counters and marks (Mark::name from text()) are written to it directly
  Diagnostics notes;

  // Returns the part and empties the builder. `names` receives what adopt_names() and rename_part() need.
  Part finish(FileNames& names);

 private:
  struct LaneKey {
    LaneKind kind;
    int64_t a, b;
    std::string name;
    auto operator<=>(const LaneKey&) const = default;
  };
  uint32_t lane_of(LaneKey key, std::string name, std::string pid, std::string tid);
  std::vector<uint32_t> fill_lanes();
  void add_steps();
  void own_launched(std::vector<uint32_t>& owner) const;
  void pair_slices(const std::vector<uint32_t>& slice);

  std::span<const RowCategory> kinds_;
  std::string reader_;
  TextInterner texts_;
  std::map<LaneKey, uint32_t> lane_ids_;
  LaneKey last_key_{};
  uint32_t last_lane_ = UINT32_MAX;
  std::vector<int64_t> start_, dur_;
  std::vector<uint32_t> name_, correlation_, lane_;
  std::vector<uint8_t> kind_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_, owners_;
  std::vector<SliceLink> links_;
  std::vector<ProfilerStep> steps_;
};

}  // namespace stageline
