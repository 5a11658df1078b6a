// What an Ascend profiler says of communication in sums: communication.json (an operation's times), and
// communication_matrix.json (bytes and times of links). analysis.db says the same in tables (analysis_db.h).
//
//   {"step13": {"p2p":        {"hcom_send__377_0_1@GROUP": {"Communication Time Info": {"Start Timestamp(us)": …,
//                                 "Elapse Time(ms)": …, "Transit Time(ms)": …, …},
//                               "Communication Bandwidth Info": {"SDMA": {"Transit Size(MB)": …}}}},
//               "collective": {…, "Total Op Info": {…}}}}
//   {"step13": {"collective": {"allreduce-top1@GROUP": {"0-1": {"Transport Type": …, "Transit Size(MB)": …,
//                                 "Transit Time(ms)": …, "Op Name": "hcom_allReduce__377_4_1"}}}}}
//
// The matrix names the fastest, middle and slowest three operations of a kind on every link, and their total; the
// total is kept, and every named operation once.
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
  int64_t start_ns = -1, dur_ns = -1;  // −1: not said
  int64_t transit_ns = -1, wait_ns = -1, synchronization_ns = -1, idle_ns = -1;
  double bytes = -1;      // SDMA and RDMA; HCCS, PCIE and SIO are parts of SDMA
  std::string transport;  // of the bytes: "SDMA", "RDMA", "HCCS" …
};

struct CommunicationSums {
  std::vector<CommunicationRow> ops;
  // Ranks as the file has them: within the group. `op` of a total is its kind, "allreduce-total".
  std::vector<LinkSummary> links;
};

// Errors: kNotFound, kIo, kLimit (kMaxCommunicationBytes); kBadInput when there is no step in it. What is cut is read
// as far as it goes and counted as "ascend.cut_json". O(bytes).
inline constexpr size_t kMaxCommunicationBytes = size_t{1} << 30;
Status read_communication(const std::string& path, CommunicationSums& out, Diagnostics& diagnostics);
Status read_communication_matrix(const std::string& path, CommunicationSums& out, Diagnostics& diagnostics);

// "step13" → 13; "step", "" and anything else → −1.
int64_t step_number(std::string_view text);
// Decimal text of milliseconds or microseconds, or a double printed with all its digits; −1: none, or negative.
int64_t decimal_time(std::string_view text, int unit_ns_log10);
// More bytes than a profile can mean.
inline constexpr double kMostBytes = 1e18;
// `bytes`; −1: negative, no number, or more than that.
double usable_bytes(double bytes);
// Keeps links that name an operation once, in order: top, middle and bottom may be one and the same.
void drop_repeated_links(std::vector<LinkSummary>& links);

}  // namespace stageline::ascend
