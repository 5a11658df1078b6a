#include "readers/kineto/merge_rows.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace stageline::kineto {
namespace {

constexpr int64_t kLargestTimeNs = 4'000'000'000'000'000'000;  // the model's: sums and differences of two fit

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  from = {};
}

// The least shift that moves the ids of `from` past those of `to`, 0 when they do not meet anyway.
uint32_t id_shift(const std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
  uint32_t last = 0, first = UINT32_MAX, most = 0;
  for (const uint32_t id : to)
    if (id != kNoCorrelation) last = std::max(last, id);
  for (const uint32_t id : from) {
    if (id == kNoCorrelation || id == 0) continue;
    first = std::min(first, id);
    most = std::max(most, id);
  }
  if (first > last) return 0;
  return most < kNoCorrelation - last ? last : 0;
}

void shift_ids(std::vector<uint32_t>& ids, uint32_t by) {
  for (uint32_t& id : ids)
    if (id != kNoCorrelation && id != 0) id += by;
}

// torch 1.13 to 2.2 write the correlation once more as external id; finish_part sees that by their equality.
bool external_ids_repeat(const FileRows& rows) {
  size_t equal = 0, both = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows.external_id[i] == kNoCorrelation || rows.correlation[i] == kNoCorrelation) continue;
    ++both;
    equal += rows.external_id[i] == rows.correlation[i];
  }
  return both > 0 && equal * 2 > both;
}

}  // namespace

bool shift_times(FileRows& rows, int64_t base_ns) {
  if (base_ns == 0) return true;
  const auto fits = [&](int64_t at) {
    int64_t sum = 0;
    return !__builtin_add_overflow(at, base_ns, &sum) && sum <= kLargestTimeNs && sum >= -kLargestTimeNs;
  };
  bool good = true;
  for (size_t i = 0; i < rows.size(); ++i) good &= fits(rows.start_ns[i]) && fits(rows.start_ns[i] + rows.dur_ns[i]);
  for (const MemoryRecord& record : rows.memory) good &= fits(record.time_ns);
  for (const Mark& mark : rows.marks) good &= fits(mark.time_ns);
  for (const Flow& flow : rows.flows) good &= fits(flow.time_ns);
  for (const CounterSeries& series : rows.counters)
    for (const int64_t at : series.time_ns) good &= fits(at);
  if (!good) return false;
  for (int64_t& at : rows.start_ns) at += base_ns;
  for (MemoryRecord& record : rows.memory) record.time_ns += base_ns;
  for (Mark& mark : rows.marks) mark.time_ns += base_ns;
  for (Flow& flow : rows.flows) flow.time_ns += base_ns;
  for (CounterSeries& series : rows.counters)
    for (int64_t& at : series.time_ns) at += base_ns;
  return true;
}

bool same_rows(const FileRows& a, const FileRows& b) {
  return a.event_count == b.event_count && a.start_ns == b.start_ns && a.dur_ns == b.dur_ns &&
         a.correlation == b.correlation && a.names.size() == b.names.size() && a.thread == b.thread;
}

int64_t append_rows(FileRows& to, FileRows from) {
  std::vector<StringId> names(from.names.size());
  for (StringId id = 0; id < names.size(); ++id) names[id] = to.names.intern(from.names.text(id));
  std::vector<uint8_t> categories(kMaxCategories + 1, kMaxCategories);
  for (StringId id = 0; id < from.categories.size() && id < kMaxCategories; ++id) {
    const StringId mapped = to.categories.intern(from.categories.text(id));
    categories[id] = static_cast<uint8_t>(std::min<StringId>(mapped, kMaxCategories));
  }
  std::map<std::pair<std::string, std::string>, uint32_t> thread_ids;
  for (uint32_t t = 0; t < to.threads.size(); ++t) thread_ids.try_emplace({to.threads[t].pid, to.threads[t].tid}, t);
  std::vector<uint32_t> threads(from.threads.size());
  for (size_t t = 0; t < threads.size(); ++t) {
    Thread& thread = from.threads[t];
    const auto [it, added] = thread_ids.try_emplace({thread.pid, thread.tid}, static_cast<uint32_t>(to.threads.size()));
    threads[t] = it->second;
    if (added) {
      to.threads.push_back(std::move(thread));
    } else if (to.threads[it->second].name.empty()) {
      to.threads[it->second].name = thread.name;
    }
  }
  std::vector<uint16_t> streams(from.streams.size(), 0);
  for (size_t s = 1; s < streams.size(); ++s) {
    const auto known = std::find(to.streams.begin(), to.streams.end(), from.streams[s]);
    const auto at = static_cast<size_t>(known - to.streams.begin());
    if (known == to.streams.end() && at <= UINT16_MAX) to.streams.push_back(from.streams[s]);
    streams[s] = at <= UINT16_MAX ? static_cast<uint16_t>(at) : uint16_t{0};
  }

  const auto first_row = static_cast<uint32_t>(to.size());
  const auto first_index = static_cast<uint32_t>(to.event_count);
  const int64_t first_offset = to.offset.empty() ? 1 : *std::max_element(to.offset.begin(), to.offset.end()) + 1;
  const uint32_t correlation = id_shift(to.correlation, from.correlation);
  const uint32_t external = external_ids_repeat(from) ? correlation : id_shift(to.external_id, from.external_id);
  shift_ids(from.correlation, correlation);
  shift_ids(from.external_id, external);
  for (SyncFact& fact : from.syncs)
    if (fact.wait_on_record_correlation > 0) fact.wait_on_record_correlation += correlation;
  for (int64_t& offset : from.offset) offset += first_offset;
  for (uint32_t& index : from.file_index) index += first_index;
  for (uint32_t& name : from.name_id) name = names[name];
  for (uint32_t& thread : from.thread) thread = threads[thread];
  for (uint16_t& stream : from.stream_id) stream = streams[stream];
  for (uint8_t& category : from.category_id) category = categories[category];

  const auto move_rows = [&](auto& facts) {
    for (auto& fact : facts) fact.slice += first_row;
  };
  move_rows(from.copies);
  move_rows(from.syncs);
  move_rows(from.collectives);
  move_rows(from.operators);
  for (CollectiveFact& fact : from.collectives)
    for (StringId* id : {&fact.name, &fact.dtype, &fact.group, &fact.group_description, &fact.group_ranks,
                         &fact.in_split, &fact.out_split, &fact.comms_id})
      *id = names[*id];
  int64_t python = 0;
  for (const PythonRow& row : to.python) python = std::max(python, row.id);
  for (PythonRow& row : from.python) {
    row.row += first_row;
    if (row.id >= 0) row.id += python + 1;
    if (row.parent >= 0) row.parent += python + 1;
  }
  for (MemoryRecord& record : from.memory) {
    record.lane = threads[record.lane];
    record.file_index += first_index;
  }
  for (Mark& mark : from.marks) {
    mark.name = names[mark.name];
    mark.lane = threads[mark.lane];
    mark.file_index += first_index;
  }
  for (Flow& flow : from.flows) {
    flow.thread = threads[flow.thread];
    flow.id_hash ^= (uint64_t{first_index} + 1) * 0x9e3779b97f4a7c15ull;
  }
  std::unordered_map<std::string, size_t> series;
  for (size_t c = 0; c < to.counters.size(); ++c) series.emplace(to.counters[c].name, c);
  for (CounterSeries& counter : from.counters) {
    const auto it = series.find(counter.name);
    if (it == series.end()) {
      to.counters.push_back(std::move(counter));
    } else {
      append(to.counters[it->second].time_ns, counter.time_ns);
      append(to.counters[it->second].value, counter.value);
    }
  }
  append(to.start_ns, from.start_ns);
  append(to.dur_ns, from.dur_ns);
  append(to.offset, from.offset);
  append(to.name_id, from.name_id);
  append(to.file_index, from.file_index);
  append(to.correlation, from.correlation);
  append(to.external_id, from.external_id);
  append(to.thread, from.thread);
  append(to.stream_id, from.stream_id);
  append(to.category_id, from.category_id);
  append(to.joined, from.joined);
  append(to.copies, from.copies);
  append(to.syncs, from.syncs);
  append(to.collectives, from.collectives);
  append(to.operators, from.operators);
  append(to.python, from.python);
  append(to.memory, from.memory);
  append(to.marks, from.marks);
  append(to.flows, from.flows);
  to.event_count += from.event_count;
  to.fractional_time |= from.fractional_time;
  for (MetaField& field : from.metadata)
    if (std::none_of(to.metadata.begin(), to.metadata.end(), [&](const MetaField& m) { return m.key == field.key; }))
      to.metadata.push_back(std::move(field));
  to.diagnostics.merge(from.diagnostics);
  return first_offset;
}

}  // namespace stageline::kineto
