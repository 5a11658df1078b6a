#include "profile/communication_ops.h"

#include "base/name_pattern.h"
#include "model/message_names.h"
#include "profile/problems.h"
#include "profile/same_calls.h"

namespace stageline {
namespace {

constexpr std::array<std::string_view, 7> kLeaveEarly = {"broadcast", "reduce",         "gather",      "scatter",
                                                         "wait",      "_broadcast_oop", "barrier_wait"};

// Returns for each group the ranks that the tasks of its collectives name. It is used when no other record contains the
// group's size.
std::map<StringId, std::set<int32_t>> named_ranks(const Part& part, const OpNames& names) {
  std::map<StringId, std::set<int32_t>> out;
  for (const TransferFact& task : part.transfers) {
    const CollectiveFact* op = task.op == kNoSliceIndex ? nullptr : fact_of(part.collectives, task.op);
    if (!op || op->group_size > 0 || names.messages[op->name]) continue;
    for (const int32_t rank : {task.src_rank, task.dst_rank})
      if (rank >= 0) out[op->group].insert(rank);
  }
  return out;
}

// NCCL's SendRecv kernel is also used for all-to-all. When there are no arguments, the operators around its launch show
// which it is.
bool inside_all_to_all(const Slices& s, uint32_t slice, const OpNames& names) {
  uint32_t at = s.parent[slice] != kNoSliceIndex ? s.parent[slice] : s.partner[slice];
  while (at != kNoSliceIndex && !names.all_to_all[s.name_id[at]]) at = s.parent[at];
  return at != kNoSliceIndex;
}

// [begin, end) holds one collective, once for each rank.
void add_collective(const TorchRun& run, CommunicationOp* const* begin, CommunicationOp* const* end,
                    CollectiveSums& sums) {
  const auto shorter = [](const CommunicationOp* a, const CommunicationOp* b) { return a->dur_ns < b->dur_ns; };
  const CommunicationOp* last = *std::min_element(begin, end, shorter);
  KindWaits& kind = sums.kinds[{last->group, last->group_ranks, last->kind}];
  int64_t wait = 0, first_end = INT64_MAX, last_end = INT64_MIN;
  for (auto at = begin; at != end; ++at) {
    const CommunicationOp& op = **at;
    RankWaits& rank = sums.ranks[op.rank_index];
    ++rank.collectives;
    rank.wait_ns += op.wait_ns();
    rank.transfer_ns += op.transfer_ns;
    wait += op.wait_ns();
    kind.longest_ns = std::max(kind.longest_ns, op.wait_ns());
    first_end = std::min(first_end, op.end_ns());
    last_end = std::max(last_end, op.end_ns());
  }
  ++kind.count;
  kind.ranks = std::max<int64_t>(kind.ranks, end - begin);
  kind.wait_ns += wait;
  kind.end_spread_ns.push_back(last_end - first_end);
  if (wait == 0) return;
  // On one clock the starts say who came last. Where that is not the shortest call, ranks do not leave together (gloo),
  // and no rank is known to have kept the others.
  if (run.trace->clock == ClockState::kShared &&
      std::any_of(begin, end, [&](const CommunicationOp* op) { return op->start_ns > last->start_ns; }))
    return;
  ++sums.ranks[last->rank_index].last;
  sums.ranks[last->rank_index].caused_ns += wait;
  kind.caused_ns[run.trace->parts[run.parts[last->rank_index]].rank] += wait;
}

}  // namespace

OpNames::OpNames(const StringPool& names) {
  static const AnyOf receiving({"recv", "receive"}), to_all({"all_to_all", "alltoall", "all2all"});
  for (StringId id = 0; id < names.size(); ++id) {
    const std::string lower = to_lower(names.text(id).substr(0, kTellingBytes));
    const bool receive = receiving.in(lower);
    messages.push_back(receive || lower.find("send") != std::string::npos);
    receives.push_back(receive);
    all_to_all.push_back(to_all.in(lower));
    leaves_early.push_back(std::ranges::find(kLeaveEarly, lower) != kLeaveEarly.end());
  }
}

std::vector<CommunicationOp> communication_ops(const TorchRank& rank, uint32_t rank_index, const OpNames& names) {
  std::vector<CommunicationOp> out;
  const auto groups = named_ranks(*rank.part, names);
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device || row.kernel != KernelClass::kCommunication) continue;
    CommunicationOp op{.name = row.name,
                       .rank_index = rank_index,
                       .slice = row.slice,
                       .step = row.iteration,
                       .start_ns = row.start_ns,
                       .dur_ns = row.dur_ns};
    const CollectiveFact* fact = fact_of(rank.part->collectives, row.slice);
    op.kind = fact && fact->name != 0 ? fact->name : row.name;
    op.messages =
        names.messages[op.kind] && (op.kind != row.name || !inside_all_to_all(rank.part->slices, row.slice, names));
    op.receives = op.messages && names.receives[op.kind];
    op.leaves_early = names.leaves_early[op.kind];
    if (fact) {
      op.comms_id = fact->comms_id;
      op.group = fact->group;
      op.group_ranks = fact->group_ranks;
      op.description = fact->group_description;
      op.number = fact->seq;
      op.src_rank = static_cast<int32_t>(fact->src_rank);
      op.dst_rank = static_cast<int32_t>(fact->dst_rank);
      op.bytes = fact->bytes;
      op.group_size = fact->group_size;
      if (const auto named = groups.find(fact->group); op.group_size == 0 && named != groups.end())
        op.group_size = named->second.size();
    }
    if (op.number < 0 && op.comms_id == 0) op.key_step = row.iteration;
    out.push_back(op);
  }
  std::ranges::sort(out, {}, [](const CommunicationOp& a) { return std::tie(a.start_ns, a.slice); });
  return out;
}

std::vector<std::vector<CommunicationOp>> all_communication_ops(const TorchRun& run) {
  const OpNames names(run.trace->names);
  std::vector<std::vector<CommunicationOp>> ranks(run.parts.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = communication_ops(*torch_rank(run, run.parts[k]), static_cast<uint32_t>(k), names);
  });
  return ranks;
}

Matched match_collectives(std::vector<std::vector<CommunicationOp>>& ranks) {
  Matched out;
  std::vector<CommunicationOp*> all;
  for (std::vector<CommunicationOp>& rank : ranks)
    for (CommunicationOp& op : rank)
      if (op.messages || op.leaves_early) ++out.not_matched;
      else all.push_back(&op);
  out.begin.push_back(0);
  each_same(
      all, [](const CommunicationOp* op) { return op->key(); },
      [](const CommunicationOp* op) { return op->rank_index; },
      [&](const SameCalls<CommunicationOp*>& same) {
        each_instance(same, [&](const std::vector<CommunicationOp*>& one) {
          if (one.size() < 2) return void(++out.alone);
          const int64_t shortest = (*std::ranges::min_element(one, {}, &CommunicationOp::dur_ns))->dur_ns;
          const bool all_seen = std::ssize(one) >= one[0]->group_size;
          out.partly_seen += all_seen ? 0 : 1;
          for (CommunicationOp* op : one) op->transfer_ns = shortest, op->all_seen = all_seen;
          out.members.insert(out.members.end(), one.begin(), one.end());
          out.begin.push_back(out.members.size());
        });
      });
  return out;
}

Matched match_messages(std::vector<std::vector<CommunicationOp>>& ranks) {
  Matched out;
  std::vector<CommunicationOp*> all;
  for (std::vector<CommunicationOp>& rank : ranks)
    for (CommunicationOp& op : rank)
      if (op.messages && op.src_rank >= 0 && op.dst_rank >= 0 && op.src_rank != op.dst_rank) all.push_back(&op);
  sort_stably(all, {}, &CommunicationOp::receives);
  out.begin.push_back(0);
  each_same(
      all, [](const CommunicationOp* op) { return std::tie(op->group, op->src_rank, op->dst_rank); },
      [](const CommunicationOp* op) { return op->receives; },
      [&](const SameCalls<CommunicationOp*>& ends) {
        each_instance(ends, [&](const std::vector<CommunicationOp*>& one) {
          if (ends.size() < 2 || !equally_many(ends)) return void(out.alone += std::ssize(one));
          out.members.insert(out.members.end(), one.begin(), one.end());
          out.begin.push_back(out.members.size());
        });
      });
  return out;
}

CollectiveSums collective_sums(const TorchRun& run, const Matched& matched) {
  CollectiveSums sums;
  sums.ranks.resize(run.parts.size());
  for (size_t c = 0; c < matched.count(); ++c)
    add_collective(run, matched.members.data() + matched.begin[c], matched.members.data() + matched.begin[c + 1], sums);
  return sums;
}

void leave_out_open_collective(Trace& trace) {
  const auto category = [&](const Part& part, size_t i) { return trace.categories[part.slices.category_id[i]].kind; };
  std::vector<std::pair<Part*, uint32_t>> firsts;
  for (Part& part : trace.parts) {
    const Slices& s = part.slices;
    if (!s.has_facts()) return;
    uint32_t first = kNoSliceIndex;
    for (uint32_t i = 0; i < s.size(); ++i)
      if (is_device_work(category(part, i)) && (first == kNoSliceIndex || s.start_ns[i] < s.start_ns[first])) first = i;
    if (first == kNoSliceIndex) continue;
    if (!part.steps.empty() || s.class_of(first) != KernelClass::kCommunication) return;
    firsts.emplace_back(&part, first);
    if (s.name_id[first] != firsts.front().first->slices.name_id[firsts.front().second]) return;
  }
  if (firsts.size() < 2 || trace.categories.size() >= kMaxCategories) return;
  const auto [last, shortest] = *std::ranges::min_element(firsts, [](const auto& a, const auto& b) {
    return a.first->slices.dur_ns[a.second] < b.first->slices.dur_ns[b.second];
  });
  const Slices& s = last->slices;
  const std::string name(trace.names.text(s.name_id[shortest]));
  if (is_message_name(name)) return;
  const int64_t launched = s.start_ns[s.partner[shortest] == kNoSliceIndex ? shortest : s.partner[shortest]];
  bool shows_host = false;  // where no host was recorded, nothing shows what a rank did before
  for (size_t i = 0; i < s.size(); ++i) {
    if (!is_host(category(*last, i))) continue;
    if (s.end_ns(i) <= launched) return;
    shows_host = true;
  }
  if (!shows_host) return;
  trace.categories.push_back({std::string(trace.categories[s.category_id[shortest]].text), Category::kOther});
  for (const auto& [part, first] : firsts)
    part->slices.category_id[first] = static_cast<uint8_t>(trace.categories.size() - 1);
  trace.diagnostics.add(problem::profile_open_collective,
                        Args().set("name", valid_utf8(name)).set("rank", int64_t{last->rank}));
}

}  // namespace stageline
