#include "compat/tb/tb_tree.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace stageline {
namespace {

using Type = TbNode::Type;

constexpr std::array<std::string_view, 5> kCollectives = {"broadcast", "reduce", "all_reduce", "all_gather",
                                                          "reduce_scatter"};

bool is_collective_range(std::string_view name) {
  for (const std::string_view library : {"nccl:", "gloo:"})
    if (name.starts_with(library))
      return std::find(kCollectives.begin(), kCollectives.end(), name.substr(library.size())) != kCollectives.end();
  return false;
}

bool is_loading(std::string_view name) {
  return (name.starts_with("enumerate(DataLoader)#") && name.ends_with(".__next__")) ||
         name.starts_with("enumerate(DataPipe)#");
}

class Builder {
 public:
  Builder(const Trace& trace, const Part& part) : trace_(trace), part_(part), s_(part.slices) {}

  TbTree build() {
    tree_.node_of_slice.assign(s_.size(), TbNode::kNone);
    tree_.root_of_lane.assign(part_.lanes.size(), TbNode::kNone);
    for (size_t l = 0; l < part_.lanes.size(); ++l)
      if (part_.lanes[l].kind != LaneKind::kDeviceStream) add_thread(l);
    join_same_names();
    hang_device_time();
    sum();
    return std::move(tree_);
  }

 private:
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }
  std::string_view name(size_t i) const { return trace_.names.text(s_.name_id[i]); }
  TbNode& node(int32_t i) { return tree_.nodes[i]; }

  // Returns the plugin's type of a slice; kRoot when it is none of the plugin's nodes.
  Type type_of(size_t i) const {
    const Category c = category(i);
    if (c == Category::kPythonFunction)
      return fact_of(part_.modules, static_cast<uint32_t>(i)) ? Type::kModule : Type::kRoot;
    if (c != Category::kCpuOp && c != Category::kUserAnnotation) return Type::kRoot;
    const std::string_view text = name(i);
    if (text.starts_with("ProfilerStep#")) return Type::kStep;
    if (c == Category::kUserAnnotation) return is_collective_range(text) ? Type::kUncounted : Type::kRoot;
    if (is_loading(text) || text.starts_with("Optimizer.step")) return Type::kOther;  // annotations of torch ≤ 1.12
    const bool excluded =
        text == "DataParallel.forward" || text == "DistributedDataParallel.forward" || text.starts_with("Optimizer.");
    return excluded ? Type::kUncounted : Type::kOperator;
  }

  void add_thread(size_t l) {
    const Lane& lane = part_.lanes[l];
    std::vector<TbNode> found;
    for (size_t i = lane.begin; i < lane.end; ++i) {
      const Type type = type_of(i);
      if (type == Type::kRoot) continue;
      TbNode added;
      added.start_us = static_cast<double>(s_.start_ns[i] - part_.base_time_ns) / 1000.0;
      added.end_us = added.start_us + static_cast<double>(s_.dur_ns[i]) / 1000.0;
      added.host_ns = s_.dur_ns[i];
      added.slice = static_cast<uint32_t>(i);
      added.type = type;
      found.push_back(added);
    }
    if (found.empty()) return;
    std::stable_sort(found.begin(), found.end(), [](const TbNode& a, const TbNode& b) {
      return a.start_us != b.start_us ? a.start_us < b.start_us : a.end_us > b.end_us;
    });
    const auto root = static_cast<int32_t>(tree_.nodes.size());
    tree_.root_of_lane[l] = root;
    TbNode top;
    top.type = Type::kRoot;
    top.end_us = std::numeric_limits<double>::max();
    tree_.nodes.push_back(top);
    std::vector<int32_t> open = {root};
    for (TbNode& added : found) {
      while (added.start_us >= node(open.back()).end_us && open.size() > 1) open.pop_back();
      // The plugin drops such a range: "ranges on the same thread should not intersect".
      if (added.end_us > node(open.back()).end_us) continue;
      added.parent = open.back();
      const auto at = static_cast<int32_t>(tree_.nodes.size());
      tree_.node_of_slice[added.slice] = at;
      if (added.parent == root) {
        if (at == root + 1) node(root).start_us = added.start_us;
        last_end_us_ = added.end_us;
      }
      tree_.nodes.push_back(added);
      open.push_back(at);
    }
    node(root).end_us = last_end_us_;
  }

  void join_same_names() {
    const size_t n = tree_.nodes.size();
    std::vector<int32_t> children(n, 0), only(n, TbNode::kNone);
    for (size_t i = 0; i < n; ++i)
      if (const int32_t up = tree_.nodes[i].parent; up >= 0) {
        ++children[up];
        only[up] = static_cast<int32_t>(i);
      }
    stands_for_.resize(n);
    for (size_t i = 0; i < n; ++i) stands_for_[i] = static_cast<int32_t>(i);
    calls_of_.assign(n, TbNode::kNone);  // for a node that took a child's place, the node whose calls it has
    for (size_t i = 0; i < n; ++i) {     // parents come first, so a chain with one name ends at its first node
      TbNode& at = tree_.nodes[i];
      if (at.parent >= 0) at.parent = stands_for_[at.parent];
      if (at.parent < 0) continue;
      const auto up = static_cast<size_t>(at.parent);
      const TbNode& above = tree_.nodes[up];
      if (children[up] != 1 || only[up] != static_cast<int32_t>(i) || above.slice == kNoSliceIndex ||
          category(above.slice) != Category::kCpuOp || category(at.slice) != Category::kCpuOp ||
          above.type == Type::kStep || at.type == Type::kStep || s_.name_id[above.slice] != s_.name_id[at.slice])
        continue;
      stands_for_[i] = at.parent;
      at.counted = false;
      calls_of_[up] = static_cast<int32_t>(i);
      children[up] = children[i];
      only[up] = only[i];
      tree_.node_of_slice[at.slice] = at.parent;
    }
  }

  // "External id" says which operator a runtime call belongs to; an operator that took a child's place has the child's
  // calls.
  void hang_device_time() {
    std::vector<uint32_t> operator_above(s_.size(), kNoSliceIndex);
    std::vector<int32_t> own_node(s_.size(), TbNode::kNone);
    for (size_t i = 0; i < tree_.nodes.size(); ++i)
      if (tree_.nodes[i].slice != kNoSliceIndex) own_node[tree_.nodes[i].slice] = static_cast<int32_t>(i);
    for (const Lane& lane : part_.lanes) {
      if (lane.kind == LaneKind::kDeviceStream) continue;
      for (size_t i = lane.begin; i < lane.end; ++i)
        if (const uint32_t up = s_.parent[i]; up < i)
          operator_above[i] = category(up) == Category::kCpuOp ? up : operator_above[up];
    }
    for (const OwnerFact& fact : part_.launch_owners) operator_above[fact.slice] = fact.owner;
    const auto owner_of = [&](uint32_t call) {
      const uint32_t op = operator_above[call];
      const int32_t own = op == kNoSliceIndex ? TbNode::kNone : own_node[op];
      if (own < 0) return TbNode::kNone;
      const int32_t shown = stands_for_[own];
      const int32_t calls = calls_of_[shown];
      return own == (calls < 0 ? shown : calls) ? shown : TbNode::kNone;
    };
    for (size_t i = 0; i < s_.size(); ++i) {
      const Category c = category(i);
      if (c == Category::kRuntime) {
        if (const int32_t owner = owner_of(static_cast<uint32_t>(i)); owner >= 0)
          node(owner).self_host_ns -= s_.dur_ns[i];
      } else if (is_device_work(c) && c != Category::kMtiaWork && s_.partner[i] != kNoSliceIndex &&
                 category(s_.partner[i]) == Category::kRuntime) {
        if (const int32_t owner = owner_of(s_.partner[i]); owner >= 0) node(owner).self_device_ns += s_.dur_ns[i];
      }
    }
  }

  void sum() {
    for (TbNode& at : tree_.nodes) {
      at.self_host_ns += at.host_ns;
      at.device_ns = at.self_device_ns;
    }
    for (size_t i = tree_.nodes.size(); i-- > 0;) {
      const TbNode& at = tree_.nodes[i];
      if (!at.counted || at.parent < 0) continue;
      TbNode& up = node(at.parent);
      up.self_host_ns -= at.host_ns;
      up.device_ns += at.device_ns;
      if (up.type == Type::kModule && at.type == Type::kOperator) up.self_device_ns += at.device_ns;
    }
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  TbTree tree_;
  double last_end_us_ = 0;
  std::vector<int32_t> stands_for_, calls_of_;
};

}  // namespace

TbTree tb_tree(const Trace& trace, const Part& part) { return Builder(trace, part).build(); }

}  // namespace stageline
