// The additional answers of a server that follows a running job: a page, the job's state, metrics.
#pragma once

#include "server/http/api_answer.h"
#include "server/http/query.h"

namespace stageline {

class LiveRun;

ApiAnswer live_page();
ApiAnswer live_state(const LiveRun& live, const Query& query);    // /api/live
ApiAnswer live_metrics(const LiveRun& live, const Query& query);  // /metrics

}  // namespace stageline
