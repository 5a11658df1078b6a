#include "readers/common/rows/finish_part.h"

#include "model/lanes.h"
#include "readers/common/absurd_times.h"
#include "readers/common/order_facts.h"
#include "readers/common/rows/graph_marks.h"
#include "readers/common/rows/problems.h"
#include "readers/reader.h"

namespace stageline::rows {
namespace {

// Columns of slices while they are put into order. External ids are only needed to find owners.
struct Columns {
  Slices& s;
  std::vector<uint32_t>& external_id;  // empty: no row has one
  std::vector<uint32_t>& new_index;    // of a row: its slice
  std::vector<uint32_t> sorted_to;     // where a lane's order put a slice; empty: all stayed

  template <class Body> void each(Body&& body) {
    body(s.start_ns), body(s.dur_ns), body(s.name_id), body(s.file_index), body(s.correlation), body(s.args_offset_low);
    body(s.args_offset_high), body(s.stream_id), body(s.category_id), body(s.kernel_class);
  }
  void resize(size_t n, bool external_ids) {
    each([&](auto& column) { column.resize(n); });
    if (external_ids) external_id.resize(n);
  }
  void put(size_t i, const Row& from, int64_t base_ns, uint32_t row_index) {
    s.start_ns[i] = from.start_ns + base_ns;
    s.dur_ns[i] = from.dur_ns;
    s.name_id[i] = from.name;
    s.file_index[i] = from.file_index;
    s.correlation[i] = from.correlation;
    s.args_offset_low[i] = static_cast<uint32_t>(from.offset);
    s.args_offset_high[i] = static_cast<uint8_t>(from.offset >> 32);
    s.stream_id[i] = from.stream;
    s.category_id[i] = static_cast<uint8_t>(from.category);
    s.kernel_class[i] = from.joined ? Slices::kJoinedBit : 0;
    if (!external_id.empty()) external_id[i] = from.external_id;
    new_index[row_index] = static_cast<uint32_t>(i);
  }
  bool before(size_t a, size_t b) const {
    if (s.start_ns[a] != s.start_ns[b]) return s.start_ns[a] < s.start_ns[b];
    if (s.dur_ns[a] != s.dur_ns[b]) return s.dur_ns[a] > s.dur_ns[b];
    return s.file_index[a] < s.file_index[b];
  }
  // Puts a lane into order: start, longer first, file order. Kineto writes most lanes in this order.
  void sort(size_t begin, size_t end) {
    bool sorted = true;
    for (size_t i = begin + 1; i < end && sorted; ++i) sorted = !before(i, i - 1);
    if (sorted) return;
    auto order = indexes<uint32_t>(end - begin, static_cast<uint32_t>(begin));
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return before(a, b); });
    each([&](auto& column) { permute_lane(column, order, begin); });
    if (!external_id.empty()) permute_lane(external_id, order, begin);
    if (sorted_to.empty()) sorted_to = indexes<uint32_t>(s.start_ns.size());
    for (size_t k = 0; k < order.size(); ++k) sorted_to[order[k]] = static_cast<uint32_t>(begin + k);
  }
};

// Scatters the rows into their lanes; threads are in order of first appearance.
void fill_lanes(FileRows& rows, int64_t base_ns, Part& part, Columns& columns) {
  bool external_ids = false;
  std::vector<size_t> next = make_lanes(rows, part.lanes, &external_ids);
  columns.resize(part.lanes.empty() ? 0 : part.lanes.back().end, external_ids);
  columns.new_index.assign(rows.row_count, kNoSliceIndex);
  uint32_t row_index = 0;
  for (std::vector<Row>& block : rows.blocks) {
    for (const Row& row : block) {
      if (row.thread != kNoThread) columns.put(next[row.thread]++, row, base_ns, row_index);
      ++row_index;
    }
    std::vector<Row>().swap(block);
  }
  for (const Lane& lane : part.lanes) columns.sort(lane.begin, lane.end);
  if (columns.sorted_to.empty()) return;
  for (uint32_t& slice : columns.new_index)
    if (slice != kNoSliceIndex) slice = columns.sorted_to[slice];
}

// Returns the threads of asynchronous ranges, if Chrome wrote them. Frames that it resumes have the start they had long
// before the recording. So such ranges do not show that anything was recorded all the time, and count as stamped by
// another clock. Empty: none.
std::vector<bool> threads_of_old_ranges(const Dictionaries& texts) {
  bool chrome = false;
  for (uint32_t c = 0; c < texts.categories.size(); ++c)
    chrome = chrome || holds(texts.categories.text(c), "devtools.timeline");
  std::vector<bool> out(chrome ? texts.threads.size() : 0);
  for (uint32_t t = 0; t < out.size(); ++t) out[t] = holds(texts.threads.text(t), "\nasync ");
  return out;
}

// Takes rows whose times cannot be from their threads.
void leave_out_absurd(FileRows& rows, const FileNames& names, std::string_view format, Diagnostics& notes) {
  const std::vector<bool> old = threads_of_old_ranges(rows.dictionaries);
  const std::vector<bool> absurd = absurd_rows(
      rows.row_count,
      [&](auto&& use) {
        for (const std::vector<Row>& block : rows.blocks)
          for (const Row& row : block)
            if (!old.empty() && old[row.thread]) use({row.start_ns, 1, true, row.name});
            else use({row.start_ns, row.dur_ns, !is_on_host(names.categories[row.category].kind), row.name});
      },
      0, format, rows.path, notes);
  size_t index = 0;
  for (std::vector<Row>& block : rows.blocks)
    for (Row& row : block)
      if (!absurd.empty() && absurd[index++]) row.thread = kNoThread;
}

// Keeps the parents of frames whose parent is on another thread or missing from the nesting of their own thread.
void python_parents(const FileRows& rows, const std::vector<uint32_t>& new_index, Part& part) {
  std::unordered_map<int64_t, uint32_t> frame;
  frame.reserve(rows.rest.python.size());
  for (const PythonRow& p : rows.rest.python)
    if (new_index[p.slice] != kNoSliceIndex) frame.emplace(p.id, new_index[p.slice]);
  for (const PythonRow& p : rows.rest.python) {
    if (new_index[p.slice] == kNoSliceIndex) continue;
    if (p.module >= 0) part.modules.push_back({new_index[p.slice], p.module});
    if (p.parent < 0) continue;
    const auto it = frame.find(p.parent);
    if (it == frame.end()) continue;
    const uint32_t slice = new_index[p.slice];
    if (part.slices.parent[slice] != it->second) part.python_parents.push_back({slice, it->second});
  }
  std::ranges::sort(part.python_parents, {}, &PythonFact::slice);
  std::ranges::sort(part.modules, {}, &ModuleFact::slice);
}

void link_flows(const FileRows& rows, Part& part) {
  std::vector<SliceQuestion> questions;
  for (const Flow& flow : rows.rest.flows) questions.push_back({flow.thread - 1, flow.time_ns, questions.size()});
  std::vector<uint32_t> at(questions.size(), kNoSliceIndex);
  find_open_slices(
      part, std::move(questions), [&](size_t flow, uint32_t slice) { at[flow] = slice; }, SliceEnd::kIncluded);
  std::unordered_map<uint64_t, uint32_t> from;
  for (size_t k = 0; k < at.size(); ++k) {
    const Flow& flow = rows.rest.flows[k];
    const uint32_t slice = at[k];
    if (slice == kNoSliceIndex) continue;
    if (flow.is_start) {
      from[flow.id_hash] = slice;
      continue;
    }
    const auto it = from.find(flow.id_hash);
    if (it == from.end()) continue;
    part.slice_links.push_back(
        {it->second, slice, flow.is_forward_backward ? SliceLinkKind::kForwardBackward : SliceLinkKind::kFlow});
    it->second = slice;  // steps with phase 't' continue the chain
  }
}

// Gives work and launches without a correlation that of the arrow between them, or a new one.
void link_by_arrows(const FileRows& rows, const FileNames& names, Part& part) {
  if (rows.rest.launch_flows.empty()) return;
  Slices& s = part.slices;
  const auto kind = [&](size_t i) { return names.categories[s.category_id[i]].kind; };
  // The last slice of the wanted kind that has begun at a time, near it: an arrow begins within its call, and ends
  // where its work begins or within it.
  const auto slice_at = [&](const Flow& flow, auto wanted) {
    constexpr int kNear = 16;
    const Lane& lane = part.lanes[flow.thread - 1];
    const auto begin = s.start_ns.begin();
    auto at = static_cast<size_t>(std::upper_bound(begin + static_cast<std::ptrdiff_t>(lane.begin),
                                                   begin + static_cast<std::ptrdiff_t>(lane.end), flow.time_ns) -
                                  begin);
    for (int tries = 0; at > lane.begin && tries < kNear; ++tries)
      if (--at; wanted(kind(at)) && s.end_ns(at) >= flow.time_ns) return static_cast<uint32_t>(at);
    return kNoSliceIndex;
  };
  uint32_t highest = 0;
  for (const uint32_t number : s.correlation)
    if (number != kNoCorrelation) highest = std::max(highest, number);
  std::unordered_map<uint64_t, uint32_t> launch_of;
  for (const Flow& flow : rows.rest.launch_flows)
    if (flow.is_start)
      if (const uint32_t call = slice_at(flow, is_launch_call); call != kNoSliceIndex) launch_of[flow.id_hash] = call;
  for (const Flow& flow : rows.rest.launch_flows) {
    const auto from = flow.is_start ? launch_of.end() : launch_of.find(flow.id_hash);
    if (from == launch_of.end()) continue;
    const uint32_t work = slice_at(flow, is_device_work);
    if (work == kNoSliceIndex || s.correlation[work] != kNoCorrelation) continue;
    if (s.correlation[from->second] == kNoCorrelation && highest < kNoCorrelation - 1)
      s.correlation[from->second] = ++highest;
    s.correlation[work] = s.correlation[from->second];
  }
}

// Where nothing has a correlation, a call and device work that alone share an External id belong together.
void link_by_external_ids(const std::vector<uint32_t>& external_id, const FileNames& names, Part& part) {
  Slices& s = part.slices;
  if (external_id.empty() || std::ranges::any_of(s.correlation, [](uint32_t n) { return n != kNoCorrelation; })) return;
  std::map<uint32_t, std::array<std::vector<uint32_t>, 2>> found;  // calls and work of each id
  for (uint32_t i = 0; i < s.size(); ++i) {
    const Category kind = names.categories[s.category_id[i]].kind;
    if (external_id[i] != kNoCorrelation && external_id[i] != 0 && (is_launch_call(kind) || is_device_work(kind)))
      found[external_id[i]][is_device_work(kind)].push_back(i);
  }
  for (const auto& [id, of] : found)
    if (of[0].size() == 1 && of[1].size() == 1) s.correlation[of[0][0]] = s.correlation[of[1][0]] = id;
}

}  // namespace

FileNames names_of(const FileRows& rows) {
  FileNames names;
  const TextInterner& texts = rows.dictionaries.names;
  for (uint32_t id = 0; id < texts.size(); ++id) names.names.emplace_back(texts.text(id));
  const TextInterner& categories = rows.dictionaries.categories;
  for (uint32_t id = 0; id < categories.size() && id < kMaxCategories; ++id)
    names.categories.push_back({std::string(categories.text(id)), category_of(categories.text(id))});
  if (categories.size() > kMaxCategories) names.categories.push_back({"(more categories)", Category::kOther});
  return names;
}

std::vector<size_t> make_lanes(const FileRows& rows, std::vector<Lane>& lanes, bool* external_ids) {
  const TextInterner& threads = rows.dictionaries.threads;
  std::vector<size_t> next(threads.size() + 1, 0);
  uint32_t all_ids = kNoCorrelation;  // kNoCorrelation has every bit set: one that lacks a bit is a number
  for (const std::vector<Row>& block : rows.blocks)
    for (const Row& row : block) {
      if (row.thread != kNoThread) ++next[row.thread + 1];
      all_ids &= row.external_id;
    }
  if (external_ids) *external_ids = all_ids != kNoCorrelation;
  for (uint32_t t = 1; t < threads.size(); ++t) {  // 0 is the interner's empty text; a lane is a thread − 1
    next[t + 1] += next[t];
    Lane lane;
    const std::string_view key = threads.text(t);
    const size_t cut = key.find('\n');
    lane.pid = std::string(key.substr(0, cut));
    lane.tid = cut == std::string_view::npos ? "" : std::string(key.substr(cut + 1));
    lane.begin = next[t];
    lane.end = next[t + 1];
    lanes.push_back(std::move(lane));
  }
  return next;
}

void name_lanes(const FileRows& rows, std::vector<Lane>& lanes) {
  for (const ThreadName& entry : rows.rest.thread_names)
    lanes[entry.thread - 1].name = std::string(rows.dictionaries.names.text(entry.name));
  for (Lane& lane : lanes)
    if (lane.name.empty())
      lane.name = lane.tid.starts_with("stream") || lane.tid.starts_with("async") ? lane.tid : "thread " + lane.tid;
}

FileNames build_part(FileRows rows, int64_t base_ns, Part& part, Diagnostics& notes, std::string_view format) {
  const GraphNames graph_names = add_graph_marks(rows);
  notes.add(problem::reader_names_of_capture.of(format), {rows.path}, graph_names.of_capture);
  notes.add(problem::reader_unnamed_graphs.of(format), {rows.path}, graph_names.missing);
  FileNames names = names_of(rows);
  part.source = rows.path;
  leave_out_absurd(rows, names, format, notes);
  std::vector<uint32_t> external_id, new_index;
  {
    Columns columns{part.slices, external_id, new_index, {}};
    fill_lanes(rows, base_ns, part, columns);
  }
  name_lanes(rows, part.lanes);
  ChunkRows& rest = rows.rest;
  part.streams = std::move(rows.dictionaries.streams);
  place_facts(rest, new_index, part);
  part.memory = std::move(rest.memory);
  for (MemoryRecord& record : part.memory) record.time_ns += base_ns, --record.lane;
  part.marks = std::move(rest.marks);
  for (Mark& mark : part.marks) mark.time_ns += base_ns, --mark.lane;
  part.counters = std::move(rows.counters);
  for (CounterSeries& series : part.counters)
    for (int64_t& time : series.time_ns) time += base_ns;
  part.event_count = rest.event_count;
  part.fractional_time = rest.fractional_time;
  part.metadata = std::move(rows.metadata);
  part.base_time_ns = base_ns;
  for (Flow& flow : rest.flows) flow.time_ns += base_ns;
  for (Flow& flow : rest.launch_flows) flow.time_ns += base_ns;
  link_by_arrows(rows, names, part);
  link_by_external_ids(external_id, names, part);
  relate_slices(names, external_id, {.notes = &notes, .format = format}, part);
  leave_out_far_marks(part, format, notes);
  python_parents(rows, new_index, part);
  for (const SliceLink& link : rest.links)
    if (new_index[link.from] != kNoSliceIndex && new_index[link.to] != kNoSliceIndex)
      part.slice_links.push_back({new_index[link.from], new_index[link.to], link.kind});
  link_flows(rows, part);
  return names;
}

void find_device(Part& part) {
  std::map<int64_t, size_t> slices;
  for (const Lane& lane : part.lanes) {
    const auto pid = lane.kind == LaneKind::kDeviceStream ? parse_int(lane.pid) : std::nullopt;
    if (pid && *pid >= 0 && *pid < 1024) slices[*pid] += lane.end - lane.begin;
  }
  size_t max = 0;
  for (const auto& [pid, count] : slices)
    if (count > max) max = count, part.device = static_cast<int32_t>(pid);
}

}  // namespace stageline::rows
