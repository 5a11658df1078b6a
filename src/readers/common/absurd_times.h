// Finds the rows of a profile whose times cannot be true, so that one of them does not decide how long the recording
// was. Profilers write them where a buffer was lost or a clock was read wrongly.
//
//   no time     start and length are 0: what CUPTI, roctracer and Kineto write where they have no time
//   far away    ·                                          |── everything else ──|
//               further from all others than these are long from the first to the last
#pragma once

#include "model/trace.h"
#include "readers/common/problems.h"

namespace stageline {

// Returns true for what a host did and for marks of no certain place, false for what a device's clock stamped.
constexpr bool is_on_host(Category c) { return is_host(c) || c == Category::kOther || c == Category::kSpan; }

struct RowTime {
  int64_t start_ns, dur_ns;
  bool on_device;  // the row is what a device did, whose times another clock gave
  uint32_t name;   // its number
};

namespace absurd {
// This many rows, spread by chance, leave a gap longer than their own extent at one end only once in 2^16 recordings. A
// group of rows next to 16 times as many is not a recording. Neither is one that holds no name twice and is an hour
// away from more rows.
inline constexpr size_t kRest = 16;
// A host's calls of the beginning or end of a session (cuInit, a last synchronise) may be minutes away from others. No
// recording lasts an hour for less than that.
inline constexpr int64_t kHourNs = 3'600'000'000'000;
// Times that no row covers are looked for in this many equal pieces, the longest first. One that is longer than all the
// rest is about half of them, unless others are far away too.
inline constexpr uint64_t kPieces = 64;

// Sums of the rows that lie before a gap, or after it.
struct Side {
  size_t rows = 0, on_host = 0;
  int64_t start = INT64_MAX, end = INT64_MIN;
  void add(const Side& other) {
    rows += other.rows, on_host += other.on_host;
    start = std::min(start, other.start), end = std::max(end, other.end);
  }
  uint64_t extent() const { return static_cast<uint64_t>(end) - static_cast<uint64_t>(start); }
};
inline Side side_of(const RowTime& time) {
  return {1, time.on_device ? 0u : 1u, time.start_ns, time.start_ns + time.dur_ns};
}

// The rows in equal pieces of their time.
struct Pieces {
  std::array<Side, kPieces> of;                 // by the piece in which a row starts
  std::array<int64_t, kPieces + 1> cover = {};  // rows that cover a piece, less those that cover the one before

  // Returns the stretches without a row, the longest first: the first piece, and the one after the last.
  std::vector<std::array<uint64_t, 2>> gaps() const {
    std::vector<std::array<uint64_t, 2>> out;
    int64_t open = 0;
    for (uint64_t p = 0; p < kPieces; ++p) {
      open += cover[p];
      if (open > 0) continue;
      if (out.empty() || out.back()[1] != p) out.push_back({p, p});
      out.back()[1] = p + 1;
    }
    sort_stably(out, std::greater(), [](const auto& gap) { return gap[1] - gap[0]; });
    return out;
  }
};

template <class ForRows> class Finder {
 public:
  Finder(size_t count, ForRows& for_rows, std::string_view format, const std::string& path, Diagnostics& notes)
      : count_(count), for_rows_(for_rows), format_(format), path_(path), notes_(notes) {}

  std::vector<bool> find(int64_t zero_ns) {
    leave_out_zeros(zero_ns);
    while (leave_out_far()) {
    }
    return std::move(out_);
  }

 private:
  // Calls use(row, time) for each row that is not left out yet.
  template <class Use> void visit(Use&& use) {
    size_t row = 0;
    for_rows_([&](const RowTime& time) {
      if (out_.empty() || !out_[row]) use(row, time);
      ++row;
    });
  }

  template <class Which> void leave_out(const Problem& problem, Which&& which) {
    std::vector<bool> next = out_;
    next.resize(count_);
    int64_t left_out = 0;
    visit([&](size_t row, const RowTime& time) {
      if (which(time)) next[row] = true, ++left_out;
    });
    if (left_out > 0) notes_.add(problem.of(format_), {path_}, left_out), out_.swap(next);
  }

  void leave_out_zeros(int64_t zero_ns) {
    const auto is_zero = [&](const RowTime& time) { return time.start_ns == zero_ns && time.dur_ns == 0; };
    Side all;
    int64_t zeros_on_host = 0, zeros_on_device = 0;
    visit([&](size_t, const RowTime& time) {
      if (is_zero(time)) ++(time.on_device ? zeros_on_device : zeros_on_host);
      else all.add(side_of(time));
    });
    // On a host, one short call may begin a recording whose times count from its first event; two on end cannot.
    const bool host_too = all.start > zero_ns && zeros_on_host > 1;
    if (all.end > all.start && (zeros_on_device > 0 || host_too))
      leave_out(problem::reader_zero_time,
                [&](const RowTime& time) { return is_zero(time) && (time.on_device || host_too); });
  }

  // Leaves out the rows on one side of the longest gap that is too long; false where there is none.
  bool leave_out_far() {
    Side all;
    visit([&](size_t, const RowTime& time) { all.add(side_of(time)); });
    const uint64_t width = all.extent() / kPieces + 1;
    const auto piece = [&](int64_t at) {
      return (static_cast<uint64_t>(at) - static_cast<uint64_t>(all.start)) / width;
    };
    Pieces pieces;
    visit([&](size_t, const RowTime& time) {
      const Side row = side_of(time);
      pieces.of[piece(row.start)].add(row);
      ++pieces.cover[piece(row.start)], --pieces.cover[piece(row.end) + 1];
    });
    return std::ranges::any_of(pieces.gaps(), [&](const auto& gap) { return leave_out_beyond(pieces, gap[1]); });
  }

  // Leaves out the rows on the side of a gap that has fewer, if they are too far from the others.
  bool leave_out_beyond(const Pieces& pieces, uint64_t gap_to) {
    Side before, after;
    for (uint64_t p = 0; p < kPieces; ++p) (p < gap_to ? before : after).add(pieces.of[p]);
    if (before.rows == 0 || after.rows == 0) return false;
    const bool left = before.rows < after.rows;
    const Side &few = left ? before : after, &rest = left ? after : before;
    const uint64_t gap = static_cast<uint64_t>(after.start) - static_cast<uint64_t>(before.end);
    if (gap <= rest.extent()) return false;
    const auto is_beyond = [left, split = after.start](const RowTime& time) { return (time.start_ns < split) == left; };
    const bool hour = gap > static_cast<uint64_t>(kHourNs);
    bool group = few.rows * kRest > rest.rows || rest.rows < kRest;
    if (group && hour && few.rows < rest.rows) group = has_name_twice(is_beyond);
    // Work of a device has its launch nearby, so work that is far from all hosts' rows and from other work of devices
    // has a wrong time. Where all work of devices is far, the host ran ahead of it or its clock has an offset.
    const bool alone = few.on_host == 0 && rest.on_host > 0 && rest.on_host < rest.rows;
    if (alone ? group && !hour : group || !hour) return false;
    leave_out(problem::reader_far_time, is_beyond);
    return true;
  }

  template <class Which> bool has_name_twice(Which&& which) {
    std::vector<bool> seen;
    bool twice = false;
    visit([&](size_t, const RowTime& time) {
      if (!which(time)) return;
      if (time.name >= seen.size()) seen.resize(time.name + 1);
      twice = twice || seen[time.name], seen[time.name] = true;
    });
    return twice;
  }

  size_t count_;
  ForRows& for_rows_;
  std::string_view format_;
  const std::string& path_;
  Diagnostics& notes_;
  std::vector<bool> out_;  // empty: none is left out
};
}  // namespace absurd

// Returns for each row whether it has to be left out; empty where none has. `for_rows` calls its argument with the
// RowTime of each row, in order. `zero_ns` is what the source's 0 means. Three passes where all is well.
template <class ForRows>
std::vector<bool> absurd_rows(size_t count, ForRows&& for_rows, int64_t zero_ns, std::string_view format,
                              const std::string& path, Diagnostics& notes) {
  return absurd::Finder(count, for_rows, format, path, notes).find(zero_ns);
}

// Leaves out a part's records besides slices (marks, counters, memory records) at times that are further from all
// slices than these are long, and further than an hour.
inline void leave_out_far_marks(Part& part, std::string_view format, Diagnostics& notes) {
  int64_t first = INT64_MAX, last = INT64_MIN, left_out = 0;
  for (size_t i = 0; i < part.slices.size(); ++i) {
    first = std::min(first, part.slices.start_ns[i]);
    last = std::max(last, part.slices.end_ns(i));
  }
  if (part.slices.size() < absurd::kRest) return;
  const int64_t far = std::clamp(last - first, absurd::kHourNs, int64_t{4'000'000'000'000'000'000});
  const auto is_far = [&](int64_t at) { return at < first - far || at > last + far; };
  left_out += static_cast<int64_t>(std::erase_if(part.marks, [&](const Mark& mark) { return is_far(mark.time_ns); }));
  left_out += static_cast<int64_t>(
      std::erase_if(part.memory, [&](const MemoryRecord& record) { return is_far(record.time_ns); }));
  for (CounterSeries& series : part.counters) {
    size_t kept = 0;
    for (size_t k = 0; k < series.time_ns.size(); ++k) {
      if (is_far(series.time_ns[k])) continue;
      series.time_ns[kept] = series.time_ns[k];
      series.value[kept++] = series.value[k];
    }
    left_out += static_cast<int64_t>(series.time_ns.size() - kept);
    series.time_ns.resize(kept);
    series.value.resize(kept);
  }
  notes.add(problem::reader_far_time.of(format), {part.source}, left_out);
}

}  // namespace stageline
