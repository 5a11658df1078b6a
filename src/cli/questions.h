// Reads from flags what is asked of the program. Its commands and the Python package share these functions.
#pragma once

#include "analyses/analysis.h"
#include "cli/open_run.h"
#include "engine/make_digests.h"
#include "engine/what_if_question.h"
#include "exporters/exporter.h"

namespace stageline {

struct ExportQuestion {
  const Exporter* exporter = nullptr;  // chosen by --to, else by the extension of --output
  ExportOptions options;
  Clocks clocks = Clocks::kRaw;  // how the run is to be opened for this exporter
};
// The output's title names the operands, unless --title gives another. Errors: kUsage.
Result<ExportQuestion> export_question(const Arguments& arguments, const std::string& lang);

// Reads from flags what is asked of a replay. `stageline what-if` and the Python package share it. Errors: kUsage
// naming the flag.
Result<WhatIfQuestion> what_if_question(const Arguments& arguments);

// --reader, --ranks A:B. Errors: kUsage.
Result<DigestOptions> digest_options(const Arguments& arguments);

// Prints notes and failures on stderr, and one line (with --json an object) on stdout. Returns the exit code:
// kExitError when a rank failed.
Result<int> say_digests(const Arguments& arguments, const Terminal& terminal, const DigestPlan& plan,
                        const DigestCount& count);

// A schedule at given costs, in the forms that `stageline schedule` prints.
struct ScheduleHint {
  std::string json, text, order_csv;  // as its --format json, text and csv, or torch if that is asked for
  Table ranks;
};

// `arguments` are those of the command schedule. Errors: kUsage for sizes that the schedule does not accept; those of
// reading --from-csv; and those of a replay that cannot end.
Result<ScheduleHint> reported_schedule(const Arguments& arguments);

// The output of the command plan, as its --format json and text. `arguments` are those of the command. Errors: kUsage,
// kBadInput naming the key of the description, and those of reading --from.
struct ReportedPlan {
  std::string json, text;
};
Result<ReportedPlan> reported_plan(const Arguments& arguments);

// `arguments` are those of the command simulate; --output is the folder. Returns the messages for the user, the folder
// first. A folder that holds other logs is not changed. Errors: kUsage, kIo.
Result<std::vector<std::string>> simulate_to_folder(const Arguments& arguments);

// Finds analyses by a list such as "idle-time-breakdown,profiler-steps"; `_` serves for `-`, and HTA's get_… names are
// known too. Errors: kUsage with the nearest name.
Result<std::vector<const Analysis*>> chosen_analyses(const std::string& list);

// The command that answers a mode of msprof-analyze that has another name here, with dashes; "" for other names.
std::string hint_for_mode(std::string_view mode);

// Both are called before the input is read, because the descriptors list the tables. A form is text, csv, json, or
// another tool's layout when every chosen analysis has it. Errors: kUsage.
Status check_table(const std::vector<const Analysis*>& chosen, const std::string& name);
Status check_format(const std::vector<const Analysis*>& chosen, const std::string& format, const std::string& table);

// Makes --ranks 3 of --rank 3, when no chosen analysis has an option of that name.
Arguments with_ranks(Arguments arguments, const std::vector<const Analysis*>& chosen);

// Returns compat, options and form, without a trace. Every option given must belong to one of the chosen analyses.
// Errors: kUsage.
Result<AnalysisInput> analysis_input(const Arguments& arguments, const std::vector<const Analysis*>& chosen);

}  // namespace stageline
