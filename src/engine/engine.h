// The API everyone embeds: open, analyse, export. The CLI, later the server and Python, stand here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyses/analysis.h"
#include "base/progress.h"
#include "base/result.h"
#include "diagnosis/causes/findings.h"
#include "diagnosis/explain.h"
#include "engine/filter_run.h"
#include "engine/one_clock.h"
#include "exporters/chart/bands_picture.h"
#include "exporters/exporter.h"
#include "model/table.h"
#include "model/trace.h"
#include "pipeline/cells/torch_cells.h"
#include "readers/reader.h"

namespace stageline {

struct OpenOptions {
  std::string reader;          // forces a reader; "" chooses by sniffing
  std::vector<int32_t> ranks;  // sorted; empty keeps all
  int64_t first_step = INT64_MIN, last_step = INT64_MAX;
  std::optional<TimeRange> range;
  std::vector<int32_t> devices;          // Paddle: workerlog numbers
  RankLayoutOptions layout;              // stages and order of ranks where the source does not say; pp 0 infers
  CellSource cells = CellSource::kAuto;  // where profiler traces get their cells from
  std::string cell_rules;                // a file of rules that come before ours; "": none
  AlignOptions align;                    // clocks; by default they stay raw
  bool only_ranges = false;              // ReadOptions::only_ranges
  int64_t newest_bytes = 0;              // ReadOptions::newest_bytes
  Progress* progress = nullptr;
  EarlyTrace early = {};  // NOLINT(readability-redundant-member-init): GCC wants it
};

// Reads paths, finds cells in profiler traces, infers what the source does not say, filters, links cells. Errors:
// those of scan_source, choose_reader, the reader and the file of rules; kBadInput when the filters leave nothing.
// A profiler trace with cells keeps all its parts and slices: `ranks`, `steps` and `range` choose cells here, and
// slices when an analysis looks at them.
Result<Trace> open_trace(const std::vector<std::string>& paths, const OpenOptions& options);

// Whether an analysis can be put to this trace at all, by what it holds.
bool suits(const Analysis& analysis, const Trace& trace);

// What was found, as `stageline info --json` prints it: one JSON object with the keys format,
// machines, ranks, stages, steps, cells, slices, start_ns, end_ns, diagnostics (and more).
std::string info_json(const Trace& trace);

// Those tables of each analysis that suits the trace that belong into a report, then cells, devices, diagnostics.
// `whole`: of the analyses that are too much for a report too, and all rows; above two million slices tables with a row
// per event stay out, and a note says so. An analysis that fails on this trace is left out and counted in
// `diagnostics`.
std::vector<Table> all_tables(const std::shared_ptr<const Run>& run, Diagnostics& diagnostics, bool whole = false);

// An analysis that has no answer to this trace, told as all_tables() tells it.
void add_not_possible(const Analysis& analysis, const Error& error, Diagnostics& diagnostics);

// explain() of a whole run. Findings of profiler traces are read off tables, which are made then; those of cells are
// not. `diagnostics`: analyses that were left out are counted there.
Explanation explain_run(const std::shared_ptr<const Run>& run, Diagnostics& diagnostics);

// Writes the run at `path` in the kind `to` ("" : by extension), which is not the page (server/page_export.h). A kind
// that has one file per rank writes `path` for a single rank, and rank_path(path, rank) for each of several. `notes`:
// the trace's diagnostics, for outputs that list them; what could not be written is added. `written` (if given): the
// paths that were.
Status export_trace(const std::shared_ptr<const Run>& run, Diagnostics& notes, const std::string& path,
                    std::string_view to, const ExportOptions& options, std::vector<std::string>* written = nullptr);

// The pipeline's chart as a PNG, what export_trace() writes. Errors: kBadInput without cells, kLimit.
struct ChartPicture {
  std::string png;
  int width = 0, height = 0;
};
Result<ChartPicture> chart_picture(const DrawnRun& drawn, const ExportOptions& options);

// "A:B", "A:", ":B" or "A" as inclusive numbers. Errors: kUsage.
Status parse_step_range(std::string_view text, int64_t& first, int64_t& last);
// "T0:T1" with units ns, us, ms, s; without one, milliseconds. Errors: kUsage.
Result<TimeRange> parse_time_range(std::string_view text);

}  // namespace stageline
