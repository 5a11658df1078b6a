// Runs stageline record: sets the variables that make a program record, runs the program, and reports the recording.
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <filesystem>

#include "base/environment.h"
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/open_run.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

// Larger recordings are not read again to count what is in them.
constexpr int64_t kMaxBytesCounted = int64_t{1} << 29;
constexpr int kExitNotRunnable = 126, kExitNoProgram = 127;  // the exit codes that shells use

// Where the parts of the recorder are: in the build tree, in an installation, or in a wheel.
struct Parts {
  std::string package;  // folder of the Python package; "" when there is none
  std::string library;  // "" when there is none
};
Parts find_parts() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path here = program.parent_path();
  Parts parts;
  for (const fs::path& folder : {here / "python/stageline", here / "../lib/stageline/python/stageline", here / ".."})
    if (parts.package.empty() && fs::exists(folder / "launch/sitecustomize.py", failed))
      parts.package = folder.lexically_normal().string();
  if (parts.package.ends_with('/')) parts.package.pop_back();
  const std::string name = "libstageline_record.so.1";
  for (const fs::path& folder : {fs::path(parts.package) / "../stageline_record/lib", here / "record", here / "../lib"})
    if (parts.library.empty() && fs::exists(folder / name, failed))
      parts.library = (folder / name).lexically_normal().string();
  return parts;
}

// Returns true when the library has the function that an injection calls.
bool has_entry(const std::string& library, const char* entry) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  const bool found = handle && dlsym(handle, entry);
  if (handle) dlclose(handle);
  return found;
}

// Sets Stageline's library where a tool's library is expected. A tool that is already set there is loaded behind it
// (STAGELINE_CHAIN_…).
void inject(const char* name, const char* chain, const std::string& library, Variables& variables) {
  const std::string there = environment(name);
  if (!there.empty() && there != library) variables[chain] = there;
  variables[name] = library;
}

// Returns the number of ranks, if a launcher sets it.
int64_t world_size() {
  for (const char* name : {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PADDLE_TRAINERS_NUM"})
    if (const auto ranks = parse_int(environment(name))) return *ranks;
  return 1;
}

// Returns this process's rank when every rank has a `record` of its own (srun stageline record, mpirun stageline
// record); otherwise −1.
int64_t own_rank() {
  for (const char* name :
       {"STAGELINE_RANK", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PADDLE_TRAINER_ID"})
    if (const auto rank = parse_int(environment(name))) return *rank;
  return -1;
}

Status take_steps(const Arguments& arguments, Variables& variables) {
  if (!arguments.has("steps")) return {};
  int64_t first = 0, last = 0;
  TRY_OK(parse_step_range(arguments.get("steps"), first, last));
  const int64_t max = INT_MAX;
  if (first > max || last < 0 || (first < 0 && first != INT64_MIN))
    return make_error(ErrorCode::kUsage, "no training step has a number of \"" + arguments.get("steps") + "\"",
                      "steps count from 0: --steps 10:15, 10:, :15 or 10");
  variables["STAGELINE_STEPS"] =
      std::to_string(std::clamp<int64_t>(first, 0, max)) + ":" + std::to_string(std::clamp<int64_t>(last, 0, max));
  return {};
}

Status take_injections(const Arguments& arguments, const Parts& parts, Variables& variables) {
  const struct {
    const char *flag, *entry, *name, *chain;
  } kInjections[] = {
      {"nvtx", "InitializeInjectionNvtx2", "NVTX_INJECTION64_PATH", "STAGELINE_CHAIN_NVTX"},
      {"nvtx", "InitInjectionMstx", "MSTX_INJECTION_PATH", "STAGELINE_CHAIN_MSTX"},
      {"nccl", "ncclProfiler_v4", "NCCL_PROFILER_PLUGIN", "STAGELINE_CHAIN_NCCL"},
      {"kernels", "InitializeInjection", "CUDA_INJECTION64_PATH", "STAGELINE_CHAIN_CUDA"},
  };
  for (const auto& injection : kInjections) {
    if (!arguments.has(injection.flag)) continue;
    if (!has_entry(parts.library, injection.entry))
      return make_error(ErrorCode::kUnavailable,
                        std::string("--") + injection.flag + ": this build's recorder has no " + injection.entry);
    inject(injection.name, injection.chain, parts.library, variables);
  }
  return {};
}

// Makes the folder and tries to write in it, because a failure now is better than one after a day of training. Returns
// its absolute path, because programs may change their working directory.
Result<std::string> ready_folder(const std::string& wanted) {
  std::error_code failed;
  const fs::path folder = fs::absolute(wanted, failed).lexically_normal();
  fs::create_directories(folder, failed);
  if (!fs::is_directory(folder) || access(folder.c_str(), W_OK | X_OK) != 0)
    return make_error(ErrorCode::kIo,
                      "cannot write to " + folder.string() + ": " + (failed ? failed.message() : std::strerror(errno)),
                      "choose another folder: -o DIR");
  std::string path = folder.string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::set<std::string> recordings_in(const std::string& folder) {
  std::set<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".slrec") || name.ends_with(".slhot")) found.insert(entry->path().string());
  }
  return found;
}

Variables variables_for(const Parts& parts, const std::string& folder) {
  Variables variables{{"STAGELINE_DIR", folder}, {"STAGELINE_RECORD_LIBRARY", parts.library}};
  // Torch's agent calls all its runs "none", and without a scheduler there is no name at all.
  if (environment("STAGELINE_JOB").empty() && own_rank() < 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    variables["STAGELINE_JOB"] = "record-" + std::to_string(seconds) + "-" + std::to_string(getpid());
  }
  if (!parts.package.empty()) {
    const std::string launch = parts.package + "/launch", before = environment("PYTHONPATH");
    const bool there = before == launch || before.starts_with(launch + ":");  // a recording inside a recording
    variables["PYTHONPATH"] = there ? before : before.empty() ? launch : launch + ":" + before;
  }
  return variables;
}

// Returns the number of lost records. Records that only lack a device's time are reported in the notes instead.
int64_t dropped(const Diagnostics& diagnostics) {
  int64_t sum = 0;
  for (const char* reason : {"ring_full", "no_ring", "too_deep", "reentrant", "bad_handle"})
    sum += diagnostics.count(std::string("recording.") + reason);
  return sum;
}

// Returns "4 ranks, 1 152 jobs in 4 steps, none dropped". When the files cannot be read, it returns "" and prints a
// note.
std::string what_is_in(const Arguments& arguments, const Terminal& terminal, const std::vector<std::string>& files) {
  Result<Trace> trace = open_run(arguments, terminal, files);
  if (!trace) {
    fail(trace.error());
    return "";
  }
  std::set<int32_t> steps;
  for (const int32_t step : trace->cells.step)
    if (step >= 0) steps.insert(step);
  const int64_t cells = trace->cells.size();
  int64_t work = 0;  // for devices, with --kernels; calls and steps are slices then too
  bool profiled = false;
  for (const Part& part : trace->parts) {
    profiled |= part.event_count > 0;
    for (size_t i = 0; part.event_count > 0 && i < part.slices.size(); ++i)
      work += is_device_work(trace->categories[part.slices.category_id[i]].kind);
  }
  const int64_t others = profiled ? 0 : static_cast<int64_t>(trace->slice_count()) - cells;
  const int64_t lost = dropped(trace->diagnostics);
  std::string text = counted(trace->parts.size(), "rank", "ranks") + ", " + counted(cells, "job", "jobs");
  if (!steps.empty()) text += " in " + counted(steps.size(), "step", "steps");
  if (work > 0) text += ", " + counted(work, "kernel or copy", "kernels and copies");
  if (others > 0) text += ", " + counted(others, "other range", "other ranges");
  text += ", " + (lost == 0 ? "none dropped" : grouped(lost) + " dropped");
  return text;
}

// Prints at the end where the files are, what is in them, and what to type next. It goes to stderr, because stdout
// belongs to the program.
void say_what_came(const Arguments& arguments, const Terminal& terminal, const std::string& folder,
                   const std::string& shown, const std::set<std::string>& before) {
  std::vector<std::string> fresh;
  int64_t bytes = 0;
  for (const std::string& path : recordings_in(folder)) {
    if (before.count(path) > 0) continue;
    fresh.push_back(path);
    std::error_code failed;
    if (const auto size = fs::file_size(path, failed); !failed && path.ends_with(".slrec"))
      bytes += static_cast<int64_t>(size);
  }
  if (fresh.empty()) {
    note(
        terminal,
        "stageline: nothing was recorded. The hooks wait for the first training step of\n  " STAGELINE_RECORDED
        ",\n  in a Python that reads PYTHONPATH (not -S, -I, -E); other programs call the recorder themselves, or have "
        "NVTX ranges for --nvtx");
    return;
  }
  std::string text;
  if (bytes <= kMaxBytesCounted) text = what_is_in(arguments, terminal, fresh);
  note(terminal, "stageline: " + counted(fresh.size(), "file", "files") + ", " + human_bytes(bytes) + " in " + shown +
                     (text.empty() ? "" : ": " + text) +
                     (own_rank() >= 0 && world_size() > 1 ? ", so far (this rank is done; others may not be)" : "") +
                     "\n  stageline report " + shown);
}

}  // namespace

Result<int> run_record(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string shown = arguments.get("output", "stageline-rec");
  Variables of_flags;
  TRY_OK(take_steps(arguments, of_flags));
  if (shown.empty()) return make_error(ErrorCode::kUsage, "-o wants a folder", "stageline record -o DIR -- COMMAND…");
  const Parts parts = find_parts();
  if (parts.library.empty())
    return make_error(ErrorCode::kUnavailable, "libstageline_record.so.1 is not in the folder of this program",
                      "install it with the program (cmake --install), or use the build tree as it is");
  TRY(folder, ready_folder(shown));
  Variables variables = variables_for(parts, *folder);
  variables.merge(of_flags);
  TRY_OK(take_injections(arguments, parts, variables));
  if (parts.package.empty())
    note(*terminal, "stageline: recording without Python hooks, which are not installed with this program");
  if (environment("STAGELINE_OFF") == "1")
    note(*terminal, "stageline: STAGELINE_OFF=1 is set, so nothing will be recorded");
  const std::set<std::string> before = recordings_in(*folder);
  const int64_t rank = own_rank();
  if (!before.empty() && rank < 0)
    note(*terminal, "stageline: " + shown + " has " + counted(before.size(), "file", "files") +
                        " of earlier runs; give each run a folder of its own (-o)");
  Result<Ended> ended = run_program(arguments.operands, variables);
  if (!ended) {
    fail(ended.error());
    std::error_code failed;
    fs::remove(*folder, failed);  // removes it only when it is empty
    return ended.error().code == ErrorCode::kNotFound ? kExitNoProgram : kExitNotRunnable;
  }
  // When there are many launchers, one for each rank, only the first prints this: they all have the same folder.
  if (rank <= 0) say_what_came(arguments, *terminal, *folder, shown, before);
  return end_alike(*ended);
}

}  // namespace stageline
