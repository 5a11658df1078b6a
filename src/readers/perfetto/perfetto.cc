// Perfetto traces (.pftrace): docs/formats/perfetto.md.
#include "readers/common/op_names.h"
#include "readers/common/perfetto_head.h"
#include "readers/common/ranks.h"
#include "readers/common/read_files.h"
#include "readers/common/rows/finish_part.h"
#include "readers/common/rows/identity.h"
#include "readers/perfetto/file_reader.h"
#include "readers/perfetto/problems.h"

namespace stageline::pftrace {
namespace {

constexpr std::string_view kFormat = "pftrace";

int32_t small(int64_t value, int64_t max) {
  return value >= 0 && value <= max ? static_cast<int32_t>(value) : kUnknown;
}

// Returns the slice of a host's thread that begins at this time and has this name.
uint32_t slice_at(const Part& part, int64_t start_ns, StringId name) {
  const auto* starts = part.slices.start_ns.data();
  for (const Lane& lane : part.lanes) {
    if (lane.kind == LaneKind::kDeviceStream) continue;
    auto i = std::lower_bound(starts + lane.begin, starts + lane.end, start_ns) - starts;
    for (; i < static_cast<int64_t>(lane.end) && starts[i] == start_ns; ++i)
      if (part.slices.name_id[i] == name) return static_cast<uint32_t>(i);
  }
  return kNoSlice;
}

// Adds cells that are in the files as Stageline's exporter wrote them.
void add_cells(const std::vector<FileResult>& files, Trace& trace) {
  std::vector<Op> ops;
  std::vector<std::string> paths;
  std::map<int32_t, std::string> machine_of;
  std::map<int32_t, uint32_t> file_of;  // a rank's cells are one file's
  for (uint32_t f = 0; f < files.size(); ++f) {
    paths.push_back(files[f].path);
    for (const CellRow& row : files[f].cells) {
      Op op{.start_ns = row.start_ns + files[f].shift_ns};
      op.end_ns = op.start_ns + row.dur_ns;
      op.rank = small(row.cell.rank, kMaxRankNumber);
      if (op.rank == kUnknown) continue;
      if (file_of.try_emplace(op.rank, f).first->second != f) {
        trace.diagnostics.add(problem::pftrace_repeated_rank, {files[f].path});
        continue;
      }
      op.dp = small(row.cell.dp, kMaxStageNumber);
      op.stage = small(row.cell.stage, kMaxStageNumber);
      op.step = small(row.cell.step, kMaxStepNumber);
      op.chunk = small(row.cell.chunk, kMaxChunkNumber);
      op.micro_batch = small(row.cell.micro_batch, kMaxMicroBatchNumber);
      op.kind = row.cell.kind;
      op.name_id = trace.names.intern(without_duration(row.name));
      op.lane = kind_lane(op.kind);
      op.file = f;
      op.file_index = row.file_index;
      if (row.process != "ranks" && row.process != "other ranks") machine_of.emplace(op.rank, row.process);
      ops.push_back(op);
    }
  }
  if (ops.empty()) return;
  if (trace.parts.empty()) {
    build_parts(ops, kind_lane_names(), paths, trace);
    for (Part& part : trace.parts)
      if (const auto at = machine_of.find(part.rank); at != machine_of.end()) part.machine_name = at->second;
    return;
  }
  // The run also has a profiler's slices: the parts exist, and cells that are shown by name are slices of theirs.
  std::map<int32_t, int32_t> part_of;
  for (uint32_t p = 0; p < trace.parts.size(); ++p) part_of.emplace(trace.parts[p].rank, static_cast<int32_t>(p));
  for (const Op& op : ops) {
    const auto at = part_of.find(op.rank);
    if (at == part_of.end()) continue;
    Part& part = trace.parts[at->second];
    part.stage = op.stage;
    part.dp = op.dp;
    trace.cells.add({op.step, at->second, op.kind, op.chunk == kUnknown && is_compute(op.kind) ? 0 : op.chunk,
                     op.micro_batch, op.start_ns, op.end_ns, slice_at(part, op.start_ns, op.name_id)});
  }
  trace.cells.sort();
}

struct Placed {
  size_t file = 0, part = 0;
  int64_t rank = -1;
};

// Ranks: what the file says of its processes, else its name; several processes of a file count on from there.
std::vector<Placed> place(const std::vector<FileResult>& files, Diagnostics& notes) {
  std::vector<rows::FileFacts> facts;
  std::vector<size_t> file_of;
  std::vector<Placed> placed;
  std::set<int64_t> taken;
  for (size_t f = 0; f < files.size(); ++f) {
    if (files[f].is_own) {
      for (size_t p = 0; p < files[f].ranks.size(); ++p) {
        if (!taken.insert(files[f].ranks[p].rank).second) {
          notes.add(problem::pftrace_repeated_rank, {files[f].path});
          continue;
        }
        placed.push_back({f, p, files[f].ranks[p].rank});
      }
      continue;
    }
    facts.push_back({files[f].path, rows::identify({}, files[f].path), 0, 0});
    file_of.push_back(f);
  }
  const std::vector<int32_t> ranks = rows::assign_ranks(facts, notes, kFormat);
  for (size_t k = 0; k < ranks.size(); ++k) {
    const FileResult& file = files[file_of[k]];
    int64_t rank = ranks[k];
    if (file.by_process) notes.add(problem::pftrace_processes_as_ranks, {file.path}, file.ranks.size());
    for (size_t p = 0; p < file.ranks.size(); ++p, ++rank) {
      if (p == 0 && taken.count(rank) > 0) notes.add(problem::pftrace_same_rank_twice, {file.path});
      while (!taken.insert(rank).second) ++rank;
      placed.push_back({file_of[k], p, rank});
    }
  }
  sort_stably(placed, {}, &Placed::rank);
  return placed;
}

// Reports what the writer of torch's files omits or shortens, if the layout shows that it was torch.
void say_losses(const Trace& trace, const std::vector<FileResult>& files, Diagnostics& notes) {
  for (const FileResult& file : files) {
    if (file.paired_by_index == 0) continue;
    const bool device = std::ranges::any_of(trace.parts, [&](const Part& part) {
      return part.source == file.path &&
             std::ranges::any_of(part.lanes, [](const Lane& lane) { return lane.kind == LaneKind::kDeviceStream; });
    });
    if (device) notes.add(problem::pftrace_clipped_device_times, {file.path});
  }
}

// Takes what our exporter says of the run and no track shows.
void read_run_facts(const std::vector<std::string_view>& lines, Trace& trace) {
  constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyz0123456789._";
  for (const std::string_view line : lines) {
    const std::vector<std::string_view> words = split(line, '\t');
    if (line == perfetto::kNpuFact) trace.device_family = DeviceFamily::kNpu;
    if (words[0] == perfetto::kDeviceFact && words.size() == 4 && words[3].starts_with('{')) {
      const auto number = parse_int(words[2]);
      for (Part& part : trace.parts) {
        if (parse_int(words[1]) != part.rank || !number || *number < 0 || *number > INT32_MAX) continue;
        part.device = static_cast<int32_t>(*number);
        for (Lane& lane : part.lanes)
          if (lane.kind == LaneKind::kDeviceStream) lane.pid = std::to_string(*number);
        part.metadata.push_back({"deviceProperties", "[" + std::string(words[3]) + "]"});
      }
    } else if (words[0] == perfetto::kNoKernelsFact && words.size() == 2) {
      for (Part& part : trace.parts)
        if (parse_int(words[1]) == part.rank) part.step_summaries.push_back({.computing_ns = 1});
    } else if (words[0] == perfetto::kProblemFact && words.size() == 6) {
      const int64_t severity = parse_int(words[2]).value_or(-1), count = parse_int(words[3]).value_or(0);
      if (words[1].empty() || words[1].find_first_not_of(kNameLetters) != std::string_view::npos || severity < 0 ||
          severity > static_cast<int>(Severity::kLoss) || count < 1)
        continue;
      trace.diagnostics.add({std::string(words[1]),
                             static_cast<Severity>(severity),
                             {std::string(words[4]), std::string(words[5])},
                             count,
                             {trace.parts[0].source}});
    }
  }
}

// An arrow of our exporter from the host to device work is its launch, also where that does not call a runtime.
void launch_by_arrows(const Trace& trace, Part& part) {
  Slices& s = part.slices;
  const auto on_device = [&](uint32_t i) { return is_device_work(trace.categories[s.category_id[i]].kind); };
  std::erase_if(part.slice_links, [&](const SliceLink& link) {
    if (link.kind != SliceLinkKind::kFlow || on_device(link.from) || !on_device(link.to) ||
        s.partner[link.to] != kNoSliceIndex)
      return false;
    s.partner[link.to] = link.from;
    if (s.partner[link.from] == kNoSliceIndex) s.partner[link.from] = link.to;
    s.step[link.to] = s.step[link.from];
    return true;
  });
}

std::string describe(const Trace& trace, size_t files) {
  const int64_t events = sum_over<int64_t>(trace.parts, &Part::event_count);
  std::string out = counted(files, "file", "files") + " of Perfetto's, " + counted(trace.parts.size(), "rank", "ranks");
  if (events > 0) out += ", " + counted(events, "event", "events");
  return out;
}

// Files of the folder that are not read here.
void note_others(const Source& source, const PerfettoFiles& sorted, const std::vector<size_t>& chosen,
                 Diagnostics& notes) {
  const auto among = [](const std::vector<size_t>& list, size_t i) { return std::ranges::find(list, i) != list.end(); };
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (among(chosen, i)) continue;
    if (among(sorted.json_twins, i)) notes.add(problem::pftrace_json_twin, {source.files[i].path});
    else if (source.files[i].given) notes.add(problem::pftrace_unusable_file_foreign, {source.files[i].path});
  }
}

// Makes the trace's parts of the ranks in the files.
void build_parts(std::vector<FileResult>& files, Trace& trace) {
  const std::vector<Placed> placed = place(files, trace.diagnostics);
  std::vector<Part> parts(placed.size());
  std::vector<FileNames> names(placed.size());
  std::vector<Diagnostics> notes(placed.size());
  parallel_for(placed.size(), [&](size_t i) {
    FileResult& file = files[placed[i].file];
    RankRows& rank = file.ranks[placed[i].part];
    rows::fit_durations(rank.rows);
    names[i] = rows::build_part(std::move(rank.rows), file.shift_ns, parts[i], notes[i], kFormat);
    parts[i].rank = static_cast<int32_t>(placed[i].rank);
    parts[i].source = file.path;
    parts[i].machine_name = rank.machine;
    if (!file.is_own) rows::find_device(parts[i]);
  });
  std::vector<NameMap> maps(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    maps[i] = adopt_names(names[i], trace);
    names[i] = {};
    trace.diagnostics.merge(notes[i]);
  }
  parallel_for(parts.size(), [&](size_t i) {
    rename_part(maps[i], parts[i]);
    if (files[placed[i].file].is_own) launch_by_arrows(trace, parts[i]);
  });
  trace.parts = std::move(parts);
}

// Reads the files' notes on their clocks, and our own exporter's notes on the run.
void read_clocks(const std::vector<FileResult>& files, Trace& trace) {
  const std::vector<std::string_view> lines = split(files[0].clocks, '\n');
  const bool all_dated = std::ranges::all_of(files, [](const FileResult& f) { return f.is_dated; });
  const bool own = std::ranges::all_of(files, [](const FileResult& f) { return f.is_own; });
  if (files.size() == 1) {
    const bool shared = !own || lines[0] == perfetto::kClocksShared;
    trace.clock = shared                                 ? ClockState::kShared
                  : lines[0] == perfetto::kClocksPerRank ? ClockState::kPerRank
                                                         : ClockState::kUnaligned;
  } else if (all_dated) {
    trace.clock = ClockState::kUnaligned;
  } else {
    trace.clock = ClockState::kPerRank;
    trace.diagnostics.add(problem::pftrace_no_common_clock);
  }
  if (own) read_run_facts(lines, trace);
}

}  // namespace

Match sniff(const Source& source) {
  const PerfettoFiles files = perfetto_files(source);
  if (files.ours.empty() || files.json_says_more()) return Match::kNo;
  return files.certain ? Match::kCertain : Match::kMaybe;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  const PerfettoFiles sorted = perfetto_files(source);
  std::vector<size_t> chosen = sorted.ours;
  if (chosen.empty() && source.files.size() == 1) chosen.push_back(0);  // --reader perfetto: it is tried
  Trace trace;
  trace.format = "perfetto";
  trace.categories.push_back({"", Category::kOther});
  expect_bytes(source, chosen, options.progress);
  std::vector<FileResult> files;
  const auto first_error = read_files(
      chosen.size(),
      [&](size_t k) {
        const SourceFile& file = source.files[chosen[k]];
        return read_file(file.path, file.size_bytes, options.progress);
      },
      [&](size_t, FileResult file) {
        files.push_back(std::move(file));
        trace.diagnostics.merge(files.back().notes);
      },
      [&](size_t k, const Error& error) {
        trace.diagnostics.add(problem::pftrace_unusable_file, Args().set("why", error_text(error)),
                              {source.files[chosen[k]].path});
      });
  note_others(source, sorted, chosen, trace.diagnostics);
  if (files.empty()) return nothing_read(first_error, source, "perfetto.nothing");
  build_parts(files, trace);
  add_cells(files, trace);
  if (trace.parts.empty())
    return make_error(ErrorCode::kBadInput, "nothing in these Perfetto traces says which rank it is", "",
                      {files[0].path});
  read_clocks(files, trace);
  number_machines(trace);
  say_losses(trace, files, trace.diagnostics);
  trace.description = describe(trace, files.size());
  return trace;
}

}  // namespace stageline::pftrace
