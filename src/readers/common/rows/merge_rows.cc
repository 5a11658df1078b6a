#include "model/source_limits.h"
#include "readers/common/rows/file_rows.h"
#include "readers/common/rows/problems.h"

namespace stageline::rows {
namespace {

// Limit on all slices of a rank together, since analyses add durations up, over ranks too. An hour of 200 threads, each
// 100 calls deep, is a fifteenth of it.
constexpr int64_t kMaxSliceTimeNs = 1'000'000'000'000'000'000;

// Returns the smallest shift that moves the ids of `from` past those of `to`; 0 when they do not overlap anyway.
uint32_t id_shift(const FileRows& to, const FileRows& from, uint32_t Row::* id) {
  uint32_t last = 0, first = UINT32_MAX, max = 0;
  each_row(to, [&](const Row& row) {
    if (row.*id != kNoCorrelation) last = std::max(last, row.*id);
  });
  each_row(from, [&](const Row& row) {
    if (row.*id == kNoCorrelation || row.*id == 0) return;
    first = std::min(first, row.*id);
    max = std::max(max, row.*id);
  });
  if (first > last) return 0;
  return max < kNoCorrelation - last ? last : 0;
}

// Torch 1.13 to 2.2 write the correlation again as external id; build_part() recognises that by their being equal.
bool external_ids_repeat(const FileRows& rows) {
  size_t equal = 0, both = 0;
  each_row(rows, [&](const Row& row) {
    if (row.external_id == kNoCorrelation || row.correlation == kNoCorrelation) return;
    ++both;
    equal += row.external_id == row.correlation;
  });
  return both > 0 && equal * 2 > both;
}

// Goes through the rows of a file one after another.
class RowCursor {
 public:
  explicit RowCursor(const FileRows& rows) : rows_(rows) { settle(); }
  const Row* get() const { return block_ < rows_.blocks.size() ? &rows_.blocks[block_][row_] : nullptr; }
  void next() {
    ++row_;
    settle();
  }

 private:
  void settle() {
    while (block_ < rows_.blocks.size() && row_ >= rows_.blocks[block_].size()) ++block_, row_ = 0;
  }
  const FileRows& rows_;
  size_t block_ = 0, row_ = 0;
};

std::string_view base_time(const FileRows& rows) {
  const auto it = std::ranges::find(rows.metadata, "baseTimeNanoseconds", &MetaField::key);
  return it == rows.metadata.end() ? std::string_view() : std::string_view(it->json);
}

}  // namespace

bool times_fit(const FileRows& rows, int64_t base_ns) {
  const auto fits = [&](int64_t at) {
    int64_t sum = 0;
    return !__builtin_add_overflow(at, base_ns, &sum) && sum <= kMaxTimeNs && sum >= -kMaxTimeNs;
  };
  bool good = base_ns >= -kMaxTimeNs && base_ns <= kMaxTimeNs;  // differences of two bases then fit as well
  each_row(rows, [&](const Row& row) { good &= fits(row.start_ns) && fits(row.start_ns + row.dur_ns); });
  for (const MemoryRecord& record : rows.rest.memory) good &= fits(record.time_ns);
  for (const Mark& mark : rows.rest.marks) good &= fits(mark.time_ns);
  for (const Flow& flow : rows.rest.flows) good &= fits(flow.time_ns);
  for (const Flow& flow : rows.rest.launch_flows) good &= fits(flow.time_ns);
  for (const CounterSeries& series : rows.counters)
    for (const int64_t at : series.time_ns) good &= fits(at);
  return good;
}

void fit_durations(FileRows& rows) {
  int64_t sum = 0;
  bool fits = true;
  each_row(std::as_const(rows), [&](const Row& row) {
    fits = fits && !__builtin_add_overflow(sum, row.dur_ns, &sum) && sum <= kMaxSliceTimeNs;
  });
  if (fits) return;
  const int64_t longest = kMaxSliceTimeNs / static_cast<int64_t>(rows.row_count);
  each_row(rows, [&](Row& row) {
    if (row.dur_ns <= longest) return;
    rows.rest.diagnostics.add(problem::kineto_bad_duration, {rows.path, 0, row.offset});
    row.dur_ns = 0;
  });
}

bool same_rows(const FileRows& a, const FileRows& b) {
  if (a.rest.event_count != b.rest.event_count || a.row_count != b.row_count || base_time(a) != base_time(b))
    return false;
  RowCursor x(a), y(b);
  for (; x.get() && y.get(); x.next(), y.next())
    if (x.get()->start_ns != y.get()->start_ns || x.get()->dur_ns != y.get()->dur_ns ||
        x.get()->correlation != y.get()->correlation || x.get()->thread != y.get()->thread)
      return false;
  return true;
}

int64_t append_rows(FileRows& to, FileRows from, int64_t base_shift_ns) {
  const uint32_t correlation = id_shift(to, from, &Row::correlation);
  const uint32_t external = external_ids_repeat(from) ? correlation : id_shift(to, from, &Row::external_id);
  int64_t first_offset = 1;
  each_row(to, [&](const Row& row) { first_offset = std::max(first_offset, row.offset + 1); });
  int64_t python = max_over<int64_t>(to.rest.python, &PythonRow::id, -1);
  for (auto flows : {&ChunkRows::flows, &ChunkRows::launch_flows})
    for (Flow& flow : from.rest.*flows)
      flow.id_hash ^= (static_cast<uint64_t>(to.rest.event_count) + 1) * 0x9e3779b97f4a7c15ull;
  each_row(from, [&](Row& row) {
    row.offset += first_offset;
    if (row.correlation != kNoCorrelation && row.correlation != 0) row.correlation += correlation;
    if (row.external_id != kNoCorrelation && row.external_id != 0) row.external_id += external;
  });
  for (SyncFact& fact : from.rest.syncs)
    if (fact.wait_on_record_correlation > 0) fact.wait_on_record_correlation += correlation;
  for (PythonRow& row : from.rest.python) {
    if (row.id >= 0) row.id += python + 1;
    if (row.parent >= 0) row.parent += python + 1;
  }
  continue_rows(to, std::move(from), base_shift_ns);
  return first_offset;
}

void continue_rows(FileRows& to, FileRows from, int64_t base_shift_ns) {
  ChunkRows chunk = std::move(from.rest);
  chunk.rows.reserve(from.row_count);
  each_row(from, [&](Row& row) {
    row.start_ns += base_shift_ns;
    chunk.rows.push_back(row);
  });
  for (MemoryRecord& record : chunk.memory) record.time_ns += base_shift_ns;
  for (Mark& mark : chunk.marks) mark.time_ns += base_shift_ns;
  for (auto flows : {&ChunkRows::flows, &ChunkRows::launch_flows})
    for (Flow& flow : chunk.*flows) flow.time_ns += base_shift_ns;
  std::unordered_map<std::string, size_t> known;
  for (size_t c = 0; c < to.counters.size(); ++c) known.emplace(to.counters[c].name, c);
  for (CounterSeries& series : from.counters) {
    for (int64_t& at : series.time_ns) at += base_shift_ns;
    const auto it = known.find(series.name);
    if (it == known.end()) {
      to.counters.push_back(std::move(series));
    } else {
      CounterSeries& one = to.counters[it->second];
      one.time_ns.insert(one.time_ns.end(), series.time_ns.begin(), series.time_ns.end());
      one.value.insert(one.value.end(), series.value.begin(), series.value.end());
    }
  }
  for (MetaField& field : from.metadata)
    if (std::ranges::none_of(to.metadata, [&](const MetaField& m) { return m.key == field.key; }))
      to.metadata.push_back(std::move(field));
  to.forget_parsers();
  to.append(std::move(chunk), from.dictionaries, 0);
  to.forget_parsers();
}

}  // namespace stageline::rows
