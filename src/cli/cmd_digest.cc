#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/questions.h"

namespace stageline {

Result<DigestOptions> digest_options(const Arguments& arguments) {
  DigestOptions options{.reader = arguments.get("reader")};
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

Result<int> say_digests(const Arguments& arguments, const Terminal& terminal, const DigestPlan& plan,
                        const DigestCount& count) {
  Diagnostics notes = plan.notes;
  notes.merge(count.losses);
  print_notes(terminal, notes, {}, words("notes.rest"));
  constexpr size_t kMaxFailures = 12;
  for (size_t i = 0; i < count.failures.size() && i < kMaxFailures; ++i) fail(count.failures[i]);
  if (count.failures.size() > kMaxFailures)
    note(terminal, "and " + grouped(count.failures.size() - kMaxFailures) + " more");
  const int64_t failed = count.failures.size();
  TRY(out, OutputFile::create("-"));
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
  TRY_OK(out->commit());
  return failed > 0 ? kExitError : kExitGood;
}

Result<int> run_digest(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  if (arguments.get("output").empty())
    return make_error(ErrorCode::kUsage, "digest needs to know where to write", "stageline digest LOGS -o DIR");
  TRY(options, digest_options(arguments));
  TRY_OK(take_limits(arguments));
  ProgressBar bar(*terminal, "progress.reading");
  options->progress = bar.progress();
  TRY(plan, plan_digests(arguments.operands, arguments.get("output"), *options));
  return say_digests(arguments, *terminal, *plan, make_digests(*plan));
}

}  // namespace stageline
