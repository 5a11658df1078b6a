// Finds the rows of a profile whose times cannot be true, so that one of them does not decide how long the recording
// was. Profilers write them where a buffer was lost or a clock was read wrongly.
//
//   no time     start and length are 0: what CUPTI, roctracer and Kineto write where they have no time
//   far away    ·                                          |── everything else ──|
//               further from all others than these are long from the first to the last
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/diagnostics.h"
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
}  // namespace absurd

// Returns for each row whether it has to be left out; empty where none has. `for_rows` calls its argument with the
// RowTime of each row, in order. `zero_ns` is what the source's 0 means. Two passes where all is well.
template <class ForRows>
std::vector<bool> absurd_rows(size_t count, ForRows&& for_rows, int64_t zero_ns, std::string_view format,
                              const std::string& path, Diagnostics& notes) {
  std::vector<bool> out;
  const auto visit = [&](auto&& use) {
    size_t row = 0;
    for_rows([&](const RowTime& time) {
      if (out.empty() || !out[row]) use(row, time);
      ++row;
    });
  };
  const auto leave_out = [&](const Problem& problem, auto&& which) {
    std::vector<bool> next = out;
    next.resize(count);
    int64_t left_out = 0;
    visit([&](size_t row, const RowTime& time) {
      if (which(time)) next[row] = true, ++left_out;
    });
    if (left_out > 0) notes.add(problem.of(format), {path}, left_out), out.swap(next);
  };
  const auto is_zero = [&](const RowTime& time) { return time.start_ns == zero_ns && time.dur_ns == 0; };
  int64_t first = INT64_MAX, last = INT64_MIN, zeros_on_host = 0, zeros_on_device = 0;
  visit([&](size_t, const RowTime& time) {
    if (is_zero(time)) {
      ++(time.on_device ? zeros_on_device : zeros_on_host);
      return;
    }
    first = std::min(first, time.start_ns);
    last = std::max(last, time.start_ns + time.dur_ns);
  });
  // On a host, one short call may begin a recording whose times count from its first event; two on end cannot.
  const bool host_too = first > zero_ns && zeros_on_host > 1;
  if (last > first && (zeros_on_device > 0 || host_too))
    leave_out(problem::reader_zero_time,
              [&](const RowTime& time) { return is_zero(time) && (time.on_device || host_too); });

  // Times that no row covers are looked for in 64 equal pieces, the longest first. One that is longer than all the rest
  // is about half of them, unless others are far away too.
  constexpr uint64_t kPieces = 64;
  struct Side {
    size_t rows = 0, on_host = 0;
    int64_t start = INT64_MAX, end = INT64_MIN;
    void add(const Side& other) {
      rows += other.rows, on_host += other.on_host;
      start = std::min(start, other.start), end = std::max(end, other.end);
    }
    uint64_t extent() const { return static_cast<uint64_t>(end) - static_cast<uint64_t>(start); }
  };
  std::vector<bool> seen;
  for (;;) {
    Side all;
    visit([&](size_t, const RowTime& time) {
      all.add({1, time.on_device ? 0u : 1u, time.start_ns, time.start_ns + time.dur_ns});
    });
    const uint64_t width = all.extent() / kPieces + 1;
    const auto piece = [&](int64_t at) {
      return (static_cast<uint64_t>(at) - static_cast<uint64_t>(all.start)) / width;
    };
    std::array<Side, kPieces> pieces;
    std::array<int64_t, kPieces + 1> cover{};
    visit([&](size_t, const RowTime& time) {
      const int64_t end = time.start_ns + time.dur_ns;
      pieces[piece(time.start_ns)].add({1, time.on_device ? 0u : 1u, time.start_ns, end});
      ++cover[piece(time.start_ns)], --cover[piece(end) + 1];
    });
    std::vector<std::array<uint64_t, 2>> gaps;  // pieces without a row: the first, and the one after the last
    int64_t open = 0;
    for (uint64_t p = 0; p < kPieces; ++p) {
      open += cover[p];
      if (open > 0) continue;
      if (gaps.empty() || gaps.back()[1] != p) gaps.push_back({p, p});
      gaps.back()[1] = p + 1;
    }
    std::stable_sort(gaps.begin(), gaps.end(), [](const auto& a, const auto& b) { return a[1] - a[0] > b[1] - b[0]; });
    // True if the rows on one side of a gap are left out.
    const auto splits = [&](uint64_t gap_to) {
      Side before, after;
      for (uint64_t p = 0; p < kPieces; ++p) (p < gap_to ? before : after).add(pieces[p]);
      if (before.rows == 0 || after.rows == 0) return false;
      const bool left = before.rows < after.rows;
      const Side &few = left ? before : after, &rest = left ? after : before;
      const uint64_t gap = static_cast<uint64_t>(after.start) - static_cast<uint64_t>(before.end);
      if (gap <= rest.extent()) return false;
      const bool hour = gap > static_cast<uint64_t>(absurd::kHourNs);
      const int64_t split = after.start;
      bool group = few.rows * absurd::kRest > rest.rows || rest.rows < absurd::kRest;
      if (group && hour && few.rows < rest.rows) {
        seen.clear(), group = false;
        visit([&](size_t, const RowTime& time) {
          if ((time.start_ns < split) != left) return;
          if (time.name >= seen.size()) seen.resize(time.name + 1);
          group = group || seen[time.name], seen[time.name] = true;
        });
      }
      // Work of a device has its launch nearby, so work that is far from all hosts' rows and from other work of devices
      // has a wrong time. Where all work of devices is far, the host ran ahead of it or its clock has an offset.
      const bool alone = few.on_host == 0 && rest.on_host > 0 && rest.on_host < rest.rows;
      if (alone ? group && !hour : group || !hour) return false;
      leave_out(problem::reader_far_time, [&](const RowTime& time) { return (time.start_ns < split) == left; });
      return true;
    };
    if (std::none_of(gaps.begin(), gaps.end(), [&](const auto& gap) { return splits(gap[1]); })) return out;
  }
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
  if (left_out > 0) notes.add(problem::reader_far_time.of(format), {part.source}, left_out);
}

}  // namespace stageline
