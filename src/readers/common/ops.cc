#include "readers/common/ops.h"

#include "base/freed_memory.h"
#include "base/sorting.h"
#include "model/intervals.h"
#include "model/problems.h"

namespace stageline {

namespace {

std::map<int32_t, Span> step_spans(const std::vector<Op>& ops) {
  std::map<int32_t, Span> spans;
  Span* span = nullptr;
  int32_t step = kUnknown;
  for (const Op& op : ops) {
    if (op.step == kUnknown) continue;
    if (!span || op.step != step) span = &spans[step = op.step];
    span->add(op.start_ns, op.end_ns);
  }
  return spans;
}

// Sorts stably, in place: rows are what takes most memory.
void sort_by_lanes(std::vector<Op>& ops) {
  auto order = indexes<uint32_t>(ops.size());
  sort_by_numbers(order, [&](uint32_t i) { return std::array{ops[i].rank, static_cast<int32_t>(ops[i].lane)}; });
  for (uint32_t at = 0; at < order.size(); ++at) {  // one cycle of the permutation
    const Op first = ops[at];
    uint32_t to = at;
    for (uint32_t from; (from = std::exchange(order[to], to)) != at; to = from) ops[to] = ops[from];
    ops[to] = first;
  }
}

}  // namespace

void append_ops(std::vector<Op> of_file, const StringPool& names, Trace& trace, std::vector<Op>& ops) {
  std::vector<StringId> id(names.size());
  for (StringId name = 0; name < id.size(); ++name) id[name] = trace.names.intern(names.text(name));
  for (Op& op : of_file) op.name_id = id[op.name_id];
  if (ops.empty()) ops = std::move(of_file);
  else ops.insert(ops.end(), of_file.begin(), of_file.end());
}

bool steps_restart(const std::vector<Op>& ops) {
  // Spans are kept per rank: where clocks are hours apart the steps of different ranks overlap, though no clock
  // restarts.
  std::map<std::pair<int32_t, int32_t>, Span> spans;  // (rank, step)
  Span* span = nullptr;
  std::pair<int32_t, int32_t> last{};
  for (const Op& op : ops) {
    if (op.step == kUnknown) continue;
    if (const std::pair place(op.rank, op.step); !span || place != last) span = &spans[last = place];
    span->add(op.start_ns, op.end_ns);
  }
  int64_t restarts = 0, pairs = 0;
  for (auto at = spans.begin(); at != spans.end(); ++at) {
    const auto next = std::next(at);
    if (next == spans.end() || next->first.first != at->first.first) continue;
    ++pairs;
    restarts += next->second.start_ns < at->second.start_ns + (at->second.end_ns - at->second.start_ns) / 2;
  }
  return restarts * 2 > pairs;
}

bool lay_steps_end_to_end(std::vector<Op>& ops, const std::map<int32_t, int64_t>* min_ns) {
  std::map<int32_t, int64_t> shift;
  int64_t at = 0;
  for (const auto& [step, span] : step_spans(ops)) {
    int64_t length = span.end_ns - span.start_ns, zero = span.start_ns;
    if (min_ns) {  // counts from the step's own zero, so that time before its first cell is not lost
      const auto min = min_ns->find(step);
      zero = std::min<int64_t>(0, span.start_ns);
      length = std::max(span.end_ns - zero, min == min_ns->end() ? 0 : min->second);
    }
    shift[step] = at - zero;
    if (__builtin_add_overflow(at, length, &at) || at > kMaxTimeNs) return false;
  }
  for (Op& op : ops) {
    if (op.step == kUnknown) continue;
    op.start_ns += shift[op.step];
    op.end_ns += shift[op.step];
  }
  return true;
}

std::vector<std::string> kind_lane_names() {
  std::vector<std::string> names;
  for (int lane = 0; lane < kLaneCount; ++lane) names.emplace_back(lane_name(lane));
  return names;
}

void build_parts(std::vector<Op>& ops, const std::vector<std::string>& lanes, const std::vector<std::string>& sources,
                 Trace& trace) {
  sort_by_lanes(ops);
  trace.cells.reserve(ops.size());
  for (size_t begin = 0; begin < ops.size();) {
    const Op first = ops[begin];
    if (trace.parts.empty() || trace.parts.back().rank != first.rank) {
      Part part;
      part.rank = first.rank;
      part.stage = first.stage;
      part.dp = first.dp;
      part.source = sources[first.file];
      trace.parts.push_back(std::move(part));
    }
    size_t end = begin;
    while (end < ops.size() && ops[end].rank == first.rank && ops[end].lane == first.lane) ++end;
    Slices rows;
    rows.start_ns.reserve(end - begin);
    rows.dur_ns.reserve(end - begin);
    rows.name_id.reserve(end - begin);
    rows.file_index.reserve(end - begin);
    for (size_t k = begin; k < end; ++k) {
      const Op& op = ops[k];
      rows.start_ns.push_back(op.start_ns);
      rows.dur_ns.push_back(op.end_ns - op.start_ns);
      rows.name_id.push_back(op.name_id);
      rows.file_index.push_back(op.file_index);
    }
    const std::vector<uint32_t> slice = trace.parts.back().add_lane(lanes[first.lane], rows);
    for (size_t k = begin; k < end; ++k) {
      const Op& op = ops[k];
      if (!op.is_cell) continue;
      const int32_t chunk = op.chunk == kUnknown && is_compute(op.kind) ? 0 : op.chunk;
      trace.cells.add({op.step, static_cast<int32_t>(trace.parts.size() - 1), op.kind, chunk, op.micro_batch,
                       op.start_ns, op.end_ns, slice[k - begin]});
    }
    static_assert(std::is_trivially_destructible_v<Op>);  // no destructor reads the lost content
    return_pages(&ops[begin], ops.data() + end);
    begin = end;
  }
  std::vector<Op>().swap(ops);
  trace.cells.sort();
}

void count_duplicates(const Trace& trace, std::string_view format, Diagnostics& diagnostics) {
  // Where steps are missing, work repeats for that reason, and the warning about it has been given.
  const std::string missing = std::string(format) + ".steps_missing";
  for (const Diagnostic& d : diagnostics.items())
    if (d.name == missing) return;
  const Cells& cells = trace.cells;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < cells.size(); ++i)
    if (is_compute(cells.kind[i]) && cells.micro_batch[i] != kUnknown) order.push_back(i);
  const auto key = [&](uint32_t i) {
    return std::array{cells.part[i], cells.step[i], static_cast<int32_t>(cells.kind[i]), cells.chunk[i],
                      cells.micro_batch[i]};
  };
  sort_by_numbers(order, key);
  for (size_t k = 1; k < order.size(); ++k) {
    if (key(order[k]) != key(order[k - 1])) continue;
    const Part& part = trace.parts[cells.part[order[k]]];
    diagnostics.add(problem::reader_duplicate_cells.of(format), {part.source});
  }
}

}  // namespace stageline
