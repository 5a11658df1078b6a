#include "profile/merged_calls.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>

namespace stageline {
namespace {

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
  std::vector<uint32_t> order(share.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto cut = order.begin() + std::max<size_t>(max_nodes, 1);
  std::nth_element(order.begin(), cut, order.end(),
                   [&](uint32_t a, uint32_t b) { return share[a] != share[b] ? share[a] > share[b] : a < b; });
  for (auto it = cut; it != order.end(); ++it) out[*it] = true;
  return out;
}

}  // namespace

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
