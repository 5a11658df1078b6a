#include "pipeline/order/rank_lists.h"

#include <atomic>

#include "base/parallel.h"
#include "model/intervals.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {
namespace {

// Appends the tokens of cells [begin, end), which are one rank's in one step, in order of start.
void add_tokens(const Cells& cells, const std::vector<uint32_t>& loss_of, size_t begin, size_t end, bool pieces,
                RankLists& all) {
  std::vector<WorkToken>& tokens = all.tokens;
  std::vector<uint32_t>& row = all.cell;
  const size_t first = tokens.size();
  std::set<std::pair<CellKind, int32_t>> seen;
  for (uint32_t i = begin; i < end; ++i) {
    const CellKind kind = cells.kind[i];
    // A backward and the backward of its loss are one token, also where the loss has a range of its own.
    if (!is_compute(kind) || (!pieces && !loss_of.empty() && loss_of[i] != kNoPair)) continue;
    const int32_t chunk = pieces ? 0 : std::clamp(cells.chunk[i], kUnknown, int32_t{INT16_MAX});
    if (pieces && !seen.emplace(kind, cells.micro_batch[i]).second) continue;
    if (kind == CellKind::kForwardBackward) {  // the cell names at most one of its two micro-batches
      tokens.push_back({cells.micro_batch[i], static_cast<int16_t>(chunk), CellKind::kForward, true});
      tokens.push_back({kUnknown, kUnknown, CellKind::kBackward, true});
      row.insert(row.end(), 2, i);
      continue;
    }
    tokens.push_back({cells.micro_batch[i], static_cast<int16_t>(chunk), kind, false});
    row.push_back(i);
  }
  for (size_t t = first; t + 1 < tokens.size(); ++t) {
    WorkToken &a = tokens[t], &b = tokens[t + 1];
    const bool opposite =
        (a.kind == CellKind::kForward && is_backward(b.kind)) || (is_backward(a.kind) && b.kind == CellKind::kForward);
    if (a.fused || b.fused || !opposite) continue;
    const size_t i = row[t], j = row[t + 1];
    const int64_t together =
        sum_or_limit(std::min(cells.end_ns[i], cells.end_ns[j]), -std::max(cells.start_ns[i], cells.start_ns[j]));
    if (together <= std::min(cells.dur_ns(i), cells.dur_ns(j)) / 2) continue;
    a.fused = b.fused = true;
    if (b.kind == CellKind::kForward) {
      std::swap(a, b);
      std::swap(row[t], row[t + 1]);
    }
  }
}

// The distinct labels, ascending; labels that lie close together are looked up in a table.
class LabelSet {
 public:
  // Takes the labels of `chunk`; with kUnknown, those of all chunks.
  LabelSet(std::span<const WorkToken> tokens, int32_t chunk) {
    const auto wanted = [&](const WorkToken& t) {
      return t.micro_batch != kUnknown && (chunk == kUnknown || t.chunk == chunk);
    };
    int64_t count = 0, low = INT32_MAX, high = INT32_MIN;
    for (const WorkToken& t : tokens) {
      if (!wanted(t)) continue;
      ++count;
      low = std::min<int64_t>(low, t.micro_batch);
      high = std::max<int64_t>(high, t.micro_batch);
    }
    if (count == 0) return;
    low_ = low;
    if (high - low < count * 4 + 64) {
      place_.assign(high - low + 1, kUnknown);
      for (const WorkToken& t : tokens)
        if (wanted(t)) place_[t.micro_batch - low] = 0;
      for (size_t i = 0; i < place_.size(); ++i) {
        if (place_[i] == kUnknown) continue;
        place_[i] = static_cast<int32_t>(labels_.size());
        labels_.push_back(static_cast<int32_t>(low + static_cast<int64_t>(i)));
      }
      return;
    }
    for (const WorkToken& t : tokens)
      if (wanted(t)) labels_.push_back(t.micro_batch);
    sort_unique(labels_);
  }

  const std::vector<int32_t>& labels() const { return labels_; }
  int32_t size() const { return static_cast<int32_t>(labels_.size()); }
  // Returns a label's place among the labels; kUnknown when it is not among them.
  int32_t find(int32_t label) const {
    if (!place_.empty()) {
      const int64_t at = label - low_;
      return at >= 0 && at < std::ssize(place_) ? place_[at] : kUnknown;
    }
    const auto it = std::ranges::lower_bound(labels_, label);
    return it != labels_.end() && *it == label ? static_cast<int32_t>(it - labels_.begin()) : kUnknown;
  }

 private:
  int64_t low_ = 0;
  std::vector<int32_t> labels_, place_;
};

// The lists of one step of one replica.
struct Group {
  size_t first = 0, last = 0;  // range of lists
  int32_t labels = 0;
  bool whole = false;  // every rank has as many forwards as backwards, and has all micro-batches
};

std::span<WorkToken> tokens_of(RankLists& all, const Group& group) {
  const size_t begin = all.lists[group.first].begin;
  return std::span(all.tokens).subspan(begin, all.lists[group.last - 1].end - begin);
}

// Returns the place of each label in the order in which ranks run their forwards on `chunk_seen`: by the median of its
// places in the ranks' lists, then by value.
std::vector<int32_t> places_by_order(const RankLists& all, const Group& group, const LabelSet& labels,
                                     int32_t chunk_seen) {
  std::vector<std::pair<int32_t, int64_t>> seen;  // (label, place)
  for (size_t l = group.first; l < group.last; ++l) {
    int64_t place = 0;
    for (size_t i = all.lists[l].begin; i < all.lists[l].end; ++i) {
      const WorkToken& t = all.tokens[i];
      if (t.kind != CellKind::kForward || t.chunk != chunk_seen) continue;
      if (const int32_t label = labels.find(t.micro_batch); t.micro_batch != kUnknown && label != kUnknown)
        seen.emplace_back(label, place);
      ++place;
    }
  }
  std::ranges::sort(seen);
  std::vector<std::pair<int64_t, int32_t>> order;
  for (int32_t label = 0; label < labels.size(); ++label) order.emplace_back(INT64_MAX, label);
  for (size_t i = 0; i < seen.size();) {
    size_t end = i;
    while (end < seen.size() && seen[end].first == seen[i].first) ++end;
    order[seen[i].first].first = seen[i + (end - i) / 2].second;
    i = end;
  }
  std::ranges::sort(order);
  std::vector<int32_t> number(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) number[order[i].second] = i;
  return number;
}

// Replaces the labels of one group by numbers from 0; returns how many micro-batches the step has.
int32_t number_group(RankLists& all, const Group& group) {
  const std::span<WorkToken> tokens = tokens_of(all, group);
  if (all.rule == LabelRule::kDense) {
    const LabelSet labels(tokens, kUnknown);
    // A step that was cut keeps its numbers, so that gaps are where work is missing.
    const bool fit = labels.size() > 0 && labels.labels().front() >= 0 && labels.labels().back() < all.micro_batches;
    // So does a step that lacks a micro-batch on every rank: labels with a hole are those of a larger step.
    const bool hole = fit && labels.labels().back() >= labels.size();
    if (fit && (!group.whole || hole)) return all.micro_batches;
    for (WorkToken& t : tokens)
      if (t.micro_batch != kUnknown) t.micro_batch = labels.find(t.micro_batch);
    return labels.size();
  }
  const bool per_chunk = all.rule == LabelRule::kPerChunk || all.chunks_share_no_label;
  if (!per_chunk) {
    const LabelSet labels(tokens, kUnknown);
    const std::vector<int32_t> number = places_by_order(all, group, labels, 0);
    for (WorkToken& t : tokens)
      if (t.micro_batch != kUnknown) t.micro_batch = number[labels.find(t.micro_batch)];
    return labels.size();
  }
  // Two chunks that share no label. Each is numbered separately; with kByOrder they are two directions, and the
  // second's numbers follow the first's.
  const bool ordered = all.rule == LabelRule::kByOrder;
  const LabelSet labels[2] = {LabelSet(tokens, 0), LabelSet(tokens, 1)};
  std::vector<int32_t> number[2];
  for (const int32_t c : {0, 1})
    if (ordered) number[c] = places_by_order(all, group, labels[c], c);
  for (WorkToken& t : tokens) {
    if (t.micro_batch == kUnknown) continue;
    int32_t found = kUnknown;
    for (const int32_t c : {0, 1}) {
      if (t.chunk != c && !(t.chunk == kUnknown && (found == kUnknown))) continue;
      const int32_t place = labels[c].find(t.micro_batch);
      if (place == kUnknown) continue;
      found = ordered ? number[c][place] + (c == 1 ? labels[0].size() : 0) : place;
    }
    t.micro_batch = found;
  }
  return ordered ? labels[0].size() + labels[1].size() : std::max(labels[0].size(), labels[1].size());
}

uint64_t hash_of(int32_t stage, int32_t micro_batches, std::span<const WorkToken> tokens) {
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

// Returns stage and replica of each part, inferred where the source does not say them.
std::vector<std::pair<int32_t, int32_t>> places_of(const Trace& trace) {
  std::vector<std::pair<int32_t, int32_t>> places;
  for (const Part& part : trace.parts) places.emplace_back(part.stage, part.dp);
  // A rank without cells has no place to infer.
  const std::vector<int32_t>& parts = trace.cells.part;
  if (std::ranges::all_of(parts, [&](int32_t p) { return places[p].first != kUnknown; })) return places;
  places.clear();
  Trace copy;  // filled as far as infer_layout() needs it
  for (const Part& part : trace.parts) {
    copy.parts.emplace_back();
    copy.parts.back().rank = part.rank;
  }
  copy.cells = Cells(trace.cells);
  infer_layout(copy, {});
  for (const Part& part : copy.parts) places.emplace_back(part.stage, part.dp);
  return places;
}

// Adds the lists by step and replica, with labels as recorded: in blocks on all threads, then one after another.
void add_lists(const Trace& trace, const std::vector<std::pair<int32_t, int32_t>>& places, RankLists& all) {
  const Cells& cells = trace.cells;
  std::vector<RankRange> ranges = rank_ranges(cells);
  std::erase_if(ranges, [&](const RankRange& r) { return r.step == kUnknown || places[r.part].first == kUnknown; });
  sort_stably(ranges, {}, [&](const RankRange& a) { return std::pair(a.step, places[a.part].second); });
  const std::vector<uint32_t> loss_of = loss_backwards(cells);
  constexpr size_t kBlock = 256;  // how many ranges one task takes
  std::vector<RankLists> blocks((ranges.size() + kBlock - 1) / kBlock);
  parallel_for(blocks.size(), [&](size_t b) {
    RankLists& own = blocks[b];
    for (size_t k = b * kBlock; k < std::min(ranges.size(), (b + 1) * kBlock); ++k) {
      const RankRange& r = ranges[k];
      const auto& [stage, dp] = places[r.part];
      RankList list{r.step, dp, r.part, stage, 0, own.tokens.size(), 0};
      add_tokens(cells, loss_of, r.begin, r.end, trace.chunks_are_pieces, own);
      list.end = own.tokens.size();
      if (list.end > list.begin) own.lists.push_back(list);
    }
    for (const WorkToken& t : own.tokens) own.chunks = std::max(own.chunks, t.chunk + 1);
  });
  const size_t work = sum_over<size_t>(blocks, [](const RankLists& own) { return own.tokens.size(); });
  all.tokens.reserve(work);
  all.cell.reserve(work);
  for (RankLists& own : blocks) {
    for (RankList list : own.lists) {
      list.begin += all.tokens.size(), list.end += all.tokens.size();
      all.lists.push_back(list);
    }
    all.tokens.insert(all.tokens.end(), own.tokens.begin(), own.tokens.end());
    all.cell.insert(all.cell.end(), own.cell.begin(), own.cell.end());
    all.chunks = std::max(all.chunks, own.chunks);
    own = {};
  }
}

// Counts the labels of each group, finds the groups that are whole, and whether the two chunks share no label anywhere.
void look_at_groups(RankLists& all, std::vector<Group>& groups) {
  std::atomic<bool> share_no_label = all.chunks == 2;
  parallel_for(groups.size(), [&](size_t g) {
    Group& group = groups[g];
    const std::span<const WorkToken> tokens = tokens_of(all, group);
    const LabelSet labels(tokens, kUnknown);
    group.labels = labels.size();
    int64_t forwards = 0, backwards = 0;
    for (const WorkToken& t : tokens) {
      forwards += t.kind == CellKind::kForward ? 1 : 0;
      backwards += is_backward(t.kind) ? 1 : 0;
    }
    const int64_t ranks = group.last - group.first;
    group.whole = forwards == backwards && forwards % (ranks * std::max(1, group.labels)) == 0;
    if (!share_no_label) return;
    const LabelSet first(tokens, 0);
    for (const WorkToken& t : tokens)
      if (t.chunk == 1 && t.micro_batch != kUnknown && first.find(t.micro_batch) != kUnknown) share_no_label = false;
  });
  all.chunks_share_no_label = share_no_label;
}

// Returns the usual number of micro-batches: that of most groups, of equally common ones the largest.
int32_t usual_labels(const std::vector<Group>& groups) {
  std::map<int32_t, int64_t> counts;
  for (const Group& group : groups) ++counts[group.labels];
  int32_t usual = 0;
  int64_t max = 0;
  for (const auto& [labels, count] : counts)
    if (count >= max) usual = labels, max = count;
  return usual;
}

}  // namespace

RankLists rank_lists(const Trace& trace, LabelRule rule) {
  RankLists all;
  all.rule = rule;
  if (trace.cells.size() == 0) return all;
  const auto places = places_of(trace);
  all.stages = trace.pipeline_stages;
  for (const auto& [stage, dp] : places) all.stages = std::max(all.stages, stage + 1);
  add_lists(trace, places, all);
  std::vector<Group> groups;
  for (size_t l = 0; l < all.lists.size(); l = groups.back().last) groups.push_back({l, all.group_end(l)});
  look_at_groups(all, groups);
  all.micro_batches = usual_labels(groups);
  parallel_for(groups.size(), [&](size_t g) {
    groups[g].labels = number_group(all, groups[g]);
    for (size_t l = groups[g].first; l < groups[g].last; ++l) all.lists[l].micro_batches = groups[g].labels;
  });
  if (rule != LabelRule::kDense) all.micro_batches = usual_labels(groups);
  return all;
}

WorkLists work_lists(const RankLists& lists) {
  WorkLists all{.rule = lists.rule,
                .stages = lists.stages,
                .chunks = lists.chunks,
                .micro_batches = lists.micro_batches,
                .chunks_share_no_label = lists.chunks_share_no_label,
                .list_count = std::ssize(lists.lists)};
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash;
  for (const RankList& list : lists.lists) {
    const std::span tokens = std::span(lists.tokens).subspan(list.begin, list.end - list.begin);
    std::vector<size_t>& same = by_hash[hash_of(list.stage, list.micro_batches, tokens)];
    const auto at = std::ranges::find_if(same, [&](size_t u) {
      const WorkList& known = all.lists[u];
      return known.stage == list.stage && known.micro_batches == list.micro_batches &&
             std::equal(known.tokens.begin(), known.tokens.end(), tokens.begin(), tokens.end());
    });
    if (at != same.end()) {
      ++all.lists[*at].count;
      continue;
    }
    same.push_back(all.lists.size());
    all.lists.push_back(
        {list.stage, list.micro_batches, {tokens.begin(), tokens.end()}, 1, list.step, list.dp, list.part});
  }
  return all;
}

WorkLists work_lists(const Trace& trace, LabelRule rule) { return work_lists(rank_lists(trace, rule)); }

std::vector<int32_t> list_positions(const RankLists& lists, size_t parts) {
  std::vector<int32_t> position(parts, kUnknown);
  std::vector<std::tuple<int32_t, int32_t, int32_t>> order;  // (part, replica, stage)
  for (const RankList& list : lists.lists)
    if (position[list.part] == kUnknown) {
      position[list.part] = 0;
      order.emplace_back(list.part, list.dp, list.stage);
    }
  std::ranges::sort(order);
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  for (const auto& [part, dp, stage] : order) position[part] = seen[{dp, stage}]++;
  return position;
}

}  // namespace stageline
