#include "cli/commands.h"
#include "cli/open_run.h"
#include "compat/msprof/chart.h"

namespace stageline {
namespace {

constexpr const char* kDefaultOutput = "stageline_pp_chart";
constexpr size_t kMaxRemarks = 12;

// Returns the folder: -d, or the operand. "cluster", a sub-command of msprof-analyze, may stand before it.
Result<std::string> folder_of(const Arguments& arguments) {
  std::vector<std::string> given = arguments.operands;
  if (!given.empty() && given[0] == "cluster") given.erase(given.begin());
  if (arguments.has("profiling-path")) given.push_back(arguments.get("profiling-path"));
  if (given.size() == 1) return given[0];
  return make_error(ErrorCode::kUsage,
                    given.empty() ? "pp-chart needs the folder of a profile" : "pp-chart takes one folder",
                    "stageline pp-chart -d DIR");
}

// Reads "0,2", "0-3" or "all".
Result<std::optional<std::vector<int32_t>>> ranks_of(const Arguments& arguments) {
  if (arguments.get("rank-list", "all") == "all") return std::optional<std::vector<int32_t>>();
  TRY(ranks, arguments.numbers("rank-list"));
  return std::optional<std::vector<int32_t>>(std::move(*ranks));
}

Result<PpChartOptions> options_of(const Arguments& arguments, const Terminal& terminal) {
  PpChartOptions options;
  TRY_OK(take(folder_of(arguments), options.folder));
  options.as_msprof = arguments.has("compat");
  if (arguments.has("in-place") && (arguments.has("tables-only") || arguments.has("output")))
    return make_error(ErrorCode::kUsage, "--in-place writes into the profile, --output and --tables-only elsewhere",
                      "give one of them");
  options.to = arguments.has("in-place")      ? PpChartOptions::To::kInPlace
               : arguments.has("tables-only") ? PpChartOptions::To::kTablesAlone
                                              : PpChartOptions::To::kCopies;
  options.output = arguments.get("output", arguments.get("output-path", kDefaultOutput));
  TRY_OK(take(ranks_of(arguments), options.ranks));
  TRY(step, arguments.integer("step-id", -1, -1, INT64_MAX));
  if (*step >= 0) options.step = *step;
  TRY_OK(arguments.take("micro-batches", 1, 1 << 28, options.micro_batches));
  options.schedule = arguments.get("schedule");
  TRY_OK(take_layout(arguments, options.open));
  options.open.only_ranges = true;
  if (dashed(arguments.get("mode", "pp_chart")) != "pp-chart")
    return make_error(ErrorCode::kUsage, "-m " + arguments.get("mode") + " is not this command: it is pp_chart",
                      "stageline analyze has the others");
  if (arguments.get("export-type", "db") != "db")
    return make_error(ErrorCode::kUsage,
                      "--export_type is db: the chart is tables of a database, not " + arguments.get("export-type"));
  for (const char* name : {"parallel-mode", "force", "agent"})
    if (arguments.has(name)) note(terminal, std::string("--") + name + " changes nothing here");
  const std::string fail_on = arguments.get("fail-on", "unlabelled");
  if (fail_on != "unlabelled") return make_error(ErrorCode::kUsage, "--fail-on is unlabelled here, not " + fail_on);
  return options;
}

void say_ranks(const Terminal& terminal, const PpChart& chart) {
  size_t printed = 0;
  for (const PpChartRank& rank : chart.ranks) {
    if (rank.error) fail(*rank.error);
    for (const std::string& remark : rank.remarks)
      if (++printed <= kMaxRemarks) note(terminal, "rank " + std::to_string(rank.rank) + ": " + remark);
  }
  if (printed > kMaxRemarks) note(terminal, "… and " + grouped(printed - kMaxRemarks) + " more of these");
}

void say_total(const Terminal& terminal, const PpChart& chart, const PpChartOptions& options) {
  int64_t blocks = 0, links = 0, made = 0, written = 0;
  for (const PpChartRank& rank : chart.ranks) {
    blocks += rank.blocks;
    links += rank.links;
    made += rank.operations;
    written += !rank.written.empty();
  }
  std::string text = counted(blocks, "block", "blocks") + " of " + counted(chart.ranks.size(), "rank", "ranks") + " (" +
                     chart.schedule + "), ";
  text += chart.unlabelled() == 0 ? "all labelled" : grouped(chart.unlabelled()) + " without a micro-batch";
  if (options.to == PpChartOptions::To::kTablesAlone && links == 0)
    text += ", no links: COMMUNICATION_OP lists them, and only complete copies have that table";
  else text += ", " + counted(links, "linked operation", "linked operations");
  if (made > 0) text += ", " + counted(made, "row", "rows") + " made in COMMUNICATION_OP";
  const bool in_place = options.to == PpChartOptions::To::kInPlace;
  text += "\n" + counted(written, "database", "databases") + " written " +
          (in_place ? "in place, each with its backup *.stageline-backup" : "below " + options.output);
  if (chart.removed > 0)
    text += "; " + counted(chart.removed, "database", "databases") + " of an earlier run removed there";
  note(terminal, text);
}

}  // namespace

Result<int> run_pp_chart(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  TRY_OK(check_compat(arguments, "msprof"));
  TRY(options, options_of(arguments, *terminal));
  TRY_OK(take_limits(arguments));
  Result<PpChart> chart = [&] {
    ProgressBar bar(*terminal, "progress.reading");
    options->progress = bar.progress();
    return write_pp_chart(*options);
  }();
  if (!chart) return std::move(chart).error();
  print_notes(*terminal, chart->notes, options->folder);
  say_ranks(*terminal, *chart);
  const auto some_rank = [&](auto has) { return std::ranges::any_of(chart->ranks, has); };
  if (some_rank([](const PpChartRank& rank) { return rank.error.has_value(); })) {
    if (some_rank([](const PpChartRank& rank) { return !rank.written.empty(); }))
      say_total(*terminal, *chart, *options);
    return kExitError;
  }
  if (!chart->any_blocks())
    return make_error(
        ErrorCode::kBadInput,
        "no rank has a forward or backward block to show" +
            (options->step ? " of step " + std::to_string(*options->step) : ""),
        !chart->steps.empty()
            ? "--step-id " + std::to_string(*options->step) + " is not there; steps are " + chart->steps
            : std::string("were the mstx ranges of docs/howto/pp-chart.md in place, and mstx on in the profiler?"),
        {options->folder});
  say_total(*terminal, *chart, *options);
  return arguments.has("fail-on") && chart->unlabelled() > 0 ? kExitFinding : kExitGood;
}

}  // namespace stageline
