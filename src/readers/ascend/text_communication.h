// Reads an Ascend profiler's sums about communication. communication.json has the times of operations, and
// communication_matrix.json the bytes and times of links. analysis.db has the same in tables (analysis_db.h).
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

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
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

}  // namespace stageline::ascend
