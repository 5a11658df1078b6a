#include "base/input.h"
#include "readers/ascend/problems.h"
#include "readers/ascend/text_trace.h"

namespace stageline::ascend {
namespace {

constexpr size_t kMaxMetadataBytes = size_t{64} << 20;

void read_metadata(const RankFiles& files, Part& part, Diagnostics& notes) {
  const auto text_of = [&](const std::string& path) -> std::string {
    if (path.empty()) return {};
    Result<std::string> text = read_all(path, kMaxMetadataBytes);
    if (text) return std::move(*text);
    notes.add(problem::ascend_unreadable_text, Args().set("why", error_text(text.error())), {path});
    return {};
  };
  if (part.metadata.empty()) part.metadata = metadata_of(text_of(files.profiler_metadata));
  const bool known =
      std::ranges::any_of(part.metadata, [](const MetaField& field) { return field.key == "profiler_info"; });
  if (known) return;
  if (std::string info = text_of(files.profiler_info); !info.empty()) {
    if (!trim(info).ends_with('}')) notes.add(problem::ascend_unreadable_text_cut, {files.profiler_info});
    part.metadata.push_back({"profiler_info", std::move(info)});
  }
}

// The profiler's own sums, from the database of sums if there is one, else from text.
class Sums {
 public:
  Sums(const RankFiles& files, int32_t device, Diagnostics& notes) : notes_(notes) {
    if (!files.analysis_db.empty()) {
      if (Result<AnalysisSums> db = read_analysis_db(files.analysis_db, device, notes)) {
        steps = std::move(db->steps);
        communication = std::move(db->communication);
        rows = db->rows;
        read = true;
      } else {
        failed(db.error());
      }
    }
    if (steps.empty() && !files.step_trace_time.empty()) {
      if (Result<std::vector<StepSummary>> csv = read_step_trace_time(files.step_trace_time, notes)) {
        steps = std::move(*csv);
        rows += static_cast<int64_t>(steps.size());
        read = true;
      } else {
        failed(csv.error());
      }
    }
    if (communication.ops.empty() && !files.communication.empty()) {
      const Status status = read_communication(files.communication, communication, notes);
      take(status, communication.ops.size());
    }
    if (communication.links.empty() && !files.communication_matrix.empty()) {
      const Status status = read_communication_matrix(files.communication_matrix, communication, notes);
      take(status, communication.links.size());
    }
  }

  std::vector<StepSummary> steps;
  CommunicationSums communication;
  int64_t rows = 0;
  bool read = false;  // some file could be read
  Error error;        // the first error

 private:
  void take(const Status& status, size_t count) {
    if (!status) return failed(status.error());
    rows += static_cast<int64_t>(count);
    read = true;
  }
  void failed(const Error& why) {
    if (error.what.empty()) error = why;
    notes_.add(problem::ascend_unreadable_text, Args().set("why", error_text(why)), why.where);
  }

  Diagnostics& notes_;
};

void keep_summaries(Sums& sums, Part& part, Diagnostics& notes) {
  part.step_summaries = std::move(sums.steps);
  part.link_summaries = sums.communication.links;
  if (part.link_summaries.empty()) return;
  const int64_t unknown = make_links_global(ProcessGroups(part.metadata), part.rank, part.link_summaries);
  notes.add(problem::ascend_link_ranks, {part.source}, unknown);
}

// Uses the rows of kernel_details.csv: all of them, or only what they add to rows that trace_view.json has.
class Kernels {
 public:
  Kernels(const KernelTable& table, PartBuilder& builder) : table_(table), builder_(builder) {}

  // `only_step` is the profiler's number if it summed up one step and rows name none; else −1.
  void add_all(std::vector<OperationRow>& operations, int64_t only_step) {
    std::map<int64_t, std::pair<int64_t, int64_t>> steps;  // number → (start, end)
    for (const KernelRow& row : table_.rows) {
      const int64_t end = row.start_ns + row.dur_ns;
      if (const int64_t step = row.step >= 0 ? row.step : only_step; step >= 0) {
        const auto [it, added] = steps.try_emplace(step, row.start_ns, end);
        it->second = {std::min(it->second.first, row.start_ns), std::max(it->second.second, end)};
      }
      if (row.communication) {
        operations.push_back({std::string(table_.texts.text(row.name)), row.step, row.start_ns, row.dur_ns,
                              std::max<int64_t>(row.device, 0)});
        continue;
      }
      const int64_t device = std::max<int64_t>(row.device, 0);
      const uint32_t lane =
          row.stream >= 0 ? builder_.stream_lane(device, row.stream) : builder_.named_stream_lane(device, "device");
      const uint32_t at =
          builder_.add(lane, RowKind::kKernel, row.start_ns, end, builder_.text(table_.texts.text(row.name)));
      if (at != kNoRow) add_facts(row, at);
    }
    // A device's step lasts from its first row to its last, but never into the next step.
    for (auto it = steps.begin(); it != steps.end(); ++it) {
      const auto next = std::next(it);
      int64_t end = it->second.second;
      if (next != steps.end() && next->second.first > it->second.first) end = std::min(end, next->second.first);
      builder_.step(it->first, it->second.first, end);
    }
  }

  void add_facts_to(const RowsByStart& rows) {
    for (const KernelRow& row : table_.rows) {
      const auto it = rows.find(row.start_ns);
      if (row.communication || it == rows.end()) continue;
      const std::string_view name = table_.texts.text(row.name);
      for (const KernelAt& kernel : it->second)
        if (builder_.text_of(kernel.name) == name) {
          add_facts(row, kernel.row);
          break;
        }
    }
  }

 private:
  void add_facts(const KernelRow& row, uint32_t at) {
    if (row.blocks > 0)
      builder_.kernels.push_back({.slice = at, .grid = builder_.text("[" + std::to_string(row.blocks) + ", 1, 1]")});
    if (row.type != 0 || row.core != 0) {
      TaskFact task{.slice = at};
      task.op_type = builder_.text(table_.texts.text(row.type));
      task.unit = builder_.text(table_.texts.text(row.core));
      builder_.tasks.push_back(task);
    }
    if (row.shapes == 0 && row.dtypes == 0) return;
    InputFact fact{.slice = at,
                   .dims = builder_.text(table_.texts.text(row.shapes)),
                   .types = builder_.text(table_.texts.text(row.dtypes))};
    builder_.inputs.push_back(fact);
  }

  const KernelTable& table_;
  PartBuilder& builder_;
};

Status fill(const RankFiles& files, const ReadOptions& options, PartBuilder& builder) {
  Part& part = builder.part;
  Diagnostics& notes = builder.notes;
  part.rank = files.rank;
  read_metadata(files, part, notes);
  const ProcessGroups groups(part.metadata);
  Sums sums(files, part.device, notes);
  Error error = sums.error;
  bool read = sums.read;
  const auto failed = [&](const Error& why) {
    if (error.what.empty()) error = why;
    notes.add(problem::ascend_unreadable_text, Args().set("why", error_text(why)), why.where);
  };

  std::vector<OperationRow> operations;
  RowsByStart rows_by_start;
  OperationLinks links;
  bool has_slices = false, has_kernels = false;
  int64_t rows = sums.rows;
  if (!files.trace_view.empty()) {
    if (Result<TextTrace> trace = read_trace_view(files.trace_view, notes, options.progress)) {
      rows += trace->events;
      has_slices = has_kernels = read = true;
      links = add_trace_slices(*trace, groups, builder, operations,
                               files.kernel_details.empty() ? nullptr : &rows_by_start);
    } else {
      failed(trace.error());
    }
  }
  if (!files.kernel_details.empty()) {
    if (const Result<KernelTable> table = read_kernel_details(files.kernel_details, notes, options.progress)) {
      read = has_kernels = true;
      Kernels kernels(*table, builder);
      if (has_slices) {
        kernels.add_facts_to(rows_by_start);
      } else {
        kernels.add_all(operations, sums.steps.size() == 1 ? sums.steps[0].step : -1);
        rows += static_cast<int64_t>(table->rows.size());
      }
    } else {
      failed(table.error());
    }
  }
  if (!read) {
    if (error.what.empty())
      error = {ErrorCode::kBadInput, "no text export that could be read", {files.folder}, "export the profile anew"};
    return error;
  }
  // The sums say that the device computed, but no file says what.
  const bool computed = std::ranges::any_of(sums.steps, [](const StepSummary& step) { return step.computing_ns > 0; });
  if (!has_kernels && computed) notes.add(problem::ascend_no_kernels, {part.source});
  add_operations(operations, sums.communication, groups, builder);
  link_operations(links, operations, builder);
  keep_summaries(sums, part, notes);
  part.event_count = std::max<int64_t>({part.event_count, rows, 1});
  return {};
}

// Device work that has no step by its launch belongs to the step whose window contains its start.
void place_device_work_in_steps(Part& part) {
  if (part.steps.empty()) return;
  for (const Lane& lane : part.lanes) {
    if (lane.kind != LaneKind::kDeviceStream) continue;
    for (size_t i = lane.begin; i < lane.end; ++i) {
      if (part.slices.step[i] != 0 || part.slices.partner[i] != kNoSliceIndex) continue;
      const int64_t start = part.slices.start_ns[i];
      const auto after = std::ranges::upper_bound(part.steps, start, {}, &ProfilerStep::start_ns);
      if (after != part.steps.begin() && start < (after - 1)->end_ns)
        part.slices.step[i] = static_cast<uint16_t>(after - part.steps.begin());
    }
  }
}

}  // namespace

RankPart read_rank_text(const RankFiles& files, const ReadOptions& options) {
  RankPart result;
  const std::string* source = &files.folder;
  for (const std::string* file :
       {&files.step_trace_time, &files.analysis_db, &files.communication, &files.kernel_details, &files.trace_view})
    if (!file->empty()) source = file;
  PartBuilder builder(*source);
  if (Status s = fill(files, options, builder); !s) {
    result.error = std::move(s).error();
  } else {
    result.part = builder.finish(result.names);
    place_device_work_in_steps(result.part);
  }
  result.notes = std::move(builder.notes);
  return result;
}

void add_summaries(const RankFiles& files, Part& part, Diagnostics& notes) {
  Sums sums(files, part.device, notes);
  part.event_count += sums.rows;
  keep_summaries(sums, part, notes);
}

}  // namespace stageline::ascend
