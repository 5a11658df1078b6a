// The memory view of TensorBoard's plugin, computed as the plugin does (memory_parser.py, run.py of torch_tb_profiler
// 0.4.3).
#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyses/tb_memory/tb_memory.h"
#include "compat/tb/tb_tree.h"

namespace stageline {
namespace {

// The plugin knows the CPU and CUDA devices. Records of other devices are read and then left out.
bool is_plugin_device(MemoryDevice device) { return device.type == 0 || device.type == 1; }

class Plugin {
 public:
  Plugin(const TorchRun& run, size_t part)
      : trace_(*run.trace), part_(trace_.parts[part]), tree_(tb_tree(trace_, part_)) {
    answer_.rank = run.ranks[part];
    answer_.history = memory_history(part_);
    zero_ns_ = INT64_MAX;
    for (const Lane& lane : part_.lanes)
      if (lane.begin < lane.end) zero_ns_ = std::min(zero_ns_, part_.slices.start_ns[lane.begin]);
    for (const MemoryRecord& record : part_.memory) zero_ns_ = std::min(zero_ns_, record.time_ns);
    for (uint32_t i = 0; i < part_.memory.size(); ++i) by_time_.push_back(i);
    std::stable_sort(by_time_.begin(), by_time_.end(),
                     [&](uint32_t a, uint32_t b) { return part_.memory[a].time_ns < part_.memory[b].time_ns; });
  }

  MemoryAnswer answer() {
    find_nodes();
    pair_records();
    count_operators();
    answer_.curves = memory_curves(part_, answer_.history, zero_ns_, true);
    return std::move(answer_);
  }

 private:
  const MemoryRecord& record(uint32_t i) const { return part_.memory[i]; }
  const TbNode& node(int32_t i) const { return tree_.nodes[i]; }
  StringId name_of(int32_t i) const { return part_.slices.name_id[node(i).slice]; }

  // For each record: the innermost node that contains it. Marks the nodes on the way as seen.
  void find_nodes() {
    node_of_.assign(part_.memory.size(), TbNode::kNone);
    seen_.assign(tree_.nodes.size(), false);
    std::vector<std::vector<uint32_t>> of_lane(part_.lanes.size());
    for (const uint32_t i : by_time_)
      if (record(i).lane < of_lane.size()) of_lane[record(i).lane].push_back(i);
    for (size_t l = 0; l < of_lane.size(); ++l) {
      const int32_t root = tree_.root_of_lane[l];
      if (root < 0 || of_lane[l].empty()) continue;
      seen_[root] = true;
      std::vector<int32_t> open = {root};
      size_t next = static_cast<size_t>(root) + 1;
      for (const uint32_t i : of_lane[l]) {
        const double at = static_cast<double>(record(i).time_ns - part_.base_time_ns) / 1000.0;
        if (at < node(root).start_us || at >= node(root).end_us) {
          ++answer_.outside;
          continue;
        }
        for (; next < tree_.nodes.size() && node(static_cast<int32_t>(next)).parent >= 0; ++next) {
          const TbNode& starts = tree_.nodes[next];
          if (starts.start_us > at) break;
          if (!starts.counted) continue;
          while (open.size() > 1 && open.back() != starts.parent) open.pop_back();
          open.push_back(static_cast<int32_t>(next));
        }
        while (open.size() > 1 && node(open.back()).end_us <= at) open.pop_back();
        for (size_t k = open.size(); k-- > 0 && !seen_[open[k]];)
          seen_[open[k]] = true;  // the nodes around a seen node were seen before
        node_of_[i] = open.back();
        answer_.outside += node(open.back()).type != TbNode::Type::kOperator;
      }
    }
  }

  // Addresses of all devices form one space. For each address, the latest allocation and the latest unpaired free win.
  void pair_records() {
    std::unordered_map<uint64_t, uint32_t> live, freed;  // address → record
    std::vector<uint32_t> allocation_of(part_.memory.size(), UINT32_MAX);
    const auto add = [&](const MemoryRecord& of, uint32_t named, int64_t bytes, int64_t from, int64_t to) {
      if (is_plugin_device(device_of(of)))
        answer_.events.push_back({device_of(of), shown_name(named), bytes, from, to});
    };
    for (const uint32_t i : by_time_) {
      const MemoryRecord& r = record(i);
      if (r.address == 0) continue;
      if (r.bytes > 0) {
        live[r.address] = i;
      } else if (const auto it = live.find(r.address); it != live.end()) {
        add(record(it->second), it->second, -bytes_of(r), time(it->second), time(i));
        live.erase(it);
      } else {
        freed[r.address] = i;
      }
    }
    for (const auto& [map, is_live] : {std::pair{&live, true}, {&freed, false}}) {
      std::vector<uint32_t> rest;
      for (const auto& [address, i] : *map) rest.push_back(i);
      std::sort(rest.begin(), rest.end(), [&](uint32_t a, uint32_t b) {
        return record(a).time_ns != record(b).time_ns ? record(a).time_ns < record(b).time_ns : a < b;
      });
      for (const uint32_t i : rest) {
        const int64_t bytes = is_live ? bytes_of(record(i)) : -bytes_of(record(i));
        add(record(i), is_live ? i : UINT32_MAX, bytes, is_live ? time(i) : MemoryEvent::kNullTime,
            is_live ? MemoryEvent::kNullTime : time(i));
      }
    }
  }

  int64_t time(uint32_t i) const { return record(i).time_ns - zero_ns_; }

  std::string shown_name(uint32_t i) const {
    const int32_t at = i == UINT32_MAX ? TbNode::kNone : node_of_[i];
    if (at < 0 || node(at).type != TbNode::Type::kOperator) return "<unknown>";
    const std::string own(trace_.names.text(name_of(at)));
    if (!own.starts_with("aten::empty") || node(at).parent < 0) return own;
    const int32_t up = node(at).parent;
    return (node(up).slice == kNoSliceIndex ? "CallTreeRoot" : std::string(trace_.names.text(name_of(up)))) + " (" +
           own + ")";
  }

  struct Sums {
    int64_t self_increase = 0, self_allocated = 0, self_allocations = 0, increase = 0, allocated = 0, allocations = 0;
    bool any() const {
      return self_increase != 0 || self_allocated != 0 || self_allocations != 0 || increase != 0 || allocated != 0 ||
             allocations != 0;
    }
  };

  // Operators below a node that holds no record are not visited: their calls and bytes are not counted.
  void count_operators() {
    std::map<StringId, int64_t> calls;
    for (size_t i = 0; i < tree_.nodes.size(); ++i) {
      const TbNode& at = tree_.nodes[i];
      if (at.parent < 0 || !at.counted) continue;
      const bool walked = node(at.parent).parent < 0 || seen_[at.parent];
      if (walked && at.type == TbNode::Type::kOperator) ++calls[part_.slices.name_id[at.slice]];
    }
    for (const MemoryDevice device : answer_.history.devices) {
      if (!is_plugin_device(device)) continue;
      std::vector<Sums> sums(tree_.nodes.size());
      for (const uint32_t i : by_time_) {
        const MemoryRecord& r = record(i);
        if (device_of(r) != device || node_of_[i] < 0 || node(node_of_[i]).type != TbNode::Type::kOperator) continue;
        Sums& own = sums[node_of_[i]];
        add_saturated(own.self_increase, bytes_of(r));
        add_saturated(own.increase, bytes_of(r));
        if (r.bytes <= 0) continue;
        add_saturated(own.self_allocated, bytes_of(r));
        add_saturated(own.allocated, bytes_of(r));
        ++own.self_allocations;
        ++own.allocations;
      }
      std::map<std::string_view, std::pair<StringId, Sums>> by_name;
      for (size_t i = tree_.nodes.size(); i-- > 0;) {
        const TbNode& at = tree_.nodes[i];
        if (at.parent < 0 || !at.counted) continue;
        Sums& up = sums[at.parent];
        add_saturated(up.increase, sums[i].increase);
        add_saturated(up.allocated, sums[i].allocated);
        up.allocations += sums[i].allocations;
        if (at.type != TbNode::Type::kOperator || !sums[i].any()) continue;
        const StringId name = part_.slices.name_id[at.slice];
        auto& [id, all] = by_name[trace_.names.text(name)];
        id = name;
        add_saturated(all.self_increase, sums[i].self_increase);
        add_saturated(all.self_allocated, sums[i].self_allocated);
        all.self_allocations += sums[i].self_allocations;
        add_saturated(all.increase, sums[i].increase);
        add_saturated(all.allocated, sums[i].allocated);
        all.allocations += sums[i].allocations;
      }
      for (const auto& [text, entry] : by_name) {
        const auto& [name, all] = entry;
        if (all.any())
          answer_.operators.push_back({device, name, calls[name], all.increase, all.self_increase, all.allocations,
                                       all.self_allocations, all.allocated, all.self_allocated});
      }
    }
  }

  const Trace& trace_;
  const Part& part_;
  TbTree tree_;
  int64_t zero_ns_ = 0;
  std::vector<uint32_t> by_time_;
  std::vector<int32_t> node_of_;
  std::vector<bool> seen_;
  MemoryAnswer answer_;
};

}  // namespace

MemoryAnswer plugin_memory(const TorchRun& run, size_t part) { return Plugin(run, part).answer(); }

}  // namespace stageline
