// Reads profiles of XLA (*.xplane.pb): docs/formats/xplane.md.
#include <filesystem>

#include "readers/common/ranks.h"
#include "readers/common/read_files.h"
#include "readers/xplane/host_file.h"
#include "readers/xplane/problems.h"
#include "readers/xspace_head.h"

namespace stageline::xplane {
namespace {

// Every run of a profiler has a folder of its own below plugins/profile, named after the time; only the last run is
// read. Files that were named one by one are all read.
std::vector<size_t> of_last_run(const Source& source, std::vector<size_t> files, Diagnostics& notes) {
  if (std::ranges::any_of(files, [&](size_t i) { return source.files[i].given; })) return files;
  std::map<std::string, std::set<std::string>> hosts;  // folder → hosts
  const auto folder = [&](size_t i) { return std::filesystem::path(source.files[i].path).parent_path().string(); };
  for (const size_t i : files) hosts[folder(i)].insert(file_name(source.files[i].path));
  if (hosts.size() < 2) return files;
  // Folders of different times with a host in common are several runs; folders with different hosts are one run,
  // gathered from several machines. Folders of one time are processes of one job, each with a log folder of its own.
  std::set<std::string> seen;
  bool runs = false;
  for (const auto& [path, names] : hosts)
    for (const std::string& name : names) runs |= !seen.insert(name).second;
  if (!runs) return files;
  std::string last = hosts.begin()->first;
  for (const auto& [path, names] : hosts)
    if (natural_less(file_name(last), file_name(path))) last = path;
  const size_t before = files.size();
  std::erase_if(files, [&](size_t i) { return file_name(folder(i)) != file_name(last); });
  if (files.size() == before) return files;
  notes.add(problem::xplane_other_runs, {last}, static_cast<int64_t>(before - files.size()));
  return files;
}

Error filtered(const std::string& path) { return input_error("xplane.filtered", {path}); }

// Makes a part of each device, hosts in the order of their names, and returns how many rows there are.
size_t add_parts(std::vector<HostFile>& files, Trace& trace) {
  sort_stably(files, [](const HostFile& a, const HostFile& b) {
    return a.host != b.host ? natural_less(a.host, b.host) : natural_less(a.path, b.path);
  });
  std::vector<DevicePart*> parts;
  int64_t shared = 0;
  for (HostFile& file : files) {
    shared += file.shared_host;
    if (file.host.empty()) file.host = file_name(file.path).substr(0, file_name(file.path).find(".xplane.pb"));
    for (DevicePart& part : file.parts) {
      part.part.machine_name = file.host;
      parts.push_back(&part);
    }
  }
  trace.diagnostics.add(problem::xplane_shared_host, {files.front().path}, shared);
  size_t rows = 0;
  for (uint32_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i]->part;
    part.rank = i;
    part.source = part.source.empty() ? files.front().path : part.source;
    trace.diagnostics.merge(parts[i]->notes);
    rename_part(adopt_names(parts[i]->names, trace), part);
    rows += part.slices.size();
    for (const CounterSeries& series : part.counters) rows += series.time_ns.size();
    trace.parts.push_back(std::move(part));
  }
  return rows;
}

}  // namespace

Match sniff(const Source& source) {
  if (!xplane_files(source).ours.empty()) return Match::kCertain;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (is_xplane_name(source.files[i].path) && was_filtered_as_text(source.head(i))) return Match::kCertain;
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "xplane";
  trace.writer = "XLA's profiler";
  trace.categories.push_back({"", Category::kOther});
  const XplaneFiles sorted = xplane_files(source);
  std::vector<size_t> chosen = of_last_run(source, sorted.ours, trace.diagnostics);
  if (chosen.empty() && source.files.size() == 1) chosen.push_back(0);  // with --reader xplane it is tried in any case
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string& path = source.files[i].path;
    if (std::ranges::find(sorted.json_twins, i) != sorted.json_twins.end())
      trace.diagnostics.add(problem::xplane_json_twin, {path});
    else if (source.files[i].given && std::ranges::find(chosen, i) == chosen.end())
      trace.diagnostics.add(problem::xplane_unusable_file_foreign, {path});
  }
  expect_bytes(source, chosen, options.progress);
  std::vector<HostFile> files;
  const auto first_error = read_files(
      chosen.size(), [&](size_t k) { return read_host_file(source.files[chosen[k]].path, options.progress); },
      [&](size_t, HostFile file) {
        files.push_back(std::move(file));
        trace.diagnostics.merge(files.back().notes);
      },
      [&](size_t k, Error& error) {
        const std::string& path = source.files[chosen[k]].path;
        if (was_filtered_as_text(source.head(chosen[k]))) error = filtered(path);
        trace.diagnostics.add(problem::xplane_unusable_file, Args().set("why", error_text(error)), {path});
      });
  if (files.empty()) return nothing_read(first_error, source, "xplane.nothing");
  const size_t rows = add_parts(files, trace);
  if (!files.front().writer.empty()) trace.writer += ", " + files.front().writer;
  for (const size_t i : chosen)
    if (rows == 0 && was_filtered_as_text(source.head(i))) return filtered(source.files[i].path);
  if (rows == 0)
    return make_error(ErrorCode::kBadInput, "this profile of XLA has planes, and no events in them",
                      "was anything running between start_trace and stop_trace?", {files.front().path});
  const bool undated = std::ranges::any_of(files, [](const HostFile& file) { return !file.is_dated; });
  trace.clock = files.size() == 1 ? ClockState::kShared : undated ? ClockState::kPerRank : ClockState::kUnaligned;
  const bool one_host = files.size() == 1;
  const ClockState clock = trace.clock;
  number_machines(trace);
  if (!one_host) trace.clock = clock;  // several files of one host are several runs of the profiler
  const bool devices = std::ranges::any_of(trace.parts, [](const Part& part) { return part.device != kUnknown; });
  std::set<std::string> hosts;  // several processes may be of one
  for (const HostFile& file : files) hosts.insert(file.host.empty() ? file.path : file.host);
  trace.description = counted(hosts.size(), "host", "hosts") +
                      (devices ? ", " + counted(trace.parts.size(), "device", "devices") : ", no devices");
  return trace;
}

}  // namespace stageline::xplane
