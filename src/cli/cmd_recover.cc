#include "base/number.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "readers/recording/recover.h"

namespace stageline {

int run_recover(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  Result<Source> source = scan_source(arguments.operands);
  if (!source) return fail(source.error());
  Diagnostics diagnostics;
  Result<std::vector<recording::Recovered>> files =
      recording::recover(*source, arguments.get("output", "recovered"), diagnostics);
  if (!files) return fail(files.error());
  Result<OutputFile> out = OutputFile::create("-");
  if (!out) return fail(out.error());
  for (const recording::Recovered& file : *files) {
    std::string line = file.path + ": " + (file.rank >= 0 ? "rank " + std::to_string(file.rank) + ", " : "") +
                       grouped(file.ranges) + " records";
    if (file.from_memory > 0) line += ", " + grouped(file.from_memory) + " of them from memory";
    if (file.unfinished > 0) line += ", " + grouped(file.unfinished) + " unfinished";
    if (file.skipped_bytes > 0) line += ", " + grouped(file.skipped_bytes) + " damaged bytes left behind";
    out->write(terminal_text(line) + "\n");
  }
  if (Status s = out->commit(); !s) return fail(s.error());
  print_notes(*terminal, diagnostics, {}, words("notes.rest"));
  return kExitGood;
}

}  // namespace stageline
