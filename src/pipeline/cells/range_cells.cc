#include "base/json_members.h"
#include "model/message_names.h"
#include "model/torch_facts.h"
#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/problems.h"

namespace stageline {
namespace {

// Returns the schedule that metadata name (pp_info.pp_type), spelt as this program spells it; "" when they name none.
std::string named_schedule(const Trace& trace) {
  for (const Part& part : trace.parts) {
    std::string type = json_text(json_member(meta_json(part, "pp_info"), "pp_type"));
    std::erase_if(type, [](char c) { return c == '-' || c == '_' || c == ' '; });
    type = to_lower(type);
    if (type == "dualpipev") return "dualpipe-v-mindspeed";
    if (type == "dualpipe" || type == "1f1b" || type == "vpp" || type == "fthenb") return type;
    if (type == "interleaved") return "vpp";
    if (!type.empty()) return {};
  }
  return {};
}

constexpr size_t kMaxOffRanks = 16;  // the deviations of this number of ranks are reported one by one

class RangeCellMaker {
 public:
  RangeCellMaker(Trace& trace, RangeFindings& found, const RankLayoutOptions& options)
      : trace_(trace), found_(found), options_(options) {}

  void make() {
    found_.lists = find_row_lists(trace_, found_.rows);
    if (!place_ranks(trace_, options_)) lay_out_by_rows();
    found_.labels = label_rows(trace_, found_.rows, found_.lists, named_schedule(trace_));
    forget_doubtful_steps();
    chunks_ = found_.labels.proven() ? found_.labels.chunks : chunks_known();
    add_work();
    add_messages();
    add_collectives();
    trace_.cells.sort();
    say();
  }

 private:
  RangeRows& rows() { return found_.rows; }

  // The assignment of ranks to stages is not recorded. The stages that messages give for their own ranks are used, else
  // the order of the rows.
  void lay_out_by_rows() {
    bool all_stated = true;
    std::map<int32_t, int32_t> replicas;
    int32_t stages = 0;
    for (size_t p = 0; p < trace_.parts.size(); ++p) {
      const auto& own = rows().parts[p];
      if (own.empty()) continue;
      all_stated = all_stated && own.front().stage != kUnknown && own.front().stage < static_cast<int32_t>(kMaxStages);
      if (all_stated) stages = std::max(stages, own.front().stage + 1);
    }
    if (all_stated && stages > 0) {
      for (size_t p = 0; p < trace_.parts.size(); ++p) {
        if (rows().parts[p].empty()) continue;
        trace_.parts[p].stage = rows().parts[p].front().stage;
        trace_.parts[p].dp = replicas[trace_.parts[p].stage]++;
      }
      trace_.pipeline_stages = std::max(stages, options_.pp);
      trace_.diagnostics.add(problem::cells_stages_ranges, Args().count("stages", stages));
      return;
    }
    for (const RowList& list : found_.lists.lists)
      for (size_t i = list.begin; i < list.end; ++i) {
        const RangeRow& row = rows().parts[list.part][i];
        if (is_compute(row.kind))
          trace_.cells.add(
              {list.step, static_cast<int32_t>(list.part), row.kind, 0, kUnknown, row.start_ns, row.end_ns, row.slice});
      }
    trace_.cells.sort();
    if (!infer_layout(trace_, options_)) trace_.pipeline_stages = 0;
    trace_.cells = {};
  }

  // A list outside the recorded steps that is not a whole step of the schedule loses its step number.
  void forget_doubtful_steps() {
    for (size_t l = 0; l < found_.lists.lists.size(); ++l) {
      RowList& list = found_.lists.lists[l];
      if (!list.guessed || !found_.lists.any_recorded) continue;
      if (found_.labels.list_proven[l]) {
        ++own_steps_;
        continue;
      }
      list.step = kUnknown;
      outside_ += static_cast<int64_t>(list.end - list.begin);
    }
  }

  int32_t chunks_known() {
    int32_t chunks = 1;
    bool overlaps = false;
    for (const auto& part : rows().parts)
      for (const RangeRow& row : part) {
        chunks = std::max({chunks, row.chunk + 1, row.other_chunk + 1});
        overlaps |= row.kind == CellKind::kForwardBackward;
      }
    return overlaps ? std::max(chunks, 2) : chunks;
  }

  void add_work() {
    for (const RowList& list : found_.lists.lists) {
      const std::vector<RangeRow>& own = rows().parts[list.part];
      for (size_t i = list.begin; i < list.end; ++i) {
        const RangeRow& row = own[i];
        Cell cell{list.step, static_cast<int32_t>(list.part), row.kind, 0, kUnknown, row.start_ns, row.end_ns,
                  row.slice};
        const ExpectedRow& label = found_.labels.rows[list.part][i];
        if (is_compute(row.kind) && label.action_count > 0) {
          for (int a = 0; a < label.action_count; ++a) {
            cell.kind = label.actions[a].kind;
            cell.chunk = label.actions[a].chunk;
            cell.micro_batch = label.actions[a].micro_batch;
            trace_.cells.add(cell);
          }
          continue;
        }
        const bool compute = is_compute(row.kind);
        cell.chunk = row.chunk != kUnknown ? row.chunk : compute && chunks_ > 1 ? kUnknown : 0;
        cell.micro_batch = row.micro_batch;
        if (row.kind == CellKind::kForwardBackward) {
          cell.kind = CellKind::kForward;
          trace_.cells.add(cell);
          cell.kind = CellKind::kBackward;
          cell.chunk = row.other_chunk;
          cell.micro_batch = row.other_micro_batch;
        } else if (!row.whole && i + 1 < list.end && own[i + 1].kind == CellKind::kWeightGrad) {
          cell.kind = CellKind::kInputGrad;  // the half that computes weight gradients follows it
        }
        trace_.cells.add(cell);
      }
    }
  }

  void add_messages() {
    Schedule shape;
    shape.sizes.stages = std::max(1, trace_.pipeline_stages);
    if (found_.labels.proven()) shape = found_.labels.made.front().schedule;
    RowOrder order(trace_, rows(), shape);
    for (const RowList& list : found_.lists.lists)
      for (size_t i = list.begin; i < list.end; ++i)
        if (const ExpectedRow& label = found_.labels.rows[list.part][i]; label.action_count > 0)
          order.add(list, static_cast<uint32_t>(i), label);
    order.finish();
    messages_ = find_range_messages(trace_, found_.lists, rows(), order, chunks_);
    for (const Cell& cell : messages_.cells) trace_.cells.add(cell);
  }

  // Adds collectives that run next to the work; collectives within a cell are part of its time.
  void add_collectives() {
    std::vector<std::vector<RowList>> lists(trace_.parts.size());
    for (const RowList& list : found_.lists.lists)
      if (list.end > list.begin) lists[list.part].push_back(list);
    for (uint32_t p = 0; p < trace_.parts.size(); ++p) {
      const Part& part = trace_.parts[p];
      const std::vector<RangeRow>& own = rows().parts[p];
      for (const Lane& lane : part.lanes) {
        if (lane.kind != LaneKind::kDeviceStream && part.slices.has_facts()) continue;
        auto fact = std::ranges::lower_bound(part.collectives, lane.begin, {}, &CollectiveFact::slice);
        for (; fact != part.collectives.end() && fact->slice < lane.end; ++fact) {
          if (is_message_name(trace_.names.text(fact->name))) continue;
          const int64_t start = part.slices.start_ns[fact->slice], end = part.slices.end_ns(fact->slice);
          const auto after =
              std::ranges::partition_point(own, [&](const RangeRow& row) { return row.start_ns <= start; });
          if (after != own.begin() && end <= (after - 1)->end_ns) continue;
          const auto list =
              std::ranges::partition_point(lists[p], [&](const RowList& l) { return own[l.begin].start_ns <= start; });
          if (list == lists[p].begin() || (list - 1)->step == kUnknown) continue;
          trace_.cells.add(
              {(list - 1)->step, static_cast<int32_t>(p), CellKind::kCollective, 0, kUnknown, start, end, fact->slice});
        }
      }
    }
  }

  void say() {
    Diagnostics& notes = trace_.diagnostics;
    const RangeRows& r = rows();
    const RangeLabels& labels = found_.labels;
    notes.add(problem::cells_from_ranges, Args()
                                              .set("rules", r.set)
                                              .count("names", r.names)
                                              .count("ranges", r.ranges)
                                              .flag("several", !(r.names == 1))
                                              .set("example", valid_utf8(r.example)));
    notes.add(problem::cells_no_device, {}, r.without_device);
    notes.add(problem::cells_nested, {}, r.nested);
    if (r.empty_pops > 0)
      notes.add(problem::cells_empty_pop, Args().set("rank", std::to_string(trace_.parts[r.empty_pop_part].rank)), {},
                r.empty_pops);
    notes.add(problem::cells_bad_number, {}, r.out_of_range);
    if (!found_.lists.any_recorded) notes.add(problem::cells_steps_ranges);
    else if (own_steps_ > 0) notes.add(problem::cells_steps_missing, {}, own_steps_);
    notes.add(problem::cells_outside_steps, {}, outside_);
    if (labels.proven()) say_schedule(labels);
    else
      notes.add(problem::cells_unproven, Args().set("why_not", labels.why_not), {},
                std::max<int64_t>(labels.unknown, 1));
    say_off();
    notes.add(problem::cells_unknown_messages, {}, messages_.unknown);
  }

  void say_schedule(const RangeLabels& labels) {
    const Schedule& s = labels.made.front().schedule;
    Diagnostics& notes = trace_.diagnostics;
    if (labels.fitting > 1)
      notes.add(problem::cells_several_schedules,
                Args().set("schedule", s.name).count("micro_batches", s.sizes.micro_batches), {}, labels.fitting);
    const Text offset = labels.made.front().offset
                            ? words("cells.schedule.offset", Args().set("from", int64_t{s.sizes.micro_batches}))
                            : Text();
    notes.add(problem::cells_schedule, Args()
                                           .flag("chunks", s.sizes.chunks > 1)
                                           .set("schedule", s.name)
                                           .count("micro_batches", s.sizes.micro_batches)
                                           .set("checked", grouped(labels.checked))
                                           .set("wrong", labels.wrong == 0 ? "" : grouped(labels.wrong))
                                           .set("offset", offset));
    say_contradicted(labels);
    if (s.sizes.dw_detach) notes.add(problem::cells_dw_detached);
    notes.add(problem::cells_unlabelled, {}, labels.unknown);
  }

  // Says if pp_info names another schedule or number of micro-batches than the marks show.
  void say_contradicted(const RangeLabels& labels) {
    std::string_view info;
    for (const Part& part : trace_.parts)
      if (info.empty()) info = meta_json(part, "pp_info");
    const std::string named = named_schedule(trace_);
    const auto count = json_integer(json_member(info, "microbatch_num"));
    const Schedule& s = labels.made.front().schedule;
    const bool other_count = count && std::ranges::all_of(labels.made, [&](const RowHypothesis& hypothesis) {
                               return *count != hypothesis.schedule.sizes.micro_batches;
                             });
    if (!other_count && (named.empty() || named == s.name)) return;
    trace_.diagnostics.add(problem::cells_metadata_contradicted, Args()
                                                                     .set("said", valid_utf8(info.substr(0, 80)))
                                                                     .set("schedule", s.name)
                                                                     .count("micro_batches", s.sizes.micro_batches));
  }

  void say_off() {
    const std::vector<OffSchedule>& off = found_.labels.off;
    std::vector<uint32_t> reported;
    std::map<uint32_t, int64_t> steps;
    for (const OffSchedule& one : off) ++steps[one.part];
    for (const OffSchedule& one : off) {
      if (std::ranges::find(reported, one.part) != reported.end()) continue;
      if (reported.size() == kMaxOffRanks) break;
      reported.push_back(one.part);
      const std::string rank = std::to_string(trace_.parts[one.part].rank);
      trace_.diagnostics.add(problem::cells_off_schedule.on("rank_" + rank),
                             Args()
                                 .set("rank", rank)
                                 .set("step", int64_t{one.step})
                                 .set("row", grouped(one.row + 1))
                                 .set("expected", one.expected)
                                 .set("found", one.found)
                                 .set("why", one.why),
                             {}, steps[one.part]);
    }
    say_lost(off);
  }

  // Reports work without a mark: nothing is drawn at its time, but its rank was not waiting.
  void say_lost(const std::vector<OffSchedule>& off) {
    int64_t lost = 0, lost_ns = 0;
    const OffSchedule* first = nullptr;
    for (const OffSchedule& one : off) {
      if (one.lost == 0) continue;
      if (!first) first = &one;
      lost += one.lost;
      lost_ns = sum_or_limit(lost_ns, one.lost_ns);
    }
    if (!first) return;
    trace_.diagnostics.add(problem::cells_lost_marks,
                           Args()
                               .set("cell", first->lost_first)
                               .set("rank", std::to_string(trace_.parts[first->part].rank))
                               .set("step", std::to_string(first->step))
                               .set("time", human_duration(lost_ns)),
                           {}, lost);
  }

  static constexpr size_t kMaxStages = 4096;
  Trace& trace_;
  RangeFindings& found_;
  const RankLayoutOptions& options_;
  RangeMessages messages_;
  int32_t chunks_ = 1;
  int64_t outside_ = 0;    // rows without a step
  int64_t own_steps_ = 0;  // lists outside the recorded steps that are a whole step
};

}  // namespace

bool find_range_cells(Trace& trace, const CellRules& rules, const TorchCellOptions& options, RangeFindings* findings) {
  if (options.source == CellSource::kOff || options.source == CellSource::kInferred) return false;
  RangeFindings own;
  RangeFindings& found = findings ? *findings : own;
  found.rows = find_range_rows(trace, rules, options.layout.pp > 1 || known_layout(trace, {}).stages > 1);
  if (found.rows.unknown_names > 0)
    trace.diagnostics.add(
        problem::cells_unknown_ranges,
        Args().count("ranges", found.rows.unknown_ranges).set("example", valid_utf8(found.rows.unknown_example)));
  if (found.rows.set.empty()) return false;
  const bool any = std::ranges::any_of(found.rows.parts, [](const auto& part) { return !part.empty(); });
  if (!any) {
    trace.diagnostics.add(problem::cells_no_device_none, {}, std::max<int64_t>(found.rows.without_device, 1));
    return false;
  }
  RangeCellMaker(trace, found, options.layout).make();
  return trace.cells.size() > 0;
}

}  // namespace stageline
