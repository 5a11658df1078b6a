#include "readers/perfetto/slice_log.h"

#include <algorithm>

namespace stageline::pftrace {

void SliceLog::begin(int64_t time, uint32_t track, uint32_t row, uint32_t sequence, bool needs_state) {
  if (run_.ends > 0 || run_.sequence != sequence) {
    close_run(false);
    run_ = {};
    run_.first = static_cast<uint32_t>(entries_.size());
    run_.sequence = sequence;
  }
  ++run_.begins;
  run_.begins_need &= needs_state;
  run_.unordered |= time < run_.last_time;
  run_.last_time = time;
  entries_.push_back({time, track, row});
}

uint32_t SliceLog::end(int64_t time, uint32_t track, uint32_t sequence, bool needs_state) {
  const auto number = static_cast<uint32_t>(entries_.size());
  entries_.push_back({time, track | kEndBit, kNoRow});
  if (run_.sequence != sequence || run_.ends >= run_.begins) {
    if (run_.sequence != sequence) close_run(false);
    run_.begins = 0;  // an end too many, or another's: no run
    return number;
  }
  const Entry& opened = entries_[run_.first + run_.ends];
  run_.same_tracks &= opened.track == track && time >= opened.time;
  run_.ends_need |= needs_state;
  run_.unordered |= time < run_.last_time;
  run_.last_time = time;
  ++run_.ends;
  return number;
}

void SliceLog::close_run(bool at_end) {
  const bool whole = run_.ends == run_.begins;
  const bool bare_ends = run_.begins_need && !run_.ends_need;
  if (run_.ends > 0 && run_.begins > 1 && run_.same_tracks && (run_.unordered || bare_ends) &&
      (whole || (at_end && bare_ends)))
    runs_.push_back({run_.first, run_.begins, run_.ends});
  run_.begins = run_.ends = 0;
}

void SliceLog::pair_run(const IndexRun& run, std::vector<kineto::Row>& rows, Pairs& pairs) {
  for (uint32_t k = 0; k < run.begins; ++k) {
    const Entry& begin = entries_[run.first + k];
    if (k >= run.ends) {
      pairs.open_rows.push_back(begin.row);
      continue;
    }
    Entry& end = entries_[run.first + run.begins + k];
    rows[begin.row].dur_ns = end.time - begin.time;
    end.row = begin.row;
    ++pairs.paired_by_index;
  }
}

void SliceLog::pair_tracks(std::vector<kineto::Row>& rows, Pairs& pairs) {
  // Entries of all other writers, by track, in the order of the file.
  uint32_t tracks = 0;
  for (const Entry& entry : entries_) tracks = std::max(tracks, (entry.track & ~kEndBit) + 1);
  std::vector<uint32_t> next(tracks + size_t{1}, 0), order;
  const auto others = [&](auto visit) {
    size_t run = 0;
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      if (run < runs_.size() && i == runs_[run].first) {
        i += runs_[run].begins + runs_[run].ends - 1;
        ++run;
        continue;
      }
      visit(i);
    }
  };
  others([&](uint32_t i) { ++next[(entries_[i].track & ~kEndBit) + 1]; });
  for (size_t t = 0; t < tracks; ++t) next[t + 1] += next[t];
  order.resize(next[tracks]);
  others([&](uint32_t i) { order[next[entries_[i].track & ~kEndBit]++] = i; });
  std::vector<uint32_t> stack;
  uint32_t from = 0;
  for (size_t t = 0; t < tracks; ++t) {
    const uint32_t to = next[t];
    const auto earlier = [&](uint32_t a, uint32_t b) { return entries_[a].time < entries_[b].time; };
    if (!std::is_sorted(order.begin() + from, order.begin() + to, earlier))
      std::stable_sort(order.begin() + from, order.begin() + to, earlier);
    stack.clear();
    for (; from < to; ++from) {
      Entry& entry = entries_[order[from]];
      if (!(entry.track & kEndBit)) {
        stack.push_back(order[from]);
        continue;
      }
      if (stack.empty()) {
        ++pairs.unmatched_ends;
        continue;
      }
      const Entry& begin = entries_[stack.back()];
      stack.pop_back();
      rows[begin.row].dur_ns = entry.time - begin.time;
      entry.row = begin.row;
    }
    for (const uint32_t open : stack) pairs.open_rows.push_back(entries_[open].row);
  }
}

SliceLog::Pairs SliceLog::pair(std::vector<kineto::Row>& rows) {
  close_run(true);
  Pairs pairs;
  for (const IndexRun& run : runs_) pair_run(run, rows, pairs);
  pair_tracks(rows, pairs);
  std::sort(pairs.open_rows.begin(), pairs.open_rows.end());
  return pairs;
}

}  // namespace stageline::pftrace
