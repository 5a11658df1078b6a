// Reads PyTorch profiler traces (Kineto's Chrome JSON) and any other Chrome-trace JSON: docs/formats/kineto.md.
#include <sys/stat.h>

#include "base/json_members.h"
#include "base/parallel.h"
#include "base/zip_archive.h"
#include "model/torch_facts.h"
#include "readers/common/perfetto_head.h"
#include "readers/common/ranks.h"
#include "readers/common/rows/finish_part.h"
#include "readers/foreign.h"
#include "readers/kineto/problems.h"
#include "readers/kineto/read_file.h"
#include "readers/xspace_head.h"

namespace stageline::kineto {
namespace {

// If some files are marked as Kineto's, other Chrome traces next to them (exports, overlays) are skipped. With
// --reader, everything that may hold events is tried.
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
      if (source.files[i].given && std::ranges::find(certain, i) == certain.end()) certain.push_back(i);
    std::ranges::sort(certain);
    return certain;
  }
  if (!maybe.empty()) return maybe;
  if (possible.empty() && source.files.size() == 1) possible.push_back(0);
  return possible;
}

SourceRef source_ref(const std::string& path) {
  SourceRef ref{.path = path};
  struct stat st;
  if (stat(disk_path(path).c_str(), &st) == 0) {
    ref.size_bytes = st.st_size;
    ref.modified_ns = st.st_mtim.tv_sec * int64_t{1'000'000'000} + st.st_mtim.tv_nsec;
  }
  return ref;
}

// One file, or one rank of a merged file, which is read and made into a part of its own: most ranks have just one.
struct File {
  std::string path;
  std::optional<Error> error;
  rows::FileFacts facts;
  Part part;
  FileNames names;
  Diagnostics notes;
  size_t slices = 0;
};

// Returns the zero of a file's times.
int64_t base_of(const rows::FileRows& rows, Diagnostics& notes) {
  int64_t base_ns = 0;
  for (const MetaField& field : rows.metadata)
    if (field.key == "baseTimeNanoseconds") base_ns = json_integer(field.json).value_or(0);
  if (base_ns == 0 || rows::times_fit(rows, base_ns)) return base_ns;
  notes.add(problem::kineto_bad_base_time, {rows.path});
  return 0;
}

// Reads the ranks of a file, in Kineto's words.
Result<std::vector<rows::RankRows>> read_ranks(const std::string& path, size_t workers, Progress* progress,
                                               const SeeRows& so_far = {}) {
  TRY(blocks, read_file(path, workers, progress, so_far));
  Result<std::vector<rows::RankRows>> ranks = rows::split_ranks(std::move(*blocks));
  if (ranks)
    for (rows::RankRows& one : *ranks) rows::translate(one.rows);
  return ranks;
}

File file_of(rows::RankRows rank, size_t at) {
  File file;
  rows::FileRows& rows = rank.rows;
  const std::string path = rows.path;
  file.path = file.facts.path = path;
  rows::fit_durations(rows);
  file.notes = std::move(rows.rest.diagnostics);
  file.slices = rows.row_count;
  rows::Identity& identity = file.facts.identity;
  identity = rows::identify(rows.metadata, path);
  if (rank.is_merged) {  // the members and the name of the file are those of the first
    if (at > 0 || rank.rank) identity.stated_rank = rank.rank, identity.named_rank.reset();
    identity.worker = path + '#' + std::to_string(at);
    file.facts.merged_at = at;
  }
  for (const rows::ProcessName& entry : rows.rest.process_names)
    if (rows.dictionaries.names.text(entry.name) == "/host:CPU") file.notes.add(problem::kineto_xla_excerpt, {path});
  std::string only;  // the process, of a file in which it did nothing
  if (rows.rest.process_names.size() == 1) only = rows.dictionaries.names.text(rows.rest.process_names[0].pid);
  const int64_t base_ns = base_of(rows, file.notes);
  file.names = rows::build_part(std::move(rows), base_ns, file.part, file.notes);
  file.part.source = path;
  file.part.files.push_back(source_ref(path));
  rows::find_device(file.part);
  rows::find_process(file.part, file.facts);
  if (file.facts.process.empty()) file.facts.process = std::move(only);
  file.part.machine_name = file.facts.identity.host;
  if (file.slices == 0) return file;
  const Slices& s = file.part.slices;
  file.facts.start_ns = INT64_MAX;
  file.facts.end_ns = INT64_MIN;
  file.facts.raw_start_ns = INT64_MAX;
  for (size_t i = 0; i < s.size(); ++i) {
    file.facts.start_ns = std::min(file.facts.start_ns, s.start_ns[i]);
    file.facts.end_ns = std::max(file.facts.end_ns, s.end_ns(i));
    const Category kind = file.names.categories[s.category_id[i]].kind;
    if (kind == Category::kSpan || kind == Category::kPythonFunction) continue;
    file.facts.raw_start_ns = std::min(file.facts.raw_start_ns, s.start_ns[i] - base_ns);
    ++file.facts.known_count;
  }
  return file;
}

// The file, or the ranks that were merged into it.
std::vector<File> read_one(const std::string& path, size_t workers, Progress* progress, const SeeRows& so_far) {
  std::vector<File> files;
  Result<std::vector<rows::RankRows>> ranks = read_ranks(path, workers, progress, so_far);
  if (!ranks) {
    files.emplace_back().path = path;
    files[0].error = std::move(ranks).error();
    return files;
  }
  files.resize(ranks->size());
  parallel_for(files.size(), [&](size_t k) { files[k] = file_of(std::move((*ranks)[k]), k); });
  for (size_t k = 1; k < files.size(); ++k) {
    const rows::FileFacts &one = files[k].facts, &before = files[k - 1].facts;
    // One process is recorded again later; ranks run side by side.
    const int64_t together = before.end_ns - one.start_ns;
    const int64_t shorter = std::min(one.end_ns - one.start_ns, before.end_ns - before.start_ns);
    if (!one.identity.stated_rank && one.process == before.process && together < shorter / 2)
      files[k].facts.identity = before.identity;
  }
  return files;
}

// Joins several files of one rank, which are read once more, in order of time. Copies of a file count once.
File join_files(std::vector<const rows::FileFacts*> facts, size_t workers) {
  sort_stably(facts, {}, &rows::FileFacts::start_ns);
  File joint;
  Diagnostics& notes = joint.notes;
  std::vector<rows::FileRows> tables;
  std::vector<const rows::FileFacts*> kept;
  for (const rows::FileFacts* one : facts) {
    Result<std::vector<rows::RankRows>> ranks = read_ranks(one->path, workers, nullptr);
    const size_t at = one->merged_at.value_or(0);
    if (ranks && at >= ranks->size()) ranks = make_error(ErrorCode::kBadInput, "the file has changed", "", {one->path});
    if (!ranks) {
      notes.add(problem::kineto_unusable_file, Args().set("why", error_text(ranks.error())), {one->path});
      continue;
    }
    rows::FileRows& rows = (*ranks)[at].rows;
    if (std::ranges::any_of(tables, [&](const rows::FileRows& known) { return rows::same_rows(known, rows); })) {
      notes.add(problem::kineto_same_file_twice, {one->path});
      continue;
    }
    tables.push_back(std::move(rows));
    kept.push_back(one);
  }
  if (tables.empty()) {
    joint.error =
        make_error(ErrorCode::kBadInput, "none of the files of a rank could be read again", "", {facts[0]->path});
    return joint;
  }
  rows::FileRows& all = tables[0];
  joint.path = all.path;
  joint.facts = *kept[0];
  joint.part.source = all.path;
  joint.part.machine_name = kept[0]->identity.host;
  joint.part.files.push_back(source_ref(all.path));
  const int64_t base_ns = base_of(all, notes);
  int64_t end = kept[0]->end_ns;
  for (size_t f = 1; f < tables.size(); ++f) {
    const rows::FileFacts& next = *kept[f];
    const bool empty = tables[f].row_count == 0;
    if (!empty && next.start_ns < end) notes.add(problem::kineto_overlapping_files, {next.path});
    notes.add(problem::kineto_files_joined, {next.path});
    if (!empty && next.start_ns >= end) joint.part.later_recordings_ns.push_back(next.start_ns);
    end = std::max(end, next.end_ns);
    SourceRef ref = source_ref(next.path);
    ref.first_index = static_cast<uint32_t>(all.rest.event_count);
    const int64_t shift = base_of(tables[f], notes) - base_ns;
    ref.first_offset = rows::append_rows(all, std::move(tables[f]), shift);
    joint.part.files.push_back(std::move(ref));
  }
  rows::fit_durations(all);
  notes.merge(all.rest.diagnostics);
  joint.slices = all.row_count;
  joint.names = rows::build_part(std::move(all), base_ns, joint.part, notes);
  return joint;
}

constexpr int64_t kEpochNs = 1'000'000'000'000'000'000;  // the year 2001; relative times stay far below it

// Warns where some ranks have baseTimeNanoseconds and others do not, since those count from another zero.
void check_clocks(Trace& trace) {
  bool absolute = false, relative = false;
  for (const Part& part : trace.parts) {
    if (part.slices.size() == 0) continue;
    const bool known = part.base_time_ns != 0 || part.slices.start_ns[0] > kEpochNs;
    (known ? absolute : relative) = true;
  }
  if (trace.parts.size() == 1) trace.clock = ClockState::kShared;
  if (!absolute || !relative) return;
  trace.clock = ClockState::kPerRank;
  trace.diagnostics.add(problem::kineto_mixed_clocks);
}

// Warns about files that are days apart: they may be several runs, and one span over all of them means nothing.
void check_runs(const std::vector<rows::FileFacts>& files, Diagnostics& diagnostics) {
  constexpr int64_t kDayNs = 86'400'000'000'000;
  std::vector<const rows::FileFacts*> order;
  for (const rows::FileFacts& file : files)
    if (file.end_ns >= file.start_ns && file.end_ns != 0) order.push_back(&file);
  sort_stably(order, {}, &rows::FileFacts::start_ns);
  const rows::FileFacts* last = order.empty() ? nullptr : order[0];
  for (const rows::FileFacts* next : order) {
    const double gap = next->start_ns - static_cast<double>(last->end_ns);
    const bool one_zero = last->start_ns > kEpochNs || next->start_ns <= kEpochNs;
    if (gap > kDayNs && one_zero)
      diagnostics.add(problem::kineto_far_apart, Args().set("gap", human_duration(gap)).set("last", last->path),
                      {next->path});
    if (next->end_ns > last->end_ns) last = next;
  }
}

std::string short_count(int64_t n) {
  if (n < 10'000) return grouped(n);
  const double value = n;
  return n < 1'000'000 ? fixed(value / 1e3, 0) + " k" : fixed(value / 1e6, 1) + " M";
}

// Describes a trace: "8 ranks, 7.7 M events, torch 2.4–2.6 era, NVIDIA H100 80GB HBM3 ×8".
std::string describe(const Trace& trace, Diagnostics& notes) {
  int64_t events = 0;
  std::vector<std::string> eras;
  std::map<std::string, int> devices;
  for (const Part& part : trace.parts) {
    events += part.event_count;
    const std::string era = torch_era(trace, part);
    if (!era.empty() && std::ranges::find(eras, era) == eras.end()) eras.push_back(era);
    // Until 2.15 marks came from a script that also moved the work.
    if (era == "2.14+") notes.add(problem::kineto_rewritten_streams, {part.source});
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
    if (const std::string_view format = foreign_format(source.head(i), source.files[i].path); !format.empty())
      return foreign_error(ErrorCode::kBadInput, format, source.files[i].path);
  if (first_error) return *first_error;
  return make_error(ErrorCode::kBadInput, "no Chrome trace with slices among these files",
                    "a Chrome trace is [{…},…] or {\"traceEvents\":[{…},…]} with X, or B and E, events",
                    {source.roots.empty() ? "" : source.roots[0]});
}

// Reads the chosen files, each by its own threads; shows rows early to whoever asked for that.
std::vector<File> read_chosen(const Source& source, const std::vector<size_t>& chosen, const ReadOptions& options) {
  if (options.progress)
    for (const size_t i : chosen) options.progress->expect(source.files[i].size_bytes);
  std::vector<std::vector<File>> read(chosen.size());
  const size_t workers = std::max<size_t>(1, static_cast<size_t>(thread_count()) / std::max<size_t>(chosen.size(), 1));
  EarlyShow early(options.early, options.early_after_ms, options.progress);
  SeeRows so_far;
  if (options.early && chosen.size() == 1) so_far = [&](const rows::FileRows& rows) { early.offer_rows(rows); };
  parallel_for(chosen.size(), [&](size_t k) {
    read[k] = read_one(source.files[chosen[k]].path, workers, options.progress, so_far);
    for (const File& file : read[k])
      if (!so_far) early.offer_file({&file.part, &file.names, &file.facts});
  });
  std::vector<File> files;
  for (std::vector<File>& of_file : read) std::move(of_file.begin(), of_file.end(), std::back_inserter(files));
  return files;
}

void report_unusable(Trace& trace, const std::string& path, const std::string& why) {
  trace.diagnostics.add(problem::kineto_unusable_file, Args().set("why", why), {path});
}

// Files with slices, memory or counters: their facts, and their indices among all that were read.
struct Usable {
  std::vector<rows::FileFacts> facts;
  std::vector<size_t> files;

  void skip(const std::vector<size_t>& skipped, const Problem& problem, Diagnostics& diagnostics) {
    for (auto f = skipped.rbegin(); f != skipped.rend(); ++f) {
      diagnostics.add(problem, {facts[*f].path});
      facts.erase(facts.begin() + static_cast<std::ptrdiff_t>(*f));
      files.erase(files.begin() + static_cast<std::ptrdiff_t>(*f));
    }
  }
};

Usable choose_usable(const std::vector<File>& files, Trace& trace) {
  Usable usable;
  for (size_t k = 0; k < files.size(); ++k) {
    const File& file = files[k];
    if (file.error) {
      report_unusable(trace, file.path, file.error->what);
    } else if (file.slices == 0 && file.part.memory.empty() && file.part.counters.empty()) {
      report_unusable(trace, file.path, "it holds no slices");
      trace.diagnostics.merge(file.notes);
    } else {
      usable.files.push_back(k);
      usable.facts.push_back(file.facts);
    }
  }
  return usable;
}

// Returns the execution traces among the files without a profile, and reports what else the user named.
std::vector<std::string> execution_traces_of(const Source& source, const std::vector<size_t>& chosen, Trace& trace) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (std::ranges::find(chosen, i) != chosen.end()) continue;
    if (looks_like_execution_trace(source.head(i))) paths.push_back(source.files[i].path);
    else if (source.files[i].given) report_unusable(trace, source.files[i].path, "it is no Chrome trace");
  }
  return paths;
}

// Makes one part of all files of a rank, ascending by rank, and adds it to the trace with its names.
void join_ranks(std::vector<File> files, const Usable& usable, const std::vector<int32_t>& ranks, Trace& trace) {
  std::map<int32_t, std::vector<size_t>> by_rank;  // rank → indices into `usable`
  for (size_t u = 0; u < usable.files.size(); ++u) by_rank[ranks[u]].push_back(u);
  std::vector<std::pair<int32_t, File>> parts;
  for (const auto& [rank, group] : by_rank) {
    if (group.size() == 1) {
      parts.emplace_back(rank, std::move(files[usable.files[group[0]]]));
      continue;
    }
    std::vector<const rows::FileFacts*> facts;
    for (const size_t u : group) {
      facts.push_back(&usable.facts[u]);
      files[usable.files[u]] = File();
    }
    parts.emplace_back(rank, join_files(facts, thread_count()));
  }
  std::vector<NameMap> maps(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    trace.diagnostics.merge(parts[p].second.notes);
    maps[p] = adopt_names(parts[p].second.names, trace);
    parts[p].second.names = {};
  }
  parallel_for(parts.size(), [&](size_t p) { rename_part(maps[p], parts[p].second.part); });
  for (auto& [rank, file] : parts) {
    if (file.error) {
      report_unusable(trace, file.path, file.error->what);
      continue;
    }
    file.part.rank = rank;
    rows::find_device(file.part);
    trace.parts.push_back(std::move(file.part));
  }
}

}  // namespace

Match sniff(const Source& source) {
  Match best = Match::kNo;
  // JSON that JAX writes next to a profile of XLA is the same recording with less in it, so it is left to that reader.
  const std::vector<size_t> twins = xplane_files(source).json_twins;
  for (size_t i = 0; i < source.files.size() && best != Match::kCertain; ++i)
    if (std::ranges::find(twins, i) == twins.end()) best = std::max(best, sniff_file(source, i));
  return best;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  const std::vector<size_t> chosen = files_to_read(source);
  std::vector<File> files = read_chosen(source, chosen, options);
  Trace trace;
  trace.format = "kineto";
  trace.categories.push_back({"", Category::kOther});
  for (File& file : files)
    if (const auto said = options.file_ranks.find(file.path); said != options.file_ranks.end())
      file.facts.identity.stated_rank = said->second, file.facts.identity.contradicts_itself = false;
  Usable usable = choose_usable(files, trace);
  const std::vector<std::string> execution_traces = execution_traces_of(source, chosen, trace);
  if (std::ranges::none_of(usable.files, [&](size_t k) { return files[k].slices > 0; })) {
    const auto failed = std::ranges::find_if(files, [](const File& file) { return file.error.has_value(); });
    return nothing_usable(source, failed == files.end() ? std::nullopt : failed->error);
  }
  for (const size_t i : perfetto_files(source).with_twin)
    trace.diagnostics.add(problem::kineto_perfetto_twin, {source.files[i].path});

  if (options.file_ranks.empty()) {
    usable.skip(rows::merged_copies(usable.facts), problem::kineto_same_file_twice, trace.diagnostics);
    rows::join_processes(usable.facts);
    usable.skip(rows::earlier_runs(usable.facts), problem::reader_earlier_run.of("kineto"), trace.diagnostics);
  }
  const std::vector<int32_t> ranks = rows::assign_ranks(usable.facts, trace.diagnostics);
  join_ranks(std::move(files), usable, ranks, trace);
  for (Part& part : trace.parts) part.rank_given = options.file_ranks.contains(part.source);
  lay_over(execution_traces, trace);
  rows::check_world(usable.facts, ranks, trace.diagnostics);
  check_runs(usable.facts, trace.diagnostics);
  number_machines(trace);
  check_clocks(trace);
  if (!trace.parts.empty() &&
      std::ranges::all_of(trace.parts, [](const Part& part) { return rows::is_paddle(part.metadata); }))
    trace.writer = "paddle.profiler";
  trace.description = describe(trace, trace.diagnostics);
  return trace;
}

}  // namespace stageline::kineto
