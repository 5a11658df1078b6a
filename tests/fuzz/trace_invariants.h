// The promises of every reader about its Trace, for all input bytes.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/input.h"
#include "fuzz.h"
#include "model/trace.h"

namespace stageline::fuzz {

// Times stay within ±4·10^18 ns (126 years), so that the difference, and the sum, of any two fits.
inline constexpr int64_t kLargestTimeNs = 4'000'000'000'000'000'000;
inline constexpr int32_t kLargestCount = 1 << 24;  // of chunks and micro-batches: consumers size tables by them

inline bool sane_time(int64_t ns) { return ns >= -kLargestTimeNs && ns <= kLargestTimeNs; }

inline void check_slices(const Trace& trace, const Part& part) {
  const Slices& s = part.slices;
  const std::string& where = part.source;
  FUZZ_CHECK(s.dur_ns.size() == s.size() && s.name_id.size() == s.size() && s.file_index.size() == s.size(), where);
  size_t covered = 0;
  for (const Lane& lane : part.lanes) {
    FUZZ_CHECK(lane.begin == covered && lane.end >= lane.begin && lane.end <= s.size(), lane.name);
    covered = lane.end;
    for (size_t i = lane.begin; i < lane.end; ++i) {
      FUZZ_CHECK(s.dur_ns[i] >= 0 && sane_time(s.start_ns[i]) && sane_time(s.start_ns[i] + s.dur_ns[i]), lane.name);
      FUZZ_CHECK(s.name_id[i] < trace.names.size(), lane.name);
      const auto key = [&](size_t k) { return std::tuple(s.start_ns[k], -s.dur_ns[k], s.file_index[k]); };
      FUZZ_CHECK(i == lane.begin || key(i - 1) <= key(i), lane.name);
    }
  }
  FUZZ_CHECK(covered == s.size(), where);
}

inline void check_cells(const Trace& trace) {
  const Cells& c = trace.cells;
  const size_t n = c.size();
  FUZZ_CHECK(c.part.size() == n && c.kind.size() == n && c.chunk.size() == n && c.micro_batch.size() == n, "columns");
  FUZZ_CHECK(c.start_ns.size() == n && c.end_ns.size() == n && c.slice.size() == n, "columns");
  for (size_t i = 0; i < n; ++i) {
    const std::string where = "cell " + std::to_string(i);
    FUZZ_CHECK(c.part[i] >= 0 && static_cast<size_t>(c.part[i]) < trace.parts.size(), where);
    FUZZ_CHECK(static_cast<int>(c.kind[i]) < kCellKindCount, where);
    FUZZ_CHECK(c.step[i] >= kUnknown, where);
    FUZZ_CHECK(c.chunk[i] >= kUnknown && c.chunk[i] < kLargestCount, where);
    FUZZ_CHECK(c.micro_batch[i] >= kUnknown && c.micro_batch[i] < kLargestCount, where);
    FUZZ_CHECK(sane_time(c.start_ns[i]) && sane_time(c.end_ns[i]) && c.end_ns[i] >= c.start_ns[i], where);
    const size_t slices = trace.parts[c.part[i]].slices.size();
    FUZZ_CHECK(c.slice[i] == kNoSlice || c.slice[i] < slices, where);
    const auto key = [&](size_t k) {
      return std::tuple(c.step[k], c.part[k], c.start_ns[k], -c.end_ns[k], c.slice[k]);
    };
    FUZZ_CHECK(i == 0 || key(i - 1) <= key(i), where);
  }
}

// Places name a file that was there, and lie inside it. A byte may count in the decompressed text or, for
// damaged compression, in the file; a lone CR may count as a line's end.
inline void check_diagnostics(const Diagnostics& diagnostics) {
  std::map<std::string, std::string> content;
  for (const Diagnostic& d : diagnostics.items()) {
    FUZZ_CHECK(!d.name.empty() && !d.message.empty() && d.count > 0, d.name);
    FUZZ_CHECK(d.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._") == std::string::npos, d.name);
    FUZZ_CHECK(d.first.line >= 0 && d.first.byte >= -1, d.name);
    if (d.first.line == 0 && d.first.byte < 0) continue;
    constexpr size_t kLargest = size_t{1} << 20;
    auto [it, is_new] = content.try_emplace(d.first.file);
    if (is_new) {
      Result<std::string> whole = read_all(d.first.file, kLargest);
      it->second = whole ? std::move(*whole) : read_head(d.first.file, kLargest);
    }
    const std::string& text = it->second;
    if (text.size() == kLargest) continue;
    const std::string where = d.name + " at " + d.first.text() + " of " + std::to_string(text.size()) + " bytes";
    std::error_code missing;
    const auto on_disk = static_cast<int64_t>(std::filesystem::file_size(d.first.file, missing));
    FUZZ_CHECK(!missing && d.first.byte <= std::max(on_disk, static_cast<int64_t>(text.size())), where);
    FUZZ_CHECK(
        d.first.line <= std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }) + 1,
        where);
  }
}

// Places of a digest name files of the machine that made it.
enum class Places : uint8_t { kChecked, kElsewhere };

inline void check_trace(const Trace& trace, Places places = Places::kChecked) {
  FUZZ_CHECK(!trace.format.empty(), "format");
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    FUZZ_CHECK(part.rank >= 0, part.source);
    FUZZ_CHECK(p == 0 || trace.parts[p - 1].rank < part.rank, part.source);
    FUZZ_CHECK(part.stage >= kUnknown && part.dp >= kUnknown && part.machine >= kUnknown, part.source);
    check_slices(trace, part);
  }
  check_cells(trace);
  for (const Link& link : trace.links)
    FUZZ_CHECK(link.from_cell < trace.cells.size() && link.to_cell < trace.cells.size(), "link");
  if (places == Places::kChecked) check_diagnostics(trace.diagnostics);
}

}  // namespace stageline::fuzz
