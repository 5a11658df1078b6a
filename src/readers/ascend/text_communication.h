// Reads an Ascend profiler's sums about communication. communication.json has the times of operations, and
// communication_matrix.json the bytes and times of links. analysis.db has the same in tables (analysis_db.cc).
//
//   {"step13": {"p2p":        {"hcom_send__377_0_1@GROUP": {"Communication Time Info": {"Start Timestamp(us)": …,
//                                 "Elapse Time(ms)": …, "Transit Time(ms)": …, …},
//                               "Communication Bandwidth Info": {"SDMA": {"Transit Size(MB)": …}}}},
//               "collective": {…, "Total Op Info": {…}}}}
//   {"step13": {"collective": {"allreduce-top1@GROUP": {"0-1": {"Transport Type": …, "Transit Size(MB)": …,
//                                 "Transit Time(ms)": …, "Op Name": "hcom_allReduce__377_4_1"}}}}}
//
// On every link the matrix names the fastest, the middle and the slowest three operations of a kind, and their total.
// The total is kept, and every named operation once.
#pragma once

#include "model/trace.h"

namespace stageline::ascend {

struct CommunicationRow {
  std::string op, group, type;  // "hcom_send__377_0_1", digits or name of the group, "p2p" or "collective"
  int64_t step = -1;
  int64_t start_ns = -1, dur_ns = -1;  // −1 when not given
  int64_t transit_ns = -1, wait_ns = -1, synchronization_ns = -1, idle_ns = -1;
  double bytes = -1;      // SDMA and RDMA together; HCCS, PCIE and SIO are parts of SDMA
  std::string transport;  // how the bytes went: "SDMA", "RDMA", "HCCS" …
};

struct CommunicationSums {
  std::vector<CommunicationRow> ops;
  // Ranks are those of the file, that is, within the group. In a total, `op` is its kind: "allreduce-total".
  std::vector<LinkSummary> links;
};

// Errors: kNotFound, kIo, kLimit (kMaxCommunicationBytes); kBadInput when it has no step. A file that was cut is read
// as far as it goes, and counted as "ascend.cut_json". O(bytes).
inline constexpr size_t kMaxCommunicationBytes = size_t{1} << 30;
Status read_communication(const std::string& path, CommunicationSums& out, Diagnostics& diagnostics);
Status read_communication_matrix(const std::string& path, CommunicationSums& out, Diagnostics& diagnostics);

// Returns the number in "step13", 13; −1 for "step", "" and anything else.
int64_t step_number(std::string_view text);
// Parses a decimal text of milliseconds or microseconds, or a double printed with all its digits; −1 when it is none or
// negative.
int64_t decimal_time(std::string_view text, int unit_ns_log10);
// A profile cannot mean more bytes than this.
inline constexpr double kMaxBytes = 1e18;
// Returns `bytes`, or −1 when that is negative, no number, or above kMaxBytes.
double usable_bytes(double bytes);
// Keeps each link that names an operation once, in order: the fastest, middle and slowest operation may be the same
// one.
void drop_repeated_links(std::vector<LinkSummary>& links);

// Finds the process group of an operation from the pieces that text exports give. They are "hcom_allReduce__377_4_1"
// (three digits of the group's number), "@13681369207305868844" (the number), and parallel_group_info in the metadata
// (the group's full name, its purpose and its ranks).

// A parsed name: "hcom_allReduce__377_4_1" is allReduce, 377, 4.
struct OperationName {
  std::string_view kind;    // "allReduce", "send", "receive", "batchSendRecv"
  std::string_view digits;  // the last three digits of the group's number
  int64_t seq = -1;         // counts the operations of this kind in this group
};
std::optional<OperationName> parse_operation_name(std::string_view name);

struct ProcessGroup {
  std::string name, number, description;  // number is hccl_group_digits(name)
  std::vector<int32_t> ranks;             // global ranks, by rank within the group; empty when not given
};

class ProcessGroups {
 public:
  // Reads the member parallel_group_info of `metadata`; without it no group is known.
  explicit ProcessGroups(const std::vector<MetaField>& metadata);

  // Finds a group by its full name or number; nullptr when there is none.
  const ProcessGroup* find(std::string_view group) const;
  // Finds a group by the three digits in an operation's name, if only one group matches.
  const ProcessGroup* find_by_digits(std::string_view digits) const;
  const std::vector<ProcessGroup>& all() const { return groups_; }

 private:
  std::vector<ProcessGroup> groups_;
  std::unordered_map<std::string, size_t> by_text_, by_digits_;
};

// Links name ranks within their group; this makes them global. Where nothing names the group's members, the link of a
// rank with itself shows whether both numberings agree. Ends that stay unknown become −1; returns how many these are.
int64_t make_links_global(const ProcessGroups& groups, int32_t own_rank, std::vector<LinkSummary>& links);

// Returns the members of a JSON object, one field each. A JSON text within a text is unwrapped once.
std::vector<MetaField> metadata_of(std::string_view json);

// Reads analysis.db: the profiler's own sums of one rank – steps, communication operations, links – in four tables.
// Newer files have a deviceId in StepTraceTime. A column that does not exist is read as −1.
struct AnalysisSums {
  std::vector<StepSummary> steps;
  CommunicationSums communication;
  int64_t rows = 0;  // of all tables
};

// `device` is this rank's device, or −1 when not known: rows of StepTraceTime that name another device belong to
// another rank. Errors: as SqliteDb::open_read. A damaged table is read up to the damage and counted as
// "ascend.analysis_db".
Result<AnalysisSums> read_analysis_db(const std::string& path, int32_t device, Diagnostics& diagnostics);

// Reads step_trace_time.csv: the same sums of steps, with times in microseconds. Lines without a usable number are
// counted as "ascend.step_line". Errors: kNotFound, kIo, kLimit; kBadInput when there is no column "Computing".
Result<std::vector<StepSummary>> read_step_trace_time(const std::string& path, Diagnostics& diagnostics);

}  // namespace stageline::ascend
