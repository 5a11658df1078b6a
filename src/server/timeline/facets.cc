#include "server/timeline/facets.h"

#include "base/number.h"
#include "base/text.h"

namespace stageline {
namespace {

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
