#include "model/trace.h"

#include "base/parallel.h"

namespace stageline {

std::vector<uint32_t> Part::add_lane(std::string name, const Slices& rows) {
  auto order = indexes<uint32_t>(rows.size());
  const auto key = [&](uint32_t i) { return std::tuple(rows.start_ns[i], -rows.dur_ns[i], rows.file_index[i], i); };
  // Rows that follow each other in the file keep its order, also where timestamps are so rough that two begin at once.
  int64_t end_ns = INT64_MIN;
  bool follow = std::ranges::is_sorted(rows.file_index);
  for (size_t i = 0; i < rows.size() && follow; ++i) {
    follow = rows.start_ns[i] >= end_ns;
    end_ns = rows.start_ns[i] + rows.dur_ns[i];
  }
  if (!follow) std::ranges::sort(order, {}, key);
  const size_t begin = slices.size();
  std::vector<uint32_t> new_index(rows.size());
  for (size_t k = 0; k < order.size(); ++k) {
    const uint32_t i = order[k];
    new_index[i] = static_cast<uint32_t>(begin + k);
    slices.start_ns.push_back(rows.start_ns[i]);
    slices.dur_ns.push_back(rows.dur_ns[i]);
    slices.name_id.push_back(rows.name_id[i]);
    slices.file_index.push_back(rows.file_index[i]);
  }
  lanes.push_back({std::move(name), begin, slices.size()});
  return new_index;
}

std::string_view clock_name(ClockState clock) {
  static constexpr auto kTexts =
      texts_by<ClockState::kAligned>({"shared", "unaligned", "per-rank", "partly-aligned", "aligned"});
  return kTexts[clock];
}

Cells Trace::common_cells() const {
  Cells common = cells;
  for (size_t i = 0; i < common.size(); ++i) {
    common.start_ns[i] = common_start_ns(i);
    common.end_ns[i] = common_end_ns(i);
  }
  return common;
}

Cell Trace::common_cell(size_t cell) const {
  Cell common = cells.at(cell);
  common.start_ns = common_start_ns(cell);
  common.end_ns = common_end_ns(cell);
  return common;
}

size_t Trace::slice_count() const {
  return sum_over<size_t>(parts, [](const Part& part) { return part.slices.size(); });
}

int32_t Trace::machine_count() const {
  std::set<int32_t> machines = mapped<std::set>(parts, &Part::machine);
  return static_cast<int32_t>(machines.size());
}

int64_t Trace::alignment_half_ns() const { return clock_summary(*this).half_ns; }

ClockSummary clock_summary(const Trace& trace) {
  ClockSummary out;
  if (trace.alignment == AlignState::kRaw) return out;
  std::map<int32_t, int64_t> ranks_of;  // reference → number of ranks on its clock
  const auto reference = [](const Part& part) {
    int32_t of = part.clock_map.segments.empty() ? -1 : part.clock_map.segments.front().reference_rank;
    for (const ClockSegment& s : part.clock_map.segments)
      if (s.reference_rank != of) of = -1;
    return of;
  };
  std::set<ClockEvidence> by;
  bool bounded = true, estimated = true;
  for (const Part& part : trace.parts) {
    if (const int32_t of = reference(part); of >= 0) ++ranks_of[of];
    for (const ClockSegment& s : part.clock_map.segments) {
      if (!is_measured(s.evidence)) continue;
      by.insert(s.evidence);
      bounded = bounded && s.offset_half_ns >= 0;
      estimated = estimated && s.offset_error_ns >= 0;
      out.half_ns = std::max(out.half_ns, s.offset_half_ns);
      out.error_ns = std::max(out.error_ns, s.offset_error_ns);
    }
  }
  if (!bounded) out.half_ns = -1;
  if (!estimated) out.error_ns = -1;
  out.by.assign(by.begin(), by.end());
  if (out.by.empty()) return out;
  const auto max = std::ranges::max_element(ranks_of, [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const Part& part : trace.parts)
    if (max == ranks_of.end() || reference(part) != max->first) out.untied.push_back(part.rank);
  return out;
}

Text evidence_list(const std::vector<ClockEvidence>& evidence) {
  std::vector<Text> names;
  const auto add = [&](ClockEvidence one) {
    const std::string name(evidence_name(one)), known = "clocks.by." + name;
    Text text = has_words(known) ? words(known) : Text{name, name};
    if (one == ClockEvidence::kOperator) text.en = "an " + text.en;
    if (std::ranges::none_of(names, [&](const Text& other) { return other.en == text.en; }))
      names.push_back(std::move(text));
  };
  for (const ClockEvidence one : evidence) {
    if (one == ClockEvidence::kMixed) {
      add(ClockEvidence::kMessages);
      add(ClockEvidence::kCollectives);
    } else {
      add(one);
    }
  }
  Text out;
  for (size_t k = 0; k < names.size(); ++k) {
    if (k > 0) out += Text{k + 1 == names.size() ? " and " : ", ", "\u3001"};
    out += names[k];
  }
  return out;
}

std::string_view Trace::slice_name(const Cell& cell) const {
  if (cell.slice == kNoSlice) return {};
  const Part& part = parts[cell.part];
  return names.text(part.slices.name_id[cell.slice]);
}

Extent extent_of(const Trace& trace) {
  Extent extent;
  const Cells& cells = trace.cells;
  int32_t last_stage = -1, last_dp = -1;
  for (const Part& part : trace.parts) {
    last_stage = std::max(last_stage, part.stage);
    last_dp = std::max(last_dp, part.dp);
  }
  extent.stage_count = last_stage + 1;
  extent.dp_count = last_dp + 1;
  if (cells.size() == 0) return extent;
  struct Highest {
    int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;
    int32_t chunk = INT32_MIN, micro_batch = INT32_MIN;
  };
  constexpr size_t kBlock = size_t{1} << 18;
  std::vector<Highest> blocks((cells.size() + kBlock - 1) / kBlock);
  parallel_for(blocks.size(), [&](size_t b) {
    Highest own;
    for (size_t i = b * kBlock; i < std::min(cells.size(), (b + 1) * kBlock); ++i) {
      own.start_ns = std::min(own.start_ns, cells.start_ns[i]);
      own.end_ns = std::max(own.end_ns, cells.end_ns[i]);
      own.chunk = std::max(own.chunk, cells.chunk[i]);
      own.micro_batch = std::max(own.micro_batch, cells.micro_batch[i]);
    }
    blocks[b] = own;
  });
  Highest all;
  for (const Highest& own : blocks) {
    all.start_ns = std::min(all.start_ns, own.start_ns);
    all.end_ns = std::max(all.end_ns, own.end_ns);
    all.chunk = std::max(all.chunk, own.chunk);
    all.micro_batch = std::max(all.micro_batch, own.micro_batch);
  }
  extent.start_ns = all.start_ns;
  extent.end_ns = all.end_ns;
  extent.chunk_count = std::min(all.chunk, INT32_MAX - 1) + 1;  // labels may be any number, so + 1 must not overflow
  extent.micro_batch_count = std::min(all.micro_batch, INT32_MAX - 1) + 1;
  std::set<int32_t> steps;
  for (size_t i = 0; i < cells.size(); ++i)
    if (i == 0 || cells.step[i] != cells.step[i - 1]) steps.insert(cells.step[i]);  // cells come sorted by step
  steps.erase(kUnknown);
  extent.step_count = static_cast<int32_t>(steps.size());
  return extent;
}

std::string cell_label(const Cell& cell, bool with_chunk) {
  std::string label(kind_code(cell.kind));
  if (cell.micro_batch >= 0) label += std::to_string(cell.micro_batch);
  if (with_chunk && is_compute(cell.kind) && cell.chunk >= 0) label += ".c" + std::to_string(cell.chunk);
  return label;
}

void take_facts(Trace& trace, const Trace& one) {
  trace.format = one.format;
  trace.writer = one.writer;
  trace.description = one.description;
  trace.clock = one.clock;
  trace.steps_laid_end_to_end = one.steps_laid_end_to_end;
  trace.chunks_are_pieces = one.chunks_are_pieces;
  trace.messages_are_calls = one.messages_are_calls;
  trace.numbers_messages_per_rank = one.numbers_messages_per_rank;
  trace.device_family = one.device_family;
  trace.pipeline_stages = std::max(trace.pipeline_stages, one.pipeline_stages);
}

void filter_trace(Trace& trace, const std::vector<int32_t>& ranks, int64_t first_step, int64_t last_step) {
  const auto in_steps = [&](int32_t step) { return step >= first_step && step <= last_step; };
  std::vector<int32_t> new_part(trace.parts.size(), -1);
  std::vector<Part> kept;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!ranks.empty() && !std::ranges::binary_search(ranks, trace.parts[p].rank)) continue;
    new_part[p] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(trace.parts[p]));
  }
  trace.parts = std::move(kept);
  Cells& cells = trace.cells;
  cells.filter([&](size_t i) {
    return new_part[cells.part[i]] >= 0 &&
           (in_steps(cells.step[i]) || (cells.step[i] == kUnknown && first_step == INT64_MIN));
  });
  for (int32_t& part : cells.part) part = new_part[part];
  trace.links.clear();
}

}  // namespace stageline
