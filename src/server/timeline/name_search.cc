#include "base/name_pattern.h"
#include "base/parallel.h"
#include "server/timeline/answers.h"
#include "server/timeline/slice_window.h"

namespace stageline {
namespace {

constexpr size_t kNamesAtOnce = 4096;  // names that a thread takes at a time

NameSet matching(const Timeline& timeline, const NamePattern& pattern) {
  const ViewNames& pool = timeline.names();
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

// Returns how often each of the names occurs among slices that have the facets. O(slices of the lanes that may match),
// parallel.
std::vector<uint64_t> counts_of(const Timeline& timeline, const Meant& meant) {
  const FacetTest test(timeline.trace(), timeline.lanes(), meant.facets);
  const size_t lanes = timeline.lanes().size();
  const size_t tasks = std::clamp<size_t>(lanes, 1, static_cast<size_t>(thread_count()));
  std::vector<std::vector<uint64_t>> own(tasks, std::vector<uint64_t>(meant.names.size()));
  parallel_for(tasks, [&](size_t task) {
    for (auto l = static_cast<uint32_t>(task); l < lanes; l += static_cast<uint32_t>(tasks)) {
      if (!test.lane_may(l)) continue;
      const ViewLane& lane = timeline.lanes()[l];
      for (size_t i = 0; i < lane.count; ++i)
        if (meant.names.has(lane.names[i]) && test.has(l, i)) ++own[task][lane.names[i]];
    }
  });
  for (size_t task = 1; task < tasks; ++task)
    for (size_t name = 0; name < own[0].size(); ++name) own[0][name] += own[task][name];
  return std::move(own[0]);
}

}  // namespace

Result<Meant> names_meant(const Timeline& timeline, const Query& query) {
  const size_t count = timeline.names().size();
  TRY(where, split_facets(query.text("where")));
  if (!where->rest.empty())
    return make_error(ErrorCode::kUsage, "where= has a word that is no facet", "where=mb:3 kind:B step:2");
  Meant out{NameSet(count), where->facets, where->written};
  if (query.find("name_ids")) {
    TRY(ids, list_parameter(query, "name_ids", static_cast<uint32_t>(count)));
    for (const uint32_t id : *ids) out.names.add(id);
    return out;
  }
  if (query.text("regex") == "1" && !query.text("q").empty()) {
    TRY(pattern, NamePattern::expression(query.text("q")));
    out.names = matching(timeline, *pattern);
    return out;
  }
  if (out.where.empty()) {
    TRY(text, split_facets(query.text("q")));
    out.facets = text->facets;
    out.where = text->written;
    if (text->rest.empty() && !out.facets.any())
      return make_error(ErrorCode::kUsage, "neither name_ids nor q says which names",
                        "q=gemm, q=mb:3, or name_ids=3,4");
    out.names = matching(timeline, NamePattern::text(text->rest));
  } else {
    out.names = matching(timeline, NamePattern::text(query.text("q")));
  }
  return out;
}

Result<std::string> search_answer(const Timeline& timeline, const Query& query) {
  TRY(limit, integer_parameter(query, "limit", 200, 1, 10'000));
  TRY(meant, names_meant(timeline, query));
  std::vector<StringId> found;
  uint64_t occurrences = 0;
  std::vector<uint64_t> counts;
  if (meant->facets.any()) counts = counts_of(timeline, *meant);
  const NameIndex& index = timeline.occurrences();
  const auto count = [&](StringId id) { return counts.empty() ? index.count(id) : counts[id]; };
  for (StringId id = 0; id < meant->names.size(); ++id)
    if (meant->names.has(id) && count(id) > 0) {
      found.push_back(id);
      occurrences += count(id);
    }
  const size_t shown = std::min<size_t>(found.size(), *limit);
  const auto before = [&](StringId a, StringId b) { return count(a) != count(b) ? count(a) > count(b) : a < b; };
  std::partial_sort(found.begin(), found.begin() + shown, found.end(), before);
  JsonWriter json;
  json.begin_object().field("names", found.size());
  json.field("occurrences", occurrences).field("where", valid_utf8(meant->where));
  found.resize(shown);
  json.objects("matches", found, [&](StringId id) {
    json.field("name_id", id).field("name", short_name(timeline.names().text(id))).field("count", count(id));
  });
  return json.end_object().take();
}

Result<std::string> find_answer(const Timeline& timeline, const Query& query) {
  TRY(lanes, list_parameter(query, "lanes", static_cast<uint32_t>(timeline.lanes().size())));
  TRY(from, number_parameter(query, "from", 0.0));
  TRY(lane, integer_parameter(query, "lane", -1, -1, UINT32_MAX));
  TRY(slice, integer_parameter(query, "slice", -1, -1, UINT32_MAX));
  const std::string_view dir = query.text("dir", "next");
  if (dir != "next" && dir != "prev") return make_error(ErrorCode::kUsage, "dir is next or prev");
  TRY(meant, names_meant(timeline, query));
  const FacetTest test(timeline.trace(), timeline.lanes(), meant->facets);
  const FacetTest* also = meant->facets.any() ? &test : nullptr;
  const auto start = static_cast<int64_t>(std::clamp<double>(*from, -1.0, kLatestNs));
  const NameIndex::Cursor cursor{start, *lane, *slice};
  const NameIndex& index = timeline.occurrences();
  const SlicePlace place = dir == "next" ? index.next(timeline.lanes(), *lanes, meant->names, cursor, also)
                                         : index.previous(timeline.lanes(), *lanes, meant->names, cursor, also);
  JsonWriter json;
  json.begin_object().key("found");
  place ? write_slice_reference(json, timeline, place) : void(json.null());
  json.end_object();
  return json.take();
}

}  // namespace stageline
