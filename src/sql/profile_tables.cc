// Tables of profiles: collectives, lanes, counters, memory, flows, marks.
#include "model/message_names.h"
#include "sql/run_tables.h"
#include "sql/slice_rows.h"

namespace stageline::sql {
namespace {

int64_t stamp_or_null(const RunData& data, size_t part, bool known, int64_t stamp) {
  return known ? data.time_ns(part, stamp) : kNullInteger;
}

// Collectives as devices ran them; for ranks whose devices recorded none, as the host called them.
struct CollectiveRow {
  size_t part;
  const CollectiveFact* fact;
};
std::vector<CollectiveRow> collective_rows(const RunData& data) {
  std::vector<CollectiveRow> rows;
  const Trace& trace = data.trace();
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!data.has_part(p)) continue;
    const std::vector<uint32_t>* const chosen = data.chosen_rows(p);
    bool on_device = false;
    for (const CollectiveFact& fact : trace.parts[p].collectives) on_device |= data.is_device(p, fact.slice);
    for (const CollectiveFact& fact : trace.parts[p].collectives)
      if (data.is_device(p, fact.slice) == on_device &&
          (!chosen || std::binary_search(chosen->begin(), chosen->end(), fact.slice)))
        rows.push_back({p, &fact});
  }
  return rows;
}

Table collectives_of(const RunData& data) {
  Table table(declared_table("sql/collectives"));
  const Trace& trace = data.trace();
  const std::vector<CollectiveRow> rows = collective_rows(data);
  struct Latest {
    int64_t start_ns = INT64_MIN, ranks = 0;
  };
  // A send meets the receive between the same two ranks. Collectives of a group may be numbered kind by kind, and
  // groups of one name may have other members.
  using Key = std::tuple<StringId, StringId, int64_t, StringId, int64_t, int64_t>;
  std::map<Key, Latest> latest;
  const auto is_message = [&](const CollectiveFact& f) { return is_message_name(trace.names.text(f.name)); };
  // A rank that writes only its peer is the other end itself.
  const auto key = [&](const CollectiveRow& row) {
    const CollectiveFact& f = *row.fact;
    if (!is_message(f)) return Key{f.group, f.group_ranks, f.seq, f.name, -1, -1};
    const bool sends = trace.names.text(f.name).find("end") != std::string_view::npos;
    const int64_t own = trace.parts[row.part].rank;
    return Key{f.group,
               f.group_ranks,
               f.seq,
               0,
               f.src_rank < 0 && sends ? own : f.src_rank,
               f.dst_rank < 0 && !sends ? own : f.dst_rank};
  };
  const auto numbered = [&](const CollectiveFact& f) {
    if (f.seq < 0 || !is_message(f)) return f.seq >= 0;
    return numbered_alike(trace, f) && (f.src_rank >= 0 || f.dst_rank >= 0);
  };
  const auto start = [&](const CollectiveRow& row) {
    return data.time_ns(row.part, trace.parts[row.part].slices.start_ns[row.fact->slice]);
  };
  for (const CollectiveRow& row : rows) {
    if (!numbered(*row.fact)) continue;
    Latest& all = latest[key(row)];
    all.start_ns = std::max(all.start_ns, start(row));
    ++all.ranks;
  }
  const auto known = [](int64_t value, int64_t min) { return value < min ? kNullInteger : value; };
  for (const CollectiveRow& row : rows) {
    const Part& part = trace.parts[row.part];
    const CollectiveFact& f = *row.fact;
    const int64_t dur = part.slices.dur_ns[f.slice], at = start(row);
    const uint16_t step = part.slices.step.empty() ? uint16_t{0} : part.slices.step[f.slice];
    int64_t wait = kNullInteger;
    if (const auto same = latest.find(key(row));
        numbered(f) && same != latest.end() && same->second.ranks > 1 && trace.comparable())
      wait = std::clamp<int64_t>(between_ns(at, same->second.start_ns), 0, std::max<int64_t>(0, dur));
    const auto text = [&](StringId id) { return std::string(trace.names.text(id)); };
    table.add_row({slice_id(row.part, f.slice), int64_t{part.rank},
                   step == 0 ? kNullInteger : part.steps[step - 1u].number, text(f.name), text(f.group),
                   known(f.group_size, 1), text(f.dtype), known(f.bytes, 0), at, dur, sum_or_limit(at, dur),
                   known(f.seq, 0), known(f.src_rank, 0), known(f.dst_rank, 0), wait});
  }
  return table;
}

Table lanes_of(const RunData& data) {
  Table table(declared_table("sql/lanes"));
  const Trace& trace = data.trace();
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!data.has_part(p)) continue;
    for (const Lane& lane : trace.parts[p].lanes)
      table.add_row({int64_t{trace.parts[p].rank}, lane.name,
                     std::string(lane.kind == LaneKind::kHostThread     ? "host"
                                 : lane.kind == LaneKind::kDeviceStream ? "device"
                                                                        : "other"),
                     lane.pid, lane.tid, static_cast<int64_t>(lane.end - lane.begin),
                     stamp_or_null(data, p, lane.begin < lane.end,
                                   lane.begin < lane.end ? trace.parts[p].slices.start_ns[lane.begin] : 0)});
  }
  return table;
}

// The operator that was open on the record's thread, else the innermost open slice; kNoSliceIndex: none was open.
uint32_t open_at(const RunData& data, size_t p, const MemoryRecord& record) {
  const Part& part = data.trace().parts[p];
  if (record.lane >= part.lanes.size()) return kNoSliceIndex;
  const Lane& lane = part.lanes[record.lane];
  const Slices& s = part.slices;
  const auto first = s.start_ns.begin() + lane.begin;
  const auto last = s.start_ns.begin() + lane.end;
  const auto after = std::upper_bound(first, last, record.time_ns);
  if (after == first) return kNoSliceIndex;
  auto at = static_cast<uint32_t>(after - s.start_ns.begin() - 1);
  uint32_t innermost = kNoSliceIndex;
  for (;;) {
    if (sum_or_limit(s.start_ns[at], s.dur_ns[at]) >= record.time_ns) {
      if (innermost == kNoSliceIndex) innermost = at;
      if (!s.category_id.empty() && data.trace().categories[s.category_id[at]].kind == Category::kCpuOp) return at;
    }
    const uint32_t around = data.enclosing(p, at);
    if (around == kNoSliceIndex || around >= at) return innermost;
    at = around;
  }
}

Table memory_of(const RunData& data) {
  Table table(declared_table("sql/memory"));
  const Trace& trace = data.trace();
  const SliceFilter& filter = trace.slice_filter;
  const auto known = [](int64_t value) { return value < 0 ? kNullInteger : value; };
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!data.has_part(p)) continue;
    for (const MemoryRecord& m : trace.parts[p].memory) {
      const int64_t at = data.time_ns(p, m.time_ns);
      if (at < filter.from_ns || at > filter.to_ns) continue;
      const uint32_t op = open_at(data, p, m);
      table.add_row({int64_t{trace.parts[p].rank}, at, m.bytes, static_cast<int64_t>(m.address),
                     known(m.total_allocated), known(m.total_reserved), int64_t{m.device_type}, known(m.device_id),
                     op == kNoSliceIndex ? kNullInteger : slice_id(p, op)});
    }
  }
  return table;
}

Table flows_of(const RunData& data) {
  Table table(declared_table("sql/flows"));
  const Trace& trace = data.trace();
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!data.has_part(p)) continue;
    for (const SliceLink& link : trace.parts[p].slice_links)
      table.add_row({int64_t{trace.parts[p].rank}, slice_id(p, link.from), slice_id(p, link.to),
                     std::string(link.kind == SliceLinkKind::kForwardBackward ? "forward-backward" : "flow")});
  }
  return table;
}

Table marks_of(const RunData& data) {
  Table table(declared_table("sql/marks"));
  const Trace& trace = data.trace();
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!data.has_part(p)) continue;
    const Part& part = trace.parts[p];
    for (const Mark& mark : part.marks)
      table.add_row({int64_t{part.rank}, data.time_ns(p, mark.time_ns), std::string(trace.names.text(mark.name)),
                     mark.lane < part.lanes.size() ? part.lanes[mark.lane].name : std::string()});
  }
  return table;
}

// ---- counters: sorted by time within a rank and name, so that "the last value before t" is found by binary search ---

enum CounterColumn : int { kCounterRank, kCounterName, kCounterTime, kCounterValue };

class CounterCursor : public Cursor {
 public:
  // `sorted` says for each part and series whether its samples are in the order of time.
  CounterCursor(std::shared_ptr<const RunData> data, const std::vector<std::vector<bool>>& sorted)
      : data_(std::move(data)), sorted_(sorted) {}

  Status filter(int mode, const std::vector<Pushed>& given) override {
    rows_.clear();
    stretches_.clear();
    at_ = 0;
    const Trace& trace = data_->trace();
    int64_t low = INT64_MIN, high = INT64_MAX, rank_low = INT64_MIN, rank_high = INT64_MAX;
    std::optional<std::string> name;
    for (const Pushed& p : given) {
      if (p.column == kCounterRank) narrow(p.op, p.value, rank_low, rank_high);
      if (p.column == kCounterTime) narrow(p.op, p.value, low, high);
      if (p.column == kCounterName) name = std::string(text_of(p.value));
    }
    size_t count = 0;
    bool all_sorted = true;
    for (size_t p = 0; p < trace.parts.size(); ++p) {
      const Part& part = trace.parts[p];
      if (!data_->has_part(p) || part.rank < rank_low || part.rank > rank_high) continue;
      for (size_t k = 0; k < part.counters.size(); ++k) {
        const CounterSeries& series = part.counters[k];
        if (name && series.name != *name) continue;
        size_t begin = 0, end = series.time_ns.size();
        all_sorted = all_sorted && sorted_[p][k];
        if (!data_->is_mapped() && sorted_[p][k]) {
          const auto place = [&](auto found) { return static_cast<size_t>(found - series.time_ns.begin()); };
          const int64_t zero = data_->zero_ns(p);
          if (low != INT64_MIN) begin = place(std::ranges::lower_bound(series.time_ns, sum_or_limit(low, zero)));
          if (high != INT64_MAX) end = place(std::ranges::upper_bound(series.time_ns, sum_or_limit(high, zero)));
        }
        if (begin < end) stretches_.push_back({p, &series, begin, end});
        count += begin < end ? end - begin : 0;
      }
    }
    backwards_ = mode == 2;
    end_ = count;
    if (mode != 0 && (stretches_.size() > 1 || !all_sorted)) {  // several series by time are sorted together
      for (size_t k = 0; k < stretches_.size(); ++k)
        for (size_t i = stretches_[k].begin; i < stretches_[k].end; ++i) rows_.emplace_back(k, i);
      sort_stably(rows_, {}, [&](const auto& row) { return time(row); });
    }
    stretch_ = 0;
    within_ = 0;
    return {};
  }
  bool at_end() const override { return at_ >= end_; }
  void next() override {
    ++at_;
    if (rows_.empty() && ++within_ >= stretches_[stretch_].end - stretches_[stretch_].begin) {
      ++stretch_;
      within_ = 0;
    }
  }
  void column(sqlite3_context* out, int column) const override {
    const auto [k, i] = row();
    const Stretch& s = stretches_[k];
    switch (column) {
      case kCounterRank: return show(out, int64_t{data_->trace().parts[s.part].rank});
      case kCounterName: return show_text(out, s.series->name);
      case kCounterTime: return show(out, time({k, i}));
      default: return show_real(out, s.series->value[i]);
    }
  }
  int64_t row_id() const override { return at_; }

 private:
  struct Stretch {
    size_t part;
    const CounterSeries* series;
    size_t begin, end;
  };
  int64_t time(const std::pair<size_t, size_t>& at) const {
    const Stretch& s = stretches_[at.first];
    return data_->time_ns(s.part, s.series->time_ns[at.second]);
  }
  std::pair<size_t, size_t> row() const {
    if (!rows_.empty()) return rows_[backwards_ ? end_ - 1 - at_ : at_];
    const Stretch& s = stretches_[stretch_];
    return {stretch_, backwards_ ? s.end - 1 - within_ : s.begin + within_};
  }

  std::shared_ptr<const RunData> data_;
  const std::vector<std::vector<bool>>& sorted_;
  std::vector<Stretch> stretches_;
  std::vector<std::pair<size_t, size_t>> rows_;  // sorted by time; used where there are several stretches
  size_t at_ = 0, end_ = 0, stretch_ = 0, within_ = 0;
  bool backwards_ = false;
};

class CounterTable : public TableSource {
 public:
  explicit CounterTable(std::shared_ptr<const RunData> data)
      : TableSource("counters", declared_table("sql/counters").summary), data_(std::move(data)) {}
  Result<std::vector<SqlColumn>> columns() const override { return columns_of(declared_table("sql/counters")); }
  void plan(Plan& plan) const override {
    double rows = 100'000;
    for (Wanted& w : plan.wanted) {
      const bool equal = w.op == SQLITE_INDEX_CONSTRAINT_EQ;
      w.taken = w.usable && ((w.column == kCounterName && equal && w.binary) ||
                             ((w.column == kCounterRank || w.column == kCounterTime) && (equal || is_range(w.op))));
      if (w.taken) rows /= 8;
    }
    plan.rows = static_cast<int64_t>(rows);
    plan.cost = rows;
    if (plan.order.size() != 1 || plan.order[0].first != kCounterTime) return;
    // Clock maps keep the order of time only within a segment.
    plan.ordered = !data_->is_mapped();
    plan.mode = plan.ordered ? (plan.order[0].second ? 2 : 1) : 0;
  }
  std::unique_ptr<Cursor> open() const override {
    std::call_once(looked_, [&] {
      for (const Part& part : data_->trace().parts) {
        std::vector<bool>& sorted = sorted_.emplace_back();
        for (const CounterSeries& series : part.counters) sorted.push_back(std::ranges::is_sorted(series.time_ns));
      }
    });
    return std::make_unique<CounterCursor>(data_, sorted_);
  }

 private:
  std::shared_ptr<const RunData> data_;
  mutable std::once_flag looked_;
  mutable std::vector<std::vector<bool>> sorted_;
};

}  // namespace

void add_profile_tables(const std::shared_ptr<const RunData>& data,
                        std::vector<std::shared_ptr<const TableSource>>& out) {
  out.insert(out.end(), {run_table(data, "collectives", collectives_of), run_table(data, "lanes", lanes_of),
                         std::make_shared<CounterTable>(data), run_table(data, "memory", memory_of),
                         run_table(data, "flows", flows_of), run_table(data, "marks", marks_of)});
}

}  // namespace stageline::sql
