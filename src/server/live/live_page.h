// What a server that follows a running job answers besides the viewer's own answers: a page, the job's state, metrics.
#pragma once

#include <optional>

#include "server/http/api_answer.h"
#include "server/http/query.h"

namespace stageline {

class LiveRun;

// Answers "/api/live", "/metrics", the page's own files and, until the whole run is read (`settled`), "/"; nullopt for
// other paths. `live` is nullptr where no job is followed.
std::optional<ApiAnswer> live_answer(const LiveRun* live, bool settled, const Query& query);

}  // namespace stageline
