// Exporter: one output format. There is one descriptor for each format; exporters.def lists them.
#pragma once

#include "model/finding.h"
#include "model/table.h"
#include "model/theory.h"

namespace stageline {

enum class Ghosts : uint8_t {
  kAuto,  // where there is enough room for them
  kOn,
  kOff,
};

struct ExportOptions {
  std::string lang = "en";  // "en" or "zh"
  bool dark = false;        // charts: dark theme
  std::string title;        // shown where the format has a place for it
  // The input paths of the run as a shell reads them, each after a space; "" when they are not known.
  std::string paths;
  double width_px = 0;                       // for charts; 0 chooses the width from the content
  double max_width_px = 0;                   // limit for charts that choose their width from the content; 0: no limit
  Ghosts ghosts = Ghosts::kAuto;             // draw the theory next to the measured cells, for exporters that can
  const struct PlanPicture* plan = nullptr;  // drawn below the pipeline's rows (chart/plan_panels.h)
  bool hta = false;                          // --compat hta, for exporters that have that mode
  size_t part = 0;                           // for exporters that write one file per rank: index into Trace::parts
};

// Input of an exporter: the trace, already filtered (ranks, steps, time range) and linked. The tables are those of
// every analysis, and those of cells, steps and diagnostics.
struct ExportInput {
  const Trace& trace;
  const Diagnostics& diagnostics;  // what is known about the trace's flaws: the trace's own and those found since
  const std::vector<Table>& tables;
  const Headline& headline;
  const std::vector<Finding>& findings;
  ExportOptions options;
  // Returns the theory of `trace`, for exporters that draw it. It is a function because finding the theory requires
  // recognising the schedule, which takes time. It may be empty: then no theory is drawn.
  std::function<const Theory&()> theory;
};

struct Exporter {
  const char* name;  // "perfetto"
  const char* summary;
  std::vector<const char*> extensions;  // "pftrace", "perfetto-trace"; the first one is the usual one
  bool compresses = false;              // a path that ends in .gz is written compressed
  bool needs_tables = false;  // when false, tables and findings may be left empty, because making them takes time
  // Writes one whole file at `path`, through OutputFile: the file appears only when it is complete.
  Status (*write)(const ExportInput& input, const std::string& path);
  bool draws_cells = false;        // there is nothing to write without pipeline cells
  bool one_file_per_rank = false;  // called once for each rank (ExportOptions::part); see rank_path
  const char* compat = "";         // tools whose answer --compat gives, as a comma list: "hta"
  bool one_axis = false;           // draws ranks on one axis, so all times must be those of one clock
  // With needs_tables: takes the tables of every analysis with all rows; otherwise only those of the report.
  bool whole_tables = false;
  // Writes only the cells when a trace has cells. The input is opened like a trace, so that messages say what is
  // missing.
  bool cells_alone = false;
  // The page with the viewer and the run. export_run() makes it, in a higher layer, so `write` is null.
  bool is_page = false;
};

// Returns the path of one rank's file: "out.json.gz" and rank 3 give "out.rank3.json.gz".
std::string rank_path(std::string_view path, int32_t rank);

const std::vector<const Exporter*>& exporters();
const Exporter* find_exporter(std::string_view name);
// Chooses by `to` when it is not empty, else by the extension of `path`. Errors: kUsage with the list of exporters.
Result<const Exporter*> choose_exporter(std::string_view to, std::string_view path);

}  // namespace stageline
