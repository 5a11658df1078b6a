// A lane of the viewer: columns of slices, laid out in rows. timeline.h makes lanes of a Trace.
#pragma once

#include "server/timeline/timeline_kinds.h"

namespace stageline {

// The slices of a lane at the positions of a row: ascending numbers, stored in little more than a byte each.
//
// Positions are stored in blocks of kTogether. A block stores its first number whole, and for all its numbers the
// distance from it, in one byte each where all of them fit, else in two or four.
class RowSlices {
 public:
  static constexpr size_t kTogether = 32;

  bool empty() const { return blocks_.empty(); }
  // Adds numbers, which must come in ascending order; call finish() after the last one.
  void push(uint32_t slice) {
    pending_.push_back(slice);
    if (pending_.size() == kTogether) close();
  }
  void finish() {
    if (!pending_.empty()) close();
    std::vector<uint32_t>().swap(pending_);
    blocks_.shrink_to_fit();
    bytes_.shrink_to_fit();
  }

  uint32_t at(size_t position) const {
    const Block& block = blocks_[position / kTogether];
    const size_t k = position % kTogether;
    const uint8_t* from = bytes_.data() + size_t{block.at >> 2} * kTogether;
    switch (block.at & 3) {
      case 0: return block.first + from[k];
      case 1: return block.first + wide<uint16_t>(from, k);
      default: return block.first + wide<uint32_t>(from, k);
    }
  }
  size_t bytes() const { return blocks_.size() * sizeof(Block) + bytes_.size(); }

 private:
  struct Block {
    uint32_t first;
    uint32_t at;  // where its distances begin in bytes_, in units of kTogether; the two lowest bits are their width
  };
  static_assert((uint64_t{UINT32_MAX} / kTogether + 1) * 4 <= uint64_t{1} << 30, "places of blocks fit 30 bits");

  template <class T> static uint32_t wide(const uint8_t* from, size_t k) {
    T value;
    std::memcpy(&value, from + k * sizeof value, sizeof value);
    return value;
  }
  template <class T> void put() {
    for (const uint32_t slice : pending_) {
      const T distance = static_cast<T>(slice - pending_.front());
      const auto* raw = reinterpret_cast<const uint8_t*>(&distance);
      bytes_.insert(bytes_.end(), raw, raw + sizeof distance);
    }
    bytes_.resize((bytes_.size() + kTogether - 1) / kTogether * kTogether);
  }
  void close() {
    const uint32_t span = pending_.back() - pending_.front();
    const uint32_t width = span <= UINT8_MAX ? 0 : span <= UINT16_MAX ? 1 : 2;
    blocks_.push_back({pending_.front(), static_cast<uint32_t>(bytes_.size() / kTogether) << 2 | width});
    if (width == 0) put<uint8_t>();
    else if (width == 1) put<uint16_t>();
    else put<uint32_t>();
    pending_.clear();
  }

  std::vector<Block> blocks_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> pending_;
};

inline constexpr int64_t kLatestNs = int64_t{1} << 61;
inline constexpr size_t kBlock = 64;           // positions between two checkpoints of a row
inline constexpr size_t kMaxRowsOfLane = 200;  // deeper slices are counted (ViewLane::hidden) but not drawn
// Clocks of one thread differ by some nanoseconds, so a call may seem to begin before the one before it has ended.
// Neighbours of a row may overlap by less than this, and the earlier one is drawn up to the start of the later one.
inline constexpr int64_t kOverlapNs = 1000;

enum class ViewLaneType : uint8_t { kCells, kStream, kThread, kCounter };

// A timestamp converted to the viewer's time.
inline int64_t relative_ns(int64_t stamp_ns, int64_t zero_ns) {
  if (stamp_ns <= zero_ns) return 0;
  const uint64_t since = stamp_ns - static_cast<uint64_t>(zero_ns);
  return since > static_cast<uint64_t>(kLatestNs) ? kLatestNs : static_cast<int64_t>(since);
}

// Slices of a lane that overlap by less than kOverlapNs, sorted by start, with their ends sorted too.
struct ViewRow {
  RowSlices order;                 // position → slice of the lane; empty: they are equal
  size_t count = 0;                // number of positions
  size_t clipped = 0;              // number of slices that are drawn up to the start of the next one
  std::vector<uint8_t> kinds;      // the kinds that it has, ascending
  std::vector<int64_t> busy_ns;    // [block · kinds + k]: time of kind k before the block, as drawn
  std::vector<uint8_t> longest_2;  // for each block, the number of bits of its longest duration

  size_t slice_at(size_t position) const { return order.empty() ? position : order.at(position); }
  size_t block_count() const { return longest_2.size(); }
};

// Holds the columns of a lane of cells.
struct CellColumns {
  std::vector<int64_t> start_ns, dur_ns;
  std::vector<StringId> name_id;
  std::vector<uint8_t> kind;
  std::vector<uint32_t> cell;  // index into Trace::cells
};

struct ViewLane {
  static constexpr uint8_t kSeveralKinds = UINT8_MAX;

  uint32_t part = 0;
  ViewLaneType type = ViewLaneType::kThread;
  std::string name;
  size_t first = 0;  // of slices: the part's slice that is slice 0 of the lane
  size_t count = 0;  // number of slices; of samples in a counter
  int64_t zero_ns = 0;
  const int64_t* starts = nullptr;
  const int64_t* durations = nullptr;
  const StringId* names = nullptr;
  const uint8_t* own_kinds = nullptr;  // only of cells
  const uint8_t* categories = nullptr;
  const uint8_t* classes = nullptr;
  const std::array<uint8_t, 8>* kind_table = nullptr;
  std::unique_ptr<CellColumns> cells;
  const CounterSeries* counter = nullptr;
  std::vector<ViewRow> rows;
  size_t range_row = 0;  // of a stream: from this row on are the user's ranges, before it the device's work
  size_t hidden = 0;     // number of slices deeper than kMaxRowsOfLane
  uint8_t only_kind = kSeveralKinds;  // the kind of all its slices, where they have the same
  bool is_plain = true;               // every slice has a row, and lasts as long as its column says
  bool repeats = false;               // other lanes of the rank show everything that is in it
  size_t lasting_rows = 0;            // number of rows up to the last one with a slice that lasts any time
  int64_t start_ns = 0, end_ns = 0;

  int64_t relative(int64_t stamp_ns) const { return relative_ns(stamp_ns, zero_ns); }
  int64_t start(size_t i) const { return relative(starts[i]); }
  int64_t dur(size_t i) const {
    const int64_t d = durations[i], room = kLatestNs - start(i);
    return d < 0 ? 0 : d > room ? room : d;
  }
  int64_t end(size_t i) const { return start(i) + dur(i); }
  uint8_t kind(size_t i) const {
    if (only_kind != kSeveralKinds) return only_kind;
    if (own_kinds) return own_kinds[i];
    return categories ? kind_table[categories[i]][classes[i] & 7] : static_cast<uint8_t>(ViewKind::kUnclassified);
  }
  bool is_device_work(size_t i) const {
    const uint8_t k = kind(i);
    return k >= static_cast<uint8_t>(ViewKind::kComputation) && k <= static_cast<uint8_t>(ViewKind::kMemory);
  }
  // Returns whether the time of slice i is not that of the call around it. Device work overlaps its thread's calls.
  bool takes_time(size_t i) const { return type == ViewLaneType::kThread && !is_device_work(i); }
  bool has_slices() const { return type != ViewLaneType::kCounter; }
  uint32_t cell_of(size_t i) const { return cells ? cells->cell[i] : kNoSlice; }
};

// The lane of a slice, and its number there.
struct SlicePlace {
  uint32_t lane = UINT32_MAX, slice = 0;
  explicit operator bool() const { return lane != UINT32_MAX; }
};

// The first index of [low, high) that `before` is not true of, which is true of all indexes up to some; high without
// one.
template <class Before> size_t first_not(size_t low, size_t high, Before before) {
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

}  // namespace stageline
