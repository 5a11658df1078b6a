// PyTorch profiler traces (Kineto's Chrome JSON) and any other Chrome-trace JSON: docs/formats/kineto.md.
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/json_members.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "model/torch_facts.h"
#include "readers/foreign.h"
#include "readers/kineto/finish_part.h"
#include "readers/kineto/identity.h"
#include "readers/kineto/merge_rows.h"
#include "readers/kineto/read_file.h"
#include "readers/kineto/sniff.h"
#include "readers/reader.h"

namespace stageline {
namespace kineto {
namespace {

Match sniff(const Source& source) {
  Match best = Match::kNo;
  for (size_t i = 0; i < source.files.size() && best != Match::kCertain; ++i)
    best = std::max(best, sniff_file(source, i));
  return best;
}

// Where some files say themselves that they are Kineto's, other Chrome traces beside them (exports, overlays)
// are left alone. With --reader whatever may hold events is tried.
std::vector<size_t> files_to_read(const Source& source) {
  std::vector<size_t> certain, maybe, possible;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const Match match = sniff_file(source, i);
    if (match == Match::kCertain) certain.push_back(i);
    if (match == Match::kMaybe || (match == Match::kCertain && source.files[i].given)) maybe.push_back(i);
    const std::string_view head = source.head(i);
    const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (at != std::string_view::npos && (head[at] == '{' || head[at] == '[')) possible.push_back(i);
  }
  if (!certain.empty()) {
    for (const size_t i : maybe)
      if (source.files[i].given && std::find(certain.begin(), certain.end(), i) == certain.end()) certain.push_back(i);
    std::sort(certain.begin(), certain.end());
    return certain;
  }
  if (!maybe.empty()) return maybe;
  if (possible.empty() && source.files.size() == 1) possible.push_back(0);
  return possible;
}

SourceRef source_ref(const std::string& path) {
  SourceRef ref;
  ref.path = path;
  struct stat st;
  if (stat(path.c_str(), &st) == 0) {
    ref.size_bytes = st.st_size;
    ref.modified_ns = st.st_mtim.tv_sec * int64_t{1'000'000'000} + st.st_mtim.tv_nsec;
  }
  return ref;
}

struct File {
  FileRows rows;
  FileFacts facts;
  int64_t base_ns = 0;
};

// Base time added, first and last time, who it is.
void look_at(File& file) {
  FileRows& rows = file.rows;
  file.facts.identity = identify(rows.metadata, file.facts.path);
  for (const MetaField& field : rows.metadata)
    if (field.key == "baseTimeNanoseconds") file.base_ns = json_integer(field.json).value_or(0);
  if (!shift_times(rows, file.base_ns)) {
    rows.diagnostics.add("kineto.bad_base_time", Severity::kWarning,
                         "baseTimeNanoseconds would move events beyond all time; it was not added", {file.facts.path});
    file.base_ns = 0;
  }
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (size_t i = 0; i < rows.size(); ++i) {
    first = std::min(first, rows.start_ns[i]);
    last = std::max(last, rows.start_ns[i] + rows.dur_ns[i]);
  }
  if (rows.size() == 0) return;
  file.facts.start_ns = first;
  file.facts.end_ns = last;
}

// The files of one rank, in order of time, as one part. Copies of a file count once.
Part make_part(std::vector<File*> files, Trace& trace) {
  std::stable_sort(files.begin(), files.end(),
                   [](const File* a, const File* b) { return a->facts.start_ns < b->facts.start_ns; });
  Diagnostics& notes = trace.diagnostics;
  for (size_t a = 0; a < files.size(); ++a)
    for (size_t b = files.size() - 1; b > a; --b)
      if (same_rows(files[a]->rows, files[b]->rows)) {
        notes.add("kineto.same_file_twice", Severity::kWarning, "a copy of another file of the rank; it counts once",
                  {files[b]->facts.path});
        files.erase(files.begin() + static_cast<std::ptrdiff_t>(b));
      }
  Part part;
  File& first = *files[0];
  part.source = first.facts.path;
  part.files.push_back(source_ref(first.facts.path));
  part.machine_name = first.facts.identity.host;
  part.base_time_ns = first.base_ns;
  int64_t end = first.facts.end_ns;
  for (size_t f = 1; f < files.size(); ++f) {
    File& next = *files[f];
    const bool empty = next.rows.size() == 0;
    constexpr int64_t kDayNs = 86'400'000'000'000;
    if (!empty && next.facts.start_ns - end > kDayNs)
      notes.add("kineto.far_apart", Severity::kWarning,
                "files of one rank lie more than a day apart: perhaps several runs; both are kept", {next.facts.path});
    if (!empty && next.facts.start_ns < end)
      notes.add("kineto.overlapping_files", Severity::kWarning,
                "two files of one rank overlap in time: perhaps ranks of several jobs; both are kept",
                {next.facts.path});
    notes.add("kineto.files_joined", Severity::kInfo, "several files of one rank were joined in order of time",
              {next.facts.path});
    end = std::max(end, next.facts.end_ns);
    SourceRef ref = source_ref(next.facts.path);
    ref.first_index = static_cast<uint32_t>(first.rows.event_count);
    ref.first_offset = append_rows(first.rows, std::move(next.rows));
    part.files.push_back(std::move(ref));
  }
  notes.merge(first.rows.diagnostics);
  finish_part(std::move(first.rows), trace, part);
  return part;
}

// The process number of the rows of device work is the device's.
void find_device(Part& part) {
  std::map<int64_t, size_t> slices;
  for (const Lane& lane : part.lanes) {
    const auto pid = lane.kind == LaneKind::kDeviceStream ? parse_int(lane.pid) : std::nullopt;
    if (pid && *pid >= 0 && *pid < 1024) slices[*pid] += lane.end - lane.begin;
  }
  size_t most = 0;
  for (const auto& [pid, count] : slices)
    if (count > most) {
      most = count;
      part.device = static_cast<int32_t>(pid);
    }
}

// Machines are numbered in natural order of their names, where every rank's is known.
void number_machines(Trace& trace) {
  std::vector<std::string> names;
  for (const Part& part : trace.parts) {
    if (part.machine_name.empty()) return;
    if (std::find(names.begin(), names.end(), part.machine_name) == names.end()) names.push_back(part.machine_name);
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return natural_less(a, b); });
  for (Part& part : trace.parts)
    part.machine = static_cast<int32_t>(std::find(names.begin(), names.end(), part.machine_name) - names.begin());
  if (names.size() == 1) trace.clock = ClockState::kShared;
}

// Ranks without baseTimeNanoseconds beside ranks with it count from another zero.
void check_clocks(Trace& trace) {
  constexpr int64_t kEpochNs = 1'000'000'000'000'000'000;  // 2001: relative times stay far below
  bool absolute = false, relative = false;
  for (const Part& part : trace.parts) {
    if (part.slices.size() == 0) continue;
    const bool known = part.base_time_ns != 0 || part.slices.start_ns[0] > kEpochNs;
    (known ? absolute : relative) = true;
  }
  if (trace.parts.size() == 1) trace.clock = ClockState::kShared;
  if (!absolute || !relative) return;
  trace.clock = ClockState::kPerRank;
  trace.diagnostics.add("kineto.mixed_clocks", Severity::kWarning,
                        "some ranks count from the epoch and others do not (baseTimeNanoseconds is missing): times of "
                        "different ranks cannot be compared");
}

std::string short_count(int64_t n) {
  if (n < 10'000) return grouped(n);
  const double value = static_cast<double>(n);
  return n < 1'000'000 ? fixed(value / 1e3, 0) + " k" : fixed(value / 1e6, 1) + " M";
}

// "8 ranks, 7.7 M events, torch 2.4–2.6 era, NVIDIA H100 80GB HBM3 ×8"
std::string describe(const Trace& trace) {
  int64_t events = 0;
  std::vector<std::string> eras;
  std::map<std::string, int> devices;
  for (const Part& part : trace.parts) {
    events += part.event_count;
    const std::string era = torch_era(trace, part);
    if (!era.empty() && std::find(eras.begin(), eras.end(), era) == eras.end()) eras.push_back(era);
    if (const std::string device = device_name(part); !device.empty()) ++devices[device];
  }
  const size_t ranks = trace.parts.size();
  std::string out = std::to_string(ranks) + (ranks == 1 ? " rank, " : " ranks, ") + short_count(events) + " events";
  for (size_t e = 0; e < eras.size(); ++e) out += (e == 0 ? ", torch " : " and ") + eras[e];
  if (!eras.empty()) out += eras.size() == 1 ? " era" : " eras";
  for (const auto& [device, count] : devices) out += ", " + device + (count > 1 ? " ×" + std::to_string(count) : "");
  return out;
}

Error nothing_usable(const Source& source, const std::optional<Error>& first_error) {
  for (size_t i = 0; i < source.files.size(); ++i)
    if (const ForeignFormat* foreign = foreign_format(source.head(i), source.files[i].path))
      return {ErrorCode::kBadInput, foreign->what, {source.files[i].path}, foreign->hint};
  if (first_error) return *first_error;
  return {ErrorCode::kBadInput,
          "no Chrome trace with slices among these files",
          {source.roots.empty() ? "" : source.roots[0]},
          "a Chrome trace is [{…},…] or {\"traceEvents\":[{…},…]} with X, or B and E, events"};
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  const std::vector<size_t> chosen = files_to_read(source);
  if (options.progress)
    for (const size_t i : chosen) options.progress->expect(source.files[i].size_bytes);
  std::vector<std::optional<Result<FileRows>>> results(chosen.size());
  parallel_for(chosen.size(),
               [&](size_t k) { results[k].emplace(read_file(source.files[chosen[k]].path, options.progress)); });

  Trace trace;
  trace.format = "kineto";
  trace.categories.push_back({"", Category::kOther});
  std::vector<File> files;
  std::optional<Error> first_error;
  const auto unusable = [&](const std::string& path, const std::string& why) {
    trace.diagnostics.add("kineto.unusable_file", Severity::kLoss, "a file was left out: " + why, {path});
  };
  for (size_t k = 0; k < chosen.size(); ++k) {
    const std::string& path = source.files[chosen[k]].path;
    Result<FileRows>& result = *results[k];
    if (!result) {
      if (!first_error) first_error = result.error();
      unusable(path, result.error().what);
      continue;
    }
    if (result->size() == 0 && result->memory.empty() && result->counters.empty()) {
      unusable(path, "it holds no slices");
      trace.diagnostics.merge(result->diagnostics);
      continue;
    }
    File& file = files.emplace_back();
    file.rows = std::move(*result);
    file.facts.path = path;
    results[k].reset();
  }
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && std::find(chosen.begin(), chosen.end(), i) == chosen.end())
      unusable(source.files[i].path, "it is no Chrome trace");
  parallel_for(files.size(), [&](size_t f) { look_at(files[f]); });
  if (std::none_of(files.begin(), files.end(), [](const File& f) { return f.rows.size() > 0; }))
    return nothing_usable(source, first_error);

  std::vector<FileFacts> facts;
  for (const File& file : files) facts.push_back(file.facts);
  const std::vector<int32_t> ranks = assign_ranks(facts, trace.diagnostics);
  std::map<int32_t, std::vector<File*>> by_rank;
  for (size_t f = 0; f < files.size(); ++f) by_rank[ranks[f]].push_back(&files[f]);
  for (auto& [rank, group] : by_rank) {
    Part part = make_part(group, trace);
    part.rank = rank;
    find_device(part);
    for (File* file : group) file->rows = FileRows();
    trace.parts.push_back(std::move(part));
  }
  check_world(facts, ranks, trace.diagnostics);
  number_machines(trace);
  check_clocks(trace);
  trace.description = describe(trace);
  return trace;
}

}  // namespace
}  // namespace kineto

extern const Reader kineto_reader;
const Reader kineto_reader = {.name = "kineto",
                              .summary = "PyTorch profiler traces (Kineto) and other Chrome-trace JSON",
                              .sniff = kineto::sniff,
                              .read = kineto::read,
                              .is_general = true};

}  // namespace stageline
