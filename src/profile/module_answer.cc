// Finds modules by their Python frames (or ranges of the domain "Module", or Lightning's), forward and backward.
//
//   step() ─ nn.Module: Net ─ nn.Module: Linear ─ aten::linear ─ aten::addmm ⇒ kernel      forward of Linear and Net
//                                                      │ sequence number, arrow
//   autograd thread: evaluate_function: AddmmBackward0 ⇒ kernels                           backward of Linear and Net
//                    evaluate_function: AccumulateGrad ⇒ kernel                            with the root before it
#include "profile/module_answer.h"

#include "model/lanes.h"
#include "model/statistics.h"
#include "model/torch_facts.h"
#include "profile/operator_work.h"
#include "profile/python_stacks.h"

namespace stageline {
namespace {

constexpr std::string_view kRoot = "autograd::engine::evaluate_function: ";
constexpr std::string_view kAccumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
constexpr std::string_view kLightning = "[pl][module]";

class Answer {
 public:
  Answer(const TorchRun& run, size_t part, const FunctionNames& names)
      : trace_(*run.trace), part_(trace_.parts[part]), names_(names), s_(part_.slices), n_(s_.size()) {
    answer_.rank = run.ranks[part];
    const auto held = torch_rank(run, part);  // without what --steps and --range remove
    const TorchRank& rank = *held;
    kept_.assign(n_, false);
    for (const TorchRow& row : rank.rows) kept_[row.slice] = true;
  }

  ModuleAnswer answer(bool of_slices) {
    mark_modules();
    if (modules_.empty()) return std::move(answer_);
    caller_ = python_callers(trace_, part_);
    order_ = callers_first(caller_);
    climb();
    find_backward();
    add_calls();
    group();
    if (of_slices) find_slices();
    return std::move(answer_);
  }

 private:
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }
  std::string_view name(size_t i) const { return trace_.names.text(s_.name_id[i]); }

  void mark_modules() {
    call_of_.assign(n_, -1);
    const auto add = [&](size_t i) {
      if (!kept_[i]) return;
      call_of_[i] = static_cast<int32_t>(modules_.size());
      modules_.push_back(static_cast<uint32_t>(i));
    };
    for (const ModuleFact& fact : part_.modules) add(fact.slice);
    if (!modules_.empty()) return;
    for (const RangeFact& range : part_.ranges)
      if (is_module_range(trace_, range)) add(range.slice);
    if (!modules_.empty()) return;
    if (trace_.format == "nsys") return mark_ranges(add);
    std::vector<bool> is_range(trace_.names.size());
    for (StringId id = 0; id < is_range.size(); ++id) is_range[id] = trace_.names.text(id).starts_with(kLightning);
    for (size_t i = 0; i < n_; ++i)
      if (is_range[s_.name_id[i]] && (category(i) == Category::kUserAnnotation || category(i) == Category::kCpuOp))
        add(i);
    answer_.lightning = !modules_.empty();
  }

  // NVTX has no domain for modules: ranges that hold operators count, but for those of steps.
  template <class Add> void mark_ranges(Add add) {
    const auto is_step = [&](uint32_t i) {
      return std::ranges::any_of(part_.steps,
                                 [&](const ProfilerStep& step) { return step.start_ns == s_.start_ns[i]; });
    };
    for (size_t i = 0; i < n_; ++i)
      for (uint32_t up = category(i) == Category::kCpuOp ? s_.parent[i] : kNoSliceIndex;
           up != kNoSliceIndex && call_of_[up] < 0; up = s_.parent[up])
        if (category(up) == Category::kUserAnnotation && !is_step(up)) add(up);
  }

  // For each slice: the module call at or around it; the operator or module call around it; and the backward root at or
  // around it.
  void climb() {
    module_.assign(n_, -1);
    marked_.assign(n_, kNoSliceIndex);
    root_.assign(n_, kNoSliceIndex);
    std::vector<bool> is_root(trace_.names.size());
    for (StringId id = 0; id < is_root.size(); ++id) is_root[id] = trace_.names.text(id).starts_with(kRoot);
    parent_.assign(modules_.size(), -1);
    sums_.assign(modules_.size(), {});
    for (const uint32_t i : order_) {
      const uint32_t up = caller_[i];
      if (up != kNoSliceIndex) {
        module_[i] = module_[up];
        marked_[i] = call_of_[up] >= 0 || category(up) == Category::kCpuOp ? up : marked_[up];
        root_[i] = root_[up];
      }
      if (call_of_[i] >= 0) parent_[call_of_[i]] = module_[i], module_[i] = call_of_[i];
      if (category(i) == Category::kCpuOp && is_root[s_.name_id[i]]) root_[i] = i;
    }
    for (uint32_t i = 0; i < n_; ++i) {  // whose launch is on a thread of its own, without operators (Ascend)
      const uint32_t op = s_.parent[i];
      if (!is_device_work(category(i)) || module_[i] >= 0 || root_[i] != kNoSliceIndex || op == kNoSliceIndex) continue;
      module_[i] = module_[op];
      root_[i] = root_[op];
    }
  }

  // Finds for each backward root the module call whose forward it belongs to: by sequence number, else by arrow.
  // Gradients are accumulated right after the root that made them.
  void find_backward() {
    backward_module_.assign(n_, -1);
    const std::vector<uint32_t> backward = backward_operators(trace_, part_);
    const std::vector<uint32_t> forward = forward_operators(trace_, part_, backward, OfEqualNumbers::kLast);
    for (const OperatorFact& fact : part_.operators)
      if (forward[fact.slice] != kNoSliceIndex && root_[fact.slice] != kNoSliceIndex)
        claim(root_[fact.slice], forward[fact.slice]);
    for (const SliceLink& link : part_.slice_links)
      if (link.kind == SliceLinkKind::kForwardBackward && root_[link.to] != kNoSliceIndex)
        claim(root_[link.to], link.from);
    for (const Lane& lane : part_.lanes) {
      int32_t before = -1;
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (root_[i] != i) continue;
        if (name(i) != kAccumulate) before = backward_module_[i];
        else if (backward_module_[i] < 0) backward_module_[i] = before;
      }
    }
  }
  void claim(uint32_t root, uint32_t forward) {
    if (backward_module_[root] < 0) backward_module_[root] = module_[forward];
  }

  void add_calls() {
    for (size_t m = 0; m < modules_.size(); ++m) {
      sums_[m].occurrences = 1;
      sums_[m].host_ns = s_.dur_ns[modules_[m]];
      sums_[m].self_host_ns += sums_[m].host_ns;
    }
    for (uint32_t i = 0; i < n_; ++i) {
      if (!kept_[i]) continue;
      const int32_t backward = root_[i] == kNoSliceIndex ? -1 : backward_module_[root_[i]];
      if (is_device_work(category(i))) {
        if (backward >= 0) sums_[backward].self_backward_device_ns += s_.dur_ns[i];
        else if (module_[i] >= 0) sums_[module_[i]].self_device_ns += s_.dur_ns[i];
        continue;
      }
      if (root_[i] == i && backward >= 0) sums_[backward].self_backward_host_ns += s_.dur_ns[i];
      const bool op = category(i) == Category::kCpuOp && call_of_[i] < 0;
      if (!op && call_of_[i] < 0) continue;
      const uint32_t around = marked_[i];
      if (around == kNoSliceIndex || call_of_[around] < 0) continue;
      ModuleSums& above = sums_[call_of_[around]];
      above.operators += op;
      if (lane_of(part_, i) == lane_of(part_, around)) above.self_host_ns -= s_.dur_ns[i];
    }
    add_flops();
    for (ModuleSums& sums : sums_) {
      sums.device_ns = sums.self_device_ns;
      sums.backward_host_ns = sums.self_backward_host_ns;
      sums.backward_device_ns = sums.self_backward_device_ns;
    }
    for (size_t k = order_.size(); k-- > 0;) {  // callees first
      const int32_t call = call_of_[order_[k]];
      if (call < 0 || parent_[call] < 0) continue;
      const ModuleSums& below = sums_[call];
      ModuleSums& above = sums_[parent_[call]];
      above.device_ns += below.device_ns;
      above.backward_host_ns += below.backward_host_ns;
      above.backward_device_ns += below.backward_device_ns;
      above.flops += below.flops, above.flops_ns += below.flops_ns, above.peak_ns += below.peak_ns;
    }
  }

  void add_flops() {
    const OperatorWork done = operator_work(trace_, part_, names_);
    for (const OperatorCall& call : done.calls) {
      if (module_[call.slice] < 0 || root_[call.slice] != kNoSliceIndex) continue;
      if (!call.work.is_matrix || call.work.max_flops > call.work.flops) continue;
      ModuleSums& sums = sums_[module_[call.slice]];
      const double peak = done.published && call.precision ? done.published->tflops[*call.precision] : 0;
      sums.flops += static_cast<double>(call.work.flops);
      sums.flops_ns += static_cast<double>(call.device_ns);
      sums.peak_ns += peak > 0 ? static_cast<double>(call.work.flops) / peak / 1e3 : kNaN;
    }
  }

  void find_slices() {
    answer_.of_slice.resize(n_);
    for (uint32_t i = 0; i < n_; ++i) {
      const int32_t backward = root_[i] == kNoSliceIndex ? -1 : backward_module_[root_[i]];
      const int32_t call = backward >= 0 ? backward : module_[i];
      if (call >= 0) answer_.of_slice[i] = {node_of_[call], backward >= 0};
    }
  }

  // Makes one node of all calls of one module under one node. Lightning identifies modules by their path.
  void group() {
    node_of_.assign(modules_.size(), -1);
    if (answer_.lightning) return group_by_path();
    struct Found {
      ModuleNode node;
      int64_t first_ns;
      uint32_t slice;
    };
    std::vector<Found> found;
    std::map<std::tuple<int32_t, StringId, int64_t>, int32_t> known;
    for (const uint32_t slice : order_) {
      if (call_of_[slice] < 0) continue;
      const size_t call = call_of_[slice];
      const int32_t up = parent_[call] < 0 ? -1 : node_of_[parent_[call]];
      const ModuleFact* fact = fact_of(part_.modules, slice);
      const int64_t id = fact ? fact->module_id : -1;
      const auto [it, added] = known.try_emplace({up, s_.name_id[slice], id}, static_cast<int32_t>(found.size()));
      if (added) {
        ModuleNode node{.parent = up,
                        .depth = up < 0 ? 0 : found[up].node.depth + 1,
                        .name = module_name(name(slice)),
                        .module_id = id};
        found.push_back({std::move(node), s_.start_ns[slice], slice});
      }
      Found& at = found[it->second];
      if (s_.start_ns[slice] < at.first_ns) at.first_ns = s_.start_ns[slice];
      at.node.sums.add(sums_[call]);
      node_of_[call] = it->second;
    }
    // Nodes are put in preorder, with siblings ordered by their first call.
    std::vector<std::vector<int32_t>> children(found.size() + 1);
    for (uint32_t i = 0; i < found.size(); ++i) children[found[i].node.parent + 1].push_back(i);
    std::vector<int32_t> open, place(found.size() + 1, -1);
    const auto push = [&](size_t of) {
      sort_stably(children[of], [&](int32_t a, int32_t b) {
        const Found &x = found[a], &y = found[b];
        return x.first_ns != y.first_ns ? x.first_ns < y.first_ns : x.slice < y.slice;
      });
      open.insert(open.end(), children[of].rbegin(), children[of].rend());
    };
    push(0);
    while (!open.empty()) {
      const size_t i = open.back();
      open.pop_back();
      ModuleNode& node = found[i].node;
      node.parent = place[node.parent + 1];
      place[i + 1] = static_cast<int32_t>(answer_.nodes.size());
      answer_.nodes.push_back(std::move(node));
      push(i + 1);
    }
    for (int32_t& node : node_of_) node = place[node + 1];
  }

  void group_by_path() {
    std::map<std::string, ModuleSums> by_path;
    for (size_t m = 0; m < modules_.size(); ++m) by_path[module_name(name(modules_[m]))].add(sums_[m]);
    // "net.conv" comes after "net" and before "net.conv.weight", but other names may come between them.
    std::map<std::string, int32_t> place;
    for (const auto& [path, sums] : by_path) {
      ModuleNode node{.name = path, .sums = sums};
      if (const size_t dot = path.rfind('.'); dot != std::string::npos)
        if (const auto up = place.find(path.substr(0, dot)); up != place.end()) {
          node.parent = up->second;
          node.depth = answer_.nodes[up->second].depth + 1;
        }
      place[path] = static_cast<int32_t>(answer_.nodes.size());
      answer_.nodes.push_back(std::move(node));
    }
    for (size_t m = 0; m < modules_.size(); ++m) node_of_[m] = place[module_name(name(modules_[m]))];
  }

  const Trace& trace_;
  const Part& part_;
  const FunctionNames& names_;
  const Slices& s_;
  size_t n_;
  ModuleAnswer answer_;
  std::vector<bool> kept_;
  std::vector<uint32_t> modules_;  // for each call: its slice
  std::vector<int32_t> call_of_;   // for each slice: its call, or −1
  std::vector<int32_t> parent_;    // for each call: the call around it
  std::vector<int32_t> node_of_;   // for each call: its node
  std::vector<ModuleSums> sums_;   // for each call
  std::vector<uint32_t> caller_, order_, marked_, root_;
  std::vector<int32_t> module_, backward_module_;
};

}  // namespace

void ModuleSums::add(const ModuleSums& o) {
  occurrences += o.occurrences;
  operators += o.operators;
  host_ns += o.host_ns;
  self_host_ns += o.self_host_ns;
  device_ns += o.device_ns;
  self_device_ns += o.self_device_ns;
  backward_host_ns += o.backward_host_ns;
  self_backward_host_ns += o.self_backward_host_ns;
  backward_device_ns += o.backward_device_ns;
  self_backward_device_ns += o.self_backward_device_ns;
  flops += o.flops, flops_ns += o.flops_ns, peak_ns += o.peak_ns;
}

std::string module_name(std::string_view name) {
  constexpr std::string_view kPython = "nn.Module: ";
  if (name.starts_with(kPython)) return std::string(name.substr(kPython.size()));
  if (name.starts_with(kLightning)) {
    const size_t colon = name.find(": ");
    return std::string(name.substr(colon == std::string_view::npos ? kLightning.size() : colon + 2));
  }
  return std::string(name);
}

ModuleAnswer module_answer(const TorchRun& run, size_t part, const FunctionNames& names, bool of_slices) {
  return Answer(run, part, names).answer(of_slices);
}

std::string module_path(const ModuleAnswer& answer, size_t node) {
  if (answer.lightning) return answer.nodes[node].name;
  constexpr size_t kMaxNames = 64;  // a path of a hundred thousand names would be written a hundred thousand times
  std::vector<std::string_view> names;
  int32_t at = static_cast<int32_t>(node);
  for (; at >= 0 && names.size() < kMaxNames; at = answer.nodes[at].parent) names.push_back(answer.nodes[at].name);
  std::string path = at >= 0 ? "…" : "";
  for (size_t k = names.size(); k-- > 0;) append_item(path, names[k], "/");
  return path;
}

}  // namespace stageline
