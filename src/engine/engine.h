// The API that everyone embeds (CLI, server, Python): open a trace, ask it, export it.
#pragma once

#include "analyses/analysis.h"
#include "diagnosis/explain.h"
#include "engine/filter_run.h"
#include "engine/one_clock.h"
#include "exporters/chart/bands_picture.h"
#include "exporters/exporter.h"
#include "pipeline/cells/find_cells.h"

namespace stageline {

struct OpenOptions {
  std::string reader;          // the reader to use; "" chooses by sniffing
  std::vector<int32_t> ranks;  // sorted; when empty, all are kept
  int64_t first_step = INT64_MIN, last_step = INT64_MAX;
  std::optional<TimeRange> range;
  std::vector<int32_t> devices;  // for Paddle, the numbers of workerlogs
  RankLayoutOptions layout;  // stages and order of ranks, where the source does not say; with pp 0 they are inferred
  CellSource cells = CellSource::kAuto;  // where cells of profiler traces come from
  std::string cell_rules;                // file of rules that come before ours; "" for none
  AlignOptions align;                    // what to do about clocks; by default nothing
  bool only_ranges = false;              // ReadOptions::only_ranges
  int64_t newest_bytes = 0;              // ReadOptions::newest_bytes
  Progress* progress = nullptr;
  EarlyTrace early;
  std::vector<int32_t> file_ranks;  // of the paths, whatever their files say; empty leaves it to the files
};

// Reads the paths, finds cells in profiler traces, infers what the source does not say, filters, and links cells. A
// profiler trace with cells keeps all its parts and slices: here `ranks`, `steps` and `range` choose cells, and they
// choose slices when an analysis looks at them. Errors: those of scan_source, choose_reader, the reader and the file of
// rules; kBadInput when the filters leave nothing.
Result<Trace> open_trace(const std::vector<std::string>& paths, const OpenOptions& options);

// Returns true when the trace contains the data that the analysis needs.
bool suits(const Analysis& analysis, const Trace& trace);

// Returns a description of a trace, as `stageline info --json` prints it. It is one JSON object with the keys format,
// machines, ranks, stages, steps, cells, slices, start_ns, end_ns, diagnostics and more.
std::string info_json(const Trace& trace);

// Returns the tables for a report: those of each analysis that suits the trace, then cells, devices, diagnostics. With
// `whole`, also analyses that are too much for a report, and all rows. With more than two million slices, tables with a
// row per event are left out, and a note says so. An analysis that fails on this trace is left out and counted in
// `diagnostics`.
std::vector<Table> all_tables(const std::shared_ptr<const Run>& run, Diagnostics& diagnostics, bool whole = false);

// Adds to the diagnostics that an analysis has no answer for this trace, as all_tables() does.
void add_not_possible(const Analysis& analysis, const Error& error, Diagnostics& diagnostics);

// Writes the run to `path` as the kind `to`; "" chooses by extension. The page is not among the kinds
// (server/page/page_file.h). A kind with one file per rank writes `path` when there is a single rank, else
// rank_path(path, rank) for each. `notes` are the trace's diagnostics, for outputs that list them; what could not be
// written is added to them. `written`, if given, receives the paths that were written.
Status export_trace(const std::shared_ptr<const Run>& run, Diagnostics& notes, const std::string& path,
                    std::string_view to, const ExportOptions& options, std::vector<std::string>* written = nullptr);

struct ChartPicture {
  std::string png;
  int width = 0, height = 0;
};
// Returns the chart as the PNG that export_trace() writes. Errors: kBadInput when there is nothing to draw, kLimit.
Result<ChartPicture> chart_picture(const DrawnRun& drawn, const ExportOptions& options);

// Parses "A:B", "A:", ":B" or "A" into inclusive numbers. Errors: kUsage.
Status parse_step_range(std::string_view text, int64_t& first, int64_t& last);
// Parses "T0:T1" with units ns, us, ms, s; numbers without a unit are milliseconds. Errors: kUsage.
Result<TimeRange> parse_time_range(std::string_view text);

// The explanation of a run with offers, computed once per Run: explain, SQL, figures and the server share one.
const Explanation& explained_run(const Run& run);

// Adds the notes of another analysis of the same data. Where both have a note of the same kind, the larger count is
// kept, since both saw the same occurrences. A note that exists with the same text under another name is skipped.
inline void merge_notes(Diagnostics& all, const Diagnostics& own) {
  for (const Diagnostic& d : own.items()) {
    const bool noted = std::any_of(all.items().begin(), all.items().end(), [&](const Diagnostic& other) {
      return other.name != d.name && other.message.en == d.message.en;
    });
    if (!noted) all.add({d.name, d.severity, d.message, d.count - all.count(d.name), d.first});
  }
}

// Streams the files of the overlay's part to `path` (gzip when it ends in .gz), event by event, as the
// source wrote them; memory is bounded by a window. Errors: kUnavailable when the source cannot be opened
// again, kIo, kBadInput when it changed since it was read.
Status write_overlay(const Trace& trace, const TraceOverlay& overlay, const std::string& path);

}  // namespace stageline
