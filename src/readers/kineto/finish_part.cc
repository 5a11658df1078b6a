#include "readers/kineto/finish_part.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "model/hta_rows.h"

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

template <class T>
std::vector<T> gather(const std::vector<T>& from, const std::vector<uint32_t>& order) {
  std::vector<T> out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out[i] = from[order[i]];
  return out;
}

template <class Fact>
std::vector<Fact> moved(std::vector<Fact> facts, const std::vector<uint32_t>& new_index) {
  for (Fact& fact : facts) fact.slice = new_index[fact.slice];
  std::sort(facts.begin(), facts.end(), [](const Fact& a, const Fact& b) { return a.slice < b.slice; });
  return facts;
}

// Rows by (lane, start, longer first, file order). Kineto writes a thread's events nearly in that order.
std::vector<uint32_t> lane_order(const FileRows& rows, std::vector<size_t>& lane_begin) {
  const size_t lanes = rows.threads.size();
  lane_begin.assign(lanes + 1, 0);
  for (const uint32_t t : rows.thread) ++lane_begin[t + 1];
  for (size_t l = 0; l < lanes; ++l) lane_begin[l + 1] += lane_begin[l];
  std::vector<uint32_t> order(rows.size());
  std::vector<size_t> next(lane_begin.begin(), lane_begin.end() - 1);
  for (uint32_t i = 0; i < rows.size(); ++i) order[next[rows.thread[i]]++] = i;
  const auto before = [&](uint32_t a, uint32_t b) {
    if (rows.start_ns[a] != rows.start_ns[b]) return rows.start_ns[a] < rows.start_ns[b];
    if (rows.dur_ns[a] != rows.dur_ns[b]) return rows.dur_ns[a] > rows.dur_ns[b];
    return rows.file_index[a] < rows.file_index[b];  // a B/E pair is a row when its E comes
  };
  for (size_t l = 0; l < lanes; ++l) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(lane_begin[l]);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(lane_begin[l + 1]);
    if (!std::is_sorted(begin, end, before)) std::sort(begin, end, before);
  }
  return order;
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
  Finisher(const Trace& trace, Part& part, const std::vector<uint32_t>& external_id)
      : trace_(trace), part_(part), s_(part.slices), external_id_(external_id) {}

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
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }

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
    for (size_t i = 0; i < s_.size(); ++i) {
      if (!is_device_work(category(i))) continue;
      if (real && external_id_[i] != kNoCorrelation && external_id_[i] != 0) s_.parent[i] = ops.get(external_id_[i]);
      if (s_.parent[i] != kNoSliceIndex || s_.partner[i] == kNoSliceIndex) continue;
      uint32_t at = s_.parent[s_.partner[i]];
      while (at != kNoSliceIndex && category(at) != Category::kCpuOp) at = s_.parent[at];
      s_.parent[i] = at;
    }
  }

  // Steps are the host's ProfilerStep rows; device work belongs to the step that launched it.
  void number_steps() {
    std::vector<int64_t> number_of;  // by name id, −2 unknown
    for (size_t i = 0; i < s_.size(); ++i) {
      if (!is_host(category(i))) continue;
      const std::string_view name = trace_.names.text(s_.name_id[i]);
      if (name.size() < 13 || name[0] != 'P' || !name.starts_with("ProfilerStep")) continue;
      const int64_t number = hta_step_number(name);
      if (number >= 0 && number <= INT32_MAX && part_.steps.size() < UINT16_MAX - 1)
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
      if (added) it->second = classify_kernel(c, trace_.names.text(s_.name_id[i]), false);
      s_.kernel_class[i] |= static_cast<uint8_t>(it->second);
    }
    for (const CollectiveFact& fact : part_.collectives)
      if (category(fact.slice) == Category::kKernel && fact.name != 0)
        s_.kernel_class[fact.slice] = static_cast<uint8_t>((s_.kernel_class[fact.slice] & Slices::kJoinedBit) |
                                                           static_cast<uint8_t>(KernelClass::kCommunication));
  }

  const Trace& trace_;
  Part& part_;
  Slices& s_;
  const std::vector<uint32_t>& external_id_;
};

// Frames whose parent is another thread's, or missing from the thread's own nesting.
void python_parents(const FileRows& rows, const std::vector<uint32_t>& new_index, Part& part) {
  std::unordered_map<int64_t, uint32_t> frame;
  for (const PythonRow& p : rows.python) frame.emplace(p.id, new_index[p.row]);
  for (const PythonRow& p : rows.python) {
    if (p.parent < 0) continue;
    const auto it = frame.find(p.parent);
    if (it == frame.end()) continue;
    const uint32_t slice = new_index[p.row];
    if (part.slices.parent[slice] != it->second) part.python_parents.push_back({slice, it->second});
  }
  std::sort(part.python_parents.begin(), part.python_parents.end(),
            [](const PythonFact& a, const PythonFact& b) { return a.slice < b.slice; });
}

// The innermost slice of a lane that holds a time; kNoSliceIndex.
uint32_t slice_at(const Slices& s, const Lane& lane, int64_t time_ns) {
  const auto begin = s.start_ns.begin() + static_cast<std::ptrdiff_t>(lane.begin);
  const auto end = s.start_ns.begin() + static_cast<std::ptrdiff_t>(lane.end);
  const auto after = std::upper_bound(begin, end, time_ns);
  if (after == begin) return kNoSliceIndex;
  auto at = static_cast<uint32_t>(after - s.start_ns.begin() - 1);
  while (at != kNoSliceIndex && s.end_ns(at) < time_ns) at = s.parent[at];
  return at;
}

void link_flows(const FileRows& rows, const std::vector<uint32_t>& lane_of_thread, Part& part) {
  std::unordered_map<uint64_t, uint32_t> from;
  for (const Flow& flow : rows.flows) {
    const uint32_t slice = slice_at(part.slices, part.lanes[lane_of_thread[flow.thread]], flow.time_ns);
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

std::string lane_name(const Thread& thread) {
  if (!thread.name.empty()) return thread.name;
  return thread.tid.starts_with("stream") || thread.tid.starts_with("async") ? thread.tid : "thread " + thread.tid;
}

}  // namespace

void finish_part(FileRows rows, Trace& trace, Part& part) {
  std::vector<size_t> lane_begin;
  const std::vector<uint32_t> order = lane_order(rows, lane_begin);
  std::vector<uint32_t> new_index(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) new_index[order[i]] = i;

  std::vector<StringId> names(rows.names.size());
  for (StringId id = 0; id < names.size(); ++id) names[id] = trace.names.intern(rows.names.text(id));
  std::vector<uint8_t> categories(kMaxCategories + 1, kMaxCategories);
  for (StringId id = 0; id < rows.categories.size(); ++id) {
    const std::string_view text = id < kMaxCategories ? rows.categories.text(id) : "(more categories)";
    const auto known = std::find_if(trace.categories.begin(), trace.categories.end(),
                                    [&](const CategoryInfo& c) { return c.text == text; });
    const auto at = static_cast<size_t>(known - trace.categories.begin());
    if (known == trace.categories.end() && at <= kMaxCategories)
      trace.categories.push_back({std::string(text), category_of(text)});
    categories[std::min<size_t>(id, kMaxCategories)] = static_cast<uint8_t>(std::min(at, trace.categories.size() - 1));
  }

  Slices& s = part.slices;
  s.start_ns = gather(rows.start_ns, order);
  s.dur_ns = gather(rows.dur_ns, order);
  s.file_index = gather(rows.file_index, order);
  s.correlation = gather(rows.correlation, order);
  s.stream_id = gather(rows.stream_id, order);
  const std::vector<uint32_t> external_id = gather(rows.external_id, order);
  s.name_id.resize(order.size());
  s.category_id.resize(order.size());
  s.kernel_class.resize(order.size());
  s.args_offset_low.resize(order.size());
  s.args_offset_high.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t row = order[i];
    s.name_id[i] = names[rows.name_id[row]];
    s.category_id[i] = categories[rows.category_id[row]];
    s.kernel_class[i] = rows.joined[row] ? Slices::kJoinedBit : 0;
    s.args_offset_low[i] = static_cast<uint32_t>(rows.offset[row]);
    s.args_offset_high[i] = static_cast<uint8_t>(rows.offset[row] >> 32);
  }
  part.streams = rows.streams;
  std::vector<uint32_t> lane_of_thread(rows.threads.size());
  for (size_t t = 0; t < rows.threads.size(); ++t) {
    lane_of_thread[t] = static_cast<uint32_t>(part.lanes.size());
    Lane lane;
    lane.name = lane_name(rows.threads[t]);
    lane.begin = lane_begin[t];
    lane.end = lane_begin[t + 1];
    lane.pid = rows.threads[t].pid;
    lane.tid = rows.threads[t].tid;
    part.lanes.push_back(std::move(lane));
  }
  part.copies = moved(std::move(rows.copies), new_index);
  part.syncs = moved(std::move(rows.syncs), new_index);
  part.operators = moved(std::move(rows.operators), new_index);
  for (CollectiveFact& fact : rows.collectives)
    for (StringId* id : {&fact.name, &fact.dtype, &fact.group, &fact.group_description, &fact.group_ranks,
                         &fact.in_split, &fact.out_split, &fact.comms_id})
      *id = names[*id];
  part.collectives = moved(std::move(rows.collectives), new_index);
  part.memory = std::move(rows.memory);
  part.counters = std::move(rows.counters);
  part.marks = std::move(rows.marks);
  for (Mark& mark : part.marks) mark.name = names[mark.name];
  part.event_count = rows.event_count;
  part.fractional_time = rows.fractional_time;
  part.metadata = std::move(rows.metadata);
  Finisher(trace, part, external_id).run();
  python_parents(rows, new_index, part);
  link_flows(rows, lane_of_thread, part);
}

}  // namespace stageline::kineto
