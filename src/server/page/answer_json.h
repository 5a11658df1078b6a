// Answers about a run in the form in which the page takes them, made at once. RunAnswers keeps them, and reports are
// written with them.
#pragma once

#include "analyses/analysis.h"
#include "facts/run.h"
#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

// Returns the number of rows of a table in an answer; all are counted.
using RowLimit = size_t (*)(const Table& table);

// The part of an answer's tables to return: the first rows of all tables or, for one table by name, the rows from
// `first_row` on.
struct TablePart {
  std::string table;
  int64_t first_row = 0;
};

// Returns true if a page can ask for an analysis: not if it needs input of its own, nor if it has rows without end.
bool is_offered(const Analysis& analysis, const Trace& trace);

// {answers: [{name, summary, in_report, tables, options}], paths, other: {title, paths} or null}. O(analyses).
struct SecondRun {
  std::string title;
  std::vector<std::string> paths;
};
std::string offers_json(const Trace& trace, const std::vector<std::string>& paths, const SecondRun* other);

// The form of an answer. kApart writes the length of the JSON (u32), the JSON, and zeros up to a multiple of 8. Then
// come the rows of long tables, each as separate JSON, so that a page parses only rows that it shows
// (append_table_page), and zeros up to a multiple of 8. Last come the place of each of them (RowsApart::Place) and
// their number (u64), for callers who want a single text.
enum class AnswerForm : uint8_t { kJson, kApart };

// {analysis, tables, notes}. Errors: the analysis's own.
Result<std::string> analysis_json(const Analysis& analysis, const AnalysisOptions& options,
                                  const std::shared_ptr<const Run>& run, RowLimit limit, const TablePart& part = {},
                                  AnswerForm form = AnswerForm::kJson);
struct NotesOfRun {
  Diagnostics failed, notes;
};
// Returns the same; `reported` also gets what a report's own analyses note or fail by, as all_tables() does.
Result<std::string> noted_analysis_json(const Analysis& analysis, const std::shared_ptr<const Run>& run, RowLimit limit,
                                        NotesOfRun& reported);
Result<std::string> two_runs_json(const Analysis& analysis, const AnalysisOptions& options, const Trace& control,
                                  const Trace& test, RowLimit limit, const TablePart& part = {},
                                  AnswerForm form = AnswerForm::kJson);
// Joins an answer that was written apart into JSON: the same bytes as in the other form.
std::string joined_answer(std::string_view apart);

// The JSON of `stageline what-if --json` of a profile; "{}" of other runs, and where nothing can be simulated.
std::string losses_json(const Run& run);

// Returns the difference between two runs and its reason, as in `stageline diff --json`; {} where neither has a
// pipeline. Errors: those of diff_runs().
Result<std::string> compare_json(const Run& control, const Run& test);

// The table of `stageline align` in the same form, for runs whose clocks were measured.
bool has_clocks(const Trace& trace);
std::string clocks_json(const Trace& trace, RowLimit limit);

// The call trees of a run, and of a second one, as the page draws them: /api/calls (docs/viewer-protocol.md).
class Timeline;

// Limits of an answer: values (nodes × ranks); but with few ranks at most `max_nodes` nodes, and with many ranks at
// least `min_nodes`.
struct CallsBudget {
  size_t max_values, max_nodes, min_nodes;
};
inline constexpr CallsBudget kServedCalls{4'000'000, 100'000, 4'000};
// For a report; a value takes some 5 bytes of the compressed file.
inline constexpr CallsBudget kPageCalls{60'000, 10'000, 1'000};

// `other` is a second run whose ranks become columns too; nullptr: none. Errors: kUnavailable where `run` has no calls.
Result<std::string> calls_answer(const Run& run, const Run* other, const CallsBudget& budget);

// The calls of lanes of the timeline within a window of it, of the run as it is drawn. Errors: kUsage.
Result<std::string> area_calls_answer(const Trace& trace, const Timeline& timeline, const Query& query,
                                      const CallsBudget& budget);

// The content of a run, which the page reads first: ranks, lanes, kinds with their colours, steps.
struct PageLanes;

struct RunState {
  const Diagnostics& notes;  // flaws that the page shows
  int64_t revision = 1;
  bool is_whole = true;
  const PageLanes* page = nullptr;  // only in a report: the lanes that it carries
  bool shows_theory = true;
  std::string other;                // the second run's title; empty: none
  bool replays = false;             // it answers what-if itself
  std::string command;              // what shows the rest
  std::vector<std::string> places;  // where its files lie; no report's
  bool planned = false;             // the report is a plan's
};
// The answer to /api/run. `title` and `paths` are what the user typed. O(lanes).
std::string run_json(const Timeline& timeline, const std::string& title, const std::vector<std::string>& paths,
                     const RunState& state);

}  // namespace stageline
