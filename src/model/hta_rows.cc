#include "model/hta_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace stageline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// HTA's test of a device row: an argument stream and a correlation, or a wait by name.
bool hta_gpu_side(const TorchRow& row, std::string_view name) {
  return (row.stream >= 0 && row.correlation >= 0) || name == "Event Sync" || name == "Context Sync";
}

// Every correlation that has both sides: each host row gets the last device row of the file, each
// device row the last host row.
void link_partners(std::vector<TorchRow>& rows, const std::vector<bool>& gpu_side) {
  struct Last {
    int64_t host = -1, device = -1;
  };
  std::unordered_map<int64_t, Last> last;
  last.reserve(rows.size() / 2);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].partner_index = std::min<int64_t>(rows[i].correlation, 0);
    if (rows[i].correlation == -1) continue;
    Last& entry = last[rows[i].correlation];
    (gpu_side[i] ? entry.device : entry.host) = rows[i].index;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].correlation == -1) continue;
    const Last& entry = last[rows[i].correlation];
    if (entry.host >= 0 && entry.device >= 0) rows[i].partner_index = gpu_side[i] ? entry.host : entry.device;
  }
}

// Segments of time between step boundaries, each with the number of the last row (file order) that
// covers it.
class StepMap {
 public:
  struct Step {
    int64_t start_ns, end_ns, number;
  };
  explicit StepMap(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      bounds_.push_back(step.start_ns);
      bounds_.push_back(step.end_ns);
    }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
    numbers_.assign(bounds_.size(), -1);
    for (const Step& step : steps) {
      const auto from = std::lower_bound(bounds_.begin(), bounds_.end(), step.start_ns) - bounds_.begin();
      const auto to = std::lower_bound(bounds_.begin(), bounds_.end(), step.end_ns) - bounds_.begin();
      for (auto k = from; k < to; ++k) numbers_[static_cast<size_t>(k)] = step.number;
    }
  }
  int32_t at(int64_t ns) const {
    const auto it = std::upper_bound(bounds_.begin(), bounds_.end(), ns);
    return it == bounds_.begin() ? -1 : static_cast<int32_t>(numbers_[static_cast<size_t>(it - bounds_.begin()) - 1]);
  }

 private:
  std::vector<int64_t> bounds_, numbers_;
};

void set_iterations(const TorchRun& run, std::vector<TorchRow>& rows) {
  std::vector<StepMap::Step> steps;
  bool has_cpu_op = false;
  for (const TorchRow& row : rows) {
    has_cpu_op |= row.category == Category::kCpuOp;
    const std::string_view name = run.name(row);
    if (!name.starts_with("ProfilerStep")) continue;
    if (const int64_t number = hta_step_number(name); number >= 0)
      steps.push_back({row.start_ns, row.end_ns(), number});
  }
  const StepMap map(steps);
  std::vector<int32_t> row_of;
  for (size_t i = 0; i < rows.size(); ++i) {
    TorchRow& row = rows[i];
    if (row.index >= row_of.size()) row_of.resize(row.index + 1, -1);
    row_of[row.index] = static_cast<int32_t>(i);
    const bool host = row.stream < 0 || (row.stream == 0 && has_cpu_op && row.category == Category::kCpuOp);
    row.iteration = host ? map.at(row.start_ns) : row.stream == 0 ? kNoIteration : -1;
  }
  for (TorchRow& row : rows) {
    if (row.stream <= 0 || row.partner_index <= 0) continue;
    if (row.partner_index < static_cast<int64_t>(row_of.size()) && row_of[static_cast<size_t>(row.partner_index)] >= 0)
      row.iteration = rows[static_cast<size_t>(row_of[static_cast<size_t>(row.partner_index)])].iteration;
  }
}

// HTA keeps the rows before the last step's start, and a device row once for every host row of its
// correlation that stays.
void drop_last_step(const TorchRun& run, std::vector<TorchRow>& rows, const std::vector<bool>& gpu_side) {
  int64_t last_start = INT64_MIN, first_host = INT64_MAX;
  bool any_host = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (gpu_side[i]) continue;
    any_host = true;
    first_host = std::min(first_host, rows[i].start_ns);
    const std::string_view name = run.name(rows[i]);
    if (name.starts_with("ProfilerStep#") && hta_step_number(name) >= 0)
      last_start = std::max(last_start, rows[i].start_ns);
  }
  if (!any_host) return;
  if (last_start == INT64_MIN) last_start = first_host;
  const bool keep_all = run.options.include_last_step;  // HTA compares with `end`, which is on another clock
  std::unordered_map<int64_t, int32_t> kept;
  std::vector<TorchRow> host;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (gpu_side[i] || (!keep_all && rows[i].start_ns >= last_start)) continue;
    host.push_back(rows[i]);
    ++kept[rows[i].correlation];
  }
  std::vector<TorchRow> out;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!gpu_side[i]) continue;
    const auto it = kept.find(rows[i].correlation);
    for (int32_t n = it == kept.end() ? 0 : it->second; n > 0; --n) out.push_back(rows[i]);
  }
  out.insert(out.end(), host.begin(), host.end());
  rows = std::move(out);
}

bool is_table_row(const Trace& trace, const Slices& s, size_t i) {
  const CategoryInfo& category = trace.categories[s.category_id[i]];
  return !s.is_joined(i) && !category.text.empty() && category.kind != Category::kSpan;
}

}  // namespace

int64_t hta_step_number(std::string_view name) {
  if (!name.starts_with("ProfilerStep")) return -1;
  size_t at = 12;
  const auto blanks = [&] {
    while (at < name.size() && (name[at] == ' ' || name[at] == '\t')) ++at;
  };
  blanks();
  if (at >= name.size() || name[at] != '#') return -1;
  ++at;
  blanks();
  int64_t number = -1;
  for (; at < name.size() && is_digit(name[at]) && number < 1'000'000'000; ++at)
    number = std::max<int64_t>(number, 0) * 10 + (name[at] - '0');
  return number;
}

double hta_raw_us(int64_t ns) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (ns > -kExact && ns < kExact) return static_cast<double>(ns) / 1000.0;
  return static_cast<double>(static_cast<long double>(ns) / 1000.0L);
}

void hta_round(const Part& part, int64_t& start_ns, int64_t& dur_ns) {
  if (!part.fractional_time) return;
  const double start = hta_raw_us(start_ns);
  const double end = std::floor(start + hta_raw_us(dur_ns));
  start_ns = static_cast<int64_t>(std::ceil(start)) * 1000;
  dur_ns = static_cast<int64_t>(end) * 1000 - start_ns;
}

void hta_run_facts(TorchRun& run) {
  const Trace& trace = *run.trace;
  run.hta_class.resize(trace.names.size());
  for (StringId id = 0; id < run.hta_class.size(); ++id) run.hta_class[id] = hta_kernel_class(trace.names.text(id));
  run.zero_ns = INT64_MAX;
  std::set<int64_t> steps;
  run.device_type = "UNKNOWN GPU";
  bool mtia = false, nvidia = false, amd = false;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const Part& part = trace.parts[p];
    const Slices& s = part.slices;
    for (size_t i = 0; i < s.size(); ++i) {
      if (!is_table_row(trace, s, i)) continue;
      int64_t start = s.start_ns[i] - part.base_time_ns, dur = s.dur_ns[i];
      hta_round(part, start, dur);
      run.zero_ns = std::min(run.zero_ns, start);
    }
    for (const MetaField& field : part.metadata)
      if (p == 0 && field.key == "distributedInfo") mtia |= field.json.find("mtia:hccl") != std::string::npos;
  }
  if (run.zero_ns == INT64_MAX) run.zero_ns = 0;
  for (StringId id = 0; id < trace.names.size(); ++id) {
    const std::string_view name = trace.names.text(id);
    mtia |= name == "runFunction - job_prep_and_submit_for_execution";
    nvidia |= name == "cudaLaunchKernel";
    amd |= name == "hipLaunchKernel";
    if (name.starts_with("ProfilerStep#"))
      if (const int64_t number = hta_step_number(name); number >= 0) steps.insert(number);
  }
  if (mtia)
    run.device_type = "MTIA";
  else if (nvidia)
    run.device_type = "NVIDIA GPU";
  else if (amd)
    run.device_type = "AMD GPU";
  run.listed_steps.assign(steps.begin(), steps.end());
  run.drops_last_step = steps.size() >= 2;
}

TorchRank hta_rank_rows(const TorchRun& run, size_t p) {
  const Trace& trace = *run.trace;
  const Part& part = trace.parts[p];
  const Slices& s = part.slices;
  TorchRank rank;
  rank.part = &part;
  rank.rank = part.rank;
  std::vector<uint32_t> slice_at(static_cast<size_t>(part.event_count), kNoSliceIndex);  // file order
  std::vector<uint16_t> lane_of(s.size());
  for (size_t l = 0; l < part.lanes.size(); ++l)
    for (size_t i = part.lanes[l].begin; i < part.lanes[l].end; ++i) {
      lane_of[i] = static_cast<uint16_t>(std::min<size_t>(l, UINT16_MAX));
      if (is_table_row(trace, s, i)) slice_at[s.file_index[i]] = static_cast<uint32_t>(i);
    }
  for (const uint32_t i : slice_at) {
    if (i == kNoSliceIndex) continue;
    TorchRow row;
    row.start_ns = s.start_ns[i] - part.base_time_ns;
    row.dur_ns = s.dur_ns[i];
    hta_round(part, row.start_ns, row.dur_ns);
    row.start_ns -= run.zero_ns;
    row.correlation = s.correlation[i] == kNoCorrelation ? -1 : static_cast<int64_t>(s.correlation[i]);
    row.slice = i;
    row.index = s.file_index[i];
    row.name = s.name_id[i];
    row.stream = static_cast<int32_t>(part.streams[s.stream_id[i]]);
    row.lane = lane_of[i];
    row.category = trace.categories[s.category_id[i]].kind;
    row.kernel = run.hta_class[row.name];
    row.on_device = row.stream != -1;
    rank.rows.push_back(row);
  }
  std::vector<bool> gpu_side(rank.rows.size());
  for (size_t i = 0; i < rank.rows.size(); ++i) gpu_side[i] = hta_gpu_side(rank.rows[i], run.name(rank.rows[i]));
  link_partners(rank.rows, gpu_side);
  set_iterations(run, rank.rows);
  if (run.drops_last_step) drop_last_step(run, rank.rows, gpu_side);
  return rank;
}

void hta_index_rows(TorchRank& rank) {
  uint32_t most = 0;
  for (const TorchRow& row : rank.rows) most = std::max(most, row.index);
  rank.row_of_index.assign(rank.rows.empty() ? 0 : most + 1, -1);
  for (size_t i = rank.rows.size(); i-- > 0;) rank.row_of_index[rank.rows[i].index] = static_cast<int32_t>(i);
  for (TorchRow& row : rank.rows) row.partner = row.partner_index > 0 ? rank.row_at(row.partner_index) : -1;
}

}  // namespace stageline
