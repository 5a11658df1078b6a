#include "readers/common/relate_slices.h"

#include "model/lost_work.h"
#include "model/torch_facts.h"
#include "readers/common/problems.h"

namespace stageline {
namespace {

// Returns true for annotations that follow DualPipe's convention name(phase): "dispatch(F)", "combine(B)".
bool is_exchange_annotation(std::string_view name) {
  return (name.starts_with("dispatch(") || name.starts_with("combine(")) && name.size() < 16 && name.back() == ')';
}

// Returns true for kernels that may be such an exchange: the name of the function contains "dispatch", "combine",
// "notify" or "all to all". Whether it is one is decided by an annotation around the launch. Templates and parameters
// are not looked at.
bool is_exchange_kernel(std::string_view name) {
  const std::string function = to_lower(short_kernel_name(name));
  for (const std::string_view word : {"dispatch", "combine", "notify", "all_to_all", "alltoall", "a2a"})
    if (function.find(word) != std::string::npos) return true;
  return false;
}

// Looks up numbers that are nearly dense (correlations, external ids) in a table; sparse ones are hashed.
class IdMap {
 public:
  IdMap(uint32_t highest, size_t entries) : dense_(highest < entries * 8 + (1u << 16)) {
    if (dense_) table_.assign(static_cast<size_t>(highest) + 1, kNoSliceIndex);
  }
  uint32_t get(uint32_t id) const {
    if (dense_) return id < table_.size() ? table_[id] : kNoSliceIndex;
    return value_at(map_, id, kNoSliceIndex);
  }
  void set(uint32_t id, uint32_t value) {
    if (dense_) table_[id] = value;
    else map_[id] = value;
  }

 private:
  bool dense_;
  std::vector<uint32_t> table_;
  std::unordered_map<uint32_t, uint32_t> map_;
};

uint32_t highest_of(const std::vector<uint32_t>& ids) {
  uint32_t max = 0;
  for (const uint32_t id : ids)
    if (id != kNoCorrelation) max = std::max(max, id);
  return max;
}

// Finds the enclosing slice on the same lane by torch's rule: a slice that ends later than the top of the stack removes
// the top (torch/autograd/profiler_util.py, _populate_cpu_children).
void nest(Slices& s, const Lane& lane) {
  std::vector<uint32_t> stack;
  for (uint32_t i = lane.begin; i < lane.end; ++i) {
    const int64_t start = s.start_ns[i], end = s.end_ns(i);
    while (!stack.empty() && (start >= s.end_ns(stack.back()) || end > s.end_ns(stack.back()))) stack.pop_back();
    if (!stack.empty()) s.parent[i] = stack.back();
    stack.push_back(i);
  }
}

class Finisher {
 public:
  Finisher(const FileNames& names, Part& part, const std::vector<uint32_t>& external_id, const RelateOptions& how)
      : names_(names), how_(how), part_(part), s_(part.slices), external_id_(external_id) {
    kinds_.fill(Category::kOther);
    for (size_t c = 0; c < names.categories.size(); ++c) kinds_[c] = names.categories[c].kind;
  }

  void run() {
    s_.parent.assign(s_.size(), kNoSliceIndex);
    s_.partner.assign(s_.size(), kNoSliceIndex);
    s_.step.assign(s_.size(), 0);
    for (Lane& lane : part_.lanes) {
      if (!how_.lanes_are_typed) lane.kind = lane_kind(lane, [&](size_t i) { return category(i); });
      if (lane.kind == LaneKind::kDeviceStream) end_in_order(lane);
      else nest(s_, lane);
    }
    link_launches();
    find_owners();
    number_steps();
    if (!how_.kernels_are_classified) classify();
    if (!how_.notes) return;
    report_lost_work(*how_.notes);
    if (const int64_t lead = clock_lead_ns(part_, [&](size_t i) { return category(i); }); lead > 0)
      how_.notes->add(problem::reader_clock_behind.of(how_.format), Args().set("lead", human_duration(lead)),
                      {part_.source});
  }

 private:
  Category category(size_t i) const { return kinds_[s_.category_id[i]]; }
  KernelClass class_by_name(size_t i) const {
    return how_.kernels_are_classified ? s_.class_of(i)
                                       : classify_kernel(category(i), names_.names[s_.name_id[i]], false);
  }
  uint32_t external(size_t i) const { return external_id_.empty() ? kNoCorrelation : external_id_[i]; }

  // Work of one stream runs one after the other, so none ends after work that was launched later. Programmatic
  // dependent launch lets only the next kernel begin early. So work that outlasts the next two has a wrong end (its
  // record was flushed late) and ends at the next start. Kernels of one launch (a graph) may overlap, and communication
  // is drawn as one piece though its transfers take several queues.
  void end_in_order(const Lane& lane) {
    const auto launched_apart = [&](size_t a, size_t b) {
      return is_device_work(category(b)) && s_.correlation[b] != kNoCorrelation &&
             s_.correlation[b] != s_.correlation[a] && s_.stream_id[a] == s_.stream_id[b];
    };
    for (size_t i = lane.begin; i + 2 < lane.end; ++i) {
      const int64_t end = s_.end_ns(i);
      if (end <= s_.end_ns(i + 2) || end <= s_.end_ns(i + 1) || !is_device_work(category(i)) ||
          s_.correlation[i] == kNoCorrelation || !launched_apart(i, i + 1) || !launched_apart(i, i + 2) ||
          s_.correlation[i + 1] == s_.correlation[i + 2] || s_.start_ns[i + 1] == s_.start_ns[i] ||
          class_by_name(i) == KernelClass::kCommunication)
        continue;
      s_.dur_ns[i] = s_.start_ns[i + 1] - s_.start_ns[i];
      if (how_.notes) how_.notes->add(problem::reader_impossible_duration.of(how_.format), {part_.source});
    }
  }

  // The launch of a device slice is the earliest runtime or driver call with its correlation (a driver call has the
  // number of the runtime call that made it). The partner of a launch is its last device slice.
  void link_launches() {
    uint32_t highest = 0;  // of launches only, since the numbers of annotations may be far higher
    for (size_t i = 0; i < s_.size(); ++i)
      if (is_launch_call(category(i)) && s_.correlation[i] != kNoCorrelation)
        highest = std::max(highest, s_.correlation[i]);
    IdMap launch(highest, s_.size());
    for (uint32_t i = 0; i < s_.size(); ++i) {
      if (s_.correlation[i] == kNoCorrelation || !is_launch_call(category(i))) continue;
      const uint32_t known = launch.get(s_.correlation[i]);
      if (known == kNoSliceIndex || s_.start_ns[i] < s_.start_ns[known]) launch.set(s_.correlation[i], i);
    }
    for (uint32_t i = 0; i < s_.size(); ++i) {
      const Category c = category(i);
      if (s_.correlation[i] == kNoCorrelation || (!is_device_work(c) && c != Category::kDeviceSync)) continue;
      const uint32_t from = launch.get(s_.correlation[i]);
      if (from == kNoSliceIndex) continue;
      s_.partner[i] = from;
      const uint32_t known = s_.partner[from];
      if (known == kNoSliceIndex || s_.file_index[i] > s_.file_index[known]) s_.partner[from] = i;
    }
  }

  void report_lost_work(Diagnostics& notes) const {
    const LostLaunches found = lost_launches(
        part_, [&](size_t i) { return category(i); }, [&](StringId id) { return std::string_view(names_.names[id]); });
    if (!found.lost.empty())
      notes.add(problem::reader_lost_work.of(how_.format),
                Args()
                    .count("lost", static_cast<int64_t>(found.lost.size()))
                    .count("all", static_cast<int64_t>(found.launches.size())),
                {part_.source}, std::ssize(found.lost));
  }

  // Owners are found by "External id" where that is a real link. From torch 1.13 to 2.2 it only repeats the
  // correlation, and the owner is the operator around the launch call.
  void find_owners() {
    size_t device = 0, repeated = 0;
    for (size_t i = 0; i < s_.size(); ++i) {
      if (!is_device_work(category(i))) continue;
      ++device;
      repeated += external(i) != kNoCorrelation && external(i) == s_.correlation[i];
    }
    if (device == 0) return;
    const bool real = how_.owners_are_certain || repeated * 2 <= device;
    IdMap ops(real ? highest_of(external_id_) : 0, s_.size());
    if (real)
      for (size_t i = 0; i < s_.size(); ++i)
        if (external(i) != kNoCorrelation && category(i) == Category::kCpuOp)
          ops.set(external(i), static_cast<uint32_t>(i));
    std::vector<bool> below_work;  // filled for the first such row on a host's thread: rarely
    for (const Lane& lane : part_.lanes)
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (!is_device_work(category(i))) continue;
        if (lane.kind != LaneKind::kDeviceStream && below_work.empty()) below_work = below_device_work();
        uint32_t owner = s_.parent[i];
        if (real && external(i) != kNoCorrelation && external(i) != 0) owner = ops.get(external(i));
        if (owner == kNoSliceIndex && s_.partner[i] != kNoSliceIndex) owner = operator_above(s_.partner[i]);
        if (lane.kind == LaneKind::kDeviceStream || owner == kNoSliceIndex || !below_work[owner]) s_.parent[i] = owner;
      }
    if (!real) return;
    for (uint32_t i = 0; i < s_.size(); ++i) {
      if (!is_launch_call(category(i)) || external(i) == kNoCorrelation || external(i) == 0) continue;
      const uint32_t owner = ops.get(external(i));
      if (owner != kNoSliceIndex && owner != operator_above(static_cast<uint32_t>(i)))
        part_.launch_owners.push_back({i, owner});
    }
  }

  // Device work that is drawn on a host thread may enclose the operator that its numbers name as its owner, which would
  // make a circle of parents. No circle can form where no owner lies within device work. This must be asked before the
  // first parent on a host thread changes.
  std::vector<bool> below_device_work() const {
    std::vector<bool> below(s_.size());
    for (size_t i = 0; i < s_.size(); ++i)  // an enclosing slice stands before what it encloses
      if (const uint32_t up = s_.parent[i]; up != kNoSliceIndex) below[i] = below[up] || is_device_work(category(up));
    return below;
  }

  // Returns the innermost operator around a host slice. Where that is far up, a table for all slices is made, since
  // calls that nest by the thousand must not be climbed again for every launch.
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
        for (size_t i = lane.begin; i < lane.end; ++i)  // an enclosing slice stands before what it encloses
          if (const uint32_t up = s_.parent[i]; up != kNoSliceIndex)
            operator_above_[i] = category(up) == Category::kCpuOp ? up : operator_above_[up];
      }
    }
    return operator_above_[at];
  }

  // Steps are the ProfilerStep rows of the host. Device work belongs to the step that launched it.
  void number_steps() {
    std::vector<int64_t> number_of(names_.names.size());  // for each name id
    for (size_t id = 0; id < number_of.size(); ++id) number_of[id] = profiler_step_number(names_.names[id]);
    for (size_t i = 0; i < s_.size(); ++i) {
      const int64_t number = number_of[s_.name_id[i]];
      if (number < 0 || !is_host(category(i))) continue;
      if (number <= INT32_MAX && part_.steps.size() < UINT16_MAX - 1)
        part_.steps.push_back({number, s_.start_ns[i], s_.end_ns(i), static_cast<uint32_t>(i)});
    }
    std::vector<ProfilerStep>& steps = part_.steps;
    if (steps.empty()) return;
    sort_stably(steps, {}, &ProfilerStep::start_ns);
    for (size_t i = 0; i < s_.size(); ++i) {
      if (is_device_work(category(i)) || category(i) == Category::kDeviceSync) continue;
      const auto after = std::ranges::upper_bound(steps, s_.start_ns[i], {}, &ProfilerStep::start_ns);
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

  // Expert parallelism exchanges tokens in kernels whose names alone could mean anything ("dispatch<8, 1024>"). They
  // are communication where their launch lies under an annotation that says so.
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
      for (size_t i = lane.begin; i < lane.end; ++i)  // an enclosing slice stands before what it encloses
        under[i] = (says[s_.name_id[i]] && is_host(category(i))) ||
                   (s_.parent[i] != kNoSliceIndex && s_.parent[i] < i && under[s_.parent[i]]);
    }
    std::unordered_map<uint32_t, bool> may_be;  // for each name
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
  const RelateOptions how_;
  std::array<Category, 256> kinds_;
  Part& part_;
  Slices& s_;
  const std::vector<uint32_t>& external_id_;
  std::vector<uint32_t> operator_above_;  // empty until operator_above() needs it
};

}  // namespace

void relate_slices(const FileNames& names, const std::vector<uint32_t>& external_id, const RelateOptions& how,
                   Part& part) {
  Finisher(names, part, external_id, how).run();
}

NameMap adopt_names(const FileNames& names, Trace& trace) {
  NameMap map;
  for (const std::string& name : names.names) map.names.push_back(trace.names.intern(name));
  for (const CategoryInfo& category : names.categories) {
    const auto known = std::ranges::find(trace.categories, category.text, &CategoryInfo::text);
    const size_t at = known - trace.categories.begin();
    if (known == trace.categories.end() && at <= kMaxCategories)
      trace.categories.push_back(at < kMaxCategories ? category : CategoryInfo{"(more categories)", Category::kOther});
    map.categories.push_back(static_cast<uint8_t>(std::min(at, trace.categories.size() - 1)));
  }
  return map;
}

void rename_part(const NameMap& map, Part& part) {
  for (StringId& id : part.slices.name_id) id = map.names[id];
  for (uint8_t& id : part.slices.category_id) id = map.categories[id];
  for (Mark& mark : part.marks) mark.name = map.names[mark.name];
  map_texts(part, map.names);
  map_texts(part.graph_nodes, map.names);
}

void shift_part(Part& part, int64_t by_ns) {
  const auto shift = [&](int64_t& ns) { ns = sum_or_limit(ns, by_ns); };
  for (int64_t& ns : part.slices.start_ns) shift(ns);
  for (ProfilerStep& step : part.steps) shift(step.start_ns), shift(step.end_ns);
  for (Mark& mark : part.marks) shift(mark.time_ns);
  for (MemoryRecord& record : part.memory) shift(record.time_ns);
  for (CounterSeries& series : part.counters)
    for (int64_t& ns : series.time_ns) shift(ns);
}

}  // namespace stageline
