// number_compute and number_messages: micro-batches for operations whose source does not give them.
#include "model/problems.h"
#include "readers/common/ops.h"

namespace stageline {
namespace {

constexpr bool is_forward(CellKind kind) { return kind == CellKind::kForward || kind == CellKind::kForwardBackward; }
// Calls body for each run of rows with the same `key`; within a run rows are ordered by `rest`, then position.
template <class Key, class Rest, class Body>
void for_each_group(const std::vector<Op>& ops, std::vector<uint32_t> rows, Key key, Rest rest, Body body) {
  const auto full = [&](uint32_t i) { return std::tuple(key(ops[i]), rest(ops[i]), i); };
  std::ranges::sort(rows, {}, full);
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin + 1;
    while (end < rows.size() && key(ops[rows[end]]) == key(ops[rows[begin]])) ++end;
    body(std::span(rows).subspan(begin, end - begin));
    begin = end;
  }
}

template <class Keep> std::vector<uint32_t> rows_where(const std::vector<Op>& ops, Keep keep) {
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < ops.size(); ++i)
    if (ops[i].is_cell && ops[i].step != kUnknown && keep(ops[i])) rows.push_back(i);
  return rows;
}

// Returns true if an operation of such a kind has no micro-batch.
bool any_unnumbered(const std::vector<Op>& ops, bool (*of_kind)(CellKind)) {
  return std::ranges::any_of(ops, [&](const Op& op) { return op.micro_batch == kUnknown && of_kind(op.kind); });
}

// True where the k-th message of one kind can only belong to the k-th cell, for all k. `work` are the cells of one
// (rank, step) and direction in order of start, `messages` those of one kind in the order in which the source counts.
bool belong_together(const std::vector<Op>& ops, std::span<const uint32_t> work, std::span<const uint32_t> messages) {
  if (work.size() != messages.size()) return false;
  for (size_t k = 0; k < work.size(); ++k) {
    const Op& cell = ops[work[k]];
    const Op& message = ops[messages[k]];
    const bool send = is_send(message.kind);
    if (cell.micro_batch == kUnknown || cell.chunk > 0) return false;
    if (k > 0 && message.start_ns < ops[messages[k - 1]].start_ns) return false;
    if (send ? message.start_ns < cell.start_ns : message.end_ns > cell.end_ns) return false;
  }
  return true;
}

// The number of cells of a (rank, kind, chunk) in each of its steps, compared with the other ranks of that step.
class GroupSizes {
 public:
  GroupSizes(const std::vector<Op>& ops, const std::vector<uint32_t>& rows) {
    for (const uint32_t i : rows) ++sizes_[key(ops[i])];
    for (const auto& [key, size] : sizes_) {
      const auto& [rank, kind, chunk, step] = key;
      int64_t &own = own_most_[{rank, kind, chunk}], &max = max_of_step_[{kind, chunk, step}];
      own = std::max(own, size), max = std::max(max, size);
    }
  }
  // Returns true if rows of this group are missing, so that its order numbers nothing: other ranks have more in this
  // step, and this one has more in other steps.
  bool lacks_some(const Op& op) const {
    const auto of = key(op);
    const auto& [rank, kind, chunk, step] = of;
    const int64_t size = sizes_.at(of);
    return size < own_most_.at({rank, kind, chunk}) && size < max_of_step_.at({kind, chunk, step});
  }

 private:
  static std::tuple<int32_t, CellKind, int32_t, int32_t> key(const Op& op) {
    return {op.rank, op.kind, op.chunk, op.step};
  }
  std::map<std::tuple<int32_t, CellKind, int32_t, int32_t>, int64_t> sizes_;
  std::map<std::tuple<int32_t, CellKind, int32_t>, int64_t> own_most_;
  std::map<std::tuple<CellKind, int32_t, int32_t>, int64_t> max_of_step_;
};

}  // namespace

void number_compute(std::vector<Op>& ops, std::string_view format, Diagnostics& diagnostics) {
  if (!any_unnumbered(ops, is_compute)) return;
  int64_t numbered = 0, unnumbered = 0;
  const auto rows = rows_where(ops, [](const Op& op) { return is_compute(op.kind); });
  const GroupSizes sizes(ops, rows);
  for_each_group(
      ops, rows, [](const Op& op) { return std::tuple(op.rank, op.step, op.kind, op.chunk); },
      [](const Op& op) { return op.start_ns; },
      [&](std::span<const uint32_t> group) {
        if (group.size() > static_cast<size_t>(kMaxMicroBatchNumber)) return;
        for (const uint32_t i : group)
          if (ops[i].micro_batch != kUnknown) return;
        if (sizes.lacks_some(ops[group.front()])) {
          unnumbered += static_cast<int64_t>(group.size());
          return;
        }
        int32_t next = 0;
        for (const uint32_t i : group) ops[i].micro_batch = next++;
        numbered += next;
      });
  diagnostics.add(problem::reader_micro_batches_numbered.of(format), {}, numbered);
  diagnostics.add(problem::reader_micro_batches_unknown.of(format), {}, unnumbered);
}

void number_messages(std::vector<Op>& ops, std::string_view format, Diagnostics& diagnostics) {
  if (!any_unnumbered(ops, is_message)) return;
  int64_t numbered = 0;
  const auto rows = rows_where(ops, [](const Op& op) {
    return is_forward(op.kind) || is_backward(op.kind) || (is_message(op.kind) && op.micro_batch == kUnknown);
  });
  for_each_group(
      ops, rows, [](const Op& op) { return std::tuple(op.rank, op.step); },
      // Within the group, rows go by kind; messages then as the source counts them, and everything by start.
      [](const Op& op) { return std::tuple(op.kind, is_message(op.kind) ? op.sequence : 0, op.start_ns); },
      [&](std::span<const uint32_t> group) {
        std::vector<uint32_t> forwards, backwards;
        for (const uint32_t i : group) {
          if (is_forward(ops[i].kind)) forwards.push_back(i);
          if (is_backward(ops[i].kind)) backwards.push_back(i);
        }
        const auto by_start = [&](uint32_t a, uint32_t b) { return ops[a].start_ns < ops[b].start_ns; };
        sort_stably(forwards, by_start);
        sort_stably(backwards, by_start);
        for (const CellKind kind :
             {CellKind::kSendForward, CellKind::kRecvForward, CellKind::kSendBackward, CellKind::kRecvBackward}) {
          const auto begin = std::ranges::find_if(group, [&](uint32_t i) { return ops[i].kind == kind; });
          const auto end = std::find_if(begin, group.end(), [&](uint32_t i) { return ops[i].kind != kind; });
          const std::span<const uint32_t> messages(begin, end);
          const bool forward = is_of_forward(kind);
          const std::vector<uint32_t>& work = forward ? forwards : backwards;
          if (messages.empty() || !belong_together(ops, work, messages)) continue;
          for (size_t k = 0; k < work.size(); ++k) {
            ops[messages[k]].micro_batch = ops[work[k]].micro_batch;
            ops[messages[k]].chunk = 0;
          }
          numbered += static_cast<int64_t>(messages.size());
        }
      });
  diagnostics.add(problem::reader_message_micro_batches.of(format), {}, numbered);
}

}  // namespace stageline
