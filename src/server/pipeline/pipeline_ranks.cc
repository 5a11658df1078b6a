#include "server/pipeline/pipeline_ranks.h"

#include <cmath>
#include <map>

#include "base/json_writer.h"
#include "facts/pipeline_facts.h"
#include "facts/straggler_facts.h"

namespace stageline {

Result<std::string> worst_ranks_json(const Run& run) {
  if (const RunGraph& graph = graph_of(run, LaunchRule::kFree); !graph.graph) return *graph.error;
  const Stragglers& stragglers = stragglers_of(run);
  std::map<int32_t, size_t> of_stage;
  JsonWriter json;
  json.begin_object().key("ranks").begin_array();
  for (const size_t i : worst_workers(stragglers)) {
    const StragglerWorker& worker = stragglers.workers[i];
    const Part& part = run.trace().parts[worker.part];
    if (++of_stage[part.stage] > kMaxWorstRanks) continue;
    json.begin_object().field("rank", part.rank).field("beyond_ns", std::round(worker.beyond_ns()));
    json.field("peer_ratio", worker.ratio).field("verdict", straggler_verdict_name(worker.verdict)).end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace stageline
