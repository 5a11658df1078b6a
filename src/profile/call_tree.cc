#include "profile/call_tree.h"

#include "profile/python_stacks.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr uint32_t kNoNode = UINT32_MAX;

FrameKind frame_kind(Category category, KernelClass work) {
  if (is_device_work(category) && work == KernelClass::kCommunication) return FrameKind::kCommunication;
  if (is_device_work(category) && work == KernelClass::kMemory) return FrameKind::kMemory;
  switch (category) {
    case Category::kPythonFunction: return FrameKind::kPython;
    case Category::kCpuOp: return FrameKind::kOperator;
    case Category::kUserAnnotation: return FrameKind::kAnnotation;
    case Category::kRuntime:
    case Category::kDriver:
    case Category::kOverhead: return FrameKind::kCall;
    default: return is_device_work(category) ? FrameKind::kDevice : FrameKind::kOther;
  }
}

class CallTreeBuilder {
 public:
  CallTreeBuilder(const Trace& trace, const Part& part, const FunctionNames& names, const CallArea* area)
      : trace_(trace), part_(part), s_(part.slices), names_(names), area_(area) {}

  CallTree build() {
    if (s_.size() == 0 || !s_.has_facts()) return std::move(out_);
    choose_slices();
    find_self_times();
    find_callers();
    frame_of_name_.assign(trace_.names.size(), kUnknown);
    node_of_.assign(s_.size(), kNoNode);
    for (const uint32_t i : callers_first(caller_)) place(i);
    return std::move(out_);
  }

 private:
  static constexpr StringId kUnknown = UINT32_MAX;

  bool is_in_area(size_t i) const {
    if (!area_) return true;
    const uint32_t launch = is_device_work(category(i)) ? s_.partner[i] : kNoSliceIndex;
    return s_.start_ns[i] < area_->to_ns && s_.end_ns(i) >= area_->from_ns &&
           (area_->chosen[i] || (launch != kNoSliceIndex && area_->chosen[launch]));
  }
  int64_t duration(size_t i) const {
    if (!area_) return s_.dur_ns[i];
    return std::max<int64_t>(0, std::min(s_.end_ns(i), area_->to_ns) - std::max(s_.start_ns[i], area_->from_ns));
  }
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }

  // Takes host calls of threads, and device work wherever it is drawn. Spans of the whole profile are not calls.
  void choose_slices() {
    kept_.assign(s_.size(), false);
    for (const Lane& lane : part_.lanes)
      for (size_t i = lane.begin; i < lane.end; ++i) {
        const Category c = category(i);
        kept_[i] = (is_device_work(c) || is_host(c) || (c == Category::kOther && lane.kind == LaneKind::kHostThread)) &&
                   is_in_area(i);
      }
    out_.steps = part_.steps.size();
    if (!trace_.slice_filter.any()) return;
    std::vector<bool> chosen(s_.size(), false);
    const Result<TorchRun> run = make_torch_run(trace_, {.hta = false, .include_last_step = true});
    if (run)
      for (const auto rank = torch_rank(*run, static_cast<size_t>(&part_ - trace_.parts.data()));
           const TorchRow& row : rank->rows)
        chosen[row.slice] = true;
    for (size_t i = 0; i < kept_.size(); ++i) kept_[i] = kept_[i] && chosen[i];
    out_.steps = std::ranges::count_if(
        part_.steps, [&](const ProfilerStep& step) { return step.slice != kNoSliceIndex && chosen[step.slice]; });
  }

  // Self time is a slice's duration minus that of the kept slices directly in it.
  void find_self_times() {
    self_ns_.assign(s_.size(), 0);
    for (const Lane& lane : part_.lanes)
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (!kept_[i]) continue;
        self_ns_[i] += duration(i);
        if (is_device_work(category(i))) continue;
        uint32_t up = s_.parent[i];
        while (up != kNoSliceIndex && !kept_[up]) up = s_.parent[up];
        if (up != kNoSliceIndex) self_ns_[up] -= duration(i);
      }
  }

  void find_callers() {
    caller_ = python_callers(trace_, part_);
    const std::vector<uint32_t> backward = backward_operators(trace_, part_);
    const std::vector<uint32_t> forward = forward_operators(trace_, part_, backward, OfEqualNumbers::kLast);
    for (size_t i = 0; i < s_.size(); ++i) {
      if (backward[i] != i || forward[i] == kNoSliceIndex) continue;
      // The engine's own call around the operator is moved with it, so that forward and backward stay apart.
      caller_[s_.parent[i]] = caller_[forward[i]];
    }
  }

  void place(uint32_t i) {
    const uint32_t up = caller_[i];
    const uint32_t above = up == kNoSliceIndex ? 0 : node_of_[up];
    if (!kept_[i]) {
      node_of_[i] = above;
      return;
    }
    const Category c = category(i);
    const StringId frame = frame_of(names_.group(s_.name_id[i], c));
    const uint32_t node = child(above, frame, frame_kind(c, s_.class_of(i)));
    node_of_[i] = node;
    (is_device_work(c) ? out_.device_ns : out_.host_ns)[node] += self_ns_[i];
    ++out_.calls[node];
  }

  StringId frame_of(StringId group) {
    if (group >= frame_of_name_.size()) return out_.frames.intern(names_.text(group));
    StringId& known = frame_of_name_[group];
    if (known != kUnknown) return known;
    const std::string_view text = names_.text(group);
    known = out_.frames.intern(
        without_address(text.size() > PythonStacks::kMaxFrameBytes ? shortened_frame(text) : std::string(text)));
    return known;
  }

  uint32_t child(uint32_t above, StringId frame, FrameKind kind) {
    const uint64_t key = static_cast<uint64_t>(above) << 32 | frame;
    const auto [it, added] = child_of_[kind].try_emplace(key, static_cast<uint32_t>(out_.nodes.size()));
    if (added) {
      out_.nodes.push_back({above, frame, kind});
      out_.host_ns.push_back(0);
      out_.device_ns.push_back(0);
      out_.calls.push_back(0);
    }
    return it->second;
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  const FunctionNames& names_;
  const CallArea* area_;  // nullptr: everything
  CallTree out_;
  std::vector<bool> kept_;
  std::vector<int64_t> self_ns_;
  std::vector<uint32_t> caller_, node_of_;
  std::vector<StringId> frame_of_name_;
  ByEnum<FrameKind, std::unordered_map<uint64_t, uint32_t>, kFrameKindCount> child_of_;
};

constexpr uint32_t kDropped = UINT32_MAX;

struct PathKey {
  uint32_t parent;
  StringId frame;
  FrameKind kind;
  bool operator==(const PathKey&) const = default;
};
struct PathKeyHash {
  size_t operator()(const PathKey& key) const {
    const uint64_t bits = (static_cast<uint64_t>(key.parent) << 32 | key.frame) * 0x9E3779B97F4A7C15u;
    return std::hash<uint64_t>()(bits + static_cast<uint64_t>(key.kind));
  }
};

// All paths of all columns, and for each path the largest share that it has in any column.
struct Paths {
  std::vector<MergedCalls::Node> nodes = {MergedCalls::Node{}};
  std::vector<double> share = {1.0};
  StringPool frames;
  std::vector<std::vector<uint32_t>> node_of;  // index: [column][node of its tree]
};

std::vector<int64_t> totals(const CallTree& tree, const std::vector<int64_t>& own) {
  std::vector<int64_t> sums = own;
  for (size_t n = tree.nodes.size(); n-- > 1;) sums[tree.nodes[n].parent] += sums[n];
  return sums;
}

void raise_shares(Paths& paths, const CallTree& tree, const std::vector<int64_t>& own,
                  const std::vector<uint32_t>& node_of) {
  const std::vector<int64_t> sums = totals(tree, own);
  if (sums[0] <= 0) return;
  for (size_t n = 1; n < sums.size(); ++n) {
    double& share = paths.share[node_of[n]];
    share = std::max(share, sums[n] / static_cast<double>(sums[0]));
  }
}

Paths all_paths(const std::vector<const CallTree*>& columns) {
  Paths paths;
  std::unordered_map<PathKey, uint32_t, PathKeyHash> known;
  for (const CallTree* tree : columns) {
    std::vector<StringId> frame_of(tree->frames.size());
    for (StringId id = 0; id < frame_of.size(); ++id) frame_of[id] = paths.frames.intern(tree->frames.text(id));
    std::vector<uint32_t> node_of(tree->nodes.size(), 0);
    for (size_t n = 1; n < tree->nodes.size(); ++n) {
      const CallTree::Node& node = tree->nodes[n];
      const PathKey key{node_of[node.parent], frame_of[node.frame], node.kind};
      const auto [it, added] = known.try_emplace(key, static_cast<uint32_t>(paths.nodes.size()));
      if (added) {
        paths.nodes.push_back({key.parent, key.frame, key.kind, false});
        paths.share.push_back(0);
      }
      node_of[n] = it->second;
    }
    raise_shares(paths, *tree, tree->host_ns, node_of);
    raise_shares(paths, *tree, tree->device_ns, node_of);
    paths.node_of.push_back(std::move(node_of));
  }
  // In damaged times a parent may have a smaller share than its child; raising it ensures that what is kept has all its
  // parents.
  for (size_t n = paths.nodes.size(); n-- > 1;) {
    double& above = paths.share[paths.nodes[n].parent];
    above = std::max(above, paths.share[n]);
  }
  return paths;
}

// Decides which paths are left out. Of equal shares the earlier path is kept, and callers come before what they call,
// so whatever is kept has all its callers.
std::vector<bool> left_out(const std::vector<double>& share, size_t max_nodes) {
  std::vector<bool> out(share.size(), false);
  if (share.size() <= max_nodes) return out;
  auto order = indexes<uint32_t>(share.size());
  const auto cut = order.begin() + std::max<size_t>(max_nodes, 1);
  std::nth_element(order.begin(), cut, order.end(),
                   [&](uint32_t a, uint32_t b) { return share[a] != share[b] ? share[a] > share[b] : a < b; });
  for (auto it = cut; it != order.end(); ++it) out[*it] = true;
  return out;
}

}  // namespace

CallTree call_tree(const Trace& trace, const Part& part, const FunctionNames& names, const CallArea* area) {
  return CallTreeBuilder(trace, part, names, area).build();
}

MergedCalls merge_calls(const std::vector<const CallTree*>& columns, size_t max_nodes) {
  Paths paths = all_paths(columns);
  MergedCalls merged;
  const std::vector<bool> dropped = left_out(paths.share, max_nodes);
  // For each path its node, or the node of the rest in which it counts.
  std::vector<uint32_t> place(paths.nodes.size(), 0), rest_of(paths.nodes.size(), kDropped);
  merged.nodes.push_back(MergedCalls::Node{});
  for (size_t n = 1; n < paths.nodes.size(); ++n) {
    const MergedCalls::Node& path = paths.nodes[n];
    if (!dropped[n]) {
      place[n] = static_cast<uint32_t>(merged.nodes.size());
      merged.nodes.push_back({place[path.parent], path.frame, path.kind, false});
      continue;
    }
    ++merged.left_out;
    merged.max_left_out = std::max(merged.max_left_out, paths.share[n]);
    if (dropped[path.parent]) {
      place[n] = place[path.parent];
      continue;
    }
    uint32_t& rest = rest_of[path.parent];
    if (rest == kDropped) {
      rest = static_cast<uint32_t>(merged.nodes.size());
      merged.nodes.push_back({place[path.parent], 0, FrameKind::kOther, true});
    }
    place[n] = rest;
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    const CallTree& tree = *columns[c];
    std::vector<int64_t> host(merged.nodes.size(), 0), device(host), calls(host);
    for (size_t n = 0; n < tree.nodes.size(); ++n) {
      const uint32_t at = place[paths.node_of[c][n]];
      host[at] += tree.host_ns[n];
      device[at] += tree.device_ns[n];
      calls[at] += tree.calls[n];
    }
    merged.host_ns.push_back(std::move(host));
    merged.device_ns.push_back(std::move(device));
    merged.calls.push_back(std::move(calls));
  }
  merged.frames = std::move(paths.frames);
  return merged;
}

}  // namespace stageline
