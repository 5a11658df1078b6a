#include "server/name_search.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/parallel.h"
#include "base/text.h"
#include "server/name_pattern.h"
#include "server/slice_details.h"
#include "server/slice_window.h"

namespace stageline {
namespace {

constexpr size_t kNamesAtOnce = 4096;  // that one thread looks at before it takes the next ones

Result<NamePattern> pattern_of(const Query& query) {
  const std::string_view q = query.text("q");
  if (query.text("regex") == "1") return NamePattern::expression(q);
  return NamePattern::text(q);
}

NameSet matching(const Timeline& timeline, const NamePattern& pattern) {
  const StringPool& pool = timeline.trace().names;
  std::vector<uint8_t> matched(pool.size());
  parallel_for((pool.size() + kNamesAtOnce - 1) / kNamesAtOnce, [&](size_t piece) {
    for (size_t id = piece * kNamesAtOnce; id < std::min(pool.size(), (piece + 1) * kNamesAtOnce); ++id)
      matched[id] = timeline.occurrences().count(static_cast<StringId>(id)) > 0 &&
                    pattern.matches(pool.text(static_cast<StringId>(id)));
  });
  NameSet out(pool.size());
  for (size_t id = 0; id < matched.size(); ++id)
    if (matched[id]) out.add(static_cast<StringId>(id));
  return out;
}

}  // namespace

Result<NameSet> names_meant(const Timeline& timeline, const Query& query) {
  const size_t count = timeline.trace().names.size();
  if (query.find("name_ids")) {
    auto ids = list_parameter(query, "name_ids", static_cast<uint32_t>(count));
    if (!ids) return std::move(ids).error();
    NameSet out(count);
    for (const uint32_t id : *ids) out.add(id);
    return out;
  }
  if (query.text("q").empty())
    return Error{ErrorCode::kUsage, "neither name_ids nor q says which names", {}, "q=gemm, or name_ids=3,4"};
  const Result<NamePattern> pattern = pattern_of(query);
  if (!pattern) return pattern.error();
  return matching(timeline, *pattern);
}

Result<std::string> search_answer(const Timeline& timeline, const Query& query) {
  const auto limit = integer_parameter(query, "limit", 200, 1, 10'000);
  if (!limit) return limit.error();
  const Result<NameSet> names = names_meant(timeline, query);
  if (!names) return names.error();
  std::vector<StringId> found;
  uint64_t occurrences = 0;
  const NameIndex& index = timeline.occurrences();
  for (StringId id = 0; id < names->size(); ++id)
    if (names->has(id)) {
      found.push_back(id);
      occurrences += index.count(id);
    }
  const size_t shown = std::min(found.size(), static_cast<size_t>(*limit));
  const auto before = [&](StringId a, StringId b) {
    return index.count(a) != index.count(b) ? index.count(a) > index.count(b) : a < b;
  };
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown), found.end(), before);
  JsonWriter json;
  json.begin_object().field("names", static_cast<int64_t>(found.size()));
  json.field("occurrences", static_cast<int64_t>(occurrences)).key("matches").begin_array();
  for (size_t k = 0; k < shown; ++k)
    json.begin_object()
        .field("name_id", int64_t{found[k]})
        .field("name", short_name(timeline.trace().names.text(found[k])))
        .field("count", static_cast<int64_t>(index.count(found[k])))
        .end_object();
  json.end_array().end_object();
  return json.take();
}

Result<std::string> find_answer(const Timeline& timeline, const Query& query) {
  auto lanes = list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size()));
  if (!lanes) return std::move(lanes).error();
  const auto from = number_parameter(query, "from", 0.0);
  if (!from) return from.error();
  const auto lane = integer_parameter(query, "lane", -1, -1, UINT32_MAX);
  if (!lane) return lane.error();
  const auto slice = integer_parameter(query, "slice", -1, -1, UINT32_MAX);
  if (!slice) return slice.error();
  const std::string_view dir = query.text("dir", "next");
  if (dir != "next" && dir != "prev") return Error{ErrorCode::kUsage, "dir is next or prev", {}, ""};
  const Result<NameSet> names = names_meant(timeline, query);
  if (!names) return names.error();
  const auto start = static_cast<int64_t>(std::clamp(*from, -1.0, static_cast<double>(kLatestNs)));
  const NameIndex::Cursor cursor{start, *lane, *slice};
  const NameIndex& index = timeline.occurrences();
  const SlicePlace place = dir == "next" ? index.next(timeline.lanes(), *lanes, *names, cursor)
                                         : index.previous(timeline.lanes(), *lanes, *names, cursor);
  JsonWriter json;
  json.begin_object().key("found");
  if (place) {
    write_slice_reference(json, timeline, place);
  } else {
    json.null();
  }
  json.end_object();
  return json.take();
}

}  // namespace stageline
