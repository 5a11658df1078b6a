#include "profile/operator_groups.h"

#include "profile/op_flops.h"

namespace stageline::operators {
namespace {

// Identifies a row. Parts that were not requested are 0.
struct Key {
  StringId name = 0, overload = 0;
  uint32_t shape = 0, stack = 0;
  bool on_device = false, annotation = false;
  bool operator==(const Key&) const = default;

  uint64_t hash() const {
    uint64_t h = name * 0x9e3779b97f4a7c15ull ^ (static_cast<uint64_t>(shape) << 32 | stack);
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull + (static_cast<uint64_t>(overload) << 2 | on_device << 1 | annotation);
    h *= 0x94d049bb133111ebull;
    return h ^ h >> 31;
  }
};

// Maps a key to the number of its group by open addressing, since there is one look-up per event.
class KeyTable {
 public:
  KeyTable() : places_(1024, 0) {}
  uint32_t number_of(const Key& key) {
    for (size_t at = key.hash() & (places_.size() - 1);; at = (at + 1) & (places_.size() - 1)) {
      if (places_[at] == 0) return add(key, at);
      if (keys_[places_[at] - 1] == key) return places_[at] - 1;
    }
  }

 private:
  uint32_t add(const Key& key, size_t at) {
    keys_.push_back(key);
    places_[at] = static_cast<uint32_t>(keys_.size());
    if (keys_.size() * 2 > places_.size()) grow();
    return static_cast<uint32_t>(keys_.size() - 1);
  }
  void grow() {
    places_.assign(places_.size() * 2, 0);
    for (size_t k = 0; k < keys_.size(); ++k) {
      size_t at = keys_[k].hash() & (places_.size() - 1);
      while (places_[at] != 0) at = (at + 1) & (places_.size() - 1);
      places_[at] = static_cast<uint32_t>(k + 1);
    }
  }
  std::vector<Key> keys_;
  std::vector<uint32_t> places_;  // number + 1; 0 when free
};

class Grouper {
 public:
  Grouper(const Trace& trace, const Part& part, const FunctionNames& names, const GroupOptions& options)
      : trace_(trace), part_(part), names_(names), options_(options) {}

  OperatorGroups group() {
    out_.made = function_events(trace_, part_, names_, options_.events);
    out_.shapes.emplace_back();
    if (options_.by_input_shape) find_shapes();
    if (options_.stack_entries > 0) find_stacks();
    if (options_.with_flops) find_flops();
    const std::vector<FunctionEvent>& events = out_.made.events;
    out_.group_of.assign(events.size(), OperatorGroups::kNoGroup);
    KeyTable table;
    for (uint32_t i = 0; i < events.size(); ++i) {
      if (options_.hide_frames && events[i].category == Category::kPythonFunction) continue;
      const Key key = key_of(events[i]);
      const uint32_t g = table.number_of(key);
      out_.group_of[i] = g;
      if (g == out_.groups.size()) out_.groups.push_back({.first = i, .overload = key.overload, .shape = key.shape});
      add(out_.groups[g], i);
    }
    order_groups();
    return std::move(out_);
  }

 private:
  Key key_of(const FunctionEvent& event) const {
    Key key{.name = event.name, .on_device = event.on_device, .annotation = event.is_annotation()};
    if (event.slice == kNoSliceIndex) {
      key.shape = options_.by_input_shape ? 1 : 0;
      return key;
    }
    const StringId name = part_.slices.name_id[event.slice];
    if (options_.by_overload_name && event.category == Category::kCpuOp && event.name != name &&
        !names_.overload(name).empty())
      key.overload = name;
    if (options_.by_input_shape) key.shape = shape_of_.empty() ? 1 : shape_of_[event.slice];
    if (!stack_group_.empty()) key.stack = stack_group_[out_.stacks.stack_of(event.slice)];
    return key;
  }

  void add(Group& group, uint32_t i) {
    const FunctionEvent& e = out_.made.events[i];
    if (comes_before(i, group.first)) group.first = i;
    ++group.count;
    group.host_ns = sum_or_limit(group.host_ns, e.host_ns());
    group.self_host_ns = sum_or_limit(group.self_host_ns, e.self_host_ns);
    group.device_ns = sum_or_limit(group.device_ns, e.device_ns);
    group.self_device_ns = sum_or_limit(group.self_device_ns, e.self_device_ns);
    if (!out_.made.memory.empty()) {
      const FunctionMemory& m = out_.made.memory[i];
      group.bytes.host = sum_or_limit(group.bytes.host, m.host);
      group.bytes.self_host = sum_or_limit(group.bytes.self_host, m.self_host);
      group.bytes.device = sum_or_limit(group.bytes.device, m.device);
      group.bytes.self_device = sum_or_limit(group.bytes.self_device, m.self_device);
    }
    if (!flops_of_.empty() && e.slice != kNoSliceIndex && !e.on_device)
      group.flops = sum_or_limit(group.flops, flops_of_[e.slice]);
  }

  bool comes_before(uint32_t a, uint32_t b) const {
    const FunctionEvent &x = out_.made.events[a], &y = out_.made.events[b];
    if (x.start_ns != y.start_ns) return x.start_ns < y.start_ns;
    if (x.end_ns != y.end_ns) return x.end_ns > y.end_ns;
    return file_index(x) < file_index(y);
  }
  uint32_t file_index(const FunctionEvent& event) const {
    return event.slice == kNoSliceIndex ? UINT32_MAX : part_.slices.file_index[event.slice];
  }

  void find_shapes() {
    out_.shapes.emplace_back("[]");  // entry 1: for events that take no inputs, or do not say which
    if (part_.inputs.empty()) return;
    std::unordered_map<std::string, uint32_t> known = {{"[]", 1}};
    std::unordered_map<StringId, uint32_t> of_text;
    shape_of_.assign(part_.slices.size(), 1);
    for (const InputFact& fact : part_.inputs) {
      const auto [it, fresh] = of_text.try_emplace(fact.dims, 0);
      if (fresh) {
        const auto [shape, added] =
            known.emplace(shapes_text(trace_.names.text(fact.dims)), static_cast<uint32_t>(out_.shapes.size()));
        if (added) out_.shapes.push_back(shape->first);
        it->second = shape->second;
      }
      shape_of_[fact.slice] = it->second;
    }
  }

  void find_stacks() {
    PythonStackOptions how{.drop_torch_entries = true, .cut_addresses = !options_.recorded_stacks};
    out_.stacks = options_.recorded_stacks ? recorded_stacks(trace_, part_, how) : python_stacks(trace_, part_, how);
    stack_group_ = out_.stacks.groups_of_innermost(options_.stack_entries);
  }

  void find_flops() {
    std::unordered_map<uint64_t, int64_t> known;  // key: (name, dims); recomputed for operators that need values
    std::vector<int8_t> formula(trace_.names.size(), -1);
    for (const InputFact& fact : part_.inputs) {
      const StringId name = part_.slices.name_id[fact.slice];
      if (formula[name] < 0) formula[name] = has_flops_formula(trace_.names.text(name)) ? 1 : 0;
      if (formula[name] == 0) continue;
      if (flops_of_.empty()) flops_of_.assign(part_.slices.size(), 0);
      const auto compute = [&] {
        return op_flops(trace_.names.text(name), trace_.names.text(fact.dims), trace_.names.text(fact.types),
                        trace_.names.text(fact.concrete));
      };
      if (fact.concrete != 0) {
        flops_of_[fact.slice] = compute();
        continue;
      }
      // A scalar first argument and a tensor without dimensions have the same text, so only for these the type counts.
      const bool plain = trace_.names.text(fact.dims).starts_with("[[]");
      const auto [it, fresh] = known.try_emplace(static_cast<uint64_t>(name) << 32 | fact.dims, 0);
      if (fresh || plain) it->second = compute();
      flops_of_[fact.slice] = it->second;
    }
  }

  // Groups are in the order of their first events.
  void order_groups() {
    std::vector<uint32_t> order(out_.groups.size());
    for (uint32_t g = 0; g < order.size(); ++g) order[g] = g;
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
      const uint32_t x = out_.groups[a].first, y = out_.groups[b].first;
      if (comes_before(x, y)) return true;
      return !comes_before(y, x) && x < y;
    });
    std::vector<uint32_t> place(order.size());
    std::vector<Group> sorted;
    sorted.reserve(order.size());
    for (uint32_t k = 0; k < order.size(); ++k) {
      place[order[k]] = k;
      sorted.push_back(out_.groups[order[k]]);
    }
    out_.groups = std::move(sorted);
    for (uint32_t& g : out_.group_of)
      if (g != OperatorGroups::kNoGroup) g = place[g];
    if (stack_group_.empty()) return;
    for (Group& group : out_.groups)
      if (const uint32_t slice = out_.first_of(group).slice; slice != kNoSliceIndex)
        group.stack = out_.stacks.stack_of(slice);
  }

  const Trace& trace_;
  const Part& part_;
  const FunctionNames& names_;
  const GroupOptions& options_;
  std::vector<uint32_t> shape_of_;     // for each slice; empty when there are none
  std::vector<uint32_t> stack_group_;  // for each node
  std::vector<int64_t> flops_of_;      // for each slice; empty when there are none
  OperatorGroups out_;
};

}  // namespace

OperatorGroups group_events(const Trace& trace, const Part& part, const FunctionNames& names,
                            const GroupOptions& options) {
  return Grouper(trace, part, names, options).group();
}

}  // namespace stageline::operators
