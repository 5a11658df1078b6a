#include "readers/perfetto/slice_log.h"

namespace stageline::pftrace {

void SliceLog::new_run(uint32_t sequence) {
  close_run(false);
  run_ = {};
  run_.first = entry_count_;
  run_.sequence = sequence;
  run_rows_.clear();
}

uint32_t SliceLog::lost_end(int64_t time, uint32_t track) {
  const auto number = static_cast<uint32_t>(closed_.size());
  lost_ends_.push_back({time, track, number});
  closed_.push_back(kNoRow);
  return number;
}

// Everything so far as entries, with no end paired.
void SliceLog::write_out() {
  in_order_ = false;
  entries_.reserve(entry_count_ + entry_count_ / 2);
  uint32_t row = 0, number = 0;
  size_t lost = 0;
  for (size_t i = 0; i < entry_count_; ++i) {
    if (!is_end_[i]) {
      while (!is_begun_[row]) ++row;
      entries_.push_back({rows_[row].start_ns, rows_[row].thread, row});
      ++row;
      continue;
    }
    if (const uint32_t closed = closed_[number]; closed != kNoRow) {
      rows::Row& begun = rows_[closed];
      entries_.push_back({begun.start_ns + begun.dur_ns, begun.thread | kEndBit, number});
    } else {
      entries_.push_back({lost_ends_[lost].time, lost_ends_[lost].track | kEndBit, number});
      ++lost;
    }
    ++number;
  }
  for (uint32_t& closed : closed_) {
    if (closed != kNoRow) rows_[closed].dur_ns = 0;
    closed = kNoRow;
  }
  tracks_ = {};
  is_end_ = {};
  is_begun_ = {};
  lost_ends_ = {};
}

void SliceLog::close_run(bool at_end) {
  const bool whole = run_.ends == run_.begins;
  const bool bare_ends = run_.begins_need && !run_.ends_need;
  if (run_.ends > 0 && run_.begins > 1 && run_.same_tracks && (run_.unordered || bare_ends) &&
      (whole || (at_end && bare_ends))) {
    if (in_order_) write_out();
    runs_.push_back({run_.first, run_.begins, run_.ends});
  }
  run_.begins = run_.ends = 0;
}

void SliceLog::pair_run(const IndexRun& run, Pairs& pairs) {
  for (uint32_t k = 0; k < run.begins; ++k) {
    const Entry& begin = entries_[run.first + k];
    if (k >= run.ends) {
      pairs.open_rows.push_back(begin.at);
      continue;
    }
    const Entry& end = entries_[run.first + run.begins + k];
    rows_[begin.at].dur_ns = end.time - begin.time;
    closed_[end.at] = begin.at;
    ++pairs.paired_by_index;
  }
}

void SliceLog::pair_tracks(Pairs& pairs) {
  // Entries of all other writers, by track, in the order of the file.
  uint32_t tracks = max_over<uint32_t>(entries_, [&](const Entry& entry) { return (entry.track & ~kEndBit) + 1; });
  std::vector<uint32_t> next(tracks + size_t{1}, 0), order;
  const auto others = [&](auto visit) {
    size_t run = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (run < runs_.size() && i == runs_[run].first) {
        i += runs_[run].begins + runs_[run].ends - 1;
        ++run;
        continue;
      }
      visit(static_cast<uint32_t>(i));
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
      const Entry& entry = entries_[order[from]];
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
      rows_[begin.at].dur_ns = entry.time - begin.time;
      closed_[entry.at] = begin.at;
    }
    for (const uint32_t open : stack) pairs.open_rows.push_back(entries_[open].at);
  }
}

SliceLog::Pairs SliceLog::pair() {
  close_run(true);
  Pairs pairs;
  if (in_order_) {
    for (const Track& track : tracks_)
      pairs.open_rows.insert(pairs.open_rows.end(), track.open.begin(), track.open.end());
    pairs.unmatched_ends = lost_ends_.size();
  } else {
    for (const IndexRun& run : runs_) pair_run(run, pairs);
    pair_tracks(pairs);
  }
  std::ranges::sort(pairs.open_rows);
  return pairs;
}

}  // namespace stageline::pftrace
