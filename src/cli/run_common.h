// What report, analyze, export and info share: reading the run that the arguments name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "engine/engine.h"

namespace stageline {

// open_run(): opens `paths` with --reader, --ranks, --steps, --pp and its kin, --cells, --cell-rules, --devices,
// --range,
// --threads; shows progress. Also refuses a --compat that the command does not have. open_options(): these flags alone.
// `clocks`: whether times of several ranks will stand beside each other.
enum class Clocks : uint8_t {
  kRaw,       // no: stamps stay as they are
  kCompared,  // in sums: --align, and what cannot be aligned is taken as it is
  kOneAxis,   // on one axis: --align, and what cannot be aligned is refused (--trust-clocks)
};
Result<OpenOptions> open_options(const Arguments& arguments, std::string_view compat = "",
                                 Clocks clocks = Clocks::kRaw);
Result<Trace> open_run(const Arguments& arguments, const Terminal& terminal, const std::vector<std::string>& paths,
                       std::string_view compat = "", Clocks clocks = Clocks::kRaw);

// --pp (--stages), --tp, --dp, --order; --cells and --cell-rules. Errors: kUsage.
Status take_layout(const Arguments& arguments, OpenOptions& options);

// Opens `path` before long work is done. Errors: as OutputFile::create(); also when it is a file of `inputs` (paths and
// folders as given), which are listed for that.
Result<OutputFile> open_output(const std::string& path, const std::vector<std::string>& inputs);
// The same, opened later.
Status check_writable(const std::string& path, const std::vector<std::string>& inputs);

// Real paths of folders that a flag names. Errors: kNotFound.
Result<std::vector<std::string>> real_folders(const std::vector<std::string>& named, const char* flag);

// --ghosts; kAuto when it was not given.
Ghosts ghosts_of(const Arguments& arguments);

// "run42" or "run42 + 3 more": what titles call the input.
std::string run_name(const std::vector<std::string>& paths);

// A flag that is a share: "3%" and "3" are 0.03. Nothing when it was not given. Errors: kUsage.
Result<std::optional<double>> share_flag(const Arguments& arguments, std::string_view name);

// --compat: kUsage unless it is one of `known` (comma list). `asker` is who has it: an analysis, else the command.
Status check_compat(const Arguments& arguments, std::string_view known, std::string_view asker = {});

}  // namespace stageline
