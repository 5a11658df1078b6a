// Modules as TensorBoard's plugin counts them (module_op.py of torch_tb_profiler 0.4.3): a tree of calls built from the
// frames' own parents. Equal trees are shown once, and every module shows the sums over all its calls anywhere.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyses/tb_module/tb_module.h"
#include "compat/tb/tb_tree.h"

namespace stageline {
namespace {

class Plugin {
 public:
  Plugin(const TorchRun& run, size_t part)
      : trace_(*run.trace), part_(trace_.parts[part]), s_(part_.slices), rank_(run.ranks[part]) {}

  Result<ModuleAnswer> answer() {
    ModuleAnswer answer;
    answer.rank = rank_;
    if (part_.modules.empty()) return answer;
    sum_calls();
    if (sums_.empty()) return answer;  // the plugin then shows no view
    build_hierarchy();
    std::vector<uint32_t> roots;
    std::vector<bool> shown(shapes_.size(), false);
    for (const uint32_t root : roots_) {
      if (shown[shape_[root]]) continue;
      shown[shape_[root]] = true;
      roots.push_back(root);
    }
    // Roots are sorted by name; the plugin leaves equal names in the order of a Python set.
    std::stable_sort(roots.begin(), roots.end(), [&](uint32_t a, uint32_t b) { return shown_name(a) < shown_name(b); });
    struct Open {
      uint32_t slice;
      int32_t parent;
    };
    std::vector<Open> open;
    for (size_t k = roots.size(); k-- > 0;) open.push_back({roots[k], -1});
    while (!open.empty()) {
      const Open at = open.back();
      open.pop_back();
      const auto found = sums_.find(key_of(at.slice));
      if (found == sums_.end())
        return Error{ErrorCode::kBadInput,
                     "KeyError: ('" + std::string(trace_.names.text(s_.name_id[at.slice])) + "', " +
                         std::to_string(key_of(at.slice).second) + ")",
                     {},
                     "the plugin drops ranges that overlap, and fails on modules whose calls it dropped"};
      ModuleNode node;
      node.parent = at.parent;
      node.depth = at.parent < 0 ? 0 : answer.nodes[at.parent].depth + 1;
      node.name = shown_name(at.slice);
      node.module_id = key_of(at.slice).second;
      node.sums = found->second;
      const auto place = static_cast<int32_t>(answer.nodes.size());
      answer.nodes.push_back(std::move(node));
      const std::vector<uint32_t>& below = children_[at.slice];
      for (size_t k = below.size(); k-- > 0;) open.push_back({below[k], place});
    }
    return answer;
  }

 private:
  using Key = std::pair<StringId, int64_t>;

  Key key_of(uint32_t slice) const { return {s_.name_id[slice], fact_of(part_.modules, slice)->module_id}; }
  std::string shown_name(uint32_t slice) const {
    constexpr std::string_view kPrefix = "nn.Module: ";
    std::string_view rest = trace_.names.text(s_.name_id[slice]);
    std::string text;
    for (size_t at; (at = rest.find(kPrefix)) != std::string_view::npos; rest.remove_prefix(at + kPrefix.size()))
      text += rest.substr(0, at);
    return text += rest;
  }
  bool is_frame(uint32_t i) const { return trace_.categories[s_.category_id[i]].kind == Category::kPythonFunction; }

  void sum_calls() {
    const TbTree tree = tb_tree(trace_, part_);
    for (const TbNode& node : tree.nodes) {
      if (node.parent >= 0 && node.type == TbNode::Type::kOperator && node.counted) {
        const TbNode& up = tree.nodes[node.parent];
        if (up.type == TbNode::Type::kModule && up.counted) ++sums_[key_of(up.slice)].operators;
      }
      if (node.type != TbNode::Type::kModule || !node.counted) continue;
      ModuleSums call;
      call.occurrences = 1;
      call.host_ns = node.host_ns;
      call.self_host_ns = node.self_host_ns;
      call.device_ns = node.device_ns;
      call.self_device_ns = node.self_device_ns;
      sums_[key_of(node.slice)].add(call);
    }
  }

  // Goes upwards from every frame that calls no other frame, in the order of the file.
  void build_hierarchy() {
    std::vector<uint32_t> frames;
    std::unordered_map<uint32_t, uint32_t> parent;
    for (uint32_t i = 0; i < s_.size(); ++i) {
      if (!is_frame(i)) continue;
      frames.push_back(i);
      if (const uint32_t up = s_.parent[i]; up != kNoSliceIndex && is_frame(up)) parent[i] = up;
    }
    for (const PythonFact& fact : part_.python_parents) parent[fact.slice] = fact.parent;
    std::unordered_map<uint32_t, bool> calls;
    for (const auto& [frame, up] : parent) calls[up] = true;
    std::stable_sort(frames.begin(), frames.end(),
                     [&](uint32_t a, uint32_t b) { return s_.file_index[a] < s_.file_index[b]; });
    std::unordered_map<uint32_t, uint32_t> module_parent;  // kNoSliceIndex: the module is a root
    std::vector<uint32_t> order;
    std::unordered_map<uint32_t, bool> walked;            // frames whose way up is known; a cycle ends at them
    std::unordered_map<uint32_t, uint32_t> module_above;  // for each visited frame: the module at or above it
    std::vector<uint32_t> path;
    for (const uint32_t leaf : frames) {
      if (calls.contains(leaf)) continue;
      path.clear();
      uint32_t at = leaf;
      while (at != kNoSliceIndex && !walked.contains(at)) {
        walked[at] = true;
        path.push_back(at);
        if (fact_of(part_.modules, at)) {
          order.push_back(at);
          module_parent[at] = kNoSliceIndex;
        }
        const auto up = parent.find(at);
        at = up == parent.end() ? kNoSliceIndex : up->second;
      }
      uint32_t above = kNoSliceIndex;
      if (const auto known = module_above.find(at); at != kNoSliceIndex && known != module_above.end())
        above = known->second;
      for (size_t k = path.size(); k-- > 0;) {
        if (module_parent.contains(path[k])) {
          module_parent[path[k]] = above;
          above = path[k];
        }
        module_above[path[k]] = above;
      }
    }
    for (const uint32_t module : order)
      if (const uint32_t up = module_parent[module]; up != kNoSliceIndex) {
        children_[up].push_back(module);
      } else {
        roots_.push_back(module);
      }
    number_shapes(order, module_parent);
  }

  // Trees with equal names, ids and children get one number. The deepest calls are numbered first.
  void number_shapes(const std::vector<uint32_t>& order, const std::unordered_map<uint32_t, uint32_t>& module_parent) {
    std::unordered_map<uint32_t, size_t> waiting;
    std::vector<uint32_t> ready;
    for (const uint32_t module : order) {
      const auto it = children_.find(module);
      waiting[module] = it == children_.end() ? 0 : it->second.size();
      if (waiting[module] == 0) ready.push_back(module);
    }
    for (size_t k = 0; k < ready.size(); ++k) {
      const uint32_t module = ready[k];
      std::vector<int64_t> shape = {s_.name_id[module], key_of(module).second};
      for (const uint32_t child : children_[module]) shape.push_back(static_cast<int64_t>(shape_[child]));
      shape_[module] = shapes_.try_emplace(std::move(shape), shapes_.size()).first->second;
      const uint32_t up = module_parent.at(module);
      if (up != kNoSliceIndex && --waiting[up] == 0) ready.push_back(up);
    }
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  int32_t rank_;
  std::map<Key, ModuleSums> sums_;
  std::vector<uint32_t> roots_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> children_;
  std::unordered_map<uint32_t, size_t> shape_;
  std::map<std::vector<int64_t>, size_t> shapes_;
};

}  // namespace

Result<ModuleAnswer> plugin_modules(const TorchRun& run, size_t part) { return Plugin(run, part).answer(); }

}  // namespace stageline
