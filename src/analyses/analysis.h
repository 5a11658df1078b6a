// Analysis: one question put to a run, answered in Tables. One descriptor per question, listed in
// analyses.def. Analyses are pure: same input, same tables, whatever the number of threads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "facts/run.h"
#include "model/table.h"
#include "model/trace.h"
#include "model/trace_overlay.h"

namespace stageline {

struct AnalysisTable {
  enum Extent : uint8_t { kAll, kRunAddsColumns };
  const char* name;     // "ranks"
  const char* summary;  // one line
  // The columns of our own answer (not a rival's) without options, known before anything runs: run() makes its table of
  // them. SQL, Python and the documentation ask here. Options may add columns, and words of a run may be others
  // (in_words_of).
  std::vector<ColumnSpec> (*columns)();
  Extent extent = kAll;  // kRunAddsColumns: what was recorded decides on more of them
};

// An option of one analysis: `--name VALUE` on the command line. The value kinds BOOL (true, false; the
// bare flag means true), N (whole number), X (number), LIST and TEXT are checked by the typed getters.
struct AnalysisOption {
  const char* name;     // "num-kernels"
  const char* value;    // placeholder: "N", "BOOL", "TEXT", …
  const char* help;     // one sentence with the default
  const char* choices;  // comma list, or ""
};

// Options as given. Getters return the fallback when an option was not given. Errors: kUsage naming it.
class AnalysisOptions {
 public:
  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  std::string text(std::string_view name, std::string_view fallback = "") const;
  Result<bool> flag(std::string_view name, bool fallback) const;
  Result<int64_t> integer(std::string_view name, int64_t fallback, int64_t least = INT64_MIN,
                          int64_t most = INT64_MAX) const;
  Result<double> real(std::string_view name, double fallback) const;
  // A time without unit is microseconds, as HTA has it; "30us", "1ms" work too. In ns.
  Result<int64_t> microseconds(std::string_view name, int64_t fallback_ns) const;
  // "a,b,c" → texts without blanks around them.
  std::vector<std::string> list(std::string_view name) const;
  // "0-3,8"; empty when not given.
  Result<std::vector<int32_t>> numbers(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// What a run is put to.
class TorchRowStore;

struct AnalysisInput {
  const Trace* trace = nullptr;  // kCells, kTorch
  // What is known of `trace`, shared by all questions of it. run() makes it where nobody gave one, so an analysis asks
  // for it before it starts threads.
  mutable std::shared_ptr<const Run> facts = {};
  const Run& run() const {
    if (!facts) facts = std::make_shared<const Run>(*trace);
    return *facts;
  }
  TorchRowStore* rows = nullptr;   // of `trace`: rows that earlier questions laid out, where somebody keeps them
  const Trace* control = nullptr;  // kTwoRuns: the run compared with
  const Trace* test = nullptr;     // kTwoRuns: the run that is new
  std::vector<std::string> paths;  // kFiles
  bool hta = false;                // --compat hta: HTA's numbers, columns and refusals
  bool tb = false;                 // --compat tb: those of TensorBoard's profiler plugin
  bool msprof = false;             // --compat msprof: those of msprof-analyze
  bool include_last_step = false;  // --include-last-profiler-step
  bool for_report = false;         // tables with a row per event are left out
  bool rows_later = false;         // the run outlives the answer: tables with a row per event may be Table::later()
  bool wants_overlay = false;      // AnalysisResult::overlay is asked for
  bool brief = false;              // of tables without end the first rows do, and their title says so
  bool foreign = false;            // --format FORM of Analysis::format: the answer as text of a rival's own layout
  AnalysisOptions options;
};

struct AnalysisResult {
  std::vector<Table> tables;            // in the descriptor's order
  std::string foreign;                  // with AnalysisInput::foreign: what is printed, and no tables
  Diagnostics notes;                    // what the answer leaves out or assumes
  std::optional<TraceOverlay> overlay;  // for --overlay FILE: the source trace with marks on it
};

enum class AnalysisNeeds : uint8_t {
  kCells,      // pipeline cells, of any framework
  kTorch,      // slices of profiler traces
  kCalls,      // calls of a flight recorder
  kXla,        // a profile of XLA
  kAllocator,  // snapshots of an allocator
  kNodes,      // profiles with execution traces laid over them
  kTwoRuns,    // two of them: --control and --test
  kFiles,      // files that are no traces
};

// "needs pipeline cells, and this trace has none"
const char* needs_text(AnalysisNeeds needs);
// "cells", "slices", …: for programs.
const char* needs_name(AnalysisNeeds needs);

struct Analysis {
  const char* name;  // "pipeline-summary"
  const char* summary;
  std::vector<AnalysisTable> tables;  // in the order run() returns them
  // Errors: kBadInput when the input holds nothing to analyse. Where a rival's answer is asked also where
  // the rival itself fails, with its reason.
  Result<AnalysisResult> (*run)(const AnalysisInput& input);
  AnalysisNeeds needs = AnalysisNeeds::kCells;
  std::vector<AnalysisOption> options = {};  // NOLINT(readability-redundant-member-init): GCC wants it
  const char* compat = "";                   // rivals whose answers --compat gives, a comma list: "hta", "tb", "msprof"
  const char* format = "";                   // a rival's layout that --format gives besides text, csv and json: "torch"
  bool takes_summaries = false;              // kTorch: also answers for ranks that tell sums of steps and no slices
  bool makes_overlay = false;                // takes --overlay FILE
  // Shown in the report with default options; off for series and dumps that would fill it.
  bool in_report = true;
  bool across_ranks = false;  // sets times of several ranks beside each other: their clocks are aligned first (--align)
  // Of those: part of `export --to json` and sqlite, whole. Off where it must be told what to look for, and for dumps.
  bool in_export = true;
};

const std::vector<const Analysis*>& analyses();
const Analysis* find_analysis(std::string_view name);  // nullptr when there is none; `_` serves for `-`

}  // namespace stageline
