#include "compat/msprof/cell_links.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/message_names.h"

namespace stageline {
namespace {

// The content of a message, and the part it is on.
using Carried = std::tuple<int32_t, int32_t, CellKind, int32_t, int32_t>;  // part, step, kind, chunk, micro-batch

bool is_send(CellKind kind) { return kind == CellKind::kSendForward || kind == CellKind::kSendBackward; }

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

std::vector<std::vector<std::pair<int64_t, std::string>>> link_by_cells(
    const Trace& trace, const std::vector<std::vector<NamelessOp>>& ops) {
  std::vector<std::vector<std::pair<int64_t, std::string>>> links(ops.size());
  if (std::ranges::all_of(ops, [](const auto& of_part) { return of_part.empty(); })) return links;
  const std::map<Carried, const NamelessOp*> by_content = operations_by_content(trace, ops);
  const auto find = [&](const Cell& work, CellKind kind) -> const NamelessOp* {
    const auto at = by_content.find({work.part, work.step, kind, work.chunk, work.micro_batch});
    return at == by_content.end() ? nullptr : at->second;
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
  std::ranges::sort(pairs, {}, [](const Pair& a) { return std::tie(a.from, a.to, a.send->start_ns, a.send->row); });
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
