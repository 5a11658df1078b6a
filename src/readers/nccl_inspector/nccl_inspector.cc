// Reads the logs of NCCL Inspector, a line of JSON for each recorded call: docs/formats/nccl-inspector.md.
//
//   {"header": {id, comm_name, rank, n_ranks}, "metadata": {hostname, pid, dump_timestamp_us}, "coll_perf" or
//   "p2p_perf": {…}}
//
// `rank` is that in the communicator. A process's own rank is that in the largest communicator, which all must have.
#include "base/json_tree.h"
#include "model/collective_kind.h"
#include "readers/common/host_spans.h"
#include "readers/common/json_lines.h"
#include "readers/common/read_files.h"
#include "readers/nccl_inspector/problems.h"

namespace stageline::nccl_inspector {
namespace {

constexpr RowCategory kKinds[] = {{"kernel", Category::kKernel, KernelClass::kCommunication}};

struct Communicator {
  std::string name;
  int64_t rank = kUnknown, size = 0;
};
struct Call {
  std::string communicator;  // its id
  std::string name;          // "AllReduce", "Send"
  bool message = false;
  int64_t number = -1, peer = -1, bytes = -1;
  int64_t took_ns = 0, written_ns = 0, end_ns = 0;  // end_ns: 0 where the log is not verbose
};
struct Process {
  std::string path, host;
  int64_t pid = 0;
  std::map<std::string, Communicator> communicators;  // by id
  std::vector<Call> calls;                            // as the lines come
  Diagnostics diagnostics;
};

// The id of a communicator: two of its 16 digits are cut off, so more than 14 are not compared.
std::string id_of(Value header) { return std::string(header["id"].text().substr(0, 16)); }

// Returns a text with null for the numbers that JSON does not have.
std::string without_nan(std::string_view text) {
  std::string out(text);
  for (const std::string_view odd : {":nan", ":-nan", ":inf", ":-inf"})
    for (size_t at = out.find(odd); at != std::string::npos; at = out.find(odd, at))
      out.replace(at, odd.size(), ":null");
  return out;
}

bool take_line(Value line, Process& process) {
  const Value header = line["header"], about = line["metadata"];
  Call call;
  call.message = line["p2p_perf"].is_dict();
  const Value perf = line[call.message ? "p2p_perf" : "coll_perf"];
  const auto field = [&](const char* name) { return perf[(call.message ? "p2p_" : "coll_") + std::string(name)]; };
  const auto in = [](Value value, int64_t least, int64_t most) {
    const auto number = value.integer();
    return number && *number >= least && *number <= most ? *number : int64_t{-1};
  };
  constexpr int64_t kMaxUs = kMaxTimeNs / 1000, kMaxExecUs = int64_t{1} << 40, kMaxBytes = int64_t{1} << 48;
  const int64_t took = in(field("exec_time_us"), 0, kMaxExecUs), written = in(about["dump_timestamp_us"], 1, kMaxUs);
  const Communicator own = {valid_utf8(header["comm_name"].text()), in(header["rank"], 0, kMaxRankNumber),
                            in(header["n_ranks"], 1, kMaxRankNumber)};
  call.communicator = valid_utf8(id_of(header));
  call.name = valid_utf8(perf[call.message ? "p2p" : "coll"].text());
  if (took < 0 || written < 0 || own.rank < 0 || own.rank >= own.size || call.name.empty()) return false;
  call.number = in(field("sn"), 0, INT64_MAX);
  call.peer = in(perf["p2p_peer"], 0, kMaxRankNumber);
  call.took_ns = took * 1000;
  call.written_ns = written * 1000;
  // Types of one byte have no size there: 2⁶⁴ minus the count is written.
  if (const int64_t count = in(field("msg_size_bytes"), 0, kMaxBytes); count >= 0)
    call.bytes = call.message ? count : message_bytes(collective_kind(call.name), own.size, count);
  const Value kernels = perf["event_trace_ts"]["kernel_events"];
  for (size_t i = 0; i < kernels.size(); ++i)
    call.end_ns = std::max(call.end_ns, in(kernels.item(i)["kernel_stop_ts"], 0, kMaxUs) * 1000);
  process.host = valid_utf8(about["hostname"].text());
  process.pid = about["pid"].integer().value_or(0);
  process.communicators.try_emplace(call.communicator, own);
  process.calls.push_back(std::move(call));
  return true;
}

Result<Process> read_log(const std::string& path, Progress* progress) {
  Process out;
  out.path = path;
  TRY_OK(each_json_line(
      path, progress,
      {problem::nccl_inspector_bad_line, problem::nccl_inspector_damaged_text, problem::nccl_inspector_read_stopped},
      out.diagnostics, [&](const JsonSpan& span) {
        Result<JsonTree> json = parse_json_tree(span.text, "");
        if (!json || json->broken_at >= 0) json = parse_json_tree(without_nan(span.text), "");
        return json && json->broken_at < 0 && out.calls.size() < kMaxOps && take_line(json->tree.root(), out);
      }));
  return out;
}

// The largest communicator of a process: that of all ranks, if the processes agree.
const std::pair<const std::string, Communicator>& world_of(const Process& process) {
  return *std::ranges::max_element(process.communicators, {}, [](const auto& one) { return one.second.size; });
}

class TraceMaker {
 public:
  TraceMaker(std::vector<Process> processes, Trace& trace) : processes_(std::move(processes)), trace_(trace) {}

  void make() {
    rank_processes();
    for (const Process* process : by_rank_)
      for (const auto& [id, own] : process->communicators) {
        std::vector<int32_t>& members = members_[id];
        members.resize(std::max<size_t>(members.size(), std::min(own.size, kMaxListed)), -1);
        if (own.rank < std::ssize(members)) members[own.rank] = rank_of_.at(process);
      }
    for (const Process* process : by_rank_) add_part(*process);
    settle_hosts(trace_);
    // Without times of their own, calls of several ranks cannot be compared.
    if (untimed_) trace_.clock = ClockState::kPerRank;
    trace_.diagnostics.add(untimed_ ? problem::nccl_inspector_no_times : problem::nccl_inspector_host_times);
    trace_.diagnostics.add(problem::nccl_inspector_recorded_calls);
  }

 private:
  static constexpr int64_t kMaxListed = 65'536;

  void rank_processes() {
    std::set<std::string> worlds;
    std::set<int64_t> ranks;
    for (const Process& process : processes_) {
      worlds.insert(world_of(process).first);
      ranks.insert(world_of(process).second.rank);
      for (const Call& call : process.calls) untimed_ |= call.end_ns == 0;
      by_rank_.push_back(&process);
    }
    const bool known = worlds.size() == 1 && ranks.size() == processes_.size();
    if (known) sort_stably(by_rank_, {}, [](const Process* one) { return world_of(*one).second.rank; });
    else trace_.diagnostics.add(problem::nccl_inspector_ranks_by_order, {processes_.front().path});
    for (const Process* process : by_rank_) {
      const int64_t rank = known ? world_of(*process).second.rank : std::ssize(rank_of_);
      rank_of_[process] = static_cast<int32_t>(rank);
    }
    const int64_t size = known ? world_of(processes_.front()).second.size : 0;
    if (const std::string missing = missing_ranks(ranks, size); !missing.empty())
      trace_.diagnostics.add(problem::nccl_inspector_missing_ranks, Args().set("missing", missing),
                             {processes_.front().path});
  }

  // The members of a communicator in its order, as "[0, 2]"; "" where a log of one is missing.
  std::string members_text(const std::string& id) const {
    std::string text;
    for (const int32_t member : members_.at(id)) {
      if (member < 0) return "";
      text += (text.empty() ? "[" : ", ") + std::to_string(member);
    }
    return text + "]";
  }

  void add_part(const Process& process) {
    PartBuilder builder(process.path, kKinds, "nccl_inspector");
    std::map<std::string, StringId> members;
    for (const auto& [id, own] : process.communicators) members[id] = builder.text(members_text(id));
    int64_t last_ns = 0;
    for (const Call& call : process.calls) {
      const Communicator& own = process.communicators.at(call.communicator);
      const bool named = !own.name.empty() && own.name != "unknown";
      // A call without times stands after the one before, and not before its line was written.
      const int64_t start = untimed_ ? std::max(last_ns, call.written_ns) : call.end_ns - call.took_ns;
      last_ns = start + call.took_ns;
      const uint32_t lane = builder.named_stream_lane(0, (named ? own.name + " " : "") + call.communicator);
      const uint32_t row = builder.add(lane, 0, start, last_ns, builder.text("nccl" + call.name));
      if (row == kNoRow) continue;
      CollectiveFact fact;
      fact.slice = row;
      fact.name = builder.text(call.message ? to_lower(call.name) : call.name);
      fact.group = builder.text(call.communicator);
      fact.group_description = builder.text(named ? own.name : "");
      fact.group_ranks = members.at(call.communicator);
      fact.group_size = own.size;
      fact.bytes = call.bytes;
      fact.seq = call.number;
      fact.peer = call.peer;
      builder.collectives.push_back(fact);
    }
    trace_.diagnostics.merge(process.diagnostics);
    finish_host_part(builder, rank_of_.at(&process), process.host, trace_);
  }

  const std::vector<Process> processes_;
  Trace& trace_;
  std::vector<const Process*> by_rank_;
  std::map<const Process*, int32_t> rank_of_;
  std::map<std::string, std::vector<int32_t>> members_;  // of each communicator; −1: no log
  bool untimed_ = false;
};

bool looks_like_log(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  return holds(line, "\"header\"") && holds(line, "\"n_ranks\"") &&
         (holds(line, "\"coll_perf\"") || holds(line, "\"p2p_perf\""));
}

}  // namespace

Match sniff(const Source& source) { return sniff_heads(source, looks_like_log); }

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "nccl-inspector";
  const std::vector<std::string> paths =
      files_that(looks_like_log, source, options, problem::nccl_inspector_unusable_file, trace.diagnostics);
  std::vector<Process> processes;
  auto first_error = read_files(
      paths.size(), [&](size_t k) { return read_log(paths[k], options.progress); },
      [&](size_t, Process process) {
        if (process.calls.empty()) trace.diagnostics.add(problem::nccl_inspector_unusable_file, {process.path});
        else processes.push_back(std::move(process));
      },
      [&](size_t k, const Error&) { trace.diagnostics.add(problem::nccl_inspector_unusable_file, {paths[k]}); });
  if (processes.empty()) return nothing_read(std::move(first_error), source, "nccl_inspector.nothing");
  const auto count = std::ssize(processes);
  TraceMaker(std::move(processes), trace).make();
  trace.description = counted(count, "process", "processes") + " of NCCL Inspector";
  return trace;
}

}  // namespace stageline::nccl_inspector
