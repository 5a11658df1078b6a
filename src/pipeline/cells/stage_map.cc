#include "pipeline/cells/stage_map.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace stageline {
namespace {

int32_t rank_of(int32_t virtual_stage, int32_t stages, ChunkLayout layout) {
  const int32_t at = virtual_stage % stages;
  return layout == ChunkLayout::kV && virtual_stage / stages % 2 == 1 ? stages - 1 - at : at;
}

// Returns true when the layout places all virtual stages of each rank on one rank of the pipeline, as different chunks.
// Ranks of the same place must have some stage in common.
bool fits(const std::vector<std::vector<int32_t>>& own, int32_t stages, ChunkLayout layout) {
  if (stages < 1) return false;
  std::map<int32_t, const std::vector<int32_t>*> at;  // place in the pipeline → the first list there
  for (const std::vector<int32_t>& list : own)
    for (size_t i = 1; i < list.size(); ++i)
      if (rank_of(list[i], stages, layout) != rank_of(list[0], stages, layout) ||
          list[i] / stages == list[i - 1] / stages)
        return false;
  for (const std::vector<int32_t>& list : own) {
    if (list.empty()) continue;
    const std::vector<int32_t>& first = *at.try_emplace(rank_of(list[0], stages, layout), &list).first->second;
    std::vector<int32_t> common;
    std::set_intersection(list.begin(), list.end(), first.begin(), first.end(), std::back_inserter(common));
    if (common.empty()) return false;
  }
  return true;
}

}  // namespace

int32_t StageMap::chunk_of(size_t part, int32_t virtual_stage) const {
  if (regular) return virtual_stage / stages;
  const auto at = std::ranges::lower_bound(own[part], virtual_stage);
  return at != own[part].end() && *at == virtual_stage ? static_cast<int32_t>(at - own[part].begin()) : kUnknown;
}

StageMap map_stages(const Trace& trace, const std::vector<CellMark>& marks, int32_t hint) {
  StageMap map;
  map.stage.assign(trace.parts.size(), kUnknown);
  map.own.resize(trace.parts.size());
  int32_t last = -1;
  for (const CellMark& mark : marks) {
    if (mark.stage == kUnknown || !is_compute(mark.kind)) continue;
    std::vector<int32_t>& own = map.own[mark.part];
    if (own.empty() || own.back() != mark.stage) own.push_back(mark.stage);
    last = std::max(last, mark.stage);
  }
  if (last < 0) return map;
  for (std::vector<int32_t>& own : map.own) {
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  size_t max = 1;
  const std::vector<int32_t>* several = nullptr;  // the longest list
  for (const std::vector<int32_t>& own : map.own)
    if (own.size() > max) {
      max = own.size();
      several = &own;
    }
  struct Candidate {
    int32_t stages;
    ChunkLayout layout;
  };
  std::vector<Candidate> candidates;
  if (several == nullptr) {
    candidates.push_back({std::max(last + 1, hint), ChunkLayout::kLoop});
  } else {
    const Candidate loop{(*several)[1] - (*several)[0], ChunkLayout::kLoop};
    const Candidate v{((*several)[0] + (*several)[1] + 1) / 2, ChunkLayout::kV};
    const auto likely = [&](const Candidate& c) {
      return c.stages == hint || (hint == 0 && c.stages == std::ssize(trace.parts));
    };
    candidates = {loop, v};
    if (likely(v) && !likely(loop)) std::swap(candidates[0], candidates[1]);
  }
  const auto fit =
      std::ranges::find_if(candidates, [&](const Candidate& c) { return fits(map.own, c.stages, c.layout); });
  map.chunks = static_cast<int32_t>(max);
  map.regular = fit != candidates.end();
  if (map.regular) {
    map.stages = fit->stages;
    map.layout = fit->layout;
    map.chunks = last / map.stages + 1;
  }
  for (size_t p = 0; p < map.own.size(); ++p)
    if (!map.own[p].empty())
      map.stage[p] = map.regular ? rank_of(map.own[p][0], map.stages, map.layout) : map.own[p][0];
  if (map.regular) return map;
  // Neither a loop nor a V: the ranks are taken in the order of their first virtual stages.
  std::vector<int32_t> firsts;
  for (const int32_t stage : map.stage)
    if (stage != kUnknown) firsts.push_back(stage);
  std::ranges::sort(firsts);
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  map.stages = static_cast<int32_t>(firsts.size());
  for (int32_t& stage : map.stage)
    if (stage != kUnknown) stage = static_cast<int32_t>(std::ranges::lower_bound(firsts, stage) - firsts.begin());
  return map;
}

}  // namespace stageline
