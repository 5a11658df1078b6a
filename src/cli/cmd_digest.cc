#include "base/json_writer.h"
#include "base/number.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "base/words.h"
#include "cli/commands.h"
#include "cli/digest_question.h"
#include "cli/run_common.h"

namespace stageline {

Result<DigestOptions> digest_options(const Arguments& arguments) {
  DigestOptions options;
  options.reader = arguments.get("reader");
  if (arguments.has("ranks")) {
    int64_t first = 0, last = INT32_MAX;
    if (Status s = parse_step_range(arguments.get("ranks"), first, last); !s)
      return make_error(ErrorCode::kUsage, "\"" + arguments.get("ranks") + "\" is not a range of ranks",
                        "write --ranks 0:63, 64:, :63 or 7 (both ends count)");
    options.first_rank = static_cast<int32_t>(std::clamp<int64_t>(first, 0, INT32_MAX));
    options.last_rank = static_cast<int32_t>(std::clamp<int64_t>(last, 0, INT32_MAX));
  }
  return options;
}

int say_digests(const Arguments& arguments, const Terminal& terminal, const DigestPlan& plan,
                const DigestCount& count) {
  Diagnostics notes = plan.notes;
  notes.merge(count.losses);
  print_notes(terminal, notes, {}, words("notes.rest"));
  constexpr size_t kMaxFailures = 12;
  for (size_t i = 0; i < count.failures.size() && i < kMaxFailures; ++i) fail(count.failures[i]);
  if (count.failures.size() > kMaxFailures)
    note(terminal, "and " + grouped(count.failures.size() - kMaxFailures) + " more");
  const int64_t failed = count.failures.size();
  Result<OutputFile> out = OutputFile::create("-");
  if (!out) return fail(out.error());
  if (arguments.has("json") || arguments.get("format") == "json") {
    JsonWriter json;
    json.begin_object()
        .field("folder", std::string_view(plan.folder))
        .field("reader", plan.reader->name)
        .field("made", count.made)
        .field("remade", count.remade)
        .field("kept", count.kept)
        .field("failed", failed)
        .field("cells", count.cells)
        .field("bytes", count.bytes)
        .end_object();
    out->write(json.take() + "\n");
  } else {
    std::string line = plan.folder + "  " + grouped(count.made) + (count.made == 1 ? " digest" : " digests") + " made";
    if (count.remade > 0) line += " (" + grouped(count.remade) + " of changed or damaged ones)";
    if (count.kept > 0) line += ", " + grouped(count.kept) + " kept";
    if (failed > 0) line += ", " + grouped(failed) + " failed";
    out->write(terminal_text(line + ", " + grouped(count.bytes) + " bytes") + "\n");
  }
  if (Status s = out->commit(); !s) return fail(s.error());
  return failed > 0 ? kExitError : kExitGood;
}

int run_digest(const Arguments& arguments) {
  Result<Terminal> terminal = terminal_for(arguments);
  if (!terminal) return fail(terminal.error());
  if (arguments.get("output").empty())
    return fail(make_error(ErrorCode::kUsage, "digest needs to know where to write", "stageline digest LOGS -o DIR"));
  Result<DigestOptions> options = digest_options(arguments);
  if (!options) return fail(options.error());
  if (Status s = take_threads(arguments); !s) return fail(s.error());
  ProgressBar bar(*terminal, "progress.reading");
  options->progress = bar.progress();
  Result<DigestPlan> plan = plan_digests(arguments.operands, arguments.get("output"), *options);
  if (!plan) return fail(plan.error());
  return say_digests(arguments, *terminal, *plan, make_digests(*plan));
}

}  // namespace stageline
