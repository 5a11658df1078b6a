// Finishes a file: begins and ends find each other, tracks become lanes, and lanes are distributed to ranks.
#include "readers/perfetto/file_reader.h"
#include "readers/perfetto/problems.h"
#include "readers/reader.h"

namespace stageline::pftrace {
namespace {

using rows::Row;

// "rank 3", "rank 3 · host7": a process as our exporter names it.
struct RankName {
  int64_t rank = -1;
  std::string machine;
};
RankName rank_name(std::string_view process) {
  constexpr std::string_view kDot = " · ";
  RankName out;
  if (!process.starts_with("rank ")) return out;
  process.remove_prefix(5);
  const size_t dot = process.find(kDot);
  const auto rank = parse_int(process.substr(0, dot));
  if (!rank || *rank < 0 || *rank > kMaxRankNumber) return out;
  out.rank = *rank;
  if (dot != std::string_view::npos) out.machine = process.substr(dot + kDot.size());
  return out;
}

// The texts, and of the threads those that rows or marks lie on: each of them becomes a lane.
rows::Dictionaries used_by(rows::ChunkRows& chunk, const rows::Dictionaries& all) {
  rows::Dictionaries own;
  for (uint32_t id = 0; id < all.names.size(); ++id) own.names.intern(all.names.text(id));
  for (uint32_t id = 0; id < all.categories.size(); ++id) own.categories.intern(all.categories.text(id));
  own.streams = all.streams;
  own.stream_ids = all.stream_ids;
  std::vector<uint32_t> thread(all.threads.size(), 0);
  const auto map = [&](uint32_t& id) {
    if (thread[id] == 0) thread[id] = own.threads.intern(all.threads.text(id));
    id = thread[id];
  };
  for (Row& row : chunk.rows) map(row.thread);
  for (Mark& mark : chunk.marks) map(mark.lane);
  std::erase_if(chunk.thread_names, [&](rows::ThreadName& name) { return (name.thread = thread[name.thread]) == 0; });
  return own;
}

// A file's rows that are in its own ids already.
void assemble(rows::ChunkRows chunk, rows::Dictionaries texts, rows::FileRows& rows) {
  rows.dictionaries = std::move(texts);
  rows.row_count = chunk.rows.size();
  rows.blocks.push_back(std::move(chunk.rows));
  chunk.rows = {};
  rows.rest = std::move(chunk);
}

// The lane that a track of our exporter belongs to. Slices that do not nest are written to further threads, "main (2)"
// behind "main".
Tracks::Lane joined_lane(const Tracks::Lane& lane, const std::set<std::string>& lanes) {
  const size_t open = lane.name.rfind(" (");
  if (open == std::string::npos || !lane.name.ends_with(')')) return lane;
  const auto row = parse_int(std::string_view(lane.name).substr(open + 2, lane.name.size() - open - 3));
  const auto tid = parse_int(lane.tid);
  if (!row || !tid || *row < 2 || *row > *tid) return lane;
  Tracks::Lane first{lane.pid, std::to_string(*tid - (*row - 1)), lane.name.substr(0, open)};
  return lanes.contains(first.pid + "\n" + first.tid + "\n" + first.name) ? first : lane;
}

}  // namespace

// A state lasts until the track's next one; the length of the last one is unknown.
void FileReader::settle_states() {
  sort_stably(states_, {}, [](const StateChange& a) { return std::tie(a.track, a.time); });
  for (size_t k = 0; k < states_.size(); ++k) {
    const StateChange& from = states_[k];
    if (from.name == 0) continue;
    if (k + 1 == states_.size() || states_[k + 1].track != from.track) {
      notes_.add(problem::pftrace_open_state, {path_, 0, from.offset});
      continue;
    }
    Row row;
    row.start_ns = from.time;
    row.dur_ns = states_[k + 1].time - from.time;
    row.offset = from.offset;
    row.name = from.name;
    row.file_index = from.file_index;
    row.thread = from.track;
    row.category = from.category & 0x7fff;
    mark_used(from.track);
    rows_.rows.push_back(row);
  }
}

// Every slice with an id is linked to the one before it, in order of time; an id that ends starts again. An arrow from
// a launch call to device work without a launch is that launch.
void FileReader::settle_flows() {
  sort_stably(flows_, {}, &FlowPoint::time);
  if (flows_.empty() && legacy_flows_.empty()) return;
  uint32_t number = 0;
  for (const Row& row : rows_.rows)
    if (row.correlation != kNoCorrelation) number = std::max(number, row.correlation);
  std::vector<Category> kinds;
  const TextInterner& categories = builder_.dictionaries().categories;
  for (uint32_t c = 0; c < categories.size(); ++c) kinds.push_back(stageline::category_of(categories.text(c)));
  const auto kind = [&](uint32_t row) { return kinds[rows_.rows[row].category]; };
  std::unordered_map<uint64_t, uint32_t> last;
  for (const FlowPoint& point : flows_) {
    const uint32_t row = point.at_end ? log_.row_of_end(point.at) : point.at;
    if (row == kNoRow) continue;
    const auto [from, is_new] = last.try_emplace(point.id, row);
    if (!is_new && from->second != row) {
      const uint32_t before = from->second;
      const bool launches =
          is_launch_call(kind(before)) && (is_device_work(kind(row)) || kind(row) == Category::kDeviceSync);
      if (launches && rows_.rows[row].correlation == kNoCorrelation && number < kNoCorrelation - 1) {
        uint32_t& launch = rows_.rows[before].correlation;
        if (launch == kNoCorrelation) launch = ++number;
        rows_.rows[row].correlation = launch;
      } else if (!launches || rows_.rows[before].correlation != rows_.rows[row].correlation) {
        rows_.links.push_back({before, row, SliceLinkKind::kFlow});
      }
      from->second = row;
    }
    if (point.ends) last.erase(point.id);
  }
  if (legacy_flows_.empty()) return;
  // Chrome's older arrows name a thread and a time; an end that is not bound to what is open belongs to what comes
  // next.
  std::map<uint32_t, std::vector<int64_t>> starts;
  for (const LegacyFlow& flow : legacy_flows_)
    if (flow.phase == 'f' && !flow.binds_enclosing) starts[flow.track];
  if (!starts.empty()) {
    for (const Row& row : rows_.rows)
      if (const auto at = starts.find(row.thread); at != starts.end()) at->second.push_back(row.start_ns);
    for (auto& [track, times] : starts) std::ranges::sort(times);
  }
  sort_stably(legacy_flows_, {}, &LegacyFlow::time);
  for (const LegacyFlow& flow : legacy_flows_) {
    int64_t time = flow.time;
    if (flow.phase == 'f' && !flow.binds_enclosing) {
      const std::vector<int64_t>& times = starts[flow.track];
      const auto next = std::ranges::lower_bound(times, time);
      if (next == times.end()) continue;
      time = *next;
    }
    rows_.flows.push_back({flow.id, time, flow.track, flow.phase == 's', false});
  }
}

// Field 3000 links a call to device work by the work's own number. The correlation gives the same link, and more if a
// graph was launched. So the number counts only if the correlation is missing.
void FileReader::link_gpu_work() {
  if (submissions_.empty() && waits_.empty()) return;
  std::unordered_map<uint64_t, uint32_t> work;
  work.reserve(gpu_events_.size());
  for (const auto& [id, row] : gpu_events_) work.insert_or_assign(id, row);
  uint32_t number = 0;
  for (const Row& row : rows_.rows)
    if (row.correlation != kNoCorrelation) number = std::max(number, row.correlation);
  for (const auto& [id, call] : submissions_) {
    const auto done = work.find(id);
    if (done == work.end() || rows_.rows[done->second].correlation != kNoCorrelation || number >= kNoCorrelation - 1)
      continue;
    uint32_t& launch = rows_.rows[call].correlation;
    if (launch == kNoCorrelation) launch = ++number;
    rows_.rows[done->second].correlation = launch;
  }
  for (const auto& [id, row] : waits_)
    if (const auto before = work.find(id); before != work.end() && before->second != row)
      rows_.links.push_back({before->second, row, SliceLinkKind::kFlow});
}

void FileReader::settle_lanes() {
  rows::Dictionaries& texts = builder_.dictionaries();
  std::set<std::string> own_lanes;  // of our exporter's files
  if (tracks_.root_description().starts_with(perfetto::kOwnExport))
    for (uint32_t track = 0; track < tracks_.size(); ++track) {
      const Tracks::Lane lane = tracks_.lane(track);
      own_lanes.insert(lane.pid + "\n" + lane.tid + "\n" + lane.name);
    }
  std::vector<uint32_t> thread(tracks_.size(), 0);
  std::vector<uint8_t> overhead(tracks_.size(), 0);
  std::vector<uint16_t> stream(tracks_.size(), 0);
  const auto lane_of = [&](uint32_t track) {
    if (thread[track] != 0) return thread[track];
    const Tracks::Lane lane = joined_lane(tracks_.lane(track), own_lanes);
    thread[track] = texts.threads.intern(lane.pid + "\n" + lane.tid);
    rows_.thread_names.push_back({thread[track], texts.names.intern(lane.name)});
    overhead[track] = tracks_.process_name(track) == "Overhead";
    if (lane.name.starts_with("stream ")) {
      const std::string_view digits = std::string_view(lane.name).substr(7);
      stream[track] =
          builder_.stream_of(parse_int(digits.substr(0, digits.find_first_not_of("0123456789"))).value_or(-1));
    }
    return thread[track];
  };
  std::vector<Category> kinds;
  for (uint32_t c = 0; c < texts.categories.size(); ++c)
    kinds.push_back(stageline::category_of(texts.categories.text(c)));
  for (Row& row : rows_.rows) {
    const uint32_t track = row.thread;
    row.thread = thread[track] != 0 ? thread[track] : lane_of(track);
    row.category = std::min<uint16_t>(row.category, kMaxCategories) & 0x7fff;
    if (row.category == 0 && overhead[track]) row.category = overhead_category_ & 0x7fff;
    if (row.stream == 0 && stream[track] != 0 && is_device_work(kinds[row.category])) row.stream = stream[track];
  }
  for (Mark& mark : rows_.marks) mark.lane = lane_of(mark.lane);
  for (rows::Flow& flow : rows_.flows) flow.thread = lane_of(flow.thread);
  // Each track names its lane once; of two names the later would win, so the first is put last.
  std::ranges::reverse(rows_.thread_names);
}

// Returns the machine of each rank, where all processes with rows are named as Stageline's exporter names ranks.
std::map<int64_t, std::string> FileReader::named_ranks() const {
  std::vector<uint8_t> used = has_rows_;
  used.resize(tracks_.size());
  for (const auto& [row, cell] : own_cells_) used[rows_.rows[row].thread] = false;
  std::map<int64_t, std::string> machines;
  for (uint32_t t = 0; t < tracks_.size(); ++t) {
    if (!used[t] || (!own_cells_.empty() && tracks_[t].name.starts_with("steps"))) continue;
    const RankName name = rank_name(tracks_.process_name(t));
    if (name.rank < 0) return {};
    machines.emplace(name.rank, name.machine);
  }
  return machines;
}

// Returns the devices of each process, by pid, where several processes have devices of their own: each is a rank.
std::map<int64_t, std::set<int64_t>> FileReader::devices_of_processes() const {
  std::map<int64_t, std::set<int64_t>> devices;
  for (const auto& [track, pid] : row_pid_) devices[pid].insert(tracks_[track].pid);
  std::set<int64_t> all;
  size_t sum = 0;
  for (const auto& [pid, own] : devices) {
    all.insert(own.begin(), own.end());
    sum += own.size();
  }
  if (devices.size() < 2 || sum != all.size()) devices.clear();
  return devices;
}

// Returns which part every track belongs to; −1: none.
std::vector<int32_t> FileReader::choose_parts(FileResult& out) {
  std::vector<int32_t> part(tracks_.size(), 0);
  if (const auto machines = named_ranks(); !own_cells_.empty() || !machines.empty()) {
    out.is_own = true;
    std::map<int64_t, int32_t> number;
    for (const auto& [rank, machine] : machines) {
      number.emplace(rank, static_cast<int32_t>(out.ranks.size()));
      RankRows& rows = out.ranks.emplace_back();
      rows.rank = rank;
      rows.machine = machine;
    }
    for (uint32_t t = 0; t < tracks_.size(); ++t)
      part[t] = value_at(number, rank_name(tracks_.process_name(t)).rank, -1);
    return part;
  }
  const auto devices = devices_of_processes();
  if (devices.empty()) {
    out.ranks.emplace_back();
    return part;
  }
  std::vector<std::pair<int64_t, int64_t>> order;  // lowest device, pid
  for (const auto& [pid, own] : devices) order.emplace_back(*own.begin(), pid);
  std::ranges::sort(order);
  std::map<int64_t, int32_t> number, of_device;
  for (const auto& [device, pid] : order) {
    number.emplace(pid, static_cast<int32_t>(out.ranks.size()));
    for (const int64_t d : devices.at(pid)) of_device.emplace(d, static_cast<int32_t>(out.ranks.size()));
    out.ranks.emplace_back();
  }
  out.by_process = true;
  for (uint32_t t = 0; t < tracks_.size(); ++t) {
    const TrackInfo& process = tracks_[tracks_.process_of(t)];
    const TrackInfo& thread = tracks_[tracks_.thread_of(t)];
    const int64_t pid = process.is_process ? process.pid : thread.pid;
    const auto& numbers = tracks_[t].is_device ? of_device : number;
    part[t] = value_at(numbers, tracks_[t].is_device ? tracks_[t].pid : pid);
  }
  return part;
}

void FileReader::settle_counters(FileResult& out) {
  sort_stably(samples_, {}, [](const Sample& a) { return std::tie(a.track, a.time); });
  out.counters = samples_.size();
  if (out.ranks.empty()) return;
  for (size_t k = 0; k < samples_.size(); ++k) {
    std::vector<CounterSeries>& series = out.ranks.front().rows.counters;
    if (k == 0 || samples_[k].track != samples_[k - 1].track) {
      std::string name = tracks_.path(samples_[k].track);
      const std::string process = tracks_.process_name(samples_[k].track);
      series.push_back({process.empty() ? name : process + " / " + name, {}, {}});
    }
    series.back().time_ns.push_back(samples_[k].time);
    series.back().value.push_back(samples_[k].value);
  }
}

// Rows and their facts to the parts of their tracks.
void FileReader::split(FileResult& out) {
  std::vector<int32_t> part_of_track = choose_parts(out);
  bool all_in_one = out.ranks.size() == 1 && own_cells_.empty();
  for (size_t t = 0; t < has_rows_.size(); ++t) all_in_one = all_in_one && (has_rows_[t] == 0 || part_of_track[t] == 0);
  std::vector<int32_t> part_of(all_in_one ? 0 : rows_.rows.size());
  for (size_t r = 0; r < part_of.size(); ++r) part_of[r] = part_of_track[rows_.rows[r].thread];
  const TextInterner& names = builder_.dictionaries().names;
  for (const auto& [row, cell] : own_cells_) {
    const Row& from = rows_.rows[row];
    part_of[row] = -1;
    out.cells.push_back({cell, from.start_ns, from.dur_ns, from.file_index,
                         std::string(names.text(cell.operation != 0 ? cell.operation : from.name)),
                         tracks_.process_name(from.thread)});
  }
  auto part_of_mark = mapped<int32_t>(rows_.marks, [&](const Mark& mark) { return part_of_track[mark.lane]; });
  settle_lanes();
  out.marks = rows_.marks.size();
  settle_counters(out);
  if (all_in_one) {
    assemble(std::move(rows_), std::move(builder_.dictionaries()), out.ranks[0].rows);
  } else {
    std::vector<uint32_t> new_row(part_of.size(), kNoRow);
    std::vector<rows::ChunkRows> chunks(out.ranks.size());
    for (size_t r = 0; r < part_of.size(); ++r) {
      if (part_of[r] < 0) continue;
      rows::ChunkRows& chunk = chunks[part_of[r]];
      new_row[r] = static_cast<uint32_t>(chunk.rows.size());
      chunk.rows.push_back(rows_.rows[r]);
    }
    const auto deal = [&](auto member) {
      for (auto& fact : rows_.*member) {
        if (part_of[fact.slice] < 0) continue;
        rows::ChunkRows& chunk = chunks[part_of[fact.slice]];
        fact.slice = new_row[fact.slice];
        (chunk.*member).push_back(fact);
      }
    };
    each_fact_list(deal);
    deal(&rows::ChunkRows::python);
    deal(&rows::ChunkRows::graph_work);
    for (const SliceLink& link : rows_.links)
      if (part_of[link.from] >= 0 && part_of[link.from] == part_of[link.to])
        chunks[part_of[link.from]].links.push_back({new_row[link.from], new_row[link.to], link.kind});
    for (size_t m = 0; m < rows_.marks.size(); ++m)
      if (part_of_mark[m] >= 0) chunks[part_of_mark[m]].marks.push_back(rows_.marks[m]);
    for (size_t q = 0; q < chunks.size(); ++q) {
      chunks[q].thread_names = rows_.thread_names;
      chunks[q].event_count = rows_.event_count;
      rows::Dictionaries own = used_by(chunks[q], builder_.dictionaries());
      assemble(std::move(chunks[q]), std::move(own), out.ranks[q].rows);
    }
  }
  for (RankRows& rank : out.ranks) rank.rows.path = path_;
  for (RankRows& rank : out.ranks) rank.rows.metadata = metadata_;
}

Result<FileResult> FileReader::finish() {
  FileResult out;
  out.path = path_;
  const SliceLog::Pairs pairs = log_.pair();
  rows_ = builder_.take();
  out.paired_by_index = pairs.paired_by_index;
  out.packets = packets_;
  for (const uint32_t row : pairs.open_rows)
    rows_.rows[row].dur_ns = std::max<int64_t>(0, last_ns_ - rows_.rows[row].start_ns);
  if (!pairs.open_rows.empty())
    notes_.add(problem::pftrace_unmatched_begin, {path_, 0, rows_.rows[pairs.open_rows.front()].offset},
               pairs.open_rows.size());
  notes_.add(problem::pftrace_unmatched_end, {path_}, pairs.unmatched_ends);
  settle_states();
  link_gpu_work();
  settle_flows();
  const uint64_t trace_clock = trace_clock_ == 0 ? perfetto::kBoottime : trace_clock_;
  if (const auto shift = clocks_.offset(trace_clock, perfetto::kRealtime)) {
    const bool fits = first_ns_ == INT64_MAX ||
                      (sum_or_limit(first_ns_, *shift) >= 0 && sum_or_limit(last_ns_, *shift) <= kMaxTimeNs);
    if (fits) out.shift_ns = *shift, out.is_dated = !clockless_;
  }
  split(out);
  out.clocks = tracks_.root_description();
  out.notes = std::move(notes_);
  const size_t rows = sum_over<size_t>(out.ranks, [&](const RankRows& rank) { return rank.rows.row_count; });
  if (rows == 0 && out.cells.empty() && out.marks == 0 && out.counters == 0)
    return input_error("perfetto.empty", {path_});
  return out;
}

Result<FileResult> read_file(const std::string& path, int64_t size_bytes, Progress* progress) {
  FileReader first(path, nullptr);
  TRY_OK(first.read(size_bytes, progress));
  if (!first.wants_clocks() || first.clocks().empty()) return first.finish();
  // Timestamps came before the snapshots that say what they mean: once more, with all snapshots.
  FileReader second(path, &first.clocks());
  TRY_OK(second.read(size_bytes, nullptr));
  return second.finish();
}

}  // namespace stageline::pftrace
