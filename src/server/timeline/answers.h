// Answers of the timeline's server that have no type of their own: search, histogram, counters and flows.
#pragma once

#include "server/http/query.h"
#include "server/timeline/name_index.h"
#include "server/timeline/timeline.h"

namespace stageline {

// The meaning of a request: names, and facets of the slices that bear them. It has q (a text with facets, or with
// regex=1 an expression) or name_ids; where= may have facets as well. Errors: kUsage, also where neither is given.
struct Meant {
  NameSet names;
  Facets facets;
  std::string where;  // the facets as they were written
};
Result<Meant> names_meant(const Timeline& timeline, const Query& query);

// The answers to /api/search and /api/find. Errors: kUsage.
Result<std::string> search_answer(const Timeline& timeline, const Query& query);
Result<std::string> find_answer(const Timeline& timeline, const Query& query);

inline constexpr size_t kMaxBins = 64;

// The answer to /api/histogram, for the names that are meant (name_ids or q, see names_meant; kind= limits it to one
// kind of them) and slices that start within the window. With min= and max= it is binary: the slices that last that
// long, as /api/slices sends them. O(slices of the lanes that may have the names). Errors: kUsage.
struct HistogramAnswer {
  std::string body;
  bool is_binary = false;
};
Result<HistogramAnswer> histogram_answer(const Timeline& timeline, const Query& query);

// Counters, and arrows between slices: messages of the pipeline, launches of device work, forward to backward, and the
// source's own. Answers /api/flows: arrows with at least one end in the lanes and the window. Launches are omitted if
// more than kMaxLaunchSlices slices would have to be read; that number of arrows would hide everything anyway. O(links
// + slices in the window). Errors: kUsage.
inline constexpr size_t kMaxLaunchSlices = 500'000;
Result<std::string> flows_answer(const Timeline& timeline, const Query& query);

// The answer to /api/counter: least, greatest and mean value in each of n columns of the window. A value holds from its
// sample to the next one, and means are over time. Columns before the first sample are NaN. O(samples in the window +
// n). Errors: kUsage.
Result<std::string> counter_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
