// Brings the chunks of a file together in the file's order.
#include "readers/common/rows/file_rows.h"

#include "readers/common/rows/problems.h"

namespace stageline::rows {
namespace {

// Extends a map by the ids that are new since the last chunk of this parser.
void extend(std::vector<uint32_t>& map, const TextInterner& from, TextInterner& to) {
  for (auto id = static_cast<uint32_t>(map.size()); id < from.size(); ++id) map.push_back(to.intern(from.text(id)));
}

template <class Fact> void append_facts(std::vector<Fact>& to, std::vector<Fact>& from, uint32_t first_row) {
  for (Fact& fact : from) fact.slice += first_row;
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void FileRows::map_streams(std::vector<uint16_t>& map, const Dictionaries& from) {
  for (size_t id = map.size(); id < from.streams.size(); ++id) {
    if (id == 0) {
      map.push_back(0);
      continue;
    }
    const auto known = dictionaries.stream_ids.find(from.streams[id]);
    if (known != dictionaries.stream_ids.end()) {
      map.push_back(known->second);
    } else if (dictionaries.streams.size() < UINT16_MAX) {
      map.push_back(static_cast<uint16_t>(dictionaries.streams.size()));
      dictionaries.stream_ids.emplace(from.streams[id], map.back());
      dictionaries.streams.push_back(from.streams[id]);
    } else {
      map.push_back(0);
      rest.diagnostics.add(problem::kineto_many_streams, {path});
    }
  }
}

void FileRows::append_counters(const std::vector<CounterPoint>& points, const std::vector<uint32_t>& names) {
  for (const CounterPoint& point : points) {
    const uint32_t series = names[point.series];
    const auto [it, added] = counter_ids_.try_emplace(series, counters.size());
    if (added) counters.push_back({std::string(dictionaries.names.text(series)), {}, {}});
    counters[it->second].time_ns.push_back(point.time_ns);
    counters[it->second].value.push_back(point.value);
  }
}

void FileRows::append(ChunkRows chunk, const Dictionaries& from, size_t parser) {
  if (maps_.size() <= parser) maps_.resize(parser + 1);
  Maps& maps = maps_[parser];
  extend(maps.names, from.names, dictionaries.names);
  extend(maps.categories, from.categories, dictionaries.categories);
  extend(maps.threads, from.threads, dictionaries.threads);
  map_streams(maps.streams, from);
  const auto first_row = static_cast<uint32_t>(row_count);
  const auto first_index = static_cast<uint32_t>(rest.event_count);
  const auto map_row = [&](Row& row) {
    row.name = maps.names[row.name];
    row.thread = maps.threads[row.thread];
    row.stream = maps.streams[row.stream];
    const uint32_t category = row.category < maps.categories.size() ? maps.categories[row.category] : kMaxCategories;
    row.category = static_cast<uint16_t>(std::min<uint32_t>(category, kMaxCategories)) & 0x7fff;
    row.file_index += first_index;
  };
  for (Row& row : chunk.rows) map_row(row);
  map_texts(chunk, maps.names);
  each_fact_list([&](auto list) { append_facts(rest.*list, chunk.*list, first_row); });
  append_facts(rest.python, chunk.python, first_row);
  for (MemoryRecord& record : chunk.memory) {
    record.lane = maps.threads[record.lane];
    record.file_index += first_index;
    rest.memory.push_back(record);
  }
  for (Mark& mark : chunk.marks) {
    mark.lane = maps.threads[mark.lane];
    mark.name = maps.names[mark.name];
    mark.file_index += first_index;
    rest.marks.push_back(mark);
  }
  for (auto flows : {&ChunkRows::flows, &ChunkRows::launch_flows})
    for (Flow& flow : chunk.*flows) {
      flow.thread = maps.threads[flow.thread];
      (rest.*flows).push_back(flow);
    }
  append_facts(rest.exact_starts, chunk.exact_starts, first_row);
  for (GraphWork& work : chunk.graph_work) work.name = maps.names[work.name];
  append_facts(rest.graph_work, chunk.graph_work, first_row);
  for (const ProcessName& entry : chunk.process_names)
    rest.process_names.push_back({maps.names[entry.pid], maps.names[entry.name]});
  for (const ThreadName& name : chunk.thread_names)
    rest.thread_names.push_back({maps.threads[name.thread], maps.names[name.name]});
  append_counters(chunk.counters, maps.names);
  for (HalfEvent& half : chunk.halves) {
    map_row(half.row);
    half.async_key = maps.names[half.async_key];
  }
  if (!chunk.owners.empty() || !rest.owners.empty()) {
    rest.owners.resize(static_cast<size_t>(rest.event_count));
    for (const uint32_t owner : chunk.owners) rest.owners.push_back(maps.names[owner]);
    rest.owners.resize(static_cast<size_t>(rest.event_count + chunk.event_count));
  }
  rest.event_count += chunk.event_count;
  rest.fractional_time |= chunk.fractional_time;
  rest.diagnostics.merge(chunk.diagnostics);
  row_count += chunk.rows.size();
  chunk.rows.shrink_to_fit();
  blocks.push_back(std::move(chunk.rows));
  rest.halves.insert(rest.halves.end(), chunk.halves.begin(), chunk.halves.end());
}

void FileRows::join_halves() {
  std::vector<Row> joined;
  // A file may have its events in any order; what begins and ends at once keeps the file's.
  sort_stably(rest.halves, {}, [](const HalfEvent& a) { return a.row.start_ns; });
  std::map<uint32_t, std::vector<Row>> open, open_async;
  for (const HalfEvent& half : rest.halves) {
    const bool async = half.phase == 'b' || half.phase == 'e';
    std::vector<Row>& stack = async ? open_async[half.async_key] : open[half.row.thread];
    if (half.phase == 'B' || half.phase == 'b') {
      stack.push_back(half.row);
      continue;
    }
    if (stack.empty()) {
      rest.diagnostics.add(problem::kineto_unmatched_end, {path, 0, half.row.offset});
      continue;
    }
    // An end that carries a name ends the last slice of that name: slices of one thread may overlap. Overlapping ones
    // are few; a deeper search would be quadratic where ends have names of their own.
    constexpr size_t kMaxOverlapping = 64;
    const auto last = stack.rbegin() + static_cast<std::ptrdiff_t>(std::min(stack.size(), kMaxOverlapping));
    auto begun = std::find_if(stack.rbegin(), last, [&](const Row& row) { return row.name == half.row.name; });
    if (half.row.name == 0 || begun == last) begun = stack.rbegin();
    Row row = *begun;
    stack.erase(std::next(begun).base());
    if (__builtin_sub_overflow(half.row.start_ns, row.start_ns, &row.dur_ns) || row.dur_ns < 0) row.dur_ns = 0;
    row.joined = 1;
    joined.push_back(row);
  }
  row_count += joined.size();
  blocks.push_back(std::move(joined));
  for (const auto* stacks : {&open, &open_async})
    for (const auto& [key, stack] : *stacks)
      for (const Row& row : stack) rest.diagnostics.add(problem::kineto_unmatched_begin, {path, 0, row.offset});
  std::vector<HalfEvent>().swap(rest.halves);
}

void FileRows::finish() {
  if (!rest.halves.empty()) join_halves();
  maps_.clear();
}

}  // namespace stageline::rows
