#include "profile/function_events.h"

#include "base/give_up.h"
#include "model/lanes.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr std::string_view kDroppedNames[] = {
#define DROPPED(name) name,
#include "profile/dropped_names.def"
};
// Prefixes of torch.distributed's own marks of work in flight, which the caller begins and whoever notices the end
// ends.
constexpr std::array<std::string_view, 6> kAsyncPrefixes = {"nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:"};
constexpr std::string_view kStepPrefix = "ProfilerStep#";

// Sums of bytes wrap around, so that the result is defined even for damaged files; correct sums fit.
int64_t plus(int64_t a, int64_t b) { return a + static_cast<uint64_t>(b); }
int64_t minus(int64_t a, int64_t b) { return a - static_cast<uint64_t>(b); }

bool is_device_row(Category c) {
  return is_device_work(c) || c == Category::kDeviceSync || c == Category::kGpuAnnotation ||
         c == Category::kProfilerRange;
}

class Builder {
 public:
  Builder(const Trace& trace, const Part& part, const FunctionNames& names, const FunctionEventOptions& options)
      : trace_(trace), part_(part), s_(part.slices), names_(names), options_(options) {
    kinds_.fill(Category::kOther);
    for (size_t c = 0; c < trace.categories.size() && c < kinds_.size(); ++c) kinds_[c] = trace.categories[c].kind;
  }

  FunctionEvents build() {
    if (s_.size() == 0 || !s_.has_facts()) return {};
    if (trace_.slice_filter.any()) choose_slices();
    if (options_.as_torch) find_operators_around();
    out_.event_of_slice.assign(s_.size(), FunctionEvent::kNone);
    list_host_calls();
    host_count_ = out_.events.size();
    name_event_of_slices();
    give_device_work();
    join_wrappers();
    sum_up();
    list_device_rows();
    if (!part_.memory.empty()) charge_memory();
    list_failures();
    return std::move(out_);
  }

 private:
  Category category(size_t i) const { return kinds_[s_.category_id[i]]; }
  bool kept(size_t i) const { return kept_.empty() || kept_[i]; }
  FunctionEvent& event(int32_t e) { return out_.events[e]; }

  void choose_slices() {
    Result<TorchRun> run = make_torch_run(trace_, {.hta = false, .include_last_step = true});
    kept_.assign(s_.size(), false);
    if (!run) return;
    run_zero_ns_ = run->zero_ns;
    for (const auto rank = torch_rank(*run, static_cast<size_t>(&part_ - trace_.parts.data()));
         const TorchRow& row : rank->rows)
      kept_[row.slice] = true;
  }

  bool is_host_call(size_t i) const {
    const Category c = category(i);
    return is_host(c) && (options_.python_frames || c != Category::kPythonFunction) && kept(i) &&
           !names_.is_dropped(s_.name_id[i]);
  }

  void find_operators_around() {
    in_operator_.assign(s_.size(), false);
    for (const Lane& lane : part_.lanes) {
      if (lane.kind == LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i)  // an enclosing slice comes before what it encloses
        if (const uint32_t up = s_.parent[i]; up != kNoSliceIndex)
          in_operator_[i] = category(up) == Category::kCpuOp || in_operator_[up];
    }
  }

  // A launch call counts on the thread of the operator that it is linked to.
  uint32_t thread_of(size_t i, uint32_t lane) const {
    const Category c = category(i);
    if (is_launch_call(c)) {
      const OwnerFact* fact =
          part_.launch_owners.empty() ? nullptr : fact_of(part_.launch_owners, static_cast<uint32_t>(i));
      if (fact != nullptr && fact->owner < s_.size()) return static_cast<uint32_t>(lane_of(part_, fact->owner));
    }
    if (options_.as_torch && (is_launch_call(c) || c == Category::kOverhead) && !in_operator_[i])
      return FunctionEvent::kLooseThread;
    return lane;
  }

  void add_host_call(uint32_t slice, uint32_t thread) {
    FunctionEvent& e = out_.events.emplace_back();
    e.start_ns = s_.start_ns[slice];
    e.end_ns = s_.end_ns(slice);
    e.slice = slice;
    e.name = names_.group(s_.name_id[slice], category(slice));
    e.thread = thread;
    e.category = category(slice);
    e.is_async = (e.category == Category::kUserAnnotation || e.category == Category::kCpuOp) &&
                 names_.is_async_work(s_.name_id[slice]);
  }

  bool before(uint32_t a, uint32_t b) const {
    if (s_.start_ns[a] != s_.start_ns[b]) return s_.start_ns[a] < s_.start_ns[b];
    if (s_.dur_ns[a] != s_.dur_ns[b]) return s_.dur_ns[a] > s_.dur_ns[b];
    return s_.file_index[a] < s_.file_index[b];
  }

  // Goes thread by thread in order of starts; calls that count on another thread are merged in there.
  void list_host_calls() {
    struct Moved {
      uint32_t thread, slice;
    };
    std::vector<Moved> moved;
    const auto lane_count = static_cast<uint32_t>(part_.lanes.size());
    size_t count = 0;
    for (uint32_t l = 0; l < lane_count; ++l)
      for (uint32_t i = part_.lanes[l].begin; i < part_.lanes[l].end; ++i) {
        if (!is_host_call(i)) continue;
        ++count;
        if (const uint32_t thread = thread_of(i, l); thread != l) moved.push_back({thread, i});
      }
    std::ranges::sort(moved, [&](const Moved& a, const Moved& b) {
      return a.thread != b.thread ? a.thread < b.thread : before(a.slice, b.slice);
    });
    out_.events.reserve(count);
    size_t next = 0;
    for (uint32_t l = 0; l < lane_count; ++l) {
      const size_t first = out_.events.size();
      const auto merge_before = [&](size_t i) {
        for (; next < moved.size() && moved[next].thread == l && before(moved[next].slice, static_cast<uint32_t>(i));
             ++next)
          add_host_call(moved[next].slice, l);
      };
      for (uint32_t i = part_.lanes[l].begin; i < part_.lanes[l].end; ++i) {
        if (!is_host_call(i) || (!moved.empty() && thread_of(i, l) != l)) continue;
        merge_before(i);
        add_host_call(i, l);
      }
      for (; next < moved.size() && moved[next].thread == l; ++next) add_host_call(moved[next].slice, l);
      nest(first);
    }
    const size_t first = out_.events.size();
    for (; next < moved.size(); ++next) add_host_call(moved[next].slice, FunctionEvent::kLooseThread);
    nest(first);
  }

  // An event that ends later than the innermost open one closes it, so events that overlap only in part never nest.
  void nest(size_t first) {
    stack_.clear();
    for (uint32_t i = first; i < out_.events.size(); ++i) {
      FunctionEvent& e = out_.events[i];
      if (e.is_async) continue;
      while (!stack_.empty() && (e.start_ns >= event(stack_.back()).end_ns || e.end_ns > event(stack_.back()).end_ns))
        stack_.pop_back();
      if (!stack_.empty()) e.parent = stack_.back();
      stack_.push_back(i);
    }
  }

  void name_event_of_slices() {
    for (uint32_t i = 0; i < out_.events.size(); ++i) out_.event_of_slice[out_.events[i].slice] = i;
    if (out_.events.size() == s_.size()) return;
    for (const Lane& lane : part_.lanes) {
      if (lane.kind == LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i)
        if (out_.event_of_slice[i] < 0 && s_.parent[i] < i && is_host(category(i)))
          out_.event_of_slice[i] = out_.event_of_slice[s_.parent[i]];
    }
  }

  // Device work belongs to the operator that the profiler names, or else to the one around the launch call.
  void give_device_work() {
    for (uint32_t i = 0; i < s_.size(); ++i) {
      give_up_point(i);
      const Category c = category(i);
      uint32_t owner = kNoSliceIndex;
      if (is_device_work(c) && !(options_.as_torch && c == Category::kMtiaWork)) owner = s_.parent[i];
      if (c == Category::kDeviceSync && options_.as_torch && s_.partner[i] != kNoSliceIndex &&
          in_operator_[s_.partner[i]])
        owner = s_.partner[i];
      if (owner == kNoSliceIndex || !kept(i)) continue;
      int32_t e = out_.event_of_slice[owner];
      if (c == Category::kDeviceSync)
        while (e >= 0 && event(e).category != Category::kCpuOp) e = event(e).parent;
      if (e < 0 || event(e).is_async) continue;
      if (options_.as_torch && c != Category::kDeviceSync && event(e).slice != owner) continue;
      event(e).self_device_ns += s_.dur_ns[i];
      owned_.push_back({i, e});
    }
  }

  // A call whose only child has the same name is merged with it: the outer call stays, with the inner one's children.
  // Callers come before callees, so one pass from the outside in does what torch repeats until nothing changes.
  void join_wrappers() {
    std::vector<FunctionEvent>& events = out_.events;
    std::vector<int32_t> children(events.size(), 0);
    for (const FunctionEvent& e : events)
      if (e.parent >= 0) ++children[e.parent];
    std::vector<int32_t> place(events.size());   // where an event went; for a joined one, its wrapper's place
    std::vector<int32_t> source(events.size());  // for each place the event whose own work counts there, with as_torch
    std::vector<bool> lost(events.size(), false);
    size_t left = 0;
    for (uint32_t i = 0; i < events.size(); ++i) {
      FunctionEvent e = events[i];
      if (e.parent >= 0) {
        e.parent = place[e.parent];
        FunctionEvent& up = event(e.parent);  // has been moved to its place already
        int32_t& up_children = children[e.parent];
        if (up.name == e.name && up_children == 1) {
          up.self_device_ns = options_.as_torch ? e.self_device_ns : up.self_device_ns + e.self_device_ns;
          up_children = children[i];
          place[i] = e.parent;
          if (options_.as_torch) lost[source[e.parent]] = true;
          source[e.parent] = i;
          continue;
        }
      }
      place[i] = static_cast<int32_t>(left);
      source[left] = i;
      children[left] = children[i];
      events[left++] = e;
    }
    if (left == events.size()) return;
    events.resize(left);
    host_count_ = left;
    for (int32_t& e : out_.event_of_slice)
      if (e >= 0) e = place[e];
    std::erase_if(owned_, [&](const Owned& o) { return lost[o.owner]; });
    for (Owned& o : owned_) o.owner = place[o.owner];
  }

  void sum_up() {
    for (size_t i = out_.events.size(); i-- > 0;) {
      FunctionEvent& e = out_.events[i];
      if (e.is_async) {
        e.device_ns = e.self_device_ns = e.self_host_ns = 0;
        continue;
      }
      e.device_ns += e.self_device_ns;
      e.self_host_ns += e.end_ns - e.start_ns;
      if (e.parent < 0) continue;
      event(e.parent).device_ns += e.device_ns;
      event(e.parent).self_host_ns -= e.end_ns - e.start_ns;
    }
  }

  void list_device_rows() {
    size_t next = 0;  // position in owned_, which is in the order of slices too
    // Kineto draws an annotation on a device one unit of its clock earlier, and two units longer, than it was, so that
    // it encloses its kernels (output_json.cpp).
    const int64_t unit_ns = part_.fractional_time ? 1 : 1000;
    for (uint32_t l = 0; l < part_.lanes.size(); ++l)
      for (uint32_t i = part_.lanes[l].begin; i < part_.lanes[l].end; ++i) {
        const Category c = category(i);
        if (!is_device_row(c) || !kept(i)) continue;
        out_.event_of_slice[i] = static_cast<int32_t>(out_.events.size());
        FunctionEvent& e = out_.events.emplace_back();
        e.start_ns = s_.start_ns[i];
        e.end_ns = s_.end_ns(i);
        if (c == Category::kGpuAnnotation && s_.dur_ns[i] >= 2 * unit_ns) {
          e.start_ns += unit_ns;
          e.end_ns -= unit_ns;
        }
        e.slice = i;
        e.name = names_.group(s_.name_id[i], c);
        e.thread = l;
        e.category = c;
        e.on_device = true;
        e.device_ns = e.end_ns - e.start_ns;
        e.self_device_ns = is_device_work(c) || options_.as_torch ? e.device_ns : 0;
        while (next < owned_.size() && owned_[next].slice < i) ++next;
        if (next < owned_.size() && owned_[next].slice == i) e.owner = owned_[next].owner;
      }
  }

  // ---- memory ---------------------------------------------------------------------------------------------------

  static bool of_host(int32_t device_type) { return device_type == 0 || device_type == 2 || device_type == 5; }
  bool of_device(int32_t device_type) const {
    if (!options_.as_torch) return !of_host(device_type);
    return device_type == 1 || device_type == 6 || device_type == 12 || device_type == 20;
  }

  bool keeps_record(int64_t time_ns) const {
    const SliceFilter& filter = trace_.slice_filter;
    if (!filter.any()) return true;
    const int64_t at = time_ns - run_zero_ns_;
    if (at < filter.from_ns || at > filter.to_ns) return false;
    if (filter.first_step == INT64_MIN && filter.last_step == INT64_MAX) return true;
    const auto& steps = part_.steps;
    const auto after = std::ranges::upper_bound(steps, time_ns, {}, &ProfilerStep::start_ns);
    if (after == steps.begin() || time_ns >= (after - 1)->end_ns) return false;
    return (after - 1)->number >= filter.first_step && (after - 1)->number <= filter.last_step;
  }

  // The bytes of a call are the difference of two running sums over the records of its thread (in torch, of all
  // threads).
  void charge_memory() {
    std::vector<MemoryRecord> records;
    for (const MemoryRecord& record : part_.memory)
      if (keeps_record(record.time_ns)) records.push_back(record);
    const auto thread_of_record = [&](const MemoryRecord& r) { return options_.as_torch ? 0 : r.lane; };
    sort_stably(records, [&](const MemoryRecord& a, const MemoryRecord& b) {
      const uint32_t x = thread_of_record(a), y = thread_of_record(b);
      return x != y ? x < y : a.time_ns < b.time_ns;
    });
    std::vector<FunctionMemory> sum(records.size() + 1);  // the sum before each record; only host and device are used
    for (size_t r = 0; r < records.size(); ++r) {
      sum[r + 1] = sum[r];
      if (of_host(records[r].device_type)) sum[r + 1].host = plus(sum[r].host, records[r].bytes);
      if (of_device(records[r].device_type)) sum[r + 1].device = plus(sum[r].device, records[r].bytes);
    }
    std::vector<int32_t> open(records.size() + 1, 0);  // calls that begin to contain a record minus those that cease to
    out_.memory.resize(out_.events.size());
    size_t begin = 0, end = 0;
    uint32_t thread = UINT32_MAX;
    for (size_t i = 0; i < host_count_; ++i) {
      const FunctionEvent& e = out_.events[i];
      const uint32_t wanted = options_.as_torch ? 0 : e.thread;
      if (i == 0 || wanted != thread) {
        thread = wanted;
        const auto less = [&](const MemoryRecord& r, uint32_t t) { return thread_of_record(r) < t; };
        const auto greater = [&](uint32_t t, const MemoryRecord& r) { return t < thread_of_record(r); };
        begin = std::lower_bound(records.begin(), records.end(), thread, less) - records.begin();
        end = std::upper_bound(records.begin(), records.end(), thread, greater) - records.begin();
      }
      if (begin == end) continue;
      const auto first = records.begin() + begin;
      const auto last = records.begin() + end;
      const auto from =
          std::lower_bound(first, last, e.start_ns, [](const MemoryRecord& r, int64_t t) { return r.time_ns < t; });
      const auto to =
          std::upper_bound(from, last, e.end_ns, [](int64_t t, const MemoryRecord& r) { return t < r.time_ns; });
      const size_t a = from - records.begin(), b = to - records.begin();
      ++open[a];
      --open[b];
      out_.memory[i].host = minus(sum[b].host, sum[a].host);
      out_.memory[i].device = minus(sum[b].device, sum[a].device);
    }
    share_memory();
    add_records(records, open);
  }

  void share_memory() {
    for (size_t i = 0; i < host_count_; ++i) {
      const FunctionEvent& e = out_.events[i];
      FunctionMemory& m = out_.memory[i];
      if (e.is_async) continue;
      m.self_host = plus(m.self_host, m.host);
      m.self_device = plus(m.self_device, m.device);
      if (e.parent < 0) continue;
      FunctionMemory& up = out_.memory[e.parent];
      up.self_host = minus(up.self_host, m.host);
      up.self_device = minus(up.self_device, m.device);
    }
  }

  void add_instant(int64_t time_ns, uint32_t lane, StringId name) {
    FunctionEvent& e = out_.events.emplace_back();
    e.start_ns = e.end_ns = time_ns;
    e.name = name;
    e.thread = lane;
  }

  void add_record(const MemoryRecord& record) {
    add_instant(record.time_ns, record.lane, FunctionNames::kMemory);
    FunctionMemory& m = out_.memory.emplace_back();
    if (of_host(record.device_type)) m.host = m.self_host = record.bytes;
    if (of_device(record.device_type)) m.device = m.self_device = record.bytes;
  }

  void add_records(const std::vector<MemoryRecord>& records, const std::vector<int32_t>& open) {
    int32_t around = 0;
    for (size_t r = 0; r < records.size(); ++r) {
      around += open[r];
      if (around == 0) add_record(records[r]);
    }
  }

  // Returns the innermost host call of the lane at the time, or kNone.
  int32_t call_around(uint32_t lane, int64_t time_ns) {
    const auto end = out_.events.begin() + static_cast<ptrdiff_t>(host_count_);
    const auto after = std::partition_point(out_.events.begin(), end, [&](const FunctionEvent& event) {
      return event.thread != lane ? event.thread < lane : event.start_ns <= time_ns;
    });
    int32_t e = static_cast<int32_t>(after - out_.events.begin()) - 1;
    while (e >= 0 && event(e).is_async) --e;
    if (e >= 0 && event(e).thread != lane) return FunctionEvent::kNone;
    while (e >= 0 && event(e).end_ns <= time_ns) e = event(e).parent;
    return e;
  }

  // Lists allocations that failed; only the event itself says how much was asked for.
  void list_failures() {
    for (const Mark& mark : part_.marks) {
      if (trace_.names.text(mark.name) != "[OutOfMemory]" || !keeps_record(mark.time_ns)) continue;
      const int32_t caller = call_around(mark.lane, mark.time_ns);
      add_instant(mark.time_ns, mark.lane, FunctionNames::kOutOfMemory);
      out_.events.back().parent = caller;
    }
    if (!out_.memory.empty()) out_.memory.resize(out_.events.size());
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  const FunctionNames& names_;
  const FunctionEventOptions options_;
  std::array<Category, 256> kinds_;
  std::vector<bool> kept_;         // for each slice; empty when all are kept
  std::vector<bool> in_operator_;  // for each slice; used with as_torch
  std::vector<int32_t> stack_;
  struct Owned {
    uint32_t slice;
    int32_t owner;
  };
  std::vector<Owned> owned_;  // device work, and the calls that own it
  int64_t run_zero_ns_ = 0;
  size_t host_count_ = 0;
  FunctionEvents out_;
};

}  // namespace

StringId FunctionNames::own(std::string_view text) { return static_cast<StringId>(names_->size()) + own_.intern(text); }

FunctionNames::FunctionNames(const Trace& trace)
    : names_(&trace.names), flags_(trace.names.size(), 0), operator_group_(trace.names.size()) {
  step_ = own("ProfilerStep*");
  std::unordered_map<std::string_view, StringId> bases;  // the base names of operators with overloads
  for (StringId id = 0; id < flags_.size(); ++id) {
    const std::string_view name = trace.names.text(id);
    for (const std::string_view dropped : kDroppedNames)
      if (name == dropped) flags_[id] |= kDropped;
    for (const std::string_view prefix : kAsyncPrefixes)
      if (name.starts_with(prefix)) flags_[id] |= kAsync;
    if (name.starts_with(kStepPrefix)) flags_[id] |= kStep;
    const std::string_view overloaded = overload(id);
    operator_group_[id] = (flags_[id] & kStep) != 0 ? step_ : id;
    if (overloaded.empty()) continue;
    const std::string_view base = name.substr(0, name.size() - overloaded.size() - 1);
    operator_group_[id] = bases.emplace(base, own(base)).first->second;
  }
  if (bases.empty()) return;
  for (StringId id = 0; id < flags_.size(); ++id)  // the default overload has no suffix
    if (const auto it = bases.find(trace.names.text(id)); it != bases.end()) operator_group_[id] = it->second;
}

// A point always begins an overload, since no operator's own name has one
// (torch/csrc/jit/frontend/function_schema_parser.cpp).
std::string_view FunctionNames::overload(StringId name) const {
  const std::string_view text = names_->text(name);
  const size_t colons = text.find("::");
  const size_t point = colons == std::string_view::npos ? colons : text.find('.', colons);
  if (point == std::string_view::npos || text.find_first_of(" (<") != std::string_view::npos) return {};
  return text.substr(point + 1);
}

std::string_view FunctionNames::text(StringId group) const {
  if (group == kMemory) return "[memory]";
  if (group == kOutOfMemory) return "[OutOfMemory]";
  return group < names_->size() ? names_->text(group) : own_.text(group - static_cast<StringId>(names_->size()));
}

std::vector<uint32_t> FunctionEvents::in_torch_order(const Part& part) const {
  struct Key {
    int64_t start_ns, end_ns;
    uint32_t file_index, event;
  };
  std::vector<Key> keys(events.size());
  for (uint32_t i = 0; i < events.size(); ++i) {
    const FunctionEvent& e = events[i];
    keys[i] = {e.start_ns, e.end_ns, e.slice == kNoSliceIndex ? UINT32_MAX : part.slices.file_index[e.slice], i};
  }
  std::ranges::sort(keys, [](const Key& a, const Key& b) {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    return a.file_index != b.file_index ? a.file_index < b.file_index : a.event < b.event;
  });
  std::vector<uint32_t> order(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) order[i] = keys[i].event;
  return order;
}

FunctionEvents function_events(const Trace& trace, const Part& part, const FunctionNames& names,
                               const FunctionEventOptions& options) {
  return Builder(trace, part, names, options).build();
}

}  // namespace stageline
