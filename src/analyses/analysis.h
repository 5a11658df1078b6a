// Analysis: one question about a run, answered in Tables. There is one descriptor for each question; analyses.def lists
// them. Analyses are pure: the same input gives the same tables, whatever the number of threads.
#pragma once

#include "facts/run.h"
#include "model/table.h"
#include "model/trace_overlay.h"

namespace stageline {

// An option of one analysis: `--name VALUE` on the command line. The typed getters check values of the kinds BOOL
// (true, false; the flag alone means true), N (whole number), X (number), LIST and TEXT.
struct AnalysisOption {
  std::string name;     // "num-kernels"
  std::string value;    // placeholder: "N", "BOOL", "TEXT", …
  std::string help;     // one sentence that describes the default
  std::string choices;  // comma list, or "" when any value may be given
};

// The options as given. Getters return the fallback when an option was not given. Errors: kUsage naming the option.
class AnalysisOptions {
 public:
  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  std::string text(std::string_view name, std::string_view fallback = "") const;
  Result<bool> flag(std::string_view name, bool fallback) const;
  Result<int64_t> integer(std::string_view name, int64_t fallback, int64_t min = INT64_MIN,
                          int64_t max = INT64_MAX) const;
  Result<double> real(std::string_view name, double fallback) const;
  // Returns a share of the time, from 0 to 1.
  Result<double> share(std::string_view name, double fallback) const;
  // Returns ns. A time without a unit is in microseconds, as in HTA; "30us" and "1ms" work too.
  Result<int64_t> duration_ns(std::string_view name, int64_t fallback_ns) const;
  // Splits "a,b,c" into texts without blanks around them.
  std::vector<std::string> list(std::string_view name) const;
  // Returns the rows, one after the other, of a table of whole numbers from 0 on with these columns; a first line with
  // their names may be there. Errors: kBadInput with the line.
  Result<std::vector<int64_t>> table(std::string_view name, const std::vector<std::string_view>& columns) const;
  // Reads "0-3,8"; the result is empty when the option was not given.
  Result<std::vector<int32_t>> numbers(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

struct TorchRun;
class TorchRowStore;

// The input of an analysis, which borrows all that it points to.
struct AnalysisInput {
  const Trace* trace = nullptr;  // for kCells and kTorch
  // Facts about `trace`, shared by all questions about it. run() makes them when no caller gave them. This is not
  // thread-safe, so an analysis calls it before it starts threads.
  mutable std::shared_ptr<const Run> facts;
  const Run& run() const {
    if (!facts) facts = std::make_shared<const Run>(*trace);
    return *facts;
  }
  TorchRowStore* rows = nullptr;   // rows of `trace` that earlier questions laid out, when a caller keeps them
  const Trace* control = nullptr;  // for kTwoRuns: the run compared with
  const Trace* test = nullptr;     // for kTwoRuns: the new run
  std::vector<std::string> paths;  // for kFiles
  bool hta = false;                // --compat hta: HTA's numbers, columns and refusals
  bool msprof = false;             // --compat msprof: those of msprof-analyze
  bool include_last_step = false;  // --include-last-profiler-step
  bool for_report = false;         // leaves out tables that have a row for each event
  // The run outlives the answer, so tables that have a row for each event may be Table::later().
  bool rows_later = false;
  bool wants_overlay = false;  // whether AnalysisResult::overlay is wanted
  bool brief = false;          // for very long tables the first rows are enough; the title reports the cut
  bool foreign = false;        // --format FORM of Analysis::format: the answer is a text in another tool's layout
  AnalysisOptions options;
};

struct AnalysisResult {
  std::vector<Table> tables;            // in the descriptor's order
  std::string foreign;                  // with AnalysisInput::foreign: the text to print; there are no tables then
  Diagnostics notes;                    // what the answer leaves out or assumes
  std::optional<TraceOverlay> overlay;  // for --overlay FILE: the source trace with marks on it

  // Appends tables in this order.
  template <class... Tables> void add(Tables... more) { (tables.push_back(std::move(more)), ...); }
  // Gives itself with these tables appended: `return result.with(…)`.
  template <class... Tables> AnalysisResult with(Tables... more) {
    add(std::move(more)...);
    return std::move(*this);
  }
  AnalysisResult with(std::vector<Table> more) {
    std::ranges::move(more, std::back_inserter(tables));
    return std::move(*this);
  }
};

// Returns an answer without tables. It notes that it is of all steps but the last one, if it is.
AnalysisResult answer_of(const TorchRun& run);

enum class AnalysisNeeds : uint8_t {
  kCells,      // pipeline cells, of any framework
  kTorch,      // slices of profiler traces
  kComputing,  // the same, where more than communication was recorded: what covers it, and what is idle
  kRequests,   // requests that a server measured
  kCalls,      // calls of a flight recorder
  kXla,        // a profile of XLA
  kAllocator,  // snapshots of an allocator
  kNodes,      // profiles with execution traces laid over them
  kExperts,    // pipeline cells, exchanges of a profiler trace, or what routers sent to experts
  kTwoRuns,    // two runs: --control and --test
  kFiles,      // files that are not traces
};

// Returns for example "needs pipeline cells, and this trace has none".
const char* needs_text(AnalysisNeeds needs);
// Returns "cells", "slices", …: names for programs.
const char* needs_name(AnalysisNeeds needs);

struct Analysis {
  // analyses() gives the name, "pipeline-summary", after the line of analyses.def, and the summary of "answers" in
  // words.json; a descriptor has neither.
  std::string name, summary;
  // Returns the tables of Stageline's answer (not another tool's) without options, in the order of run(). They are
  // declared in words.json (TableSpec in model/table.h), so SQL, Python and the documentation know them before anything
  // runs. Options may add columns, and the words of columns may differ between runs (in_words_of).
  const std::vector<const TableSpec*>& tables() const { return declared_tables(name); }
  // "options" of words.json: {"slow-rank": {"late": ["TIME", "A vote needs …"]}}, a placeholder, help and choices.
  const std::vector<AnalysisOption>& options() const;
  // Errors: kBadInput when the input holds nothing to analyse. With --compat, also when the other tool itself fails,
  // with that tool's reason.
  Result<AnalysisResult> (*run)(const AnalysisInput& input);
  AnalysisNeeds needs = AnalysisNeeds::kCells;
  const char* compat = "";       // tools whose answers --compat gives, as a comma list: "hta", "msprof"
  const char* format = "";       // another tool's layout that --format accepts besides text, csv and json: "torch"
  bool takes_summaries = false;  // for kTorch: also answers for ranks that have sums for each step but no slices
  bool takes_calls = false;      // for kTorch: also answers for calls of a flight recorder, which have no slices
  bool makes_overlay = false;    // takes --overlay FILE
  // The analysis is shown in the report with default options. It is off for series and dumps, which would fill the
  // report.
  bool in_report = true;
  bool across_ranks = false;  // compares times of several ranks, so their clocks are aligned first (--align)
  // For analyses of the report: `export --to json` and sqlite write their tables in full. It is off for dumps and for
  // analyses that need an option that names what to look for.
  bool in_export = true;
};

const std::vector<const Analysis*>& analyses();
const Analysis* find_analysis(std::string_view name);  // nullptr when there is none; `_` serves for `-`

}  // namespace stageline
