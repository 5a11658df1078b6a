#include "readers/common/worker_logs.h"

#include "base/input.h"
#include "model/source_limits.h"
#include "readers/common/problems.h"

namespace stageline {

int32_t worker_log_number(std::string_view name) {
  constexpr std::string_view prefix = "workerlog.";
  for (const std::string_view suffix : {".gz", ".zst"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  if (!name.starts_with(prefix)) return -1;
  const auto number = parse_int(name.substr(prefix.size()));
  return number && *number >= 0 && *number < 1'000'000 ? static_cast<int32_t>(*number) : -1;
}

namespace {

WorkerLines first_lines_in(std::string_view text) {
  const size_t job = text.find(kProfilerJob), detail = text.find(kPipelineDetails);
  return job == detail ? WorkerLines::kNone : job < detail ? WorkerLines::kJobs : WorkerLines::kDetails;
}

}  // namespace

WorkerLines first_lines(const std::string& path) {
  Result<Input> input = Input::open(path, nullptr);
  if (!input) return WorkerLines::kNone;
  std::string window;
  for (;;) {
    window.erase(0, window.size() - std::min(window.size(), kProfilerJob.size()));
    const size_t kept = window.size();
    window.resize(kept + (size_t{1} << 20));
    const Result<size_t> got = input->read(window.data() + kept, window.size() - kept);
    if (!got || *got == 0) return WorkerLines::kNone;
    window.resize(kept + *got);
    if (const WorkerLines found = first_lines_in(window); found != WorkerLines::kNone) return found;
  }
}

WorkerLines first_worker_lines(const Source& source) {
  constexpr int kMaxSearched = 8;
  int searched = 0;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const bool log = worker_log_number(file_name(source.files[i].rel)) >= 0;
    if (!log && !source.files[i].given) continue;
    WorkerLines found = first_lines_in(source.head(i));
    if (found == WorkerLines::kNone && log && searched++ < kMaxSearched) found = first_lines(source.files[i].path);
    if (found != WorkerLines::kNone) return found;
  }
  return WorkerLines::kNone;
}

std::vector<WorkerLog> find_worker_logs(const Source& source, const std::vector<int32_t>& devices,
                                        Diagnostics& diagnostics) {
  const auto wanted = [&](int32_t device) {
    return devices.empty() || std::ranges::find(devices, device) != devices.end();
  };
  std::vector<WorkerLog> logs;
  std::set<std::pair<std::string, int32_t>> seen;
  int32_t next_number = 0;
  for (const SourceFile& file : source.files) {
    const std::string name = file_name(file.rel);
    int32_t number = worker_log_number(name);
    if (number < 0) {
      if (!file.given) continue;
      number = next_number;
    }
    std::string folder = file.rel.substr(0, file.rel.size() - name.size());
    if (!folder.empty()) folder.pop_back();
    // The same log under two names (workerlog.0 and workerlog.0.gz, or a file named twice) would double every row.
    if (!seen.emplace(folder, number).second) {
      if (worker_log_number(name) < 0) {
        while (seen.count({folder, number})) ++number;
        seen.emplace(folder, number);
      } else {
        diagnostics.add(problem::paddle_repeated_log, {file.path});
        continue;
      }
    }
    next_number = std::max(next_number, number + 1);
    if (wanted(number)) logs.push_back({file.path, folder, 0, file.size_bytes, number});
  }
  sort_stably(logs, [](const WorkerLog& a, const WorkerLog& b) {
    if (a.machine_name != b.machine_name) return natural_less(a.machine_name, b.machine_name);
    return a.device < b.device;
  });

  int32_t machine = -1;
  int32_t per_machine = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    if (i == 0 || logs[i].machine_name != logs[i - 1].machine_name) ++machine;
    logs[i].machine = machine;
    per_machine = std::max(per_machine, logs[i].device + 1);
  }
  const int64_t rank_room = (int64_t{machine} + 1) * per_machine;
  for (size_t i = 0; i < logs.size(); ++i)
    logs[i].rank =
        rank_room <= kMaxRankNumber ? logs[i].machine * per_machine + logs[i].device : static_cast<int32_t>(i);
  return logs;
}

void report_missing_logs(const std::vector<Part>& parts, Diagnostics& diagnostics) {
  constexpr int32_t kMaxNamed = 4096;
  std::map<int32_t, std::set<int32_t>> by_machine;
  std::map<int32_t, std::string> names;
  int32_t per_machine = 0;
  for (const Part& part : parts) {
    names[part.machine] = part.machine_name;
    by_machine[part.machine].insert(part.device);
    per_machine = std::max(per_machine, part.device + 1);
  }
  if (per_machine > kMaxNamed) {
    diagnostics.add(problem::paddle_missing_rank_holes, {"workerlog." + std::to_string(per_machine - 1)},
                    int64_t{per_machine} * std::ssize(by_machine) - std::ssize(parts));
    return;
  }
  for (const auto& [index, found] : by_machine) {
    const std::string& name = names[index];
    for (int32_t device = 0; device < per_machine; ++device)
      if (!found.count(device))
        diagnostics.add(problem::paddle_missing_rank,
                        {(name.empty() ? "" : name + "/") + "workerlog." + std::to_string(device)});
  }
}

}  // namespace stageline
