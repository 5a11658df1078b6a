#include "readers/kineto/finish_part.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include "model/exchange_names.h"
#include "model/hta_rows.h"
#include "model/open_slices.h"

namespace stageline::kineto {
namespace {

// Looks numbers up that are nearly dense (correlations, external ids); sparse ones fall back to hashing.
class IdMap {
 public:
  IdMap(uint32_t highest, size_t entries) : dense_(highest < entries * 8 + (1u << 16)) {
    if (dense_) table_.assign(static_cast<size_t>(highest) + 1, kNoSliceIndex);
  }
  uint32_t get(uint32_t id) const {
    if (dense_) return id < table_.size() ? table_[id] : kNoSliceIndex;
    const auto it = map_.find(id);
    return it == map_.end() ? kNoSliceIndex : it->second;
  }
  void set(uint32_t id, uint32_t value) {
    if (dense_) {
      table_[id] = value;
    } else {
      map_[id] = value;
    }
  }

 private:
  bool dense_;
  std::vector<uint32_t> table_;
  std::unordered_map<uint32_t, uint32_t> map_;
};

uint32_t highest_of(const std::vector<uint32_t>& ids) {
  uint32_t most = 0;
  for (const uint32_t id : ids)
    if (id != kNoCorrelation) most = std::max(most, id);
  return most;
}

template <class Fact>
std::vector<Fact> moved(std::vector<Fact> facts, const std::vector<uint32_t>& new_index) {
  for (Fact& fact : facts) fact.slice = new_index[fact.slice];
  std::sort(facts.begin(), facts.end(), [](const Fact& a, const Fact& b) { return a.slice < b.slice; });
  return facts;
}

// Columns of slices while they are put in order; external ids serve only to find owners.
struct Columns {
  Slices& s;
  std::vector<uint32_t>& external_id;
  std::vector<uint32_t>& row;  // of the file, by slice

  void resize(size_t n) {
    s.start_ns.resize(n);
    s.dur_ns.resize(n);
    s.name_id.resize(n);
    s.file_index.resize(n);
    s.correlation.resize(n);
    s.args_offset_low.resize(n);
    s.args_offset_high.resize(n);
    s.stream_id.resize(n);
    s.category_id.resize(n);
    s.kernel_class.resize(n);
    external_id.resize(n);
    row.resize(n);
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
    external_id[i] = from.external_id;
    row[i] = row_index;
  }
  bool before(size_t a, size_t b) const {
    if (s.start_ns[a] != s.start_ns[b]) return s.start_ns[a] < s.start_ns[b];
    if (s.dur_ns[a] != s.dur_ns[b]) return s.dur_ns[a] > s.dur_ns[b];
    return s.file_index[a] < s.file_index[b];
  }
  // Puts a lane in order: (start, longer first, file order). Kineto writes most lanes so.
  void sort(size_t begin, size_t end) {
    bool sorted = true;
    for (size_t i = begin + 1; i < end && sorted; ++i) sorted = !before(i, i - 1);
    if (sorted) return;
    std::vector<uint32_t> order(end - begin);
    std::iota(order.begin(), order.end(), static_cast<uint32_t>(begin));
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return before(a, b); });
    permute(s.start_ns, order, begin);
    permute(s.dur_ns, order, begin);
    permute(s.name_id, order, begin);
    permute(s.file_index, order, begin);
    permute(s.correlation, order, begin);
    permute(s.args_offset_low, order, begin);
    permute(s.args_offset_high, order, begin);
    permute(s.stream_id, order, begin);
    permute(s.category_id, order, begin);
    permute(s.kernel_class, order, begin);
    permute(external_id, order, begin);
    permute(row, order, begin);
  }
  template <class T>
  static void permute(std::vector<T>& column, const std::vector<uint32_t>& order, size_t begin) {
    std::vector<T> sorted(order.size());
    for (size_t k = 0; k < order.size(); ++k) sorted[k] = column[order[k]];
    std::copy(sorted.begin(), sorted.end(), column.begin() + static_cast<std::ptrdiff_t>(begin));
  }
};

// Scatters the rows into their lanes: threads in order of first appearance.
void fill_lanes(FileRows& rows, int64_t base_ns, Part& part, Columns& columns) {
  const TextInterner& threads = rows.dictionaries.threads;
  std::vector<size_t> next(threads.size() + 1, 0);
  for (const std::vector<Row>& block : rows.blocks)
    for (const Row& row : block) ++next[row.thread + 1];
  for (uint32_t t = 1; t < threads.size(); ++t) {  // 0 is the interner's empty text; a lane is a thread − 1
    next[t + 1] += next[t];
    Lane lane;
    const std::string_view key = threads.text(t);
    const size_t cut = key.find('\n');
    lane.pid = std::string(key.substr(0, cut));
    lane.tid = cut == std::string_view::npos ? "" : std::string(key.substr(cut + 1));
    lane.begin = next[t];
    lane.end = next[t + 1];
    part.lanes.push_back(std::move(lane));
  }
  columns.resize(rows.row_count);
  uint32_t row_index = 0;
  for (std::vector<Row>& block : rows.blocks) {
    for (const Row& row : block) columns.put(next[row.thread]++, row, base_ns, row_index++);
    std::vector<Row>().swap(block);
  }
  for (const Lane& lane : part.lanes) columns.sort(lane.begin, lane.end);
}

// The enclosing slice on the same lane, by torch's rule: what ends later than the top of the stack ends
// the top's turn (torch/autograd/profiler_util.py, _populate_cpu_children).
void nest(Slices& s, const Lane& lane) {
  std::vector<uint32_t> stack;
  for (size_t i = lane.begin; i < lane.end; ++i) {
    const int64_t start = s.start_ns[i], end = s.end_ns(i);
    while (!stack.empty() && (start >= s.end_ns(stack.back()) || end > s.end_ns(stack.back()))) stack.pop_back();
    if (!stack.empty()) s.parent[i] = stack.back();
    stack.push_back(static_cast<uint32_t>(i));
  }
}

class Finisher {
 public:
  Finisher(const FileNames& names, Part& part, const std::vector<uint32_t>& external_id)
      : names_(names), part_(part), s_(part.slices), external_id_(external_id) {
    kinds_.fill(Category::kOther);
    for (size_t c = 0; c < names.categories.size(); ++c) kinds_[c] = names.categories[c].kind;
  }

  void run() {
    s_.parent.assign(s_.size(), kNoSliceIndex);
    s_.partner.assign(s_.size(), kNoSliceIndex);
    s_.step.assign(s_.size(), 0);
    for (Lane& lane : part_.lanes) {
      lane.kind = kind_of_lane(lane);
      if (lane.kind != LaneKind::kDeviceStream) nest(s_, lane);
    }
    link_launches();
    find_owners();
    number_steps();
    classify();
  }

 private:
  Category category(size_t i) const { return kinds_[s_.category_id[i]]; }

  LaneKind kind_of_lane(const Lane& lane) const {
    for (size_t i = lane.begin; i < lane.end; ++i) {
      const Category c = category(i);
      if (is_device_work(c) || c == Category::kGpuAnnotation || c == Category::kDeviceSync)
        return LaneKind::kDeviceStream;
      if (is_host(c)) return LaneKind::kHostThread;
    }
    return LaneKind::kOther;
  }

  // A device slice's launch is the earliest runtime or driver call with its correlation (a runtime call that
  // calls the driver shares its number); a launch's partner is its last device slice.
  void link_launches() {
    IdMap launch(highest_of(s_.correlation), s_.size());
    for (size_t i = 0; i < s_.size(); ++i) {
      if (s_.correlation[i] == kNoCorrelation || !is_launch_call(category(i))) continue;
      const uint32_t known = launch.get(s_.correlation[i]);
      if (known == kNoSliceIndex || s_.start_ns[i] < s_.start_ns[known])
        launch.set(s_.correlation[i], static_cast<uint32_t>(i));
    }
    for (size_t i = 0; i < s_.size(); ++i) {
      const Category c = category(i);
      if (s_.correlation[i] == kNoCorrelation || (!is_device_work(c) && c != Category::kDeviceSync)) continue;
      const uint32_t from = launch.get(s_.correlation[i]);
      if (from == kNoSliceIndex) continue;
      s_.partner[i] = from;
      const uint32_t known = s_.partner[from];
      if (known == kNoSliceIndex || s_.file_index[i] > s_.file_index[known])
        s_.partner[from] = static_cast<uint32_t>(i);
    }
  }

  // By "External id" where it is a real link; from torch 1.13 to 2.2 it only repeats the correlation, and
  // the operator around the launch call is the owner.
  void find_owners() {
    size_t device = 0, repeated = 0;
    for (size_t i = 0; i < s_.size(); ++i) {
      if (!is_device_work(category(i))) continue;
      ++device;
      repeated += external_id_[i] != kNoCorrelation && external_id_[i] == s_.correlation[i];
    }
    if (device == 0) return;
    const bool real = repeated * 2 <= device;
    IdMap ops(real ? highest_of(external_id_) : 0, s_.size());
    if (real)
      for (size_t i = 0; i < s_.size(); ++i)
        if (external_id_[i] != kNoCorrelation && category(i) == Category::kCpuOp)
          ops.set(external_id_[i], static_cast<uint32_t>(i));
    std::vector<bool> below_work;  // filled for the first such row on a host's thread: rarely
    for (const Lane& lane : part_.lanes)
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (!is_device_work(category(i))) continue;
        if (lane.kind != LaneKind::kDeviceStream && below_work.empty()) below_work = below_device_work();
        uint32_t owner = s_.parent[i];
        if (real && external_id_[i] != kNoCorrelation && external_id_[i] != 0) owner = ops.get(external_id_[i]);
        if (owner == kNoSliceIndex && s_.partner[i] != kNoSliceIndex) owner = operator_above(s_.partner[i]);
        if (lane.kind == LaneKind::kDeviceStream || owner == kNoSliceIndex || !below_work[owner]) s_.parent[i] = owner;
      }
    if (!real) return;
    for (size_t i = 0; i < s_.size(); ++i) {
      if (!is_launch_call(category(i)) || external_id_[i] == kNoCorrelation || external_id_[i] == 0) continue;
      const uint32_t owner = ops.get(external_id_[i]);
      if (owner != kNoSliceIndex && owner != operator_above(static_cast<uint32_t>(i)))
        part_.launch_owners.push_back({static_cast<uint32_t>(i), owner});
    }
  }

  // Device work drawn on a host's thread may enclose what its numbers name as its owner: a circle of parents. None
  // closes where no owner lies within device work; asked before the first parent of a host's thread changes.
  std::vector<bool> below_device_work() const {
    std::vector<bool> below(s_.size());
    for (size_t i = 0; i < s_.size(); ++i)  // what encloses a slice stands before it
      if (const uint32_t up = s_.parent[i]; up != kNoSliceIndex) below[i] = below[up] || is_device_work(category(up));
    return below;
  }

  // The innermost operator around a host slice. Where that is far, a table of all makes the next ones quick: calls
  // nested by the thousand must not be climbed anew for every launch.
  uint32_t operator_above(uint32_t slice) {
    constexpr int kFar = 256;
    uint32_t at = slice;
    for (int step = 0; step < kFar; ++step) {
      at = s_.parent[at];
      if (at == kNoSliceIndex || category(at) == Category::kCpuOp) return at;
    }
    if (operator_above_.empty()) {
      operator_above_.assign(s_.size(), kNoSliceIndex);
      for (const Lane& lane : part_.lanes) {
        if (lane.kind == LaneKind::kDeviceStream) continue;
        for (size_t i = lane.begin; i < lane.end; ++i)  // what encloses a slice stands before it
          if (const uint32_t up = s_.parent[i]; up != kNoSliceIndex)
            operator_above_[i] = category(up) == Category::kCpuOp ? up : operator_above_[up];
      }
    }
    return operator_above_[at];
  }

  // Steps are the host's ProfilerStep rows; device work belongs to the step that launched it.
  void number_steps() {
    std::vector<int64_t> number_of(names_.names.size());  // by name id
    for (size_t id = 0; id < number_of.size(); ++id) number_of[id] = hta_step_number(names_.names[id]);
    for (size_t i = 0; i < s_.size(); ++i) {
      const int64_t number = number_of[s_.name_id[i]];
      if (number < 0 || !is_host(category(i))) continue;
      if (number <= INT32_MAX && part_.steps.size() < UINT16_MAX - 1)
        part_.steps.push_back({number, s_.start_ns[i], s_.end_ns(i), static_cast<uint32_t>(i)});
    }
    std::vector<ProfilerStep>& steps = part_.steps;
    if (steps.empty()) return;
    std::sort(steps.begin(), steps.end(),
              [](const ProfilerStep& a, const ProfilerStep& b) { return a.start_ns < b.start_ns; });
    for (size_t i = 0; i < s_.size(); ++i) {
      if (is_device_work(category(i)) || category(i) == Category::kDeviceSync) continue;
      const auto after = std::upper_bound(steps.begin(), steps.end(), s_.start_ns[i],
                                          [](int64_t at, const ProfilerStep& step) { return at < step.start_ns; });
      if (after != steps.begin() && s_.start_ns[i] < (after - 1)->end_ns)
        s_.step[i] = static_cast<uint16_t>(after - steps.begin());
    }
    for (size_t i = 0; i < s_.size(); ++i)
      if ((is_device_work(category(i)) || category(i) == Category::kDeviceSync) && s_.partner[i] != kNoSliceIndex)
        s_.step[i] = s_.step[s_.partner[i]];
  }

  void classify() {
    std::unordered_map<uint64_t, KernelClass> known;
    for (size_t i = 0; i < s_.size(); ++i) {
      const Category c = category(i);
      if (!is_device_work(c) && c != Category::kDeviceSync) continue;
      const auto [it, added] = known.try_emplace(static_cast<uint64_t>(s_.name_id[i]) << 8 | static_cast<uint64_t>(c));
      if (added) it->second = classify_kernel(c, names_.names[s_.name_id[i]], false);
      s_.kernel_class[i] |= static_cast<uint8_t>(it->second);
    }
    classify_exchanges();
    for (const CollectiveFact& fact : part_.collectives)
      if (category(fact.slice) == Category::kKernel && fact.name != 0)
        s_.kernel_class[fact.slice] = static_cast<uint8_t>((s_.kernel_class[fact.slice] & Slices::kJoinedBit) |
                                                           static_cast<uint8_t>(KernelClass::kCommunication));
  }

  // Expert parallelism exchanges tokens in kernels whose names alone could be anything ("dispatch<8, 1024>"): they are
  // communication where their launch lies under an annotation that says so.
  void classify_exchanges() {
    std::vector<bool> says(names_.names.size());
    bool any = false;
    for (size_t id = 0; id < says.size(); ++id) {
      says[id] = is_exchange_annotation(names_.names[id]);
      any |= says[id];
    }
    if (!any) return;
    std::vector<bool> under(s_.size());
    for (const Lane& lane : part_.lanes) {
      if (lane.kind == LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i)  // what encloses a slice stands before it
        under[i] = (says[s_.name_id[i]] && is_host(category(i))) ||
                   (s_.parent[i] != kNoSliceIndex && s_.parent[i] < i && under[s_.parent[i]]);
    }
    std::unordered_map<uint32_t, bool> may_be;  // by name
    for (size_t i = 0; i < s_.size(); ++i) {
      if (category(i) != Category::kKernel || s_.class_of(i) != KernelClass::kComputation) continue;
      if (s_.partner[i] == kNoSliceIndex || !under[s_.partner[i]]) continue;
      const auto [it, added] = may_be.try_emplace(s_.name_id[i]);
      if (added) it->second = is_exchange_kernel(names_.names[s_.name_id[i]]);
      if (it->second)
        s_.kernel_class[i] = static_cast<uint8_t>((s_.kernel_class[i] & Slices::kJoinedBit) |
                                                  static_cast<uint8_t>(KernelClass::kCommunication));
    }
  }

  const FileNames& names_;
  std::array<Category, 256> kinds_;
  Part& part_;
  Slices& s_;
  const std::vector<uint32_t>& external_id_;
  std::vector<uint32_t> operator_above_;  // empty until operator_above() needs it
};

// Frames whose parent is another thread's, or missing from the thread's own nesting.
void python_parents(const FileRows& rows, const std::vector<uint32_t>& new_index, Part& part) {
  std::unordered_map<int64_t, uint32_t> frame;
  frame.reserve(rows.rest.python.size());
  for (const PythonRow& p : rows.rest.python) frame.emplace(p.id, new_index[p.slice]);
  for (const PythonRow& p : rows.rest.python) {
    if (p.module >= 0) part.modules.push_back({new_index[p.slice], p.module});
    if (p.parent < 0) continue;
    const auto it = frame.find(p.parent);
    if (it == frame.end()) continue;
    const uint32_t slice = new_index[p.slice];
    if (part.slices.parent[slice] != it->second) part.python_parents.push_back({slice, it->second});
  }
  std::sort(part.python_parents.begin(), part.python_parents.end(),
            [](const PythonFact& a, const PythonFact& b) { return a.slice < b.slice; });
  std::sort(part.modules.begin(), part.modules.end(),
            [](const ModuleFact& a, const ModuleFact& b) { return a.slice < b.slice; });
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
    it->second = slice;  // 't' steps chain
  }
}

void name_lanes(const FileRows& rows, Part& part) {
  for (const ThreadName& said : rows.rest.thread_names)
    part.lanes[said.thread - 1].name = std::string(rows.dictionaries.names.text(said.name));
  for (Lane& lane : part.lanes)
    if (lane.name.empty())
      lane.name = lane.tid.starts_with("stream") || lane.tid.starts_with("async") ? lane.tid : "thread " + lane.tid;
}

}  // namespace

FileNames build_part(FileRows rows, int64_t base_ns, Part& part) {
  FileNames names;
  const TextInterner& texts = rows.dictionaries.names;
  for (uint32_t id = 0; id < texts.size(); ++id) names.names.emplace_back(texts.text(id));
  const TextInterner& categories = rows.dictionaries.categories;
  for (uint32_t id = 0; id < categories.size() && id < kMaxCategories; ++id)
    names.categories.push_back({std::string(categories.text(id)), category_of(categories.text(id))});
  if (categories.size() > kMaxCategories) names.categories.push_back({"(more categories)", Category::kOther});

  std::vector<uint32_t> external_id, new_index;
  {
    std::vector<uint32_t> row;
    Columns columns{part.slices, external_id, row};
    fill_lanes(rows, base_ns, part, columns);
    new_index.resize(row.size());
    for (uint32_t i = 0; i < row.size(); ++i) new_index[row[i]] = i;
  }
  name_lanes(rows, part);
  ChunkRows& rest = rows.rest;
  part.streams = std::move(rows.dictionaries.streams);
  part.copies = moved(std::move(rest.copies), new_index);
  part.syncs = moved(std::move(rest.syncs), new_index);
  part.operators = moved(std::move(rest.operators), new_index);
  part.collectives = moved(std::move(rest.collectives), new_index);
  part.inputs = moved(std::move(rest.inputs), new_index);
  part.kernels = moved(std::move(rest.kernels), new_index);
  part.stacks = moved(std::move(rest.stacks), new_index);
  part.memory = std::move(rest.memory);
  for (MemoryRecord& record : part.memory) {
    record.time_ns += base_ns;
    --record.lane;
  }
  part.marks = std::move(rest.marks);
  for (Mark& mark : part.marks) {
    mark.time_ns += base_ns;
    --mark.lane;
  }
  part.counters = std::move(rows.counters);
  for (CounterSeries& series : part.counters)
    for (int64_t& time : series.time_ns) time += base_ns;
  part.event_count = rest.event_count;
  part.fractional_time = rest.fractional_time;
  part.metadata = std::move(rows.metadata);
  part.base_time_ns = base_ns;
  for (Flow& flow : rest.flows) flow.time_ns += base_ns;
  Finisher(names, part, external_id).run();
  python_parents(rows, new_index, part);
  link_flows(rows, part);
  return names;
}

void adopt_names(const FileNames& names, Trace& trace, std::vector<StringId>& name_map,
                 std::vector<uint8_t>& category_map) {
  name_map.clear();
  for (const std::string& name : names.names) name_map.push_back(trace.names.intern(name));
  category_map.clear();
  for (const CategoryInfo& category : names.categories) {
    const auto known = std::find_if(trace.categories.begin(), trace.categories.end(),
                                    [&](const CategoryInfo& c) { return c.text == category.text; });
    const auto at = static_cast<size_t>(known - trace.categories.begin());
    if (known == trace.categories.end() && at <= kMaxCategories)
      trace.categories.push_back(at < kMaxCategories ? category : CategoryInfo{"(more categories)", Category::kOther});
    category_map.push_back(static_cast<uint8_t>(std::min(at, trace.categories.size() - 1)));
  }
}

void rename_part(const std::vector<StringId>& name_map, const std::vector<uint8_t>& category_map, Part& part) {
  for (StringId& id : part.slices.name_id) id = name_map[id];
  for (uint8_t& id : part.slices.category_id) id = category_map[id];
  for (Mark& mark : part.marks) mark.name = name_map[mark.name];
  map_texts(part.collectives, name_map);
  map_texts(part.inputs, name_map);
  map_texts(part.kernels, name_map);
  map_texts(part.stacks, name_map);
}

}  // namespace stageline::kineto
