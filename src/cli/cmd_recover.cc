#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "readers/recording/recordings.h"

namespace stageline {

Result<int> run_recover(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  TRY(source, scan_source(arguments.operands));
  Diagnostics diagnostics;
  TRY(files, recording::recover(*source, arguments.get("output", "recovered"), diagnostics));
  TRY(out, OutputFile::create("-"));
  for (const recording::Recovered& file : *files) {
    std::string line = file.path + ": " + (file.rank >= 0 ? "rank " + std::to_string(file.rank) + ", " : "") +
                       grouped(file.ranges) + " records";
    if (file.from_memory > 0) line += ", " + grouped(file.from_memory) + " of them from memory";
    if (file.unfinished > 0) line += ", " + grouped(file.unfinished) + " unfinished";
    if (file.skipped_bytes > 0) line += ", " + grouped(file.skipped_bytes) + " damaged bytes left behind";
    out->write(terminal_text(line) + "\n");
  }
  TRY_OK(out->commit());
  print_notes(*terminal, diagnostics, {}, words("notes.rest"));
  return kExitGood;
}

}  // namespace stageline
