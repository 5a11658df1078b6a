#include "base/json_members.h"
#include "base/parallel.h"
#include "readers/common/rows/finish_part.h"
#include "readers/kineto/read_file.h"

namespace stageline::kineto {
namespace {

constexpr size_t kMaxNames = 1'000'000;  // limit, since each name is copied
constexpr double kMaxRead = 0.7;         // when this share of all bytes has been read, the whole run will be there soon

// Classifies kernels by their names alone; relations between slices are not known yet.
void classify(const std::vector<CategoryInfo>& categories, const StringPool& names, Slices& s) {
  std::unordered_map<uint64_t, uint8_t> known;
  for (size_t i = 0; i < s.size(); ++i) {
    const Category c = categories[s.category_id[i]].kind;
    if (!is_device_work(c) && c != Category::kDeviceSync) continue;
    const auto [it, added] = known.try_emplace(static_cast<uint64_t>(s.name_id[i]) << 8 | static_cast<uint64_t>(c));
    if (added) it->second = static_cast<uint8_t>(classify_kernel(c, names.text(s.name_id[i]), false));
    s.kernel_class[i] = it->second;
  }
}

Trace empty_trace() {
  Trace trace;
  trace.format = "kineto";
  trace.categories.push_back({"", Category::kOther});
  return trace;
}

// Makes a rank of the rows so far, with the ids of the trace.
Part part_of_rows(const rows::FileRows& rows, const NameMap& map) {
  Part part;
  part.source = rows.path;
  part.event_count = std::max<int64_t>(1, rows.rest.event_count);
  int64_t base_ns = 0;
  for (const MetaField& field : rows.metadata)
    if (field.key == "baseTimeNanoseconds") base_ns = json_integer(field.json).value_or(0);
  std::vector<size_t> next = rows::make_lanes(rows, part.lanes);
  Slices& s = part.slices;
  s.start_ns.resize(rows.row_count);
  s.dur_ns.resize(rows.row_count);
  s.name_id.resize(rows.row_count);
  s.category_id.resize(rows.row_count);
  s.kernel_class.resize(rows.row_count);
  for (const std::vector<rows::Row>& block : rows.blocks)
    for (const rows::Row& row : block) {
      const size_t i = next[row.thread]++;
      if (__builtin_add_overflow(row.start_ns, base_ns, &s.start_ns[i])) s.start_ns[i] = row.start_ns;
      s.dur_ns[i] = row.dur_ns;
      s.name_id[i] = map.names[row.name];
      s.category_id[i] = map.categories[row.category];
    }
  rows::name_lanes(rows, part.lanes);
  return part;
}

void put_in_order(const std::vector<CategoryInfo>& categories, Lane& lane, Slices& s) {
  const auto before = [&](size_t a, size_t b) {
    return s.start_ns[a] != s.start_ns[b] ? s.start_ns[a] < s.start_ns[b] : s.dur_ns[a] > s.dur_ns[b];
  };
  bool sorted = true;
  for (size_t i = lane.begin + 1; i < lane.end && sorted; ++i) sorted = !before(i, i - 1);
  if (!sorted) {
    std::vector<uint32_t> order;
    for (uint32_t i = lane.begin; i < lane.end; ++i) order.push_back(static_cast<uint32_t>(i));
    sort_stably(order, before);
    rows::permute_lane(s.start_ns, order, lane.begin);
    rows::permute_lane(s.dur_ns, order, lane.begin);
    rows::permute_lane(s.name_id, order, lane.begin);
    rows::permute_lane(s.category_id, order, lane.begin);
  }
  lane.kind = lane_kind(lane, [&](size_t i) { return categories[s.category_id[i]].kind; });
}

Part copy_of(const Part& from, const NameMap& map) {
  Part part;
  part.source = from.source;
  part.machine_name = from.machine_name;
  part.event_count = from.event_count;
  part.lanes = from.lanes;
  Slices& s = part.slices;
  s.start_ns = from.slices.start_ns;
  s.dur_ns = from.slices.dur_ns;
  s.name_id = from.slices.name_id;
  s.category_id = from.slices.category_id;
  s.kernel_class = from.slices.kernel_class;
  rename_part(map, part);
  return part;
}

}  // namespace

bool EarlyShow::is_due() {
  const auto now = std::chrono::steady_clock::now() - began_;
  if (now < next_) return false;
  next_ = std::chrono::duration_cast<std::chrono::milliseconds>(now * 3);
  const auto all = progress_ ? progress_->expected_bytes() : 0.0;
  return all <= 0 || progress_->done_bytes() <= kMaxRead * all;
}

void EarlyShow::offer_rows(const rows::FileRows& rows) {
  if (!take_ || rows.row_count == 0 || !is_due() || rows.dictionaries.names.size() > kMaxNames) return;
  Trace trace = empty_trace();
  Part part = part_of_rows(rows, adopt_names(rows::names_of(rows), trace));
  parallel_for(part.lanes.size(), [&](size_t l) { put_in_order(trace.categories, part.lanes[l], part.slices); });
  classify(trace.categories, trace.names, part.slices);
  trace.clock = ClockState::kShared;
  trace.parts.push_back(std::move(part));
  take_(std::move(trace));
}

void EarlyShow::offer_file(Done file) {
  if (!take_) return;
  std::vector<Done> files;
  {
    const std::lock_guard lock(files_mutex_);
    if (file.part->slices.size() > 0) files_.push_back(file);
    files = files_;
  }
  const std::unique_lock showing(showing_mutex_, std::try_to_lock);
  if (!showing || files.empty() || !is_due()) return;
  std::vector<rows::FileFacts> facts;
  size_t names = 0;
  for (const Done& done : files) {
    facts.push_back(*done.facts);
    names += done.names->names.size();
  }
  if (names > kMaxNames) return;
  Diagnostics unused;  // these notes are given once the run has been read
  const std::vector<int32_t> ranks = rows::assign_ranks(facts, unused);
  std::vector<std::pair<int32_t, size_t>> order;
  for (size_t k = 0; k < files.size(); ++k) order.emplace_back(ranks[k], k);
  std::ranges::sort(order);
  Trace trace = empty_trace();
  for (const auto& [rank, k] : order) {
    // If several files have one rank, only the first is shown.
    if (!trace.parts.empty() && trace.parts.back().rank == rank) continue;
    trace.parts.push_back(copy_of(*files[k].part, adopt_names(*files[k].names, trace)));
    trace.parts.back().rank = rank;
  }
  if (trace.parts.size() == 1) trace.clock = ClockState::kShared;
  take_(std::move(trace));
}

}  // namespace stageline::kineto
