// Finds links that are slower than others of their kind. The cause may be a single link, a rank that sends slowly to
// all, or a rank that all reach slowly. Definitions: docs/analyses/slow-link.md.
#include "analyses/cluster/cluster.h"
#include "analyses/cluster/problems.h"
#include "profile/slow_transfers.h"

namespace stageline {
namespace {

Table link_table(const std::vector<TransferClass>& classes) {
  Table table(declared_table("slow-link/slow-links"));
  for (const auto& [c, link] : slow_links(classes))
    table.add_row({std::string(c->name.first), std::string(c->name.second), int64_t{link->src}, int64_t{link->dst},
                   link->count, link->bytes, link->time_ns, share_of(link->bytes, link->time_ns),
                   std::llround(link->expected_ns), link->ratio(), link->lost_ns(), std::string(link->reading)});
  return table;
}

Table class_table(const std::vector<TransferClass>& classes) {
  Table table(declared_table("slow-link/link-classes"));
  for (const TransferClass& c : classes) {
    const auto slow = std::ranges::count_if(c.links, [](const RankLink& link) { return link.reading[0] != '\0'; });
    table.add_row({std::string(c.name.first), std::string(c.name.second), std::ssize(c.links), int64_t{slow},
                   c.transfers, c.bytes, c.time_ns, c.median_gbps});
  }
  return table;
}

Table transfer_table(const std::vector<TransferClass>& classes, size_t max) {
  Table table(declared_table("slow-link/slow-transfers"));
  std::vector<std::pair<const TransferClass*, const SlowestTransfer*>> lines;
  for (const TransferClass& c : classes)
    for (const SlowestTransfer& o : c.worst) lines.emplace_back(&c, &o);
  sort_stably(lines, std::greater(), [](const auto& a) { return a.second->lost_ns(); });
  lines.resize(std::min(max, lines.size()));
  for (const auto& [c, o] : lines) {
    const Transfer& t = o->transfer;
    table.add_row({std::string(c->name.first), std::string(c->name.second), int64_t{t.src}, int64_t{t.dst},
                   std::string(t.group), std::string(t.kind), t.step < 0 ? kNullInteger : int64_t{t.step}, t.bytes,
                   t.time_ns, std::llround(o->expected_ns), o->lost_ns()});
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_slow_link(const AnalysisInput& input) {
  TRY(ratio, input.options.real("ratio", kSlowRatio));
  if (!(*ratio > 1)) return make_error(ErrorCode::kUsage, "--ratio must be more than 1", "1.5: half as long again");
  TRY(max, input.options.integer("top", 15, 0));
  TRY(torch, make_torch_run(*input.trace, {.include_last_step = true}));
  const SlowTransfers slow = slow_transfers(all_transfers(*torch), *ratio, *max);
  const std::vector<TransferClass>& classes = slow.classes;
  AnalysisResult result;
  note_level_none(input, result.notes);
  result.notes.add(problem::slow_link_no_tasks, {}, slow.messages_alone);
  if (input.for_report && classes.empty()) return result;
  return result.with(link_table(classes), class_table(classes), transfer_table(classes, *max));
}

}  // namespace stageline
