// Search over all names: which ones match, where the next occurrence is, how long they last.
#pragma once

#include <string>

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

}  // namespace stageline
