#include "profile/transfers.h"

#include "model/message_names.h"

namespace stageline {
namespace {

void add_tasks(const TorchRun& run, const TorchRank& rank, RankTransfers& out) {
  const Part& part = *rank.part;
  std::vector<int32_t> row_of(part.slices.size(), -1);
  for (uint32_t i = 0; i < rank.rows.size(); ++i) row_of[rank.rows[i].slice] = i;
  const StringPool& names = run.trace->names;
  for (const TransferFact& fact : part.transfers) {
    // A wait has no bytes. When a filter removed an operation, its transfers are left out too.
    if (fact.bytes <= 0 || (fact.op != kNoSliceIndex && row_of[fact.op] < 0)) continue;
    const CollectiveFact* op = fact.op == kNoSliceIndex ? nullptr : fact_of(part.collectives, fact.op);
    Transfer t{.src = fact.src_rank, .dst = fact.dst_rank, .message = op && is_message_name(names.text(op->name))};
    // The copy of a message often names only its own rank, but its operation knows both ends.
    if (t.message && (t.src < 0 || t.dst < 0)) {
      t.src = static_cast<int32_t>(op->src_rank);
      t.dst = static_cast<int32_t>(op->dst_rank);
    }
    if (t.src < 0 || t.dst < 0) continue;
    t.bytes = fact.bytes;
    t.time_ns = part.slices.dur_ns[fact.slice];
    t.transport = names.text(fact.transport);
    t.link = names.text(fact.link);
    t.op = fact.op;
    if (fact.op != kNoSliceIndex) {
      t.step = rank.rows[row_of[fact.op]].iteration;
      if (op) {
        t.group = names.text(op->group);
        t.kind = names.text(op->name);
        t.number = op->seq;
      }
    }
    out.list.push_back(t);
  }
}

// The profiler lists the operations with the highest, lowest and middle bandwidth, and after them the total of all
// operations.
constexpr std::string_view kTotal = "-total";
std::string_view kind_of(const LinkSummary& sum) {
  std::string_view op = sum.op;
  if (op.ends_with(kTotal)) op.remove_suffix(kTotal.size());
  if (op.starts_with("hcom_") && op.find("__") != std::string_view::npos)  // "hcom_send__377_1_1" → "send"
    op = op.substr(5, op.find("__") - 5);
  return op;
}

void add_summaries(const TorchRank& rank, RankTransfers& out) {
  const std::vector<LinkSummary>& sums = rank.part->link_summaries;
  const bool totals = std::ranges::any_of(sums, [](const LinkSummary& s) { return s.op.ends_with(kTotal); });
  for (const LinkSummary& sum : sums) {
    if (sum.src_rank < 0 || sum.dst_rank < 0 || !(sum.bytes > 0 && sum.bytes < 9e18)) continue;
    if (totals && !sum.op.ends_with(kTotal)) continue;
    Transfer t{
        .src = sum.src_rank, .dst = sum.dst_rank, .bytes = static_cast<int64_t>(sum.bytes), .time_ns = sum.transit_ns};
    t.link = sum.transport;  // the summary says HCCS where the tasks say SDMA over HCCS
    t.group = sum.group;
    t.kind = kind_of(sum);
    t.step = static_cast<int32_t>(std::clamp<int64_t>(sum.step, -1, INT32_MAX));
    t.message = is_message_name(t.kind);
    out.list.push_back(t);
  }
}

// Adds messages. A message's sender names both ends. The time of a message includes waiting for the receiver.
void add_messages(const TorchRun& run, const TorchRank& rank, RankTransfers& out) {
  const StringPool& names = run.trace->names;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device || row.kernel != KernelClass::kCommunication) continue;
    const CollectiveFact* fact = fact_of(rank.part->collectives, row.slice);
    if (!fact || fact->src_rank < 0 || fact->dst_rank < 0 || fact->bytes <= 0 || fact->src_rank != rank.rank) continue;
    out.list.push_back({.src = static_cast<int32_t>(fact->src_rank),
                        .dst = static_cast<int32_t>(fact->dst_rank),
                        .bytes = fact->bytes,
                        .time_ns = row.dur_ns,
                        .group = names.text(fact->group),
                        .kind = names.text(fact->name),
                        .step = row.iteration,
                        .message = true,
                        .op = row.slice});
  }
}

RankTransfers transfers_of(const TorchRun& run, const TorchRank& rank) {
  RankTransfers out;
  if (!rank.part->transfers.empty()) {
    out.source = TransferSource::kTasks;
    add_tasks(run, rank, out);
  }
  if (out.list.empty() && !rank.part->link_summaries.empty()) {
    out.source = TransferSource::kSummaries;
    add_summaries(rank, out);
  }
  if (out.list.empty()) {
    out.source = TransferSource::kMessages;
    add_messages(run, rank, out);
  }
  if (out.list.empty()) out.source = TransferSource::kNone;
  return out;
}

}  // namespace

std::string_view transfer_source_text(TransferSource source) {
  switch (source) {
    case TransferSource::kTasks: return "tasks of operations";
    case TransferSource::kSummaries: return "the profiler's sums";
    case TransferSource::kMessages: return "messages, waiting included";
    case TransferSource::kNone: break;
  }
  return "nothing";
}

bool is_wait_task(std::string_view task) {
  return task.find("Wait") != std::string_view::npos || task.find("wait") != std::string_view::npos;
}

std::vector<RankTransfers> all_transfers(const TorchRun& run) {
  auto ranks = ask_ranks(run, [&](const TorchRank& rank) { return transfers_of(run, rank); });
  using Key = std::tuple<int32_t, int32_t, std::string_view>;  // sender, receiver, group
  const auto key_of = [](const Transfer& t) { return Key{t.src, t.dst, t.group}; };
  std::vector<Key> reported;  // messages that their senders recorded
  for (size_t k = 0; k < ranks.size(); ++k)
    for (const Transfer& t : ranks[k].list)
      if (t.message && t.src == run.ranks[run.parts[k]]) reported.push_back(key_of(t));
  sort_unique(reported);
  parallel_for(ranks.size(), [&](size_t k) {
    std::erase_if(ranks[k].list, [&](const Transfer& t) {
      return t.message && t.src != run.ranks[run.parts[k]] && std::ranges::binary_search(reported, key_of(t));
    });
  });
  return ranks;
}

}  // namespace stageline
