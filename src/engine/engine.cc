#include "engine/engine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/input.h"
#include "base/zip_archive.h"
#include "diagnosis/profile/profile_findings.h"
#include "engine/account_files.h"
#include "engine/model_tables.h"
#include "engine/one_run.h"
#include "engine/problems.h"
#include "exporters/chart/chart_file.h"
#include "exporters/overlay_file.h"
#include "facts/pipeline_facts.h"
#include "model/run_extent.h"
#include "pipeline/cells/link_cells.h"
#include "profile/communication_ops.h"
#include "profile/flight_match.h"

namespace stageline {
namespace {

// The user's rules come before those that are shipped.
Result<CellRules> rules_for(const OpenOptions& options) {
  constexpr size_t kMaxRuleBytes = size_t{1} << 20;
  CellRules rules = shipped_cell_rules();
  if (options.cell_rules.empty()) return rules;
  TRY(text, read_all(options.cell_rules, kMaxRuleBytes));
  TRY_OK(rules.add(*text, options.cell_rules, true));
  return rules;
}

// Finds the cells of a profiler trace and the layout of its ranks.
void find_cells(Trace& trace, const CellRules& rules, const OpenOptions& options) {
  const TorchCellOptions how{options.cells, options.layout, infer_cells};
  const bool may_infer = options.cells == CellSource::kAuto || options.cells == CellSource::kInferred;
  if (find_range_cells(trace, rules, how)) return;
  // Where only ranges were read, slices would have the times of the host.
  if ((options.only_ranges || !find_torch_cells(trace, rules, how)) &&
      !(may_infer && trace.device_family == DeviceFamily::kNpu && find_kernel_blocks(trace, options.layout))) {
    if (options.layout.pp > 0) infer_layout(trace, options.layout);
    return;
  }
  const bool known = std::ranges::any_of(trace.parts, [](const Part& part) { return part.stage != kUnknown; });
  if (!known && !infer_layout(trace, options.layout)) trace.pipeline_stages = 0;
}

// Returns whether trace.links, by which the clocks were found, are still those of link_cells(). Then no cells or parts
// were left out since, and the layout of several chunks on ranks does not depend on clocks.
bool links_stand(const Trace& trace, size_t cells, size_t parts) {
  return !trace.links.empty() && trace.cells.size() == cells && trace.parts.size() == parts &&
         extent_of(trace).chunk_count < 2;
}

bool has_only_communication(const Trace& trace) {
  return trace.slice_count() > 0 && std::ranges::all_of(trace.parts, [](const Part& part) {
           for (size_t i = 0; i < part.slices.size(); ++i)
             if (i >= part.slices.kernel_class.size() || part.slices.class_of(i) != KernelClass::kCommunication)
               return false;
           return true;
         });
}

// Finds the cells of a recording whose ranges have only names (NVTX, mstx): they are read from the names, as in
// profiles.
bool find_recorded_cells(Trace& trace, const CellRules& rules, const OpenOptions& options) {
  if (trace.cells.size() > 0 ||
      std::ranges::none_of(trace.parts, [](const Part& part) { return !part.ranges.empty(); }))
    return false;
  return find_range_cells(trace, rules, TorchCellOptions{options.cells, options.layout, infer_cells});
}

Status take_file_ranks(const std::vector<std::string>& paths, const std::vector<int32_t>& ranks, const Reader& reader,
                       ReadOptions& options) {
  if (ranks.empty()) return {};
  if (!reader.takes_file_ranks)
    return make_error(ErrorCode::kUsage,
                      "--file-ranks is for profiler traces; " + std::string(reader.name) + " is none");
  if (ranks.size() != paths.size())
    return make_error(
        ErrorCode::kUsage,
        "--file-ranks has " + std::to_string(ranks.size()) + " numbers for " + std::to_string(paths.size()) + " files",
        "give one number per file");
  for (size_t i = 0; i < paths.size(); ++i) {
    std::error_code unknown;
    const bool packed = std::filesystem::is_regular_file(paths[i], unknown) && is_zip(paths[i]);
    if (packed || std::filesystem::is_directory(paths[i], unknown))
      return make_error(
          ErrorCode::kUsage,
          "--file-ranks is for files; " + valid_utf8(paths[i]) + (packed ? " is an archive" : " is a folder"),
          "name the files in it");
    options.file_ranks.emplace(paths[i], ranks[i]);
  }
  const std::set<int32_t> distinct(ranks.begin(), ranks.end());
  if (options.file_ranks.size() != paths.size() || distinct.size() != paths.size())
    return make_error(ErrorCode::kUsage, "--file-ranks: a file or a rank is there twice");
  return {};
}

struct ExplainedFact {
  using Value = Explanation;
  static Value make(const Run& run) { return explain(run, true); }
};

void say_no_theory(Diagnostics& notes, const Theory* theory, Ghosts ghosts) {
  if (!theory || theory->known()) return;
  notes.add(problem::theory_none_ghosts.as(ghosts == Ghosts::kOn ? Severity::kWarning : Severity::kInfo),
            Args().set("why_not", theory->why_not));
}

Status export_ranks(const Exporter& exporter, const Trace& trace, const Diagnostics& notes, const std::string& path,
                    ExportOptions options, std::vector<std::string>& written) {
  std::vector<size_t> parts;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    if (wanted.empty() || std::ranges::binary_search(wanted, trace.parts[p].rank)) parts.push_back(p);
  if (parts.empty())
    return make_error(ErrorCode::kBadInput, "none of the ranks named by --ranks is there",
                      "stageline info lists the ranks");
  if (parts.size() > 1 && path == "-")
    return make_error(
        ErrorCode::kUsage, std::string(exporter.name) + " writes one file per rank, and stdout takes one",
        "choose a rank with --ranks, or name a file: out.json becomes " + rank_path("out.json", 0) + ", …");
  OutputSet together;
  for (const size_t p : parts) {
    options.part = p;
    written.push_back(parts.size() == 1 ? path : rank_path(path, trace.parts[p].rank));
    const std::vector<Table> no_tables;
    const Findings no_findings;
    const ExportInput input{trace, notes, no_tables, no_findings.headline, no_findings.list, options};
    TRY_OK(exporter.write(input, written.back()));
  }
  return together.commit();
}

// Counts the slices of profiles that no cell stands for.
int64_t slices_beside_cells(const Trace& trace) {
  std::vector<uint64_t> of_cells;
  for (size_t i = 0; i < trace.cells.size(); ++i)
    if (trace.cells.slice[i] != kNoSlice)
      of_cells.push_back(static_cast<uint64_t>(trace.cells.part[i]) << 32 | trace.cells.slice[i]);
  std::ranges::sort(of_cells);
  const auto distinct = std::unique(of_cells.begin(), of_cells.end()) - of_cells.begin();
  return static_cast<int64_t>(trace.slice_count()) - distinct;
}

void say_left_out(const Source& source, Diagnostics& diagnostics) {
  for (const std::string& path : source.unreadable) {
    // The reader's note on such a file follows from this.
    std::erase_if(diagnostics.items(),
                  [&](const Diagnostic& d) { return d.severity == Severity::kLoss && d.first.file == path; });
    diagnostics.add(problem::source_unreadable, {path});
  }
  for (const std::string& path : source.copies) diagnostics.add(problem::source_copies, {path});
  for (const std::string& path : source.repeated) diagnostics.add(problem::source_repeated, {path});
}

}  // namespace

Result<Trace> open_trace(const std::vector<std::string>& paths, const OpenOptions& options) {
  TRY(source, scan_source(paths));
  Diagnostics choice;
  Result<const Reader*> reader = choose_reader(*source, options.reader, &choice);
  if (!reader) {
    if (reader.error().code == ErrorCode::kUnknownKind)
      if (std::optional<Error> damage = damage_of(*source)) return *std::move(damage);
    return with_names(std::move(reader).error(), *source);
  }
  constexpr size_t kManyFiles = 1024;
  if (source->files.size() > kManyFiles) source->forget_heads();
  ReadOptions read_options{.progress = options.progress, .early = options.early, .devices = options.devices};
  TRY_OK(take_file_ranks(paths, options.file_ranks, **reader, read_options));
  read_options.only_ranges = options.only_ranges;
  read_options.newest_bytes = options.newest_bytes;
  TRY(rules, rules_for(options));
  Result<Trace> trace = (*reader)->read(*source, read_options);
  // A reader keeps the part of a file that it could read. After a cancellation there is no use for that.
  if (options.progress && options.progress->cancelled())
    return worded_error(ErrorCode::kUnavailable, "refused.cancelled.reading", {}, {paths.empty() ? "" : paths[0]});
  if (!trace) return with_names(std::move(trace).error(), *source);
  trace->diagnostics.merge(choice);
  if (!options.devices.empty() && !(*reader)->takes_devices)
    trace->diagnostics.add(problem::filter_no_devices, Args().set("reader", (*reader)->name));
  say_left_out(*source, trace->diagnostics);
  apply_clock_manifest(*source, *trace);
  if (has_only_communication(*trace)) trace->diagnostics.add(problem::source_only_communication);
  account_files(*source, options.devices.empty(), (*reader)->accounts_files, *trace);
  const bool profiled =
      trace->cells.size() == 0 && std::ranges::any_of(trace->parts, [](const Part& p) { return p.event_count > 0; });
  if (profiled) leave_out_open_collective(*trace);
  bool placed = true;
  if (profiled) find_cells(*trace, *rules, options);
  else if (!find_recorded_cells(*trace, *rules, options) && (trace->cells.size() > 0 || options.layout.pp > 0))
    placed = infer_layout(*trace, options.layout);  // ranks without cells, as of a flight recorder, are not stages
  for (const Diagnostic& d : trace->diagnostics.items())
    if (d.name == "layout.stages_ignored" && !options.layout.explicit_order())
      return make_error(ErrorCode::kUsage, d.message.en,
                        "without --stages, the stages are inferred from the order of work");
  TRY_OK(check_one_run(*source, *trace, placed));
  drop_impossible_times(*trace);
  trace->context_parallel = context_parallel_of(*trace, options.layout);
  TRY_OK(map_clocks(*trace, options.align));
  for (const int32_t rank : options.ranks)
    if (std::ranges::none_of(trace->parts, [&](const Part& part) { return part.rank == rank; }))
      trace->diagnostics.add(problem::filter_no_such_rank, Args().set("rank", std::to_string(rank)));
  const size_t cells = trace->cells.size(), parts = trace->parts.size();
  const RunFilter filter{options.ranks, options.first_step, options.last_step, options.range};
  TRY_OK(filter_run(*trace, filter, profiled, paths.empty() ? "" : paths[0]));
  if (options.align.mode != AlignMode::kNever && !options.align.trust_clocks) TRY_OK(check_one_time(*source, *trace));
  TRY_OK(check_one_clock(*trace, options.align));
  if (!links_stand(*trace, cells, parts)) link_cells(*trace);
  return trace;
}

bool suits(const Analysis& analysis, const Trace& trace) {
  switch (analysis.needs) {
    case AnalysisNeeds::kCells: return trace.cells.size() > 0;
    case AnalysisNeeds::kCalls: return has_flight_calls(trace);
    case AnalysisNeeds::kXla: return trace.format == "xplane";
    case AnalysisNeeds::kAllocator: return has_allocators(trace);
    case AnalysisNeeds::kNodes:
      return std::ranges::any_of(trace.parts, [](const Part& part) { return !part.graph_nodes.empty(); });
    case AnalysisNeeds::kExperts:
      return trace.cells.size() > 0 || std::ranges::any_of(trace.parts, [&](const Part& part) {
               const auto splits = [&](const CollectiveFact& of) { return trace.names.text(of.in_split).size() > 2; };
               return !part.router_loads.empty() || std::ranges::any_of(part.collectives, splits);
             });
    case AnalysisNeeds::kRequests:
      return std::ranges::any_of(trace.parts, [](const Part& part) { return !part.requests.empty(); });
    case AnalysisNeeds::kComputing:
      if (is_only_communication(trace)) return false;
      [[fallthrough]];
    case AnalysisNeeds::kTorch:
      return std::ranges::any_of(trace.parts, [&](const Part& part) {
        return (part.slices.size() > 0 && part.slices.has_facts()) ||
               (analysis.takes_summaries && !part.step_summaries.empty()) ||
               (analysis.takes_calls && !part.flight_calls.empty());
      });
    default: return false;
  }
}

void add_not_possible(const Analysis& analysis, const Error& error, Diagnostics& diagnostics) {
  // A capture without memory records, or of one rank without a recorded place, has no flaw. A warning is only for data
  // that a report needs from all runs and that this run lacks.
  const bool missed = analysis.in_report && error.code != ErrorCode::kNotFound;
  diagnostics.add(
      missed ? problem::analysis_not_possible : problem::analysis_not_possible.as(Severity::kInfo).on(analysis.name),
      Args().set("analysis", analysis.name).set("why", error_text(error)));
}

std::vector<Table> all_tables(const std::shared_ptr<const Run>& run, Diagnostics& diagnostics, bool whole) {
  const Trace& trace = run->trace();
  std::vector<Table> tables;
  Diagnostics notes;                           // for all analyses: a flaw that several of them note is one flaw
  constexpr size_t kMaxEventRows = 2'000'000;  // a row takes some 200 bytes until it is written
  const bool huge = trace.slice_count() > kMaxEventRows;
  if (whole && huge) diagnostics.add(problem::export_no_event_tables);
  for (const bool in_report : {true, false})
    for (const Analysis* analysis : analyses()) {
      if (analysis->in_report != in_report || !suits(*analysis, trace)) continue;
      if (!in_report && (!whole || !analysis->in_export)) continue;
      AnalysisInput input{
          .trace = &trace, .facts = run, .for_report = !whole || huge, .rows_later = whole, .brief = !whole};
      // The findings next to the tables cover all steps, so the device analyses must not leave out the last one.
      input.include_last_step = !whole || trace.cells.size() > 0;
      Result<AnalysisResult> own = analysis->run(input);
      if (!own) {
        add_not_possible(*analysis, own.error(), diagnostics);
        continue;
      }
      merge_notes(notes, own->notes);
      for (Table& table : own->tables) tables.push_back(std::move(table));
    }
  merge_notes(diagnostics, notes);
  const bool profiled = trace.cells.size() == 0 && trace.slice_count() > 0;
  if (!clock_summary(trace).by.empty()) {
    auto clocks = mapped<ClockMap>(trace.parts, &Part::clock_map);
    tables.push_back(whole ? clock_table(trace, clocks, false) : clock_summary_table(trace, clocks, false));
  }
  if (!profiled) tables.push_back(cells_table(trace));
  tables.push_back(devices_table(trace));
  tables.push_back(diagnostics_table(diagnostics));
  return tables;
}

const Explanation& explained_run(const Run& run) { return run.fact<ExplainedFact>(); }

Result<ChartPicture> chart_picture(const DrawnRun& drawn, const ExportOptions& options) {
  const std::vector<Table> tables;
  const Findings findings;
  const Trace& trace = drawn.trace();
  const ExportInput input{
      trace, trace.diagnostics, tables, findings.headline, findings.list, options, [&]() -> const Theory& {
        return theory_of(*drawn.run()).theory;
      }};
  TRY(made, png_chart(input, ""));
  return ChartPicture{std::move(made->bytes), made->width, made->height};
}

Status export_trace(const std::shared_ptr<const Run>& run, Diagnostics& notes, const std::string& path,
                    std::string_view to, const ExportOptions& options, std::vector<std::string>* written) {
  std::vector<std::string> paths;
  if (!written) written = &paths;
  TRY(exporter, choose_exporter(to, path));
  assert(!(*exporter)->is_page && "export_run() writes it");
  const Trace& trace = run->trace();
  if (trace.cells.size() == 0 && (*exporter)->draws_cells)
    return make_error(
        ErrorCode::kUnavailable, std::string((*exporter)->name) + " draws pipeline cells, and this trace has none",
        "stageline report and stageline analyze work on it; stageline export --to json or sqlite has every table; --to "
        "trace-with-counters writes the trace again with counters");
  if ((*exporter)->one_file_per_rank) return export_ranks(**exporter, trace, notes, path, options, *written);
  std::vector<Table> tables;
  Findings findings;
  if ((*exporter)->needs_tables) {
    tables = all_tables(run, notes, (*exporter)->whole_tables);
    findings = explained_findings(explain(*run));
  }
  const DrawnRun drawn(run, (*exporter)->one_axis ? DrawnStamps::kOnOneClock : DrawnStamps::kAsRecorded);
  const Theory* asked = nullptr;
  const ExportInput input{
      drawn.trace(), notes, tables, findings.headline, findings.list, options, [&]() -> const Theory& {
        return *(asked = &theory_of(*drawn.run()).theory);
      }};
  written->push_back(path);
  const Status done = (*exporter)->write(input, path);
  say_no_theory(notes, asked, options.ghosts);
  if (const int64_t beside = (*exporter)->cells_alone ? slices_beside_cells(trace) : 0; beside > 0)
    notes.add(problem::export_cells_alone,
              Args().set("exporter", std::string((*exporter)->name)).set("beside", grouped(beside)), {path});
  return done;
}

Status parse_step_range(std::string_view text, int64_t& first, int64_t& last) {
  const size_t colon = text.find(':');
  const std::string_view a = trim(text.substr(0, colon));
  const std::string_view b = colon == std::string_view::npos ? a : trim(text.substr(colon + 1));
  const auto from = a.empty() ? std::optional<int64_t>(INT64_MIN) : parse_int(a);
  const auto to = b.empty() ? std::optional<int64_t>(INT64_MAX) : parse_int(b);
  if (!from || !to || (a.empty() && b.empty()) || *from > *to)
    return make_error(ErrorCode::kUsage, "\"" + std::string(text) + "\" is not a range of steps",
                      "write --steps 3:5, 3:, :5 or 3 (both ends count)");
  first = *from;
  last = *to;
  return {};
}

Result<TimeRange> parse_time_range(std::string_view text) {
  const Error bad{ErrorCode::kUsage,
                  "\"" + std::string(text) + "\" is not a range of time",
                  {},
                  "write --range 200ms:1.5s (from the first cell; without a unit: milliseconds)"};
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return bad;
  TimeRange range;
  const std::string_view a = trim(text.substr(0, colon)), b = trim(text.substr(colon + 1));
  if (!a.empty()) {
    const auto from = parse_duration(a);
    if (!from) return bad;
    range.from_ns = *from;
  }
  if (!b.empty()) {
    const auto to = parse_duration(b);
    if (!to) return bad;
    range.to_ns = *to;
  }
  if (range.from_ns > range.to_ns) return bad;
  return range;
}

Status write_overlay(const Trace& trace, const TraceOverlay& overlay, const std::string& path) {
  return write_overlay_file(trace, overlay, path);
}

}  // namespace stageline
