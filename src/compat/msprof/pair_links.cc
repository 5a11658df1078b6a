#include "compat/msprof/cell_ranks.h"
#include "model/message_names.h"

namespace stageline {
namespace {

struct End {
  size_t rank;
  const PeerOp* op;
};

// All transfers in one direction, or all batches of two ranks; of batches, `sent` are those of the lower rank.
struct Way {
  std::vector<End> sent, received;
};

using Key = std::tuple<std::string, std::string, bool, int64_t, int64_t>;  // (pipeline, group, batch, from, to)

bool one_rank(const std::vector<End>& ends) {
  return std::ranges::all_of(ends, [&](const End& end) { return end.rank == ends[0].rank; });
}

// Returns how many of the longer list to leave out at its beginning.
size_t best_shift(const std::vector<End>& longer, const std::vector<End>& shorter) {
  const size_t extra = longer.size() - shorter.size();
  size_t best = extra;  // recordings usually lose their beginning
  double min = HUGE_VAL;
  for (size_t back = 0; back <= extra && back < kMaxShifts; ++back) {
    const size_t shift = extra - back;
    // Times are taken from the database as they are, so their difference may overflow an integer.
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < shorter.size(); ++i) {
      int64_t exact = 0;
      const int64_t a = longer[i + shift].op->end_ns, b = shorter[i].op->end_ns;
      const double apart = __builtin_sub_overflow(a, b, &exact) ? a - static_cast<double>(b) : exact;
      low = std::min(low, apart);
      high = std::max(high, apart);
    }
    if (high - low < min) min = high - low, best = shift;
  }
  return best;
}

std::string say(const std::vector<RankPeers>& ranks, const Way& way) {
  const size_t from = way.sent.size(), to = way.received.size();
  const auto who = [&](const std::vector<End>& ends) { return "rank " + std::to_string(ranks[ends[0].rank].rank); };
  if (from == 0) return who(way.received) + " received " + grouped(to) + " times from a rank that is not there";
  if (to == 0) return who(way.sent) + " sent " + grouped(from) + " times to a rank that is not there";
  return who(way.sent) + " sent " + grouped(from) + " times, " + who(way.received) + " received " + grouped(to) +
         " times: paired where both ends end together";
}

// The content of a message, and the part it is on.
using Carried = std::tuple<int32_t, int32_t, CellKind, int32_t, int32_t>;  // part, step, kind, chunk, micro-batch

// Maps contents to operations; nullptr where two operations claim the same.
std::map<Carried, const NamelessOp*> operations_by_content(const Trace& trace,
                                                           const std::vector<std::vector<NamelessOp>>& ops) {
  using When = std::tuple<size_t, bool, int64_t, int64_t>;
  std::map<When, const NamelessOp*> by_time;
  for (size_t part = 0; part < ops.size(); ++part)
    for (const NamelessOp& op : ops[part]) {
      const auto [at, fresh] = by_time.try_emplace({part, op.send, op.start_ns, op.end_ns}, &op);
      if (!fresh) at->second = nullptr;
    }
  std::map<Carried, const NamelessOp*> found;
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    const Cell cell = trace.cells.at(i);
    if (!is_message(cell.kind) || cell.step == kUnknown || cell.chunk < 0 || cell.micro_batch < 0) continue;
    const auto op = by_time.find({static_cast<size_t>(cell.part), is_send(cell.kind), cell.start_ns, cell.end_ns});
    if (op == by_time.end() || op->second == nullptr) continue;
    const auto [at, fresh] =
        found.try_emplace({cell.part, cell.step, cell.kind, cell.chunk, cell.micro_batch}, op->second);
    if (!fresh) at->second = nullptr;
  }
  return found;
}

struct Pair {
  int32_t from = 0, to = 0;  // indices of parts
  const NamelessOp *send = nullptr, *receive = nullptr;
};

}  // namespace

PairedLinks pair_links(const std::vector<RankPeers>& ranks) {
  PairedLinks out;
  out.by_rank.resize(ranks.size());
  std::map<Key, Way> ways;
  for (size_t r = 0; r < ranks.size(); ++r)
    for (const PeerOp& op : ranks[r].ops) {
      const bool batch = op.kind == PeerOp::Kind::kBatch;
      Way& way = ways[{ranks[r].pipeline, op.group, batch, batch ? std::min(op.src, op.dst) : op.src,
                       batch ? std::max(op.src, op.dst) : op.dst}];
      const bool sent = batch ? op.src < op.dst : op.kind == PeerOp::Kind::kSend;
      (sent ? way.sent : way.received).push_back({r, &op});
    }
  std::set<std::string> used;  // for groups whose hashes end alike
  const auto remark = [&](std::string text) {
    if (out.remarks.size() < PairedLinks::kMaxRemarks) out.remarks.push_back(std::move(text));
  };
  int64_t number = 0;
  for (const auto& [key, way] : ways) {
    ++number;
    if (way.sent.size() != way.received.size()) remark(say(ranks, way));
    if (way.sent.empty() || way.received.empty()) continue;
    if (!one_rank(way.sent) || !one_rank(way.received)) {
      remark("several ranks send or receive as number " + std::to_string(std::get<3>(key)) + " of group " +
             std::get<1>(key) + ": not paired, for nothing tells their pipelines apart");
      continue;
    }
    const bool fewer_sent = way.sent.size() < way.received.size();
    const size_t shift = fewer_sent ? best_shift(way.received, way.sent) : best_shift(way.sent, way.received);
    const std::string begin = way.sent[0].op->tag + "_" + std::to_string(std::get<3>(key)) + "_" +
                              std::to_string(std::get<4>(key)) + (std::get<2>(key) ? "_b" : "_");
    const bool taken = !used.insert(begin).second;
    for (size_t k = 0; k < std::min(way.sent.size(), way.received.size()); ++k) {
      const std::string link = begin + std::to_string(k) + (taken ? "_g" + std::to_string(number) : "");
      for (const End& end : {way.sent[k + (fewer_sent ? 0 : shift)], way.received[k + (fewer_sent ? shift : 0)]})
        for (const int64_t row : end.op->row_numbers) out.by_rank[end.rank].emplace_back(row, link);
      ++out.pairs;
    }
  }
  return out;
}

std::vector<std::vector<std::pair<int64_t, std::string>>> link_by_cells(
    const Trace& trace, const std::vector<std::vector<NamelessOp>>& ops) {
  std::vector<std::vector<std::pair<int64_t, std::string>>> links(ops.size());
  if (std::ranges::all_of(ops, [](const auto& of_part) { return of_part.empty(); })) return links;
  const std::map<Carried, const NamelessOp*> by_content = operations_by_content(trace, ops);
  const auto find = [&](const Cell& work, CellKind kind) -> const NamelessOp* {
    return value_at(by_content, {work.part, work.step, kind, work.chunk, work.micro_batch});
  };
  std::vector<Pair> pairs;
  std::set<const NamelessOp*> taken;  // the loss's backward has the same links as its micro-batch's own backward
  for (const Link& link : trace.links) {
    const Cell from = trace.cells.at(link.from_cell), to = trace.cells.at(link.to_cell);
    if (from.part == to.part) continue;
    const bool forward = from.kind == CellKind::kForward;
    const NamelessOp* send = find(from, forward ? CellKind::kSendForward : CellKind::kSendBackward);
    const NamelessOp* receive = find(to, forward ? CellKind::kRecvForward : CellKind::kRecvBackward);
    if (send == nullptr || receive == nullptr || send->group != receive->group) continue;
    if (taken.insert(send).second && taken.insert(receive).second) pairs.push_back({from.part, to.part, send, receive});
  }
  sort_stably(pairs, {}, [](const Pair& a) { return std::tie(a.from, a.to, a.send->start_ns, a.send->row); });
  std::set<std::string> used;  // for groups whose numbers end alike, or that have one name in several pipelines
  std::string begin, end;
  for (size_t i = 0, k = 0; i < pairs.size(); ++i, ++k) {
    const Pair& pair = pairs[i];
    if (i == 0 || pairs[i - 1].from != pair.from || pairs[i - 1].to != pair.to) {
      k = 0;
      begin = hccl_group_id(pair.send->group) + "_" + std::to_string(pair.send->place) + "_" +
              std::to_string(pair.receive->place) + "_";
      end = used.insert(begin).second ? "" : "_g" + std::to_string(pair.from) + "_" + std::to_string(pair.to);
    }
    const std::string text = begin + std::to_string(k) + end;
    links[pair.from].emplace_back(pair.send->row, text);
    links[pair.to].emplace_back(pair.receive->row, text);
  }
  return links;
}

}  // namespace stageline
