// Opens the run that the arguments name, for the commands and for Python.
#pragma once

#include "cli/terminal.h"
#include "engine/engine.h"

namespace stageline {

// The use of times: if those of several ranks will be compared.
enum class Clocks : uint8_t {
  kRaw,       // times are not compared, so timestamps stay as they are
  kCompared,  // times are compared in sums: --align applies, and clocks that cannot be aligned are used unchanged
  // Times share one axis: --align applies, and clocks that cannot be aligned are refused (--trust-clocks accepts them).
  kOneAxis,
  kOneAxisIfKnown,  // the same, but clocks that cannot be aligned are drawn as recorded, with a warning
};

// open_run() opens `paths` with --reader, --ranks, --steps, --pp and its kin, --cells, --cell-rules, --devices,
// --range, --threads, and shows progress. It also refuses a --compat that the command does not have. open_options()
// only reads these flags.
Result<OpenOptions> open_options(const Arguments& arguments, std::string_view compat = "",
                                 Clocks clocks = Clocks::kRaw);
Result<Trace> open_run(const Arguments& arguments, const Terminal& terminal, const std::vector<std::string>& paths,
                       std::string_view compat = "", Clocks clocks = Clocks::kRaw);

// Reads --pp (--stages), --tp, --dp, --order, --cells and --cell-rules. Errors: kUsage.
Status take_layout(const Arguments& arguments, OpenOptions& options);

// Sets how many threads work (--threads, else one for each core) and how much memory reading may take (--max-memory).
// Errors: kUsage.
Status take_limits(const Arguments& arguments);

// Checks --compat. Errors: kUsage unless it is one of `known` (a comma list). `asker` names what has it: an analysis,
// else the command.
Status check_compat(const Arguments& arguments, std::string_view known, std::string_view asker = {});

}  // namespace stageline
