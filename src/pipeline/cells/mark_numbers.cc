#include "pipeline/cells/marks.h"
#include "schedules/build.h"

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

// B and I are counted together, since both are the micro-batch's way back.
CellKind family(CellKind kind) { return kind == CellKind::kInputGrad ? CellKind::kBackward : kind; }

// The work whose result a message carries, or whose input it brings.
CellKind work_of(CellKind message) {
  const bool forward = is_of_forward(message);
  return forward ? CellKind::kForward : CellKind::kBackward;
}

// Returns the range that contains the time; nullptr when none does.
template <class Range> const Range* range_at(const std::vector<Range>& ranges, int64_t time_ns) {
  const auto after = std::ranges::upper_bound(ranges, time_ns, {}, &Range::start_ns);
  return after == ranges.begin() || time_ns >= (after - 1)->end_ns ? nullptr : &*(after - 1);
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
  for (std::vector<int32_t>& own : map.own) sort_unique(own);
  size_t max = 1;
  const std::vector<int32_t>* several = nullptr;  // the longest list
  for (const std::vector<int32_t>& own : map.own)
    if (own.size() > max) max = own.size(), several = &own;
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
    const auto likely = [&](const Candidate& candidate) {
      return candidate.stages == hint || (hint == 0 && candidate.stages == std::ssize(trace.parts));
    };
    candidates = {loop, v};
    if (likely(v) && !likely(loop)) std::swap(candidates[0], candidates[1]);
  }
  const auto fit = std::ranges::find_if(
      candidates, [&](const Candidate& candidate) { return fits(map.own, candidate.stages, candidate.layout); });
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
  sort_unique(firsts);
  map.stages = static_cast<int32_t>(firsts.size());
  for (int32_t& stage : map.stage)
    if (stage != kUnknown) stage = static_cast<int32_t>(std::ranges::lower_bound(firsts, stage) - firsts.begin());
  return map;
}

StepSource number_steps(const Part& part, const std::vector<StepMark>& steps, const std::vector<uint32_t>& order,
                        std::vector<CellMark>& marks) {
  const auto by_range = [&](const auto& ranges, auto number) {
    size_t inside = 0;
    for (const uint32_t m : order) {
      const auto* range = range_at(ranges, marks[m].start_ns);
      if (range) marks[m].step = number(*range);
      inside += range != nullptr;
    }
    return inside > 0;
  };
  if (!part.steps.empty() &&
      by_range(part.steps, [](const ProfilerStep& step) { return static_cast<int32_t>(step.number); }))
    return StepSource::kProfiler;
  if (!steps.empty() && by_range(steps, [&](const StepMark& step) {
        return step.number != kUnknown ? step.number : static_cast<int32_t>(&step - steps.data());
      }))
    return StepSource::kNamed;
  int32_t step = 0;
  std::set<std::tuple<CellKind, int32_t, int32_t, int32_t>> seen;
  bool numbered = false;
  for (const uint32_t m : order) {
    CellMark& mark = marks[m];
    if (mark.micro_batch != kUnknown && (is_compute(mark.kind) || is_message(mark.kind))) {
      numbered = true;
      if (!seen.emplace(mark.kind, mark.stage, mark.chunk, mark.micro_batch).second) {
        ++step;
        seen = {{mark.kind, mark.stage, mark.chunk, mark.micro_batch}};
      }
    }
    mark.step = step;
  }
  if (numbered) return StepSource::kRepetition;
  step = 0;
  for (const uint32_t m : order) marks[m].step = step, step += marks[m].kind == CellKind::kOptimizer;
  return step > 0 ? StepSource::kOptimizer : StepSource::kOne;
}

int64_t number_micro_batches(const std::vector<uint32_t>& order, std::vector<CellMark>& marks) {
  struct Group {
    std::vector<uint32_t> marks;
    bool named = false;
  };
  std::map<std::tuple<int32_t, CellKind, int32_t, int32_t>, Group> groups;
  for (const uint32_t m : order) {
    const CellMark& mark = marks[m];
    if (mark.piece || (!is_compute(mark.kind) && !is_message(mark.kind))) continue;
    Group& group = groups[{mark.step, family(mark.kind), mark.stage, mark.chunk}];
    group.named |= mark.micro_batch != kUnknown;
    group.marks.push_back(m);
  }
  int64_t counted = 0;
  for (const auto& [key, group] : groups) {
    if (group.named) continue;
    const auto& [step, kind, stage, chunk] = key;
    // Messages go in the order of their work, whatever its numbers are.
    const auto work = is_message(kind) ? groups.find({step, work_of(kind), stage, chunk}) : groups.end();
    const bool known = work != groups.end() && work->second.marks.size() == group.marks.size();
    for (uint32_t k = 0; k < group.marks.size(); ++k)
      marks[group.marks[k]].micro_batch =
          known && work->second.named ? marks[work->second.marks[k]].micro_batch : static_cast<int32_t>(k);
    counted += static_cast<int64_t>(group.marks.size());
  }
  return counted;
}

int32_t number_interleaved(const std::vector<uint32_t>& order, int32_t stage, int32_t stages,
                           std::vector<CellMark>& marks) {
  struct Step {
    std::vector<uint32_t> forward, backward;
    std::vector<bool> is_forward;
  };
  std::map<int32_t, Step> steps;
  for (const uint32_t m : order) {
    if (!is_compute(marks[m].kind) || marks[m].step == kUnknown) continue;
    Step& step = steps[marks[m].step];
    const bool forward = marks[m].kind == CellKind::kForward;
    (forward ? step.forward : step.backward).push_back(m);
    step.is_forward.push_back(forward);
  }
  int32_t chunks = 0;
  if (stages < 2 || stage < 0) return 0;
  for (const auto& [number, step] : steps) {
    const auto total = static_cast<int32_t>(step.forward.size());
    const auto warm = static_cast<int32_t>(std::ranges::find(step.is_forward, false) - step.is_forward.begin()) - 1;
    const int32_t more = warm - 2 * (stages - 1 - stage);  // (v − 1)p
    const int32_t v = more / stages + 1;
    if (step.backward.size() != step.forward.size() || warm + 1 >= total || more < stages || more % stages != 0 ||
        total % (v * stages) != 0 || (chunks != 0 && v != chunks))
      return 0;
    for (int32_t k = 0; k < 2 * total; ++k)
      if (step.is_forward[k] != (k < warm || (k < 2 * total - warm && (k - warm) % 2 == 0))) return 0;
    chunks = v;
  }
  for (const auto& [number, step] : steps) {
    ScheduleSizes sizes;
    sizes.stages = stages;
    sizes.chunks = chunks;
    sizes.micro_batches = static_cast<int32_t>(step.forward.size()) / chunks;
    const auto table = interleaving_table(sizes, stages);
    for (size_t k = 0; k < table.size(); ++k) {
      CellMark &forward = marks[step.forward[k]], &backward = marks[step.backward[k]];
      forward.micro_batch = backward.micro_batch = table[k].first;
      forward.chunk = table[k].second;
      backward.chunk = chunks - 1 - table[k].second;
    }
  }
  return chunks;
}

void number_interleaved_messages(const std::vector<uint32_t>& order, const std::vector<bool>& sent, int32_t stage,
                                 int32_t stages, int32_t chunks, std::vector<CellMark>& marks) {
  struct Step {
    std::array<std::vector<uint32_t>, 2> work, sends, receives;  // backward, forward
  };
  std::map<int32_t, Step> steps;
  for (const uint32_t m : order) {
    const CellKind kind = marks[m].kind;
    if (!sent[m] || marks[m].step == kUnknown) continue;
    const bool forward = kind == CellKind::kForward || is_of_forward(kind);
    const bool send = is_send(kind);
    Step& step = steps[marks[m].step];
    if (is_compute(kind)) step.work[forward].push_back(m);
    if (is_message(kind)) (send ? step.sends : step.receives)[forward].push_back(m);
  }
  for (auto& [number, step] : steps)
    for (const bool forward : {false, true}) {
      // The order of work is the same on all ranks, so a rank's own says what its neighbours send it. From the last
      // rank to the first one (backwards the other way) a micro-batch goes on to its next chunk.
      const bool first = stage == (forward ? 0 : stages - 1), last = stage == (forward ? stages - 1 : 0);
      const int32_t next = forward ? 1 : -1, end = forward ? chunks - 1 : 0;
      std::vector<uint32_t> comes, goes;  // work whose like a neighbour sends, and work that is sent
      for (const uint32_t m : step.work[forward]) {
        if (!first || marks[m].chunk != end) comes.push_back(m);
        if (!last || marks[m].chunk != end) goes.push_back(m);
      }
      const auto number_by = [&](const std::vector<uint32_t>& messages, const std::vector<uint32_t>& work,
                                 int32_t chunk) {
        for (size_t k = 0; messages.size() == work.size() && k < work.size(); ++k) {
          marks[messages[k]].micro_batch = marks[work[k]].micro_batch;
          marks[messages[k]].chunk = marks[work[k]].chunk + chunk;
        }
      };
      number_by(step.receives[forward], comes, first ? next : 0);
      number_by(step.sends[forward], goes, 0);
    }
}

}  // namespace stageline
