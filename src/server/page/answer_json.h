// Answers about a run in the form in which the page takes them, made at once. RunAnswers keeps them, and reports are
// written with them.
#pragma once

#include <string>
#include <vector>

#include "analyses/analysis.h"
#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// Returns the number of rows of a table in an answer; all are counted.
using RowLimit = size_t (*)(const Table& table);

// The part of an answer's tables to return: the first rows of all tables or, for one table by name, the rows from
// `first_row` on.
struct TablePart {
  std::string table = {};  // NOLINT(readability-redundant-member-init): GCC wants it
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
// The same answer; `told` also gets what a report's own analyses note or fail by, as all_tables() does.
struct NotesOfRun {
  Diagnostics failed, notes;
};
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

}  // namespace stageline
