#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/questions.h"
#include "cli/schedule_options.h"
#include "cli/simulation_mark.h"
#include "exporters/ascend_db/ascend_db.h"
#include "exporters/worker_logs.h"
#include "pipeline/cells/rank_layout.h"
#include "pipeline/simulate/simulate.h"

namespace stageline {
namespace {

constexpr int64_t kLatencyNs = 200'000;  // time of a message, unless --latency gives another
constexpr int64_t kMaxRanks = 65'536;    // each rank is a folder with databases
constexpr int64_t kReduceNs = 500'000;   // time to reduce the gradients

// Returns the first given flag that only --format ascend has; "" when there is none.
std::string ascend_only_flag(const Arguments& arguments) {
  for (const char* name : {"level", "tp", "cp", "order", "first-step", "marks", "p2p", "level-none-comm", "pp-info",
                           "empty-pop", "no-step-time", "framework"})
    if (arguments.has(name)) return name;
  return "";
}

// Reads the flags, and adds to `run` what the shape implies: peers, rank numbers, times between steps. Errors: kUsage.
Result<AscendDbOptions> ascend_options_of(const Arguments& arguments, SimulateOptions& run) {
  AscendDbOptions o;
  for (const char* name : {"level", "marks", "p2p", "level-none-comm", "framework"})
    TRY_OK(check_choice(arguments, name));
  int64_t tp = 1, cp = 1;
  TRY_OK(arguments.take("tp", 1, 4096, tp));
  TRY_OK(arguments.take("cp", 1, 4096, cp));
  TRY_OK(arguments.take("first-step", 0, 1'000'000'000, o.first_step));
  const int64_t peers = tp * cp;
  if (const int64_t ranks = peers * run.dp * run.schedule.sizes.stages; ranks > kMaxRanks)
    return make_error(ErrorCode::kUsage,
                      grouped(ranks) + " ranks, each a folder with databases, are more than " + grouped(kMaxRanks),
                      "ask for a smaller --tp, --cp or --dp");
  const std::string order = arguments.get("order", "tp-cp-ep-dp-pp");
  TRY_OK(check_rank_order(order));
  o.grid.size = {static_cast<int32_t>(tp), static_cast<int32_t>(cp), run.dp, run.schedule.sizes.stages};
  o.grid.order = grid_order(order);

  const std::string level = arguments.get("level", "none");
  o.level = level == "none" ? AscendLevel::kNone : level == "0" ? AscendLevel::kLevel0 : AscendLevel::kLevel1;
  o.marks = arguments.get("marks", "guide") == "guide" ? AscendMarks::kGuide : AscendMarks::kHelper;
  const std::string comm = arguments.get("level-none-comm");
  o.level_none_comm = comm.empty()      ? LevelNoneComm::kNo
                      : comm == "plain" ? LevelNoneComm::kPlain
                                        : LevelNoneComm::kEscaped;
  if (!comm.empty() && o.level != AscendLevel::kNone)
    return make_error(ErrorCode::kUsage, "--level-none-comm is for --level none");
  o.batch_p2p = arguments.get("p2p", "single") == "batch";
  o.empty_pop = arguments.has("empty-pop");
  o.step_time = !arguments.has("no-step-time");
  o.pp_info = arguments.has("pp-info");
  o.mindspore = arguments.get("framework", "pytorch") == "mindspore";

  if (!arguments.has("latency")) run.costs.latency_ns = kLatencyNs;
  run.peers = static_cast<int32_t>(peers);
  if (run.dp * cp > 1) run.reduce_ns = kReduceNs;
  for (int32_t dp = 0; dp < run.dp; ++dp)
    for (int32_t stage = 0; stage < run.schedule.sizes.stages; ++stage)
      for (int32_t c = 0; c < static_cast<int32_t>(cp); ++c)
        for (int32_t t = 0; t < static_cast<int32_t>(tp); ++t) run.rank_of.push_back(o.grid.rank_at(t, c, dp, stage));
  o.latency_ns = run.costs.latency_ns;
  o.reduce_ns = run.reduce_ns;
  o.schedule = run.schedule;
  return o;
}

Result<SimulateOptions> options_of(const Arguments& arguments) {
  SimulateOptions o;
  TRY_OK(arguments.take("dp", 1, 4096, o.dp));
  TRY_OK(arguments.take("steps", 1, 100'000, o.steps));
  TRY_OK(arguments.take("machines", 1, 100'000, o.machines));
  TRY_OK(take(schedule_of(arguments), o.schedule));
  TRY(costs, costs_of(arguments, o.costs));
  o.costs = *costs;
  struct Time {
    const char* name;
    int64_t* into;
  };
  for (const Time& t :
       {Time{"optimizer", &o.optimizer_ns}, {"clock-skew", &o.clock_skew_ns}, {"reduce", &o.reduce_ns}}) {
    TRY(value, arguments.duration_ns(t.name, 0));
    *t.into = *value;
  }
  o.messages = arguments.has("messages");
  o.collectives = arguments.has("reduce");
  TRY(jitter, arguments.real("jitter", 0));
  o.jitter = *jitter;
  for (const std::string& text : arguments.all("fault")) {
    TRY(fault, parse_fault(text));
    o.faults.push_back(*fault);
  }
  TRY_OK(arguments.take("seed", 0, INT64_MAX, o.seed));
  return o;
}

bool is_profile_folder(const std::string& name) { return name.ends_with("_ascend_pt") || name.ends_with("_ascend_ms"); }

struct SimulatedFiles {
  std::vector<std::filesystem::path> logs;      // and cells.csv
  std::vector<std::filesystem::path> truths;    // truth.csv, truth_links.csv
  std::vector<std::filesystem::path> profiles;  // folders
  std::vector<std::filesystem::path> profiled;  // the files in these

  std::vector<std::filesystem::path> all() const {
    std::vector<std::filesystem::path> files = logs;
    files.insert(files.end(), truths.begin(), truths.end());
    files.insert(files.end(), profiled.begin(), profiled.end());
    return files;
  }
};

// The files of a folder whose names are those that simulations give.
SimulatedFiles files_in(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  SimulatedFiles found;
  std::error_code ec;
  const auto collect = [&](const fs::path& place) {
    for (const fs::directory_entry& entry : fs::directory_iterator(place, ec)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".partial.") != std::string::npos) continue;  // of a writer that was killed; no reader takes it
      if (name.starts_with("workerlog.") || name == "cells.csv") found.logs.push_back(entry.path());
      if (entry.is_directory(ec) && is_profile_folder(name)) found.profiles.push_back(entry.path());
    }
  };
  collect(folder);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(ec) && name.starts_with("machine") && !is_profile_folder(name)) collect(entry.path());
    if (name == "truth.csv" || name == "truth_links.csv") found.truths.push_back(entry.path());
  }
  for (const fs::path& profile : found.profiles)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(profile, ec))
      if ((!entry.is_directory(ec) || entry.is_symlink(ec)) &&
          entry.path().filename().string().find(".partial.") == std::string::npos)  // as above
        found.profiled.push_back(entry.path());
  return found;
}

// Returns the files of earlier simulations in the folder. All other files belong to the user and stay: logs of another
// run would be read as ranks of this one, so with them nothing is written.
Result<SimulatedFiles> earlier_files(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  SimulatedFiles found = files_in(folder);
  const SimulationMark mark(folder);
  const auto refuse = [](const char* what, const fs::path& file) {
    return make_error(ErrorCode::kUsage, std::string("the folder holds ") + what + " that no simulation wrote",
                      "give a folder of its own", {file.string()});
  };
  for (const fs::path& log : found.logs)
    if (!mark.wrote(log)) return refuse("logs", log);
  for (const fs::path& file : found.profiled)
    if (!mark.wrote(file)) return refuse("profiles", file);
  std::error_code ec;
  for (const fs::path& profile : found.profiles)  // a simulation that was interrupted leaves empty ones
    if (fs::is_symlink(profile, ec)) return refuse("profiles", profile);
  for (const fs::path& truth : found.truths)
    if (!mark.wrote(truth)) return refuse("a table", truth);
  return found;
}

// Writes the logs or profiles, and truth.csv next to them, and takes away what an earlier simulation left besides. The
// old files stay until all new ones are written. Then the list of files names both, so that the folder is known as a
// simulation's whenever the program is killed, and the new ones take their names at once.
Status write_run(SimulatedRun& run, const std::string& format, const AscendDbOptions& databases,
                 const std::string& folder, const SimulatedFiles& earlier) {
  namespace fs = std::filesystem;
  OutputSet together;
  Status written = format == "ascend"   ? write_ascend_databases(run.trace, run.clock_offset_ns, databases, folder)
                   : format == "paddle" ? write_worker_logs(run.trace, folder)
                                        : write_timings_csv(run.trace, {}, (fs::path(folder) / "cells.csv").string());
  if (!written) return written;
  for (int32_t& step : run.trace.cells.step) step += static_cast<int32_t>(databases.first_step);  // as the databases
  written = write_timings_csv(run.trace, run.clock_offset_ns, (fs::path(folder) / "truth.csv").string());
  if (!written) return written;
  const SimulationMark::Files now = together.waiting();
  std::set<std::string> names;
  SimulationMark::Files both = now;
  for (const auto& [name, bytes_at] : now) names.insert(fs::path(name).lexically_normal().string());
  for (const fs::path& file : earlier.all()) both.emplace_back(file.string(), file.string());
  const OutputSet::Join alone(nullptr);  // the list is written at once
  TRY_OK(SimulationMark::leave(folder, both));
  TRY_OK(together.commit());
  std::error_code ec;
  for (const fs::path& file : earlier.all())
    if (!names.contains(file.lexically_normal().string()) && fs::remove(file, ec))  // and folders that are empty by now
      for (fs::path up = file.parent_path(); up != folder && fs::remove(up, ec) && !ec; up = up.parent_path()) {
      }
  SimulationMark::Files left;
  for (const std::string& name : names) left.emplace_back(name, name);
  return SimulationMark::leave(folder, left);
}

}  // namespace

Result<std::vector<std::string>> simulate_to_folder(const Arguments& arguments) {
  const std::string folder = arguments.get("output");
  if (folder.empty() || folder == "-")
    return make_error(ErrorCode::kUsage, "simulate needs a folder to write to", "stageline simulate 1f1b -o logs");
  const std::string format = arguments.get("format", "paddle");
  const bool ascend = format == "ascend";
  if (format != "paddle" && format != "cells" && !ascend)
    return make_error(ErrorCode::kUsage, "--format is paddle, cells or ascend, not \"" + format + "\"");
  if (const std::string flag = ascend_only_flag(arguments); !ascend && !flag.empty())
    return make_error(ErrorCode::kUsage, "--" + flag + " goes with --format ascend");
  TRY(options, options_of(arguments));
  for (const char* flag : {"messages", "reduce"})
    if (ascend && arguments.has(flag))
      return make_error(ErrorCode::kUsage, "--" + std::string(flag) +
                                               " is for --format paddle and cells; Ascend's profiles always have them");
  for (const Fault& fault : options->faults)
    if (ascend && fault.kind == "slow-link")
      return make_error(ErrorCode::kUsage, "--fault slow-link is for --format paddle and cells");
  AscendDbOptions databases;
  databases.first_step = 0;
  if (ascend) TRY_OK(take(ascend_options_of(arguments, *options), databases));
  TRY(run, simulate_run(*options));
  databases.schedule = run->schedule;
  namespace fs = std::filesystem;
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return make_error(ErrorCode::kIo, "cannot make this folder: " + ec.message(), "", {folder});
  TRY(earlier, earlier_files(folder));
  if (!arguments.has("force") && !earlier->all().empty())
    return make_error(ErrorCode::kUsage, "the folder holds a run already",
                      "--force replaces it; or give a folder of its own", {folder});
  TRY_OK(write_run(*run, format, databases, folder, *earlier));
  std::vector<std::string> lines;
  lines.push_back(folder + "  " + options->schedule.name + ", " + std::to_string(run->trace.parts.size()) + " ranks, " +
                  grouped(run->trace.cells.size()) + " cells, with truth.csv next to them");
  const auto& kinds = run->trace.cells.kind;
  const auto unlogged = format == "paddle" && !ascend ? std::ranges::count(kinds, CellKind::kCollective) : 0;
  if (unlogged > 0)
    lines.push_back("Paddle's logs hold no collectives: " + grouped(unlogged) +
                    " of the cells are in truth.csv alone; --format ascend or csv holds them");
  return lines;
}

Result<int> run_simulate(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  TRY(lines, simulate_to_folder(arguments));
  for (const std::string& line : *lines) note(*terminal, line);
  return kExitGood;
}

}  // namespace stageline
