#include "compat/paddle_timeline/timeline_inputs.h"

#include <filesystem>

#include "compat/paddle_timeline/problems.h"
#include "readers/common/worker_logs.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::vector<std::string> machine_folders;  // in the directory's order
  std::set<int32_t> devices;                 // numbers of the machine's own workerlogs
};

Result<Folder> list_folder(const std::string& path) {
  std::error_code ec;
  fs::directory_iterator it(path, ec);
  if (ec) {
    const bool missing = ec == std::errc::no_such_file_or_directory;
    return Error{missing ? ErrorCode::kNotFound : ErrorCode::kIo,
                 "cannot list this folder: " + ec.message(),
                 {path},
                 "--log_dir is the folder that holds workerlog.0"};
  }
  Folder folder;
  for (const fs::directory_entry& entry : it) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (entry.is_directory(ignored)) {
      if (name.starts_with("machine")) folder.machine_folders.push_back(entry.path().string());
    } else if (const int32_t number = worker_log_number(name); number >= 0) {
      folder.devices.insert(number);
    }
  }
  return folder;
}

// Returns the log of a device, plain or compressed; "" when there is none.
std::string log_path(const std::string& folder, int32_t device) {
  for (const char* suffix : {"", ".gz", ".zst"}) {
    const std::string path = (fs::path(folder) / ("workerlog." + std::to_string(device) + suffix)).string();
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) return path;  // reading a pipe would block for ever
  }
  return {};
}

std::vector<int32_t> without_repeats(const std::vector<int32_t>& devices, Diagnostics& diagnostics) {
  std::vector<int32_t> unique;
  std::set<int32_t> seen;
  for (const int32_t device : devices)
    if (seen.insert(device).second) unique.push_back(device);
    else diagnostics.add(problem::paddle_repeated_device);
  return unique;
}

// Where the logs of each machine are.
struct Machines {
  bool several = false;  // named by machine; there may still be one
  std::vector<std::string> folders;
};

Result<Machines> find_machines(const PaddleTimelineOptions& options, Diagnostics& diagnostics) {
  TRY(root, list_folder(options.log_dir));
  if (!options.multi_machine) {
    if (options.compat_v3 || !root->devices.empty() || root->machine_folders.empty())
      return Machines{false, {options.log_dir}};
    diagnostics.add(problem::paddle_several_machines, {options.log_dir});
  }
  Machines machines{true, root->machine_folders};
  if (options.compat_v3) return machines;
  sort_stably(machines.folders, natural_less);
  if (machines.folders != root->machine_folders) diagnostics.add(problem::paddle_machine_order, {options.log_dir});
  if (machines.folders.empty())
    return make_error(ErrorCode::kBadInput, "no folder here begins with \"machine\"",
                      root->devices.empty() ? "gather each machine's logs as machine0/workerlog.0 …"
                                            : "the logs lie here directly: leave --multi_machine out",
                      {options.log_dir});
  return machines;
}

// Returns the devices that are asked for or, where none are, those of all folders in ascending order.
Result<std::vector<int32_t>> chosen_devices(const PaddleTimelineOptions& options,
                                            const std::vector<std::string>& folders, Diagnostics& diagnostics) {
  if (options.devices) return options.compat_v3 ? *options.devices : without_repeats(*options.devices, diagnostics);
  std::set<int32_t> found;
  for (const std::string& folder : folders) {
    TRY(content, list_folder(folder));
    found.insert(content->devices.begin(), content->devices.end());
  }
  return std::vector<int32_t>(found.begin(), found.end());
}

}  // namespace

Result<TimelineInputs> find_timeline_inputs(const PaddleTimelineOptions& options, Diagnostics& diagnostics) {
  TRY(machines, find_machines(options, diagnostics));
  const auto& [multi, folders] = *machines;
  TRY(chosen, chosen_devices(options, folders, diagnostics));
  const std::vector<int32_t>& devices = *chosen;
  TimelineInputs inputs{.output_folder = options.log_dir, .machines = std::ssize(folders)};
  const int64_t n = devices.size();
  // V3 names rows by position and finds them by device number. This fails unless the numbers are 0 … n−1 in some order
  // (F7), and with --multi_machine for a single machine (F8).
  const bool is_permutation = std::ranges::all_of(devices, [&](int32_t d) { return d < n; });
  for (int64_t m = 0; m < inputs.machines; ++m) {
    const std::string of_machine = "(machine:" + std::to_string(m) + ")";
    const int64_t first_tid = kFirstRowTid + (inputs.machines > 1 ? m * n : 0);
    for (int64_t j = 0; j < n; ++j) {
      const int32_t device = devices[j];
      TimelineRow row;
      row.path = log_path(folders[m], device);
      row.chrome_tid = "\"GPU" + std::to_string(device) + (multi ? of_machine : "") + "\"";
      row.perfetto_tid = std::to_string(first_tid + (is_permutation ? device : j));
      if (options.compat_v3 && (device >= n || (multi && inputs.machines == 1))) row.perfetto_tid = row.chrome_tid;
      if (row.path.empty()) {
        const std::string path = (fs::path(folders[m]) / ("workerlog." + std::to_string(device))).string();
        if (options.compat_v3) return make_error(ErrorCode::kNotFound, "no such log (V3 stops here too)", "", {path});
        diagnostics.add(problem::paddle_missing_rank_timeline, {path});
        continue;
      }
      inputs.rows.push_back(row);
      const int32_t label = is_permutation || options.compat_v3 ? static_cast<int32_t>(j) : device;
      inputs.names.push_back({"GPU:" + std::to_string(label) + (inputs.machines > 1 ? of_machine : ""), first_tid + j});
    }
  }
  if (inputs.rows.empty() && !options.compat_v3)
    return make_error(ErrorCode::kBadInput, "no workerlog.N here",
                      "--log_dir is the folder that holds workerlog.0 (the launcher's --log_dir)", {options.log_dir});
  return inputs;
}

}  // namespace stageline
