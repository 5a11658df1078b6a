// Reads the run named by the arguments; shared by report, analyze, export and info.
#pragma once

#include "base/output_file.h"
#include "cli/terminal.h"
#include "engine/engine.h"

namespace stageline {

// open_run() opens `paths` with --reader, --ranks, --steps, --pp and its kin, --cells, --cell-rules, --devices,
// --range, --threads, and shows progress. It also refuses a --compat that the command does not have. open_options()
// only reads these flags. `clocks` is the use of times: if those of several ranks will be compared.
enum class Clocks : uint8_t {
  kRaw,       // times are not compared, so timestamps stay as they are
  kCompared,  // times are compared in sums: --align applies, and clocks that cannot be aligned are used unchanged
  // Times share one axis: --align applies, and clocks that cannot be aligned are refused (--trust-clocks accepts them).
  kOneAxis,
  kOneAxisIfKnown,  // the same, but clocks that cannot be aligned are drawn as recorded, with a warning
};
Result<OpenOptions> open_options(const Arguments& arguments, std::string_view compat = "",
                                 Clocks clocks = Clocks::kRaw);
Result<Trace> open_run(const Arguments& arguments, const Terminal& terminal, const std::vector<std::string>& paths,
                       std::string_view compat = "", Clocks clocks = Clocks::kRaw);

// Reads --pp (--stages), --tp, --dp, --order, --cells and --cell-rules. Errors: kUsage.
Status take_layout(const Arguments& arguments, OpenOptions& options);

// Sets how many threads work (--threads, else one for each core) and how much memory reading may take (--max-memory).
// Errors: kUsage.
Status take_limits(const Arguments& arguments);

// Opens `path` before long work is done. Errors: those of OutputFile::create(). `inputs` are the paths and folders as
// given; their files are listed, so that `path` is refused when it is one of them.
Result<OutputFile> open_output(const std::string& path, const std::vector<std::string>& inputs);
// Checks the same for a file that is opened later.
Status check_writable(const std::string& path, const std::vector<std::string>& inputs);

// Returns the real paths of folders that a flag names. Errors: kNotFound.
Result<std::vector<std::string>> real_folders(const std::vector<std::string>& named, const char* flag);

// Returns --ghosts; kAuto when it was not given.
Ghosts ghosts_of(const Arguments& arguments);

// Reads --dark, --title and --width of a picture. Errors: kUsage.
Result<ExportOptions> picture_options(const Arguments& arguments, const std::string& lang, const std::string& title);

// Returns the name of the input for titles: "run42" or "run42 + 3 more".
std::string run_name(const std::vector<std::string>& paths);

// Reads a flag that is a share: "3%" and "3" are 0.03. Returns nullopt when it was not given. Errors: kUsage.
Result<std::optional<double>> share_flag(const Arguments& arguments, std::string_view name);

// Checks --compat. Errors: kUsage unless it is one of `known` (a comma list). `asker` names what has it: an analysis,
// else the command.
Status check_compat(const Arguments& arguments, std::string_view known, std::string_view asker = {});

// The flags that schedule and simulate share: which schedule, its sizes, and its costs.

// Returns the schedule that the first operand names, with --stages, --micro-batches, --chunks, --group, --dw-detach and
// --plan-cost. Errors: kUsage.
Result<Schedule> schedule_of(const Arguments& arguments);

// Reads --cost and --latency. Two costs are F,B (B is divided into halves), three are F,I,W (B is their sum), and a
// fourth is F&B. Costs are above 0 and at most an hour. Errors: kUsage with the accepted forms.
Result<UnitCosts> costs_of(const Arguments& arguments, UnitCosts costs);

}  // namespace stageline
