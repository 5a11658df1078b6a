// Exporter: how bytes leave. One descriptor per output, listed in exporters.def.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/table.h"
#include "model/theory.h"
#include "model/trace.h"

namespace stageline {

enum class Ghosts : uint8_t {
  kAuto,  // where there is room for them
  kOn,
  kOff,
};

struct ExportOptions {
  std::string lang = "en";  // "en" or "zh"
  bool dark = false;        // charts: dark theme
  std::string title;        // shown where the format has a place for it
  // The run's, as a shell reads them, each after a space; "": not known.
  std::string paths = {};         // NOLINT(readability-redundant-member-init): GCC wants it
  double width_px = 0;            // charts: 0 chooses from the content
  double most_width_px = 0;       // of charts that choose; 0: as wide as they like
  Ghosts ghosts = Ghosts::kAuto;  // theory beside fact, of those that draw it
  bool hta = false;               // --compat hta, of those that have it
  size_t part = 0;                // of those that write one file per rank: which, of Trace::parts
};

// What an exporter may draw from. The trace is already filtered (ranks, steps, time range) and
// linked; the tables are those of every analysis plus cells, steps and diagnostics.
struct ExportInput {
  const Trace& trace;
  const Diagnostics& diagnostics;  // what is known of its flaws: its own and those found since
  const std::vector<Table>& tables;
  const Headline& headline;
  const std::vector<Finding>& findings;
  ExportOptions options;
  // Of `trace`, by those that draw it: it costs a recognition. May be empty: nothing to draw.
  std::function<const Theory&()> theory = {};  // NOLINT(readability-redundant-member-init): GCC wants it
};

struct Exporter {
  const char* name;  // "perfetto"
  const char* summary;
  std::vector<const char*> extensions;  // "pftrace", "perfetto-trace"; the first is the usual one
  bool compresses;                      // a path that ends in .gz is written compressed
  bool needs_tables;                    // false: tables and findings may be left empty (they cost time)
  // Writes one whole file at `path` (through OutputFile: it appears only when whole).
  Status (*write)(const ExportInput& input, const std::string& path);
  bool draws_cells = false;        // nothing to write without pipeline cells
  bool one_file_per_rank = false;  // called once per rank (ExportOptions::part); see rank_path
  const char* compat = "";         // rivals whose answer --compat gives, a comma list: "hta"
  bool one_axis = false;           // draws ranks beside each other: times have to be those of one clock
  bool whole_tables = false;       // with needs_tables: of every analysis, and all rows; else those of the report
  bool cells_alone = false;  // of a trace with cells nothing else; opened like a trace, so what is missing is said
  bool is_page = false;      // the viewer and the run: made above, by export_run(); `write` is null
};

// "out.json.gz" and rank 3: "out.rank3.json.gz".
std::string rank_path(std::string_view path, int32_t rank);

const std::vector<const Exporter*>& exporters();
const Exporter* find_exporter(std::string_view name);
// By `to` when not empty, else by the extension of `path`. Errors: kUsage with the list.
Result<const Exporter*> choose_exporter(std::string_view to, std::string_view path);

}  // namespace stageline
