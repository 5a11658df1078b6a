// Answers about a run as the page takes them, made here and now: what RunAnswers keeps, and what a report is written
// with.
#pragma once

#include <string>
#include <vector>

#include "analyses/analysis.h"
#include "base/result.h"
#include "model/trace.h"

namespace stageline {

// How many rows of a table an answer has; all are counted.
using RowLimit = size_t (*)(const Table& table);

// What of an answer's tables is told: of all of them the first rows; or of one, by name, those from a row on.
struct TablePart {
  std::string table = {};  // NOLINT(readability-redundant-member-init): GCC wants it
  int64_t first_row = 0;
};

// Whether a page can ask for it: not what needs input of its own, nor rows without end.
bool is_offered(const Analysis& analysis, const Trace& trace);

// {answers: [{name, summary, in_report, tables, options}], paths, other: {title, paths} or null}. O(analyses).
struct SecondRun {
  std::string title;
  std::vector<std::string> paths;
};
std::string offers_json(const Trace& trace, const std::vector<std::string>& paths, const SecondRun* other);

// How an answer is written. Apart: the length of the JSON (u32), the JSON, zeros up to a multiple of 8, then the rows
// of long tables, each as JSON of its own: a page parses those that someone looks at (append_table_page). Zeros up to a
// multiple of 8, and last where each belongs, for who wants one text: RowsApart::Place of each, and their number (u64).
enum class AnswerForm : uint8_t { kJson, kApart };

// {analysis, tables, notes}. Errors: the analysis's own.
Result<std::string> analysis_json(const Analysis& analysis, const AnalysisOptions& options,
                                  const std::shared_ptr<const Run>& run, RowLimit limit, const TablePart& part = {},
                                  AnswerForm form = AnswerForm::kJson);
// The same, and what a report's own analyses note or fail by, as all_tables() has it.
struct NotesOfRun {
  Diagnostics failed, notes;
};
Result<std::string> noted_analysis_json(const Analysis& analysis, const std::shared_ptr<const Run>& run, RowLimit limit,
                                        NotesOfRun& told);
Result<std::string> two_runs_json(const Analysis& analysis, const AnalysisOptions& options, const Trace& control,
                                  const Trace& test, RowLimit limit, const TablePart& part = {},
                                  AnswerForm form = AnswerForm::kJson);
// The JSON of an answer that was written apart: the same bytes as in the other form.
std::string joined_answer(std::string_view apart);

// What a run has to say to a right question that it has no answer to: {error, hint, sentences: [[English, Chinese]]}.
std::string unanswered_json(const Error& error);

// What differs and why, as `stageline diff --json` says it; {}: neither run has a pipeline. Errors: those of
// diff_runs().
Result<std::string> compare_json(const Trace& control, const Trace& test);

// The table of `stageline align`, in the same form; where clocks were measured.
bool has_clocks(const Trace& trace);
std::string clocks_json(const Trace& trace, RowLimit limit);

}  // namespace stageline
