#include "cli/open_run.h"

#include "base/machine_memory.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {
namespace {

// The words of --cells.
constexpr std::pair<std::string_view, CellSource> kCellSources[] = {{"auto", CellSource::kAuto},
                                                                    {"off", CellSource::kOff},
                                                                    {"annotations", CellSource::kAnnotations},
                                                                    {"inferred", CellSource::kInferred}};

Status take_cells(const Arguments& arguments, CellSource& source) {
  const std::string asked = arguments.get("cells", "auto");
  for (const auto& [word, known] : kCellSources)
    if (asked == word) {
      source = known;
      return {};
    }
  return make_error(ErrorCode::kUsage, "--cells is auto, off, annotations or inferred, not \"" + asked + "\"");
}

// Reads --align, --trust-clocks and --align-on. The answer of another tool uses the timestamps that this tool sees, so
// they are not changed then.
Status take_clocks(const Arguments& arguments, Clocks clocks, AlignOptions& options) {
  TRY(mode, parse_align_mode(arguments.get("align", "auto")));
  if (clocks == Clocks::kRaw || arguments.has("compat")) return {};
  options.mode = *mode;
  options.refuse_untied = clocks == Clocks::kOneAxis || clocks == Clocks::kOneAxisIfKnown;
  options.warn_of_untied = clocks == Clocks::kOneAxisIfKnown && *mode != AlignMode::kAlways;
  options.trust_clocks = arguments.has("trust-clocks");
  for (const std::string& text : arguments.all("align-on")) {
    TRY(hand, parse_align_on(text));
    options.by_hand.push_back(*hand);
  }
  return {};
}

}  // namespace

Status check_compat(const Arguments& arguments, std::string_view known, std::string_view asker) {
  if (!arguments.has("compat")) return {};
  const std::string asked = dashed(arguments.get("compat"));
  for (const std::string_view name : split(known, ','))
    if (!name.empty() && asked == name) return {};
  const std::string who = asker.empty() ? std::string("\"") + arguments.command->name + "\"" : std::string(asker);
  std::string hint =
      known.empty() ? std::string("it does not reproduce another tool's output") : "it has: " + std::string(known);
  return make_error(ErrorCode::kUsage, who + " has no --compat " + arguments.get("compat"), hint);
}

Status take_limits(const Arguments& arguments) {
  int threads = 0;
  TRY_OK(arguments.take("threads", 1, 1024, threads));
  set_thread_count(threads);
  TRY(max, arguments.bytes("max-memory", 0));
  set_max_memory(*max);
  return {};
}

Status take_layout(const Arguments& arguments, OpenOptions& options) {
  constexpr int64_t kMaxCount = 100'000;
  if (arguments.has("pp") && arguments.has("stages") && arguments.get("pp") != arguments.get("stages"))
    return make_error(ErrorCode::kUsage, "--pp and --stages are the same and say two numbers", "give one of them");
  for (const auto& [name, value] : {std::pair{"stages", &options.layout.pp},
                                    {"pp", &options.layout.pp},
                                    {"tp", &options.layout.tp},
                                    {"cp", &options.layout.cp},
                                    {"ep", &options.layout.ep},
                                    {"dp", &options.layout.dp}})
    TRY_OK(arguments.take(name, 1, kMaxCount, *value));
  options.layout.order = dashed(arguments.get("order"));
  TRY_OK(check_rank_layout(options.layout));
  if (options.layout.pp == 0 && arguments.has("model")) options.layout = {};  // they say how its layers are divided
  if (options.layout.pp == 0 && (options.layout.tp > 0 || options.layout.dp > 0 || options.layout.cp > 0 ||
                                 options.layout.ep > 0 || !options.layout.order.empty()))
    return make_error(ErrorCode::kUsage, "--tp, --cp, --ep, --dp and --order place ranks only together with --pp",
                      "say --pp P as well");
  TRY_OK(take_cells(arguments, options.cells));
  options.cell_rules = arguments.get("cell-rules");
  return {};
}

Result<OpenOptions> open_options(const Arguments& arguments, std::string_view compat, Clocks clocks) {
  TRY_OK(check_compat(arguments, compat));
  OpenOptions options;
  options.reader = arguments.get("reader");
  TRY_OK(take(arguments.numbers("ranks"), options.ranks));
  TRY_OK(take(arguments.numbers("devices"), options.devices));
  TRY_OK(take(arguments.numbers("file-ranks", true), options.file_ranks));  // in the order of the files
  if (arguments.has("steps")) TRY_OK(parse_step_range(arguments.get("steps"), options.first_step, options.last_step));
  if (arguments.has("range")) {
    TRY(range, parse_time_range(arguments.get("range")));
    options.range = *range;
  }
  TRY_OK(take_layout(arguments, options));
  TRY_OK(take_clocks(arguments, clocks, options.align));
  TRY_OK(take_limits(arguments));
  return options;
}

Result<Trace> open_run(const Arguments& arguments, const Terminal& terminal, const std::vector<std::string>& paths,
                       std::string_view compat, Clocks clocks) {
  TRY(options, open_options(arguments, compat, clocks));
  ProgressBar bar(terminal, "progress.reading");
  options->progress = bar.progress();
  return open_trace(paths, *options);
}

}  // namespace stageline
