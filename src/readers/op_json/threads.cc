// Finds out which rank and lane a thread is. Tools pack the answer into pid and tid:
//
//   StragglerAnalysis  pid = dp   tid = rank·5 + lane    name "PP rank 1, TP rank 0, dp-comm"
//   ndtimeline         pid = dp   tid = rank·10 + lane   name "rank[3] pp ->", rank and pp in args
//   MegatronApp        pid = pp                          pp_rank in the args of E events
//   others             arguments; else what other events of the same thread or process say; else pid
#include "readers/op_json/threads.h"

#include "readers/op_json/problems.h"

namespace stageline::op_json {
namespace {

constexpr int64_t kStragglerLanes = 5;
constexpr std::string_view kStragglerLaneNames[kStragglerLanes] = {"compute", "pp-comm", "tp-comm", "dp-comm", "misc"};

struct Identity {
  int32_t rank = kUnknown, stage = kUnknown, dp = kUnknown;
  std::string lane;

  void set_if_unknown(int32_t& to, int64_t from, int64_t max) {
    if (to == kUnknown && from >= 0 && from <= max) to = static_cast<int32_t>(from);
  }
};

// Parses "PP rank 1, TP rank 0, dp-comm".
bool parse_straggler_name(const std::string& name, Identity& identity) {
  constexpr std::string_view lead = "PP rank ", middle = ", TP rank ";
  if (!name.starts_with(lead)) return false;
  int64_t stage = 0;
  const char* const end = name.data() + name.size();
  const auto [at, ec] = std::from_chars(name.data() + lead.size(), end, stage);
  const std::string_view rest(at, end - at);
  if (ec != std::errc() || !rest.starts_with(middle)) return false;
  identity.set_if_unknown(identity.stage, stage, kMaxStageNumber);
  const size_t comma = rest.find(", ", middle.size());
  if (comma != std::string_view::npos) identity.lane = rest.substr(comma + 2);
  return true;
}

std::string lane_name_of(const Thread& thread) {
  if (thread.ndtimeline && thread.name.starts_with("rank["))  // "rank[3] dp collective"
    if (const size_t close = thread.name.find("] "); close != std::string::npos) return thread.name.substr(close + 2);
  if (!thread.name.empty()) return thread.name;
  return "thread " + thread.tid;
}

Identity identify(const Thread& thread) {
  Identity identity;
  const bool named = parse_straggler_name(thread.name, identity);
  if ((named || thread.straggler_analysis) && thread.tid_number >= 0) {
    identity.set_if_unknown(identity.rank, thread.tid_number / kStragglerLanes, kMaxRankNumber);
    identity.set_if_unknown(identity.dp, thread.pid_number, kMaxRankNumber);
    if (identity.lane.empty()) identity.lane = kStragglerLaneNames[thread.tid_number % kStragglerLanes];
  }
  if (thread.ndtimeline) identity.set_if_unknown(identity.dp, thread.pid_number, kMaxRankNumber);
  if (identity.lane.empty()) identity.lane = lane_name_of(thread);
  return identity;
}

// Handles StragglerAnalysis files without thread names (these are at the end of the file, where files get cut): the
// ranks of one data-parallel index are the stages in order.
void infer_stages(FileOps& file, std::vector<Identity>& threads) {
  std::map<int32_t, std::map<int32_t, int32_t>> stage_of;  // dp → rank → stage
  for (size_t t = 0; t < threads.size(); ++t) {
    if (!file.threads[t].straggler_analysis || threads[t].rank == kUnknown) continue;
    if (threads[t].stage != kUnknown) return;  // some names are there, so nothing is guessed
    stage_of[threads[t].dp][threads[t].rank] = 0;
  }
  int64_t count = 0;
  for (auto& [dp, ranks] : stage_of) {
    int32_t next = 0;
    for (auto& [rank, stage] : ranks) stage = next++;
    count += next;
  }
  for (size_t t = 0; t < threads.size(); ++t)
    if (file.threads[t].straggler_analysis && threads[t].rank != kUnknown)
      threads[t].stage = stage_of[threads[t].dp][threads[t].rank];
  file.diagnostics.add(problem::op_json_stages_inferred, {}, count);
}

}  // namespace

std::vector<std::string> identify_threads(FileOps& file, int32_t fallback_rank) {
  auto threads = mapped<Identity>(file.threads, [&](const Thread& thread) { return identify(thread); });
  infer_stages(file, threads);
  // The fields of some events of a thread or process are valid for its events without such fields.
  std::map<std::string, Identity> processes;
  for (const Op& op : file.ops) {
    Identity& thread = threads[op.lane];
    Identity& process = processes[file.threads[op.lane].pid];
    for (Identity* identity : {&thread, &process}) {
      identity->set_if_unknown(identity->rank, op.rank != kUnknown ? op.rank : thread.rank, kMaxRankNumber);
      identity->set_if_unknown(identity->stage, op.stage != kUnknown ? op.stage : thread.stage, kMaxStageNumber);
      identity->set_if_unknown(identity->dp, op.dp != kUnknown ? op.dp : thread.dp, kMaxRankNumber);
    }
  }
  int64_t guessed = 0;
  for (Op& op : file.ops) {
    const Identity& thread = threads[op.lane];
    if (op.rank == kUnknown && op.stage == kUnknown) {
      const bool reported = thread.rank != kUnknown || thread.stage != kUnknown;
      const Identity& process = processes[file.threads[op.lane].pid];
      const Identity& by = reported ? thread : process;
      op.rank = by.rank;
      op.stage = by.stage;
      if (op.dp == kUnknown) op.dp = by.dp;
      if (op.rank == kUnknown && op.stage == kUnknown) {
        const int64_t pid = file.threads[op.lane].pid_number;
        op.rank = fallback_rank != kUnknown           ? fallback_rank
                  : pid >= 0 && pid <= kMaxRankNumber ? static_cast<int32_t>(pid)
                                                      : kUnknown;
        guessed += op.rank != kUnknown;
      }
    }
    if (op.stage == kUnknown) op.stage = thread.stage;
    if (op.dp == kUnknown) op.dp = thread.dp;
  }
  file.diagnostics.add(problem::op_json_ranks_from_process, {}, guessed);
  return mapped<std::string>(threads, [&](Identity& thread) { return std::move(thread.lane); });
}

}  // namespace stageline::op_json
