#include "pipeline/rank_lists.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "pipeline/infer_layout.h"

namespace stageline {
namespace {

bool is_backward(CellKind kind) { return kind == CellKind::kBackward || kind == CellKind::kInputGrad; }

// A list with the labels of the source, and the group (step, replica) it belongs to.
struct RawList {
  int32_t step, dp, part, stage;
  std::vector<WorkToken> tokens;
};

struct Group {
  size_t begin, end;  // raw lists
  int32_t micro_batches = 0;
  bool whole = false;  // every rank has as many forwards as backwards, of all micro-batches
};

// Rows [begin, end) of one rank and step, by start.
std::vector<WorkToken> tokens_of(const Cells& cells, size_t begin, size_t end, bool pieces) {
  std::vector<WorkToken> tokens;
  std::vector<size_t> row;  // of each token
  std::set<std::pair<CellKind, int32_t>> seen;
  for (size_t i = begin; i < end; ++i) {
    const CellKind kind = cells.kind[i];
    if (!is_compute(kind)) continue;
    const int32_t chunk = pieces ? 0 : std::clamp(cells.chunk[i], kUnknown, int32_t{INT16_MAX});
    if (pieces && !seen.emplace(kind, cells.micro_batch[i]).second) continue;
    if (kind == CellKind::kForwardBackward) {  // names one of its two micro-batches at most
      tokens.push_back({cells.micro_batch[i], static_cast<int16_t>(chunk), CellKind::kForward, true});
      tokens.push_back({kUnknown, kUnknown, CellKind::kBackward, true});
      row.insert(row.end(), 2, i);
      continue;
    }
    tokens.push_back({cells.micro_batch[i], static_cast<int16_t>(chunk), kind, false});
    row.push_back(i);
  }
  for (size_t t = 0; t + 1 < tokens.size(); ++t) {
    WorkToken &a = tokens[t], &b = tokens[t + 1];
    const bool opposite =
        (a.kind == CellKind::kForward && is_backward(b.kind)) || (is_backward(a.kind) && b.kind == CellKind::kForward);
    if (a.fused || b.fused || !opposite) continue;
    const size_t i = row[t], j = row[t + 1];
    const int64_t together =
        std::min(cells.end_ns[i], cells.end_ns[j]) - std::max(cells.start_ns[i], cells.start_ns[j]);
    if (together <= std::min(cells.dur_ns(i), cells.dur_ns(j)) / 2) continue;
    a.fused = b.fused = true;
    if (b.kind == CellKind::kForward) std::swap(a, b);
  }
  return tokens;
}

// (chunk, label) → number from 0; chunk is 0 where all chunks share one numbering.
using Numbers = std::map<std::pair<int32_t, int32_t>, int32_t>;

std::set<int32_t> labels_of(const std::vector<RawList>& raw, const Group& group, int32_t chunk) {
  std::set<int32_t> labels;
  for (size_t l = group.begin; l < group.end; ++l)
    for (const WorkToken& t : raw[l].tokens)
      if (t.micro_batch != kUnknown && (chunk == kUnknown || t.chunk == chunk)) labels.insert(t.micro_batch);
  return labels;
}

// Labels of one chunk (all: kUnknown) in the order in which the ranks run them forward on `chunk_seen`.
std::vector<int32_t> by_order(const std::vector<RawList>& raw, const Group& group, int32_t chunk, int32_t chunk_seen) {
  std::map<int32_t, std::vector<int64_t>> places;
  for (const int32_t label : labels_of(raw, group, chunk)) places[label] = {};
  for (size_t l = group.begin; l < group.end; ++l) {
    int64_t place = 0;
    for (const WorkToken& t : raw[l].tokens)
      if (t.kind == CellKind::kForward && t.chunk == chunk_seen) {
        const auto it = places.find(t.micro_batch);
        if (it != places.end()) it->second.push_back(place);
        ++place;
      }
  }
  std::vector<std::pair<int64_t, int32_t>> order;
  for (auto& [label, own] : places) {
    std::sort(own.begin(), own.end());
    order.emplace_back(own.empty() ? INT64_MAX : own[own.size() / 2], label);
  }
  std::sort(order.begin(), order.end());
  std::vector<int32_t> labels;
  for (const auto& [place, label] : order) labels.push_back(label);
  return labels;
}

Numbers numbers_of(const std::vector<RawList>& raw, Group& group, LabelRule rule, const WorkLists& all) {
  Numbers numbers;
  const auto number = [&](int32_t chunk, const auto& labels, int32_t from) {
    for (const int32_t label : labels) numbers[{chunk, label}] = from++;
    return from;
  };
  if (rule == LabelRule::kPerChunk) {
    group.micro_batches = 0;
    for (int32_t c = 0; c < all.chunks; ++c)
      group.micro_batches = std::max(group.micro_batches, number(c, labels_of(raw, group, c), 0));
  } else if (rule == LabelRule::kByOrder && all.chunks_share_no_label) {
    const int32_t half = number(0, by_order(raw, group, 0, 0), 0);
    group.micro_batches = number(0, by_order(raw, group, 1, 1), half);
  } else if (rule == LabelRule::kByOrder) {
    group.micro_batches = number(0, by_order(raw, group, kUnknown, 0), 0);
  } else {
    const std::set<int32_t> labels = labels_of(raw, group, kUnknown);
    const auto count = static_cast<int32_t>(labels.size());
    // A step that was cut keeps its numbers, so that what is missing is missing where it belongs.
    if (!labels.empty() && !group.whole && *labels.rbegin() < all.micro_batches) {
      for (const int32_t label : labels) numbers[{0, label}] = label;
      group.micro_batches = all.micro_batches;
    } else {
      number(0, labels, 0);
      group.micro_batches = count;
    }
  }
  return numbers;
}

uint64_t hash_of(int32_t stage, int32_t micro_batches, const std::vector<WorkToken>& tokens) {
  uint64_t h = 0x9e3779b97f4a7c15ULL ^
               (static_cast<uint64_t>(static_cast<uint32_t>(stage)) << 32 | static_cast<uint32_t>(micro_batches));
  for (const WorkToken& t : tokens) {
    h ^= static_cast<uint64_t>(static_cast<uint32_t>(t.micro_batch)) << 32 |
         static_cast<uint64_t>(static_cast<uint16_t>(t.chunk)) << 16 | static_cast<uint64_t>(t.kind) << 1 |
         static_cast<uint64_t>(t.fused);
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 29;
  }
  return h;
}

// Stage and replica of each part, inferred where the source does not say.
std::vector<std::pair<int32_t, int32_t>> places_of(const Trace& trace) {
  const auto known = [](const Part& part) { return part.stage != kUnknown; };
  std::vector<std::pair<int32_t, int32_t>> places;
  if (std::all_of(trace.parts.begin(), trace.parts.end(), known)) {
    for (const Part& part : trace.parts) places.emplace_back(part.stage, part.dp);
    return places;
  }
  Trace copy;  // only what infer_layout() looks at
  for (const Part& part : trace.parts) {
    copy.parts.emplace_back();
    copy.parts.back().rank = part.rank;
  }
  copy.cells = trace.cells;
  infer_layout(copy, {});
  for (const Part& part : copy.parts) places.emplace_back(part.stage, part.dp);
  return places;
}

}  // namespace

WorkLists work_lists(const Trace& trace, LabelRule rule) {
  WorkLists all;
  const Cells& cells = trace.cells;
  if (cells.size() == 0) return all;
  const auto places = places_of(trace);
  all.stages = trace.pipeline_stages;
  for (const auto& [stage, dp] : places) all.stages = std::max(all.stages, stage + 1);
  std::vector<RawList> raw;
  for (size_t i = 0; i < cells.size();) {
    size_t end = i;
    while (end < cells.size() && cells.step[end] == cells.step[i] && cells.part[end] == cells.part[i]) ++end;
    const auto& [stage, dp] = places[static_cast<size_t>(cells.part[i])];
    if (cells.step[i] != kUnknown && stage != kUnknown) {
      RawList list{cells.step[i], dp, cells.part[i], stage, tokens_of(cells, i, end, trace.chunks_are_pieces)};
      if (!list.tokens.empty()) raw.push_back(std::move(list));
    }
    i = end;
  }
  std::stable_sort(raw.begin(), raw.end(), [](const RawList& a, const RawList& b) {
    return std::pair(a.step, a.dp) < std::pair(b.step, b.dp);
  });
  std::vector<Group> groups;
  for (size_t l = 0; l < raw.size(); ++l) {
    if (l == 0 || raw[l].step != raw[l - 1].step || raw[l].dp != raw[l - 1].dp) groups.push_back({l, l});
    groups.back().end = l + 1;
    for (const WorkToken& t : raw[l].tokens) all.chunks = std::max(all.chunks, t.chunk + 1);
  }
  std::map<int32_t, int64_t> sizes;  // micro-batches → steps that have so many
  std::vector<int32_t> own(groups.size());
  all.chunks_share_no_label = all.chunks == 2;
  for (size_t g = 0; g < groups.size(); ++g) {
    std::set<int32_t> labels, first;
    int64_t forwards = 0, backwards = 0;
    if (all.chunks == 2) first = labels_of(raw, groups[g], 0);
    for (size_t l = groups[g].begin; l < groups[g].end; ++l)
      for (const WorkToken& t : raw[l].tokens) {
        forwards += t.kind == CellKind::kForward ? 1 : 0;
        backwards += is_backward(t.kind) ? 1 : 0;
        if (t.micro_batch == kUnknown) continue;
        labels.insert(t.micro_batch);
        if (t.chunk == 1 && first.count(t.micro_batch) > 0) all.chunks_share_no_label = false;
      }
    own[g] = static_cast<int32_t>(labels.size());
    const auto ranks = static_cast<int64_t>(groups[g].end - groups[g].begin);
    groups[g].whole = forwards == backwards && forwards % (ranks * std::max(1, own[g])) == 0;
    ++sizes[own[g]];
  }
  for (const auto& [size, count] : sizes)
    if (all.micro_batches == 0 || count >= sizes[all.micro_batches]) all.micro_batches = size;

  std::unordered_map<uint64_t, std::vector<size_t>> by_hash;
  for (Group& group : groups) {
    const Numbers numbers = numbers_of(raw, group, rule, all);
    for (size_t l = group.begin; l < group.end; ++l) {
      RawList& list = raw[l];
      for (WorkToken& t : list.tokens) {
        const auto number =
            numbers.find({rule == LabelRule::kPerChunk ? std::max<int32_t>(0, t.chunk) : 0, t.micro_batch});
        t.micro_batch = number == numbers.end() ? kUnknown : number->second;  // a label of no known chunk has no number
      }
      ++all.list_count;
      std::vector<size_t>& same = by_hash[hash_of(list.stage, group.micro_batches, list.tokens)];
      const auto at = std::find_if(same.begin(), same.end(), [&](size_t u) {
        const WorkList& known = all.lists[u];
        return known.stage == list.stage && known.micro_batches == group.micro_batches && known.tokens == list.tokens;
      });
      if (at != same.end()) {
        ++all.lists[*at].count;
        continue;
      }
      same.push_back(all.lists.size());
      all.lists.push_back({list.stage, group.micro_batches, std::move(list.tokens), 1, list.step, list.dp, list.part});
    }
  }
  if (rule != LabelRule::kDense) {
    std::map<int32_t, int64_t> counts;
    for (const Group& group : groups) ++counts[group.micro_batches];
    all.micro_batches = 0;
    for (const auto& [size, count] : counts)
      if (all.micro_batches == 0 || count >= counts[all.micro_batches]) all.micro_batches = size;
  }
  return all;
}

}  // namespace stageline
