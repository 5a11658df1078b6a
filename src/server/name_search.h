// Search over all names: which match, where the next one is, how long they last.
#pragma once

#include <string>

#include "server/name_index.h"
#include "server/query.h"

namespace stageline {

// q (a text, or with regex=1 an expression) or name_ids: the names meant. Errors: kUsage, without either too.
Result<NameSet> names_meant(const Timeline& timeline, const Query& query);

// The answers to /api/search, /api/find and /api/histogram. Errors: kUsage.
Result<std::string> search_answer(const Timeline& timeline, const Query& query);
Result<std::string> find_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
