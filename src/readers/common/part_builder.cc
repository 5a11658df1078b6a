#include "readers/common/part_builder.h"

#include "base/sorting.h"
#include "model/source_limits.h"
#include "model/torch_facts.h"
#include "readers/common/absurd_times.h"
#include "readers/common/number_map.h"
#include "readers/common/order_facts.h"

namespace stageline {
namespace {

// Numbers the device streams of a part with `rows` slices, and marks the slices of each.
void number_streams(Part& part, size_t rows) {
  std::vector<uint16_t>& ids = part.slices.stream_id;
  ids.resize(rows);
  int64_t next_group = kFirstGroupStream;
  for (const Lane& lane : part.lanes) {
    if (lane.kind != LaneKind::kDeviceStream || part.streams.size() >= UINT16_MAX) continue;
    std::fill(ids.begin() + lane.begin, ids.begin() + lane.end, static_cast<uint16_t>(part.streams.size()));
    part.streams.push_back(lane.tid.starts_with("stream ") ? std::atoll(lane.tid.c_str() + 7) : next_group++);
  }
}

}  // namespace

uint32_t PartBuilder::lane_of(LaneKey key, std::string name, std::string pid, std::string tid) {
  const auto [it, added] = lane_ids_.try_emplace(std::move(key), static_cast<uint32_t>(part.lanes.size()));
  if (added) {
    Lane lane{.name = std::move(name), .kind = it->first.kind, .pid = std::move(pid), .tid = std::move(tid)};
    part.lanes.push_back(std::move(lane));
  }
  return it->second;
}

uint32_t PartBuilder::host_lane(int64_t pid, int64_t tid) {
  if (last_lane_ != UINT32_MAX && last_key_.kind == LaneKind::kHostThread && last_key_.a == pid && last_key_.b == tid)
    return last_lane_;
  last_key_ = {LaneKind::kHostThread, pid, tid, {}};
  return last_lane_ = lane_of(last_key_, "thread " + std::to_string(tid), std::to_string(pid), std::to_string(tid));
}

uint32_t PartBuilder::stream_lane(int64_t device, int64_t stream) {
  if (last_lane_ != UINT32_MAX && last_key_.kind == LaneKind::kDeviceStream && last_key_.name.empty() &&
      last_key_.a == device && last_key_.b == stream)
    return last_lane_;
  last_key_ = {LaneKind::kDeviceStream, device, stream, {}};
  return last_lane_ = lane_of(last_key_, "stream " + std::to_string(stream), std::to_string(device),
                              "stream " + std::to_string(stream));
}

uint32_t PartBuilder::named_stream_lane(int64_t device, const std::string& name) {
  return lane_of({LaneKind::kDeviceStream, device, -1, name}, name, std::to_string(device), name);
}

uint32_t PartBuilder::main_thread() {
  uint32_t first = UINT32_MAX;
  for (uint32_t l = 0; l < part.lanes.size(); ++l) {
    const Lane& lane = part.lanes[l];
    if (lane.kind != LaneKind::kHostThread) continue;
    if (lane.pid == lane.tid) return l;
    if (first == UINT32_MAX) first = l;
  }
  return first != UINT32_MAX ? first : lane_of({LaneKind::kHostThread, 0, 0, "steps"}, "steps", "0", "0");
}

uint32_t PartBuilder::add(uint32_t lane, size_t kind, int64_t start_ns, int64_t end_ns, uint32_t name,
                          uint32_t correlation) {
  if (start_ns < 0 || start_ns > kMaxTimeNs || end_ns > kMaxTimeNs || start_.size() >= kNoRow - 1) {
    notes.add(problem::reader_bad_row.of(reader_), {part.source});
    return kNoRow;
  }
  if (end_ns < start_ns) {
    notes.add(problem::reader_reversed_time.of(reader_), {part.source});
    end_ns = start_ns;
  }
  start_.push_back(start_ns);
  dur_.push_back(end_ns - start_ns);
  name_.push_back(name);
  correlation_.push_back(correlation);
  lane_.push_back(lane);
  kind_.push_back(static_cast<uint8_t>(kind));
  return static_cast<uint32_t>(start_.size() - 1);
}

void PartBuilder::reserve(size_t rows) {
  start_.reserve(rows);
  dur_.reserve(rows);
  name_.reserve(rows);
  correlation_.reserve(rows);
  lane_.reserve(rows);
  kind_.reserve(rows);
}

// Makes steps into slices of the main thread, so that they enclose its work and every view shows them.
void PartBuilder::add_steps() {
  std::vector<int64_t> known;
  for (size_t row = 0; row < start_.size(); ++row)
    if (kinds_[kind_[row]].kind == Category::kUserAnnotation)
      known.push_back(profiler_step_number(texts_.text(name_[row])));
  std::ranges::sort(known);
  sort_stably(steps_, {}, &ProfilerStep::start_ns);
  const uint32_t lane = steps_.empty() ? 0 : main_thread();
  const size_t annotation = std::ranges::find(kinds_, Category::kUserAnnotation, &RowCategory::kind) - kinds_.begin();
  int64_t end = INT64_MIN;
  for (const ProfilerStep& step : steps_) {
    if (step.start_ns < end) notes.add(problem::reader_overlapping_steps.of(reader_), {part.source});
    end = std::max(end, step.end_ns);
    if (std::ranges::binary_search(known, step.number)) continue;
    add(lane, annotation, step.start_ns, step.end_ns, text("ProfilerStep#" + std::to_string(step.number)));
  }
}

// Scatters the rows into their lanes: by start, longer first, then in the source's order. Returns the slice of each
// row.
std::vector<uint32_t> PartBuilder::fill_lanes() {
  const size_t rows = start_.size();
  const std::vector<bool> absurd = absurd_rows(
      rows,
      [&](auto&& use) {
        for (size_t row = 0; row < rows; ++row)
          use({start_[row], dur_[row], !is_on_host(kinds_[kind_[row]].kind), name_[row]});
      },
      0, reader_, part.source, notes);
  const auto stays = [&](size_t row) { return absurd.empty() || !absurd[row]; };
  std::vector<size_t> next(part.lanes.size() + 1, 0);
  for (size_t r = 0; r < rows; ++r)
    if (stays(r)) ++next[lane_[r] + 1];
  for (size_t l = 0; l < part.lanes.size(); ++l) {
    next[l + 1] += next[l];
    part.lanes[l].begin = next[l];
    part.lanes[l].end = next[l + 1];
  }
  const size_t n = next.back();
  std::vector<uint32_t> row(n), slice(rows, kNoSliceIndex);
  for (uint32_t r = 0; r < rows; ++r)
    if (stays(r)) row[next[lane_[r]]++] = r;
  const auto before = [&](uint32_t a, uint32_t b) {
    if (start_[a] != start_[b]) return start_[a] < start_[b];
    if (dur_[a] != dur_[b]) return dur_[a] > dur_[b];
    return a < b;
  };
  for (const Lane& lane : part.lanes) sort_runs(row.begin() + lane.begin, row.begin() + lane.end, before);
  Slices& s = part.slices;
  const auto gather = [&](auto& to, auto& from) {
    to.resize(n);
    for (size_t i = 0; i < n; ++i) to[i] = from[row[i]];
    std::remove_reference_t<decltype(from)>().swap(from);
  };
  s.category_id.resize(n);
  s.kernel_class.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    slice[row[i]] = i;
    const uint8_t kind = kind_[row[i]];
    s.category_id[i] = static_cast<uint8_t>(kind + 1);
    s.kernel_class[i] = static_cast<uint8_t>(kinds_[kind].kernel_class);
  }
  number_streams(part, n);
  gather(s.start_ns, start_);
  gather(s.dur_ns, dur_);
  gather(s.name_id, name_);
  gather(s.correlation, correlation_);
  std::vector<uint32_t>().swap(lane_);
  std::vector<uint8_t>().swap(kind_);
  s.args_offset_low.assign(n, 0);
  s.args_offset_high.assign(n, 0);
  s.file_index = std::move(row);
  // One row can make two slices (a range and its device side), so the count is raised: positions stay below it, as
  // everywhere.
  part.event_count = std::max(part.event_count, static_cast<int64_t>(rows));
  return slice;
}

// Ranges and their device sides are paired by number and not through a launch call; a transfer belongs to its
// operation. Then device work gets its steps.
void PartBuilder::pair_slices(const std::vector<uint32_t>& slice) {
  Slices& s = part.slices;
  for (const auto& [host, device] : pairs_) {
    const uint32_t from = slice[host], to = slice[device];
    if (from == kNoSliceIndex || to == kNoSliceIndex) continue;
    if (s.partner[to] == kNoSliceIndex) s.partner[to] = from;
    if (s.partner[from] == kNoSliceIndex) s.partner[from] = to;
    s.step[to] = s.step[s.partner[to]];
  }
  for (const TransferFact& fact : part.transfers) {
    if (fact.op == kNoSliceIndex) continue;
    s.partner[fact.slice] = s.partner[fact.op];
    s.parent[fact.slice] = fact.op;
    s.step[fact.slice] = s.step[fact.op];
  }
}

// Work that an operator's launches launched belongs to the operator, whatever thread the launch was called on.
void PartBuilder::own_launched(std::vector<uint32_t>& owner) const {
  if (owners_.empty()) return;
  const Slices& s = part.slices;
  NumberMap by_correlation;
  const auto kind = [&](size_t i) { return kinds_[s.category_id[i] - 1u].kind; };
  for (size_t i = 0; i < s.size(); ++i)
    if (owner[i] != kNoCorrelation && is_launch_call(kind(i))) by_correlation.put(s.correlation[i], owner[i]);
  for (size_t i = 0; i < s.size(); ++i)
    if (owner[i] == kNoCorrelation && s.correlation[i] != kNoCorrelation && is_device_work(kind(i)))
      owner[i] = by_correlation.get(s.correlation[i]);  // an operator that is not found is kNone in both
}

Part PartBuilder::finish(FileNames& names) {
  add_steps();
  names.categories.push_back({"", Category::kOther});
  for (const RowCategory& kind : kinds_) names.categories.push_back({kind.category, kind.kind});
  const std::vector<uint32_t> slice = fill_lanes();
  for (TransferFact& fact : transfers)
    if (fact.op != kNoSliceIndex) fact.op = slice[fact.op];
  place_facts(*this, slice, part);
  for (const SliceLink& link : links_)
    if (slice[link.from] != kNoSliceIndex && slice[link.to] != kNoSliceIndex)
      part.slice_links.push_back({slice[link.from], slice[link.to], link.kind});
  for (uint32_t id = 0; id < texts_.size(); ++id) names.names.emplace_back(texts_.text(id));
  std::vector<uint32_t> owner(owners_.empty() ? 0 : part.slices.size(), kNoCorrelation);
  for (const auto& [row, operator_row] : owners_) {
    if (slice[row] == kNoSliceIndex || slice[operator_row] == kNoSliceIndex) continue;
    owner[slice[operator_row]] = slice[operator_row] + 1;
    owner[slice[row]] = slice[operator_row] + 1;
  }
  own_launched(owner);
  const bool classified = std::ranges::any_of(
      kinds_, [](const RowCategory& k) { return k.kind == Category::kKernel && k.kernel_class != KernelClass::kNone; });
  relate_slices(names, owner,
                {.lanes_are_typed = true,
                 .owners_are_certain = true,
                 .kernels_are_classified = classified,
                 .notes = &notes,
                 .format = reader_},
                part);
  pair_slices(slice);
  leave_out_far_marks(part, reader_, notes);
  return std::move(part);
}

}  // namespace stageline
