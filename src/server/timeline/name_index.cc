#include "server/timeline/name_index.h"

#include "base/parallel.h"
#include "server/timeline/row_index.h"

namespace stageline {
namespace {

constexpr size_t kMaxBits = 4096;  // bits of a block: 1/8 byte a slice

using Place = std::tuple<int64_t, int64_t, int64_t>;

// Returns the first slice of lane `id` after the cursor.
size_t first_behind(const ViewLane& lane, int64_t id, const NameIndex::Cursor& cursor) {
  if (id < cursor.lane) return first_starting_from(lane, cursor.start_ns + 1);
  size_t i = first_starting_from(lane, cursor.start_ns);
  if (id > cursor.lane) return i;
  while (i < lane.count && lane.start(i) == cursor.start_ns && static_cast<int64_t>(i) <= cursor.slice) ++i;
  return i;
}

uint32_t kinds_called(std::string_view value) {
  uint32_t kinds = 0;
  const std::string wanted = to_lower(value);
  for (uint8_t k = 0; k < kViewKindCount; ++k) {
    const ViewKindInfo& info = view_kind_info(k);
    if (wanted == to_lower(info.code) || wanted == to_lower(info.name.en) || wanted == info.name.zh)
      kinds |= uint32_t{1} << k;
  }
  return kinds;
}

// Returns the number that a key stands for; nullptr: it is not a key.
std::optional<int64_t>* number_of(Facets& facets, std::string_view key) {
  if (key == "mb" || key == "micro_batch") return &facets.micro_batch;
  if (key == "chunk") return &facets.chunk;
  if (key == "step") return &facets.step;
  if (key == "stage") return &facets.stage;
  if (key == "rank") return &facets.rank;
  if (key == "dp") return &facets.dp;
  return nullptr;
}

// The words of a text, split at spaces; a quoted word includes its quotes.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    size_t end = text[at] == '"' ? text.find('"', at + 1) : text.find(' ', at);
    if (end != std::string_view::npos && text[at] == '"') ++end;
    if (end == std::string_view::npos) end = text.size();
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace

NameIndex::NameIndex(const std::vector<ViewLane>& lanes, size_t name_count) : counts_(name_count) {
  words_ = std::min(kMaxBits, std::bit_ceil(std::max<size_t>(64, name_count))) / 64;
  size_t blocks = 0;
  for (const ViewLane& lane : lanes) {
    lane_begin_.push_back(blocks);
    // Short lanes have no bits; their slices are looked at directly.
    if (lane.has_slices() && lane.count >= kNameBlock) blocks += (lane.count + kNameBlock - 1) / kNameBlock;
  }
  lane_begin_.push_back(blocks);
  bits_.assign(blocks * words_, 0);
  parallel_for(lanes.size(), [&](size_t l) {
    if (lane_begin_[l] == lane_begin_[l + 1]) return;
    const size_t width = words_ * 64;
    for (size_t i = 0; i < lanes[l].count; ++i) {
      const size_t bit = lanes[l].names[i] & (width - 1);
      bits_[(lane_begin_[l] + i / kNameBlock) * words_ + bit / 64] |= uint64_t{1} << bit % 64;
    }
  });
  const size_t tasks = std::max<size_t>(1, std::min<size_t>(lanes.size(), thread_count()));
  std::vector<std::vector<uint64_t>> counts(tasks);
  parallel_for(tasks, [&](size_t task) {
    counts[task].resize(name_count);
    for (size_t l = task; l < lanes.size(); l += tasks)
      for (size_t i = 0; lanes[l].has_slices() && i < lanes[l].count; ++i) ++counts[task][lanes[l].names[i]];
  });
  for (const std::vector<uint64_t>& own : counts)
    for (size_t name = 0; name < name_count; ++name) counts_[name] += own[name];
}

std::vector<uint64_t> NameIndex::mask_of(const NameSet& names) const {
  std::vector<uint64_t> mask(words_);
  for (StringId id = 0; id < names.size(); ++id)
    if (names.has(id)) mask[id / 64 & (words_ - 1)] |= uint64_t{1} << id % 64;
  return mask;
}

bool NameIndex::may_hold(size_t lane, size_t block, const std::vector<uint64_t>& mask) const {
  if (lane_begin_[lane] == lane_begin_[lane + 1]) return true;
  const uint64_t* own = bits_.data() + (lane_begin_[lane] + block) * words_;
  for (size_t w = 0; w < words_; ++w)
    if (own[w] & mask[w]) return true;
  return false;
}

SlicePlace NameIndex::next(const std::vector<ViewLane>& lanes, const std::vector<uint32_t>& chosen,
                           const NameSet& names, Cursor from, const FacetTest* also) const {
  const std::vector<uint64_t> mask = mask_of(names);
  SlicePlace best;
  int64_t best_start = INT64_MAX;
  for (const uint32_t l : chosen) {
    const ViewLane& lane = lanes[l];
    if (!lane.has_slices() || (also && !also->lane_may(l))) continue;
    for (size_t i = first_behind(lane, l, from); i < lane.count && lane.start(i) < best_start;) {
      const size_t end = std::min(lane.count, (i / kNameBlock + 1) * kNameBlock);
      if (!may_hold(l, i / kNameBlock, mask)) {
        i = end;
        continue;
      }
      while (i < end && !(names.has(lane.names[i]) && (!also || also->has(l, i)))) ++i;
      if (i == end) continue;
      if (lane.start(i) < best_start) best_start = lane.start(i), best = {l, static_cast<uint32_t>(i)};
      break;
    }
  }
  return best;
}

SlicePlace NameIndex::previous(const std::vector<ViewLane>& lanes, const std::vector<uint32_t>& chosen,
                               const NameSet& names, Cursor from, const FacetTest* also) const {
  const std::vector<uint64_t> mask = mask_of(names);
  SlicePlace best;
  int64_t best_start = INT64_MIN;
  for (const uint32_t l : chosen) {
    const ViewLane& lane = lanes[l];
    if (!lane.has_slices() || (also && !also->lane_may(l))) continue;
    // Every slice that is not after the cursor is before it, except the slice at the cursor itself.
    size_t i = first_behind(lane, l, from);
    if (l == from.lane && i > 0 && static_cast<int64_t>(i - 1) == from.slice && lane.start(i - 1) == from.start_ns) --i;
    while (i > 0 && lane.start(i - 1) >= best_start) {
      const size_t begin = (i - 1) / kNameBlock * kNameBlock;
      if (!may_hold(l, (i - 1) / kNameBlock, mask)) {
        i = begin;
        continue;
      }
      while (i > begin && !(names.has(lane.names[i - 1]) && (!also || also->has(l, i - 1)))) --i;
      if (i == begin) continue;
      // Among slices of the same time the later lane counts; lanes come in order.
      if (lane.start(i - 1) >= best_start) best_start = lane.start(i - 1), best = {l, static_cast<uint32_t>(i - 1)};
      break;
    }
  }
  return best;
}

Result<FacetText> split_facets(std::string_view text) {
  FacetText out;
  bool any = false;
  for (std::string_view word : words_of(text)) {
    const size_t colon = word.find(':');
    const std::string key = to_lower(word.substr(0, colon));
    std::optional<int64_t>* number = colon == std::string_view::npos ? nullptr : number_of(out.facets, key);
    if (!number && (colon == std::string_view::npos || key != "kind")) {
      any = any || (word.size() > 1 && word.front() == '"');
      if (word.size() > 1 && word.front() == '"' && word.back() == '"') word = word.substr(1, word.size() - 2);
      if (!out.rest.empty()) out.rest += ' ';
      out.rest += word;
      continue;
    }
    const std::string_view value = word.substr(colon + 1);
    if (number) {
      *number = parse_int(value);
      if (!*number)
        return make_error(ErrorCode::kUsage, key + ": takes a whole number, as in " + key + ":3",
                          "quotes make it text");
    } else {
      const uint32_t kinds = kinds_called(value);
      if (kinds == 0)
        return make_error(ErrorCode::kUsage, "no kind is called \"" + valid_utf8(value) + "\"",
                          "kind:F, kind:B, kind:comm, …: the codes and names in /api/run; quotes make it text");
      out.facets.kinds = kinds;
    }
    any = true;
    if (!out.written.empty()) out.written += ' ';
    out.written += word;
  }
  if (!any) out.rest = text;  // keeps the text's own spaces
  return out;
}

bool FacetTest::lane_may(uint32_t id) const {
  const ViewLane& lane = lanes_[id];
  if (!lane.has_slices()) return false;
  const Part& part = trace_.parts[lane.part];
  if (facets_.rank && *facets_.rank != part.rank) return false;
  if (facets_.stage && *facets_.stage != part.stage) return false;
  if (facets_.dp && *facets_.dp != part.dp) return false;
  if ((facets_.micro_batch || facets_.chunk) && !lane.cells && part.ranges.empty()) return false;
  return lane.only_kind == ViewLane::kSeveralKinds || (facets_.kinds & uint32_t{1} << lane.only_kind) != 0;
}

bool FacetTest::has(uint32_t id, size_t slice) const {
  const ViewLane& lane = lanes_[id];
  if ((facets_.kinds & uint32_t{1} << lane.kind(slice)) == 0) return false;
  if (!facets_.micro_batch && !facets_.chunk && !facets_.step) return true;
  const Part& part = trace_.parts[lane.part];
  int64_t micro_batch = -1, chunk = -1, step = -1;
  if (const uint32_t cell = lane.cell_of(slice); cell != kNoSlice) {
    micro_batch = trace_.cells.micro_batch[cell];
    chunk = trace_.cells.chunk[cell];
    step = trace_.cells.step[cell];
  } else {
    const size_t own = lane.first + slice;
    if (!part.slices.step.empty()) {
      const uint16_t number = part.slices.step[own];
      if (number > 0 && number <= part.steps.size()) step = part.steps[number - 1u].number;
    }
    if (const RangeFact* range = fact_of(part.ranges, static_cast<uint32_t>(own))) {
      micro_batch = range->micro_batch;
      chunk = range->chunk;
    }
  }
  return (!facets_.micro_batch || *facets_.micro_batch == micro_batch) && (!facets_.chunk || *facets_.chunk == chunk) &&
         (!facets_.step || *facets_.step == step);
}

}  // namespace stageline
