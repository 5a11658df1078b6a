// What a server that follows a running job answers beside the viewer's own: its page, its state, its metrics.
#pragma once

#include <optional>

#include "server/api_answer.h"
#include "server/query.h"

namespace stageline {

class LiveRun;

// "/api/live", "/metrics", the page's own files, and "/" until the whole run is read (`settled`); nullopt: this is not
// ours. `live`: nullptr where nothing is followed.
std::optional<ApiAnswer> live_answer(const LiveRun* live, bool settled, const Query& query);

}  // namespace stageline
