// Reads the flight recorder of torch.distributed: one dump per rank, as a pickle or as JSON;
// docs/formats/flight-recorder.md.
#include "readers/common/read_files.h"
#include "readers/flight_recorder/dump_file.h"
#include "readers/flight_recorder/problems.h"

namespace stageline::flight_recorder {
namespace {

bool is_json(std::string_view head) { return !head.empty() && head[0] != '\x80'; }

// Returns a name without the rank's digits and what follows them: "nccl_trace_rank_".
std::string stem_of(const std::string& path) {
  std::string name = file_name(path);
  if (const size_t dot = name.find('.'); dot != std::string::npos) name.resize(dot);
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

// Chooses one dump per rank. Where a rank has a pickle and a JSON, the pickle is taken, since it has the Python frames.
std::vector<DumpFile> choose_dumps(const Source& source, Diagnostics& diagnostics) {
  std::set<std::string> stems;  // of the dumps that are intact enough to be recognised
  for (size_t i = 0; i < source.files.size(); ++i)
    if (looks_like_dump(source.head(i))) stems.insert(stem_of(source.files[i].path));
  std::map<int32_t, DumpFile> by_rank;
  std::vector<DumpFile> unnamed;
  for (const bool json : {false, true})
    for (size_t i = 0; i < source.files.size(); ++i) {
      const std::string& path = source.files[i].path;
      const std::string_view head = source.head(i);
      if (!looks_like_dump(head)) {
        // The name is like the other dumps', so this is a dump that is empty, or cut or damaged at its beginning.
        const bool damaged = rank_of_name(path) != kUnknown && stems.contains(stem_of(path));
        if (!json && damaged) diagnostics.add(problem::flight_recorder_unusable_dump_damaged, {path});
        else if (!json)
          diagnostics.add(
              problem::flight_recorder_not_a_dump.as(source.files[i].given ? Severity::kLoss : Severity::kInfo),
              {path});
        continue;
      }
      if (is_json(head) != json) continue;
      const int32_t rank = rank_of_name(path);
      if (rank == kUnknown) unnamed.push_back({path, rank});
      else if (const auto [at, is_new] = by_rank.try_emplace(rank, DumpFile{path, rank}); !is_new)
        diagnostics.add(problem::flight_recorder_repeated_rank.as(json ? Severity::kInfo : Severity::kLoss),
                        Args().flag("json", json), {path});
    }
  auto files = mapped<DumpFile>(by_rank, [&](auto& entry) { return std::move(entry.second); });
  files.insert(files.end(), unnamed.begin(), unnamed.end());
  return files;
}

// The groups of the run: those with the same name and, where dumps list them, the same members. Maps each dump's own
// groups to them.
class Groups {
 public:
  explicit Groups(std::vector<FlightGroup>& all) : all_(all) {}
  int32_t add(const FlightGroup& group) {
    const auto [at, is_new] = known_.try_emplace({group.name, group.ranks}, static_cast<int32_t>(all_.size()));
    if (is_new) all_.push_back(group);
    return at->second;
  }

 private:
  std::vector<FlightGroup>& all_;
  std::map<std::pair<std::string, std::vector<int32_t>>, int32_t> known_;
};

void take_dump(Dump dump, Groups& groups, Trace& trace) {
  std::vector<StringId> new_id(dump.names.size());
  for (uint32_t i = 0; i < new_id.size(); ++i) new_id[i] = trace.names.intern(dump.names.text(i));
  auto group_of = mapped<int32_t>(dump.groups, [&](const FlightGroup& group) { return groups.add(group); });
  Part& part = dump.part;
  for (StringId& id : part.slices.name_id) id = new_id[id];
  for (FlightCall& call : part.flight_calls) {
    call.group = group_of[call.group];
    for (StringId* id : {&call.op, &call.in_sizes, &call.out_sizes, &call.in_dtypes, &call.out_dtypes})
      *id = new_id[*id];
    std::vector<int32_t>& ranks = trace.flight_groups[call.group].ranks;
    const bool known = trace.flight_groups[call.group].members_known;
    // Dumps come in order of ranks.
    if (!known && (ranks.empty() || ranks.back() != part.rank)) ranks.push_back(part.rank);
  }
  map_texts(part, new_id);
  trace.parts.push_back(std::move(part));
}

// Where each replica numbers its ranks from 0 (torchft, a launcher's local ranks), a dump of rank 6 lists members 0 to
// 3 of its largest group, but not itself. The members then count from the first rank of the replica. This is the first
// dump where there is one of each member, else the multiple of the replica's size.
void make_ranks_global(std::vector<Dump>& dumps, Diagnostics& diagnostics) {
  const auto size_of = [](const Dump& dump) {
    int32_t last = -1;
    for (const FlightGroup& group : dump.groups)
      if (group.members_known && !group.ranks.empty()) last = std::max(last, *std::ranges::max_element(group.ranks));
    return last + 1;
  };
  std::vector<Dump*> outside;
  for (Dump& dump : dumps) {
    const int32_t size = size_of(dump);
    if (size > 0 && dump.part.rank >= size) outside.push_back(&dump);
  }
  if (outside.empty()) return;
  const int32_t first = outside.front()->part.rank, last = outside.back()->part.rank;
  const auto count = static_cast<int32_t>(outside.size());
  const bool complete = last - first + 1 == count;
  for (Dump* dump : outside) {
    const int32_t size = size_of(*dump), rank = dump->part.rank;
    const int32_t base = complete && count == size ? first : rank / size * size;
    for (FlightGroup& group : dump->groups)
      if (group.members_known)
        for (int32_t& member : group.ranks) member += base;
    for (FlightCall& call : dump->part.flight_calls)
      if (call.peer >= 0) call.peer += base;
    diagnostics.add(problem::flight_recorder_local_ranks, {dump->part.source});
  }
}

}  // namespace

Match sniff(const Source& source) {
  constexpr size_t kSniffedFiles = 64;
  for (size_t i = 0; i < source.files.size() && i < kSniffedFiles; ++i)
    if (looks_like_dump(source.head(i))) return Match::kCertain;
  return Match::kNo;
}

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "flight-recorder";
  trace.clock = ClockState::kUnaligned;
  const std::vector<DumpFile> files = choose_dumps(source, trace.diagnostics);
  if (files.empty()) return no_such_input("flight_recorder.nothing", source);
  std::vector<Dump> good;
  const auto first_error = read_files(
      files.size(), [&](size_t k) { return read_dump(files[k], options.progress); },
      [&](size_t, Dump dump) { good.push_back(std::move(dump)); },
      [&](size_t k, const Error& error) {
        trace.diagnostics.add(problem::flight_recorder_unusable_dump, Args().set("why", error_text(error)),
                              {files[k].path});
      });
  if (good.empty()) return *first_error;
  if (std::ranges::all_of(good, [](const Dump& dump) { return dump.part.flight_calls.empty(); }))
    return make_error(ErrorCode::kBadInput, "no dump here holds a call",
                      "was TORCH_FR_BUFFER_SIZE 0, or nothing communicated yet?", {files.front().path});
  // A dump whose name gives no rank takes the next free number.
  std::set<int32_t> taken = mapped<std::set>(good, [&](const Dump& dump) { return dump.part.rank; });
  int32_t next = 0;
  for (Dump& dump : good) {
    if (dump.part.rank != kUnknown) continue;
    while (taken.contains(next)) ++next;
    dump.part.rank = next;
    taken.insert(next);
    trace.diagnostics.add(problem::flight_recorder_no_rank, {dump.part.source});
  }
  sort_stably(good, [](const Dump& a, const Dump& b) { return a.part.rank < b.part.rank; });
  make_ranks_global(good, trace.diagnostics);
  std::set<std::string> versions;
  bool frames = false;
  Groups groups(trace.flight_groups);
  for (Dump& dump : good) {
    versions.insert(dump.version);
    frames = frames || dump.has_frames;
    trace.diagnostics.merge(dump.diagnostics);
    take_dump(std::move(dump), groups, trace);
  }
  if (versions.size() > 1) trace.diagnostics.add(problem::flight_recorder_versions);
  if (!frames) trace.diagnostics.add(problem::flight_recorder_no_frames);
  trace.diagnostics.add(problem::flight_recorder_host_stamps);
  trace.description = counted(trace.parts.size(), "rank", "ranks") + ", " +
                      counted(trace.flight_groups.size(), "group", "groups") + " of a flight recorder";
  return trace;
}

}  // namespace stageline::flight_recorder
