// Finds links that are slower than others of their kind. The cause may be a single link, a rank that sends slowly to
// all, or a rank that all reach slowly. Definitions: docs/analyses/slow-link.md.
#include <algorithm>
#include <cmath>

#include "analyses/analysis.h"
#include "analyses/cluster/cluster_notes.h"
#include "analyses/cluster/problems.h"
#include "model/statistics.h"
#include "profile/slow_transfers.h"

namespace stageline {
namespace {

const ColumnSpec kTransport = {"transport", "transport", Type::kText, "SDMA, RDMA …; empty when unknown"};
const ColumnSpec kLink = {"link", "link", Type::kText, "HCCS, PCIE …; empty when unknown"};
const ColumnSpec kSource = {"src_rank", "from", Type::kInteger,
                            "Global rank of the sender; its rank in the group when the group's members are unknown"};
const ColumnSpec kTarget = {"dst_rank", "to", Type::kInteger, "Rank of the receiver, given like that of the sender"};

std::vector<ColumnSpec> slow_link_slow_links_columns() {
  return {kTransport,
          kLink,
          kSource,
          kTarget,
          {"transfer_count", "transfers", Type::kInteger, ""},
          {"bytes", "bytes", Type::kInteger, ""},
          {"transit_ns", "transit", Type::kDuration, "Summed over transfers"},
          {"gb_per_s", "GB/s", Type::kReal, "Bytes over transit, 10⁹ bytes a second"},
          {"expected_ns", "expected", Type::kDuration,
           "Time that its transfers would take at the median rate of their class, operation and size (powers of two)"},
          {"ratio", "slower", Type::kRatio, "Transit / expected"},
          {"lost_ns", "lost", Type::kDuration, "Transit − expected"},
          {"reading", "cause", Type::kText,
           "source: most links from that rank are slow; destination: most links to that rank are slow; link: only this "
           "link is slow"}};
}

Table link_table(const std::vector<TransferClass>& classes) {
  Table table("slow-links", "Links slower than others of their kind", slow_link_slow_links_columns());
  for (const auto& [c, link] : slow_links(classes))
    table.add_row({std::string(c->name.first), std::string(c->name.second), int64_t{link->src}, int64_t{link->dst},
                   link->count, link->bytes, link->time_ns, share_of(link->bytes, link->time_ns),
                   std::llround(link->expected_ns), link->ratio(), link->lost_ns(), std::string(link->reading)});
  return table;
}

std::vector<ColumnSpec> slow_link_link_classes_columns() {
  return {kTransport,
          kLink,
          {"link_count", "links", Type::kInteger,
           "Number of pairs of ranks; with fewer than three, no link is called slow"},
          {"slow_link_count", "slow", Type::kInteger, ""},
          {"transfer_count", "transfers", Type::kInteger, ""},
          {"bytes", "bytes", Type::kInteger, ""},
          {"transit_ns", "transit", Type::kDuration, "Summed over transfers"},
          {"median_gb_per_s", "median GB/s", Type::kReal, "Median of one transfer, in 10⁹ bytes per second"}};
}

Table class_table(const std::vector<TransferClass>& classes) {
  Table table("link-classes", "Kinds of links", slow_link_link_classes_columns());
  for (const TransferClass& c : classes) {
    const auto slow =
        std::count_if(c.links.begin(), c.links.end(), [](const RankLink& l) { return l.reading[0] != '\0'; });
    table.add_row({std::string(c.name.first), std::string(c.name.second), std::ssize(c.links), int64_t{slow},
                   c.transfers, c.bytes, c.time_ns, c.median_gbps});
  }
  return table;
}

std::vector<ColumnSpec> slow_transfers_columns() {
  return {kTransport,
          kLink,
          kSource,
          kTarget,
          {"group", "group", Type::kText, "Communicator"},
          {"kind", "operation", Type::kText, "allReduce, send, …"},
          {"step", "step", Type::kInteger, "Empty outside of steps"},
          {"bytes", "bytes", Type::kInteger, ""},
          {"transit_ns", "transit", Type::kDuration, ""},
          {"expected_ns", "expected", Type::kDuration, "Time at the median rate of its class and size"},
          {"lost_ns", "lost", Type::kDuration, "Transit − expected"}};
}

Table transfer_table(const std::vector<TransferClass>& classes, size_t most) {
  Table table("slow-transfers", "Slowest transfers against others of their class and size", slow_transfers_columns());
  std::vector<std::pair<const TransferClass*, const SlowestTransfer*>> lines;
  for (const TransferClass& c : classes)
    for (const SlowestTransfer& o : c.worst) lines.emplace_back(&c, &o);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.second->lost_ns() > b.second->lost_ns(); });
  lines.resize(std::min(most, lines.size()));
  for (const auto& [c, o] : lines) {
    const Transfer& t = o->transfer;
    table.add_row({std::string(c->name.first), std::string(c->name.second), int64_t{t.src}, int64_t{t.dst},
                   std::string(t.group), std::string(t.kind), t.step < 0 ? kNullInteger : int64_t{t.step}, t.bytes,
                   t.time_ns, std::llround(o->expected_ns), o->lost_ns()});
  }
  return table;
}

Result<AnalysisResult> run_slow_link(const AnalysisInput& input) {
  TRY(ratio, input.options.real("ratio", kSlowRatio));
  if (!(*ratio > 1)) return make_error(ErrorCode::kUsage, "--ratio must be more than 1", "1.5: half as long again");
  TRY(most, input.options.integer("top", 15, 0));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  const SlowTransfers slow = slow_transfers(all_transfers(*torch), *ratio, *most);
  const std::vector<TransferClass>& classes = slow.classes;
  AnalysisResult result;
  note_level_none(input, result.notes);
  if (slow.messages_alone > 0) result.notes.add(problem::slow_link_no_tasks, {}, slow.messages_alone);
  if (input.for_report && classes.empty()) return result;
  result.tables.push_back(link_table(classes));
  result.tables.push_back(class_table(classes));
  result.tables.push_back(transfer_table(classes, *most));
  return result;
}

}  // namespace

extern const Analysis slow_link_analysis = {
    .name = "slow-link",
    .summary = "links slower than others of their kind: a bad source, a bad destination or one bad link",
    .tables = {{"slow-links", "one row per slow link, who costs most first", slow_link_slow_links_columns},
               {"link-classes", "one row per transport and link type", slow_link_link_classes_columns},
               {"slow-transfers", "the slowest single transfers", slow_transfers_columns}},
    .run = run_slow_link,
    .needs = AnalysisNeeds::kTorch,
    .options = {{"ratio", "X", "A link is slow from this ratio to the expected time on (default 1.5)", ""},
                {"top", "N",
                 "How many of the longest are listed (hccl-sum: default 15; free-analysis: 10 per rank; "
                 "slow-rank and slow-link: 15)",
                 ""}}};

}  // namespace stageline
