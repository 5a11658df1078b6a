#include <cstdlib>

#include "model/torch_facts.h"
#include "profile/id_slots.h"
#include "profile/torch_rows.h"

namespace stageline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns true for "ProfilerStep#7" without blanks, which the count of steps and the cut look for.
bool is_step_symbol(std::string_view name) {
  return name.size() > 13 && name.starts_with("ProfilerStep#") && is_digit(name[13]);
}

// The side of each row, and the place of its correlation.
struct RowSides {
  std::vector<uint8_t> gpu;    // hta_gpu_side()
  std::vector<uint32_t> slot;  // the place of its correlation, below `slots`; kNone without one
  size_t slots = 0;
  static constexpr uint32_t kNone = UINT32_MAX;
};

RowSides sides_of(const TorchRun& run, const std::vector<TorchRow>& rows) {
  const IdSlots places(mapped<int64_t>(rows, &TorchRow::correlation));
  return {mapped<uint8_t>(rows, [&](const TorchRow& row) { return hta_gpu_side(run, row); }),
          mapped<uint32_t>(rows,
                           [&](const TorchRow& row) {
                             return row.correlation < 0 ? RowSides::kNone : places.slot(row.correlation);
                           }),
          places.size()};
}

// Links the rows of every correlation that has both sides: each host row gets the last device row of the file, and each
// device row the last host row.
void link_partners(std::vector<TorchRow>& rows, const RowSides& sides) {
  struct Last {
    int64_t host = -1, device = -1;
  };
  std::vector<Last> last(sides.slots);
  for (size_t i = 0; i < rows.size(); ++i)
    if (sides.slot[i] != RowSides::kNone) {
      Last& entry = last[sides.slot[i]];
      (sides.gpu[i] ? entry.device : entry.host) = rows[i].index;
    }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].partner_index = std::min<int64_t>(rows[i].correlation, 0);
    if (sides.slot[i] == RowSides::kNone) continue;
    const Last& entry = last[sides.slot[i]];
    if (entry.host >= 0 && entry.device >= 0) rows[i].partner_index = sides.gpu[i] ? entry.host : entry.device;
  }
}

// Stretches of time between step boundaries, each with the number of the last row (in file order) that covers it.
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
    sort_unique(bounds_);
    numbers_.assign(bounds_.size(), -1);
    for (const Step& step : steps) {
      const auto from = std::ranges::lower_bound(bounds_, step.start_ns) - bounds_.begin();
      const auto to = std::ranges::lower_bound(bounds_, step.end_ns) - bounds_.begin();
      for (auto k = from; k < to; ++k) numbers_[k] = step.number;
    }
  }
  int32_t at(int64_t ns) const {
    const auto it = std::ranges::upper_bound(bounds_, ns);
    return it == bounds_.begin() ? -1 : static_cast<int32_t>(numbers_[static_cast<size_t>(it - bounds_.begin()) - 1]);
  }

 private:
  std::vector<int64_t> bounds_, numbers_;
};

void set_iterations(const TorchRun& run, const Part& part, std::vector<TorchRow>& rows) {
  std::vector<StepMap::Step> steps;
  for (const TorchRow& row : rows) {
    const int64_t number = run.step_number[row.name];
    if (number >= 0) steps.push_back({row.start_ns, row.end_ns(), number});
  }
  const StepMap map(steps);
  std::vector<int32_t> row_of(part.event_count, -1);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    TorchRow& row = rows[i];
    row_of[row.index] = i;
    const bool host = row.stream < 0 || (row.stream == 0 && run.category_text(part, row) == "cpu_op");
    row.iteration = host ? map.at(row.start_ns) : row.stream == 0 ? kNoIteration : -1;
  }
  for (TorchRow& row : rows) {
    if (row.stream <= 0 || row.partner_index <= 0) continue;
    if (row_of[row.partner_index] >= 0) row.iteration = rows[row_of[row.partner_index]].iteration;
  }
}

struct StepSpan {
  int64_t first_start = INT64_MAX, last_start = INT64_MIN, last_end = INT64_MIN;
  bool any() const { return last_start != INT64_MIN; }
};

StepSpan step_span(const TorchRun& run, const std::vector<TorchRow>& rows, const RowSides& sides) {
  StepSpan span;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (sides.gpu[i] || run.step_number[rows[i].name] < 0 || !is_step_symbol(run.name(rows[i]))) continue;
    span.first_start = std::min(span.first_start, rows[i].start_ns);
    span.last_start = std::max(span.last_start, rows[i].start_ns);
    span.last_end = std::max(span.last_end, rows[i].end_ns());
  }
  return span;
}

// HTA keeps the rows before the last step's start, and repeats a device row for every host row of its correlation that
// is kept.
void drop_last_step(const TorchRun& run, std::vector<TorchRow>& rows, const RowSides& sides) {
  int64_t first_host = INT64_MAX, last_host_end = INT64_MIN;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!sides.gpu[i]) {
      first_host = std::min(first_host, rows[i].start_ns);
      last_host_end = std::max(last_host_end, rows[i].end_ns());
    }
  if (first_host == INT64_MAX) return;  // there are no host rows
  const StepSpan span = step_span(run, rows, sides);
  // To keep the last step HTA compares starts with `end`, which is still on the file's own clock (fault F10).
  const int64_t until = run.options.include_last_step ? (span.any() ? span.last_end : last_host_end) + run.zero_ns + 1
                                                      : (span.any() ? span.last_start : first_host);
  std::vector<uint32_t> kept(sides.slots);
  uint32_t kept_without = 0;  // device rows without correlation are matched by name only
  const auto kept_host = [&](size_t i) { return !sides.gpu[i] && rows[i].start_ns < until; };
  // Waits by name without a correlation match every host row without one, and HTA then multiplies them.
  const auto times_kept = [&](size_t i) -> size_t {
    return sides.slot[i] == RowSides::kNone ? kept_without : kept[sides.slot[i]];
  };
  size_t total = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!kept_host(i)) continue;
    ++total;
    ++(sides.slot[i] == RowSides::kNone ? kept_without : kept[sides.slot[i]]);
  }
  for (size_t i = 0; i < rows.size(); ++i)
    if (sides.gpu[i]) total += times_kept(i);
  std::vector<TorchRow> out;
  out.reserve(total);
  for (size_t i = 0; i < rows.size(); ++i)
    if (sides.gpu[i]) out.insert(out.end(), times_kept(i), rows[i]);
  for (size_t i = 0; i < rows.size(); ++i)
    if (kept_host(i)) out.push_back(rows[i]);
  rows = std::move(out);
}

// On MTIA devices HTA keeps three sets of rows: host rows within [first step's start, last step's end], the device rows
// of their correlations, and copies within the steps. A missing stream of a copy becomes the thread.
void keep_mtia_steps(const TorchRun& run, const Part& part, std::vector<TorchRow>& rows, const RowSides& sides) {
  const StepSpan span = step_span(run, rows, sides);
  if (!span.any()) return rows.clear();
  const auto within = [&](const TorchRow& row) {
    return row.start_ns >= span.first_start && row.end_ns() <= span.last_end;
  };
  std::vector<bool> wanted(sides.slots);
  std::vector<TorchRow> host, device;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TorchRow& row = rows[i];
    const std::string& category = run.category_text(part, row);
    if ((category != "cpu_op" && category != "user_annotation" && !category.ends_with("_runtime")) || !within(row))
      continue;
    host.push_back(row);
    if (sides.slot[i] != RowSides::kNone) wanted[sides.slot[i]] = true;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    TorchRow& row = rows[i];
    const std::string& category = run.category_text(part, row);
    if (category != "kernel" && !category.starts_with("gpu_mem") && category != "mtia_ccp_events") continue;
    const bool launched = sides.slot[i] != RowSides::kNone && wanted[sides.slot[i]];
    if (!launched && (row.kernel != KernelClass::kMemory || !within(row))) continue;
    if (row.kernel == KernelClass::kMemory && row.stream == -1) {
      row.stream = parse_int(part.lanes[row.lane].tid).value_or(-1);
      row.on_device = row.stream != -1;
    }
    device.push_back(row);
  }
  device.insert(device.end(), host.begin(), host.end());
  rows = std::move(device);
}

// HTA looks in the text of the file for "rank":, a blank and a number; without it the rank is 0.
int32_t hta_rank_of(const Part& part) {
  if (part.rank_given) return part.rank;
  constexpr std::string_view kKey = "\"rank\":";
  for (const MetaField& field : part.metadata) {
    const std::string_view text = field.json;
    for (size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + 1)) {
      const size_t blank = at + kKey.size();
      const size_t begin = text.find_first_not_of(" \t", blank);
      if (begin == std::string_view::npos || begin == blank || !is_digit(text[begin])) continue;
      size_t end = begin;
      while (end < text.size() && is_digit(text[end])) ++end;
      if (const auto rank = parse_int(text.substr(begin, end - begin)); rank && *rank <= INT32_MAX)
        return static_cast<int32_t>(*rank);
    }
  }
  return 0;
}

}  // namespace

bool hta_gpu_side(const TorchRun& run, const TorchRow& row) {
  if (row.stream >= 0 && row.correlation >= 0) return true;
  const std::string_view name = run.name(row);
  return name == "Event Sync" || name == "Context Sync";
}

bool is_hta_row(const Trace& trace, const Slices& s, size_t i) {
  const CategoryInfo& category = trace.categories[s.category_id[i]];
  return !s.is_joined(i) && !category.text.empty() && category.kind != Category::kSpan;
}

double hta_raw_us(int64_t ns) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (ns > -kExact && ns < kExact) return ns / 1000.0;
  return static_cast<double>(ns / 1000.0L);
}

// HTA's own switch, which it reads once.
bool hta_keeps_fractions() {
  static const bool kept = [] {
    const char* value = std::getenv("HTA_DISABLE_NS_ROUNDING");
    return value && std::string_view(value) == "1";
  }();
  return kept;
}

void hta_round(const Part& part, int64_t& start_ns, int64_t& dur_ns) {
  if (!part.fractional_time || hta_keeps_fractions()) return;
  // Below 2^50 ns the three roundings of HTA's doubles are together less than a thousandth of a microsecond. They count
  // only where the end is a whole microsecond, which the sum of start and duration may miss.
  constexpr uint64_t kExact = uint64_t{1} << 50;
  if (static_cast<uint64_t>(start_ns) < kExact && static_cast<uint64_t>(dur_ns) < kExact &&
      (start_ns + dur_ns) % 1000 != 0) {
    const int64_t end_ns = (start_ns + dur_ns) / 1000 * 1000;
    start_ns = (start_ns + 999) / 1000 * 1000;
    dur_ns = end_ns - start_ns;
    return;
  }
  const double start = hta_raw_us(start_ns);
  const double end = std::floor(start + hta_raw_us(dur_ns));
  start_ns = static_cast<int64_t>(std::ceil(start)) * 1000;
  dur_ns = static_cast<int64_t>(end) * 1000 - start_ns;
}

std::vector<bool> hta_run_facts(TorchRun& run) {
  const Trace& trace = *run.trace;
  std::vector<bool> held(trace.parts.size());
  for (size_t p = 0; p < trace.parts.size(); ++p) run.ranks[p] = hta_rank_of(trace.parts[p]);
  run.hta_class.resize(trace.names.size());
  run.step_number.resize(trace.names.size());
  for (StringId id = 0; id < run.hta_class.size(); ++id) {
    const std::string_view name = trace.names.text(id);
    run.hta_class[id] = hta_kernel_class(name);
    run.step_number[id] = profiler_step_number(name);
  }
  run.zero_ns = INT64_MAX;
  run.device_type = "UNKNOWN GPU";
  bool mtia = false, nvidia = false, amd = false;
  std::vector<bool> seen(trace.names.size());  // HTA's symbols: the names of rows that its tables hold
  size_t first = 0;                            // the part with the lowest rank
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    const bool replaced = std::find(run.ranks.begin() + static_cast<std::ptrdiff_t>(p) + 1, run.ranks.end(),
                                    run.ranks[p]) != run.ranks.end();
    if (replaced) continue;
    const Part& part = trace.parts[p];
    const Slices& s = part.slices;
    int64_t first_ns = INT64_MAX, no_time = 0;
    for (size_t i = 0; i < s.size(); ++i) {
      if (!is_hta_row(trace, s, i)) continue;
      held[p] = true;
      seen[s.name_id[i]] = true;
      first_ns = std::min(first_ns, s.start_ns[i] - part.base_time_ns);
    }
    if (!held[p]) continue;
    hta_round(part, first_ns, no_time);
    run.zero_ns = std::min(run.zero_ns, first_ns);
    if (!held[first] || run.ranks[p] < run.ranks[first]) first = p;
  }
  if (first < held.size() && held[first])
    for (const MetaField& field : trace.parts[first].metadata)
      if (field.key == "distributedInfo") mtia |= field.json.find("mtia:hccl") != std::string::npos;
  if (run.zero_ns == INT64_MAX) run.zero_ns = 0;
  std::set<int64_t> steps;
  size_t step_symbols = 0;
  for (StringId id = 0; id < trace.names.size(); ++id) {
    if (!seen[id]) continue;
    const std::string_view name = trace.names.text(id);
    mtia |= name == "runFunction - job_prep_and_submit_for_execution";
    nvidia |= name == "cudaLaunchKernel";
    amd |= name == "hipLaunchKernel";
    if (!is_step_symbol(name)) continue;
    ++step_symbols;
    steps.insert(profiler_step_number(name));
  }
  if (mtia) run.device_type = "MTIA";
  else if (nvidia) run.device_type = "NVIDIA GPU";
  else if (amd) run.device_type = "AMD GPU";
  run.listed_steps.assign(steps.begin(), steps.end());
  run.drops_last_step = step_symbols >= 2;
  return held;
}

TorchRank hta_rank_rows(const TorchRun& run, size_t p) {
  const Trace& trace = *run.trace;
  const Part& part = trace.parts[p];
  const Slices& s = part.slices;
  TorchRank rank{.part = &part, .rank = run.ranks[p]};
  std::vector<uint32_t> slice_at(part.event_count, kNoSliceIndex);  // in file order
  std::vector<uint16_t> lane_of(s.size());
  for (size_t l = 0; l < part.lanes.size(); ++l)
    for (uint32_t i = part.lanes[l].begin; i < part.lanes[l].end; ++i) {
      lane_of[i] = static_cast<uint16_t>(std::min<size_t>(l, UINT16_MAX));
      if (is_hta_row(trace, s, i)) slice_at[s.file_index[i]] = i;
    }
  rank.rows.reserve(s.size());
  for (const uint32_t i : slice_at) {
    if (i == kNoSliceIndex) continue;
    TorchRow row{.start_ns = s.start_ns[i] - part.base_time_ns, .dur_ns = s.dur_ns[i]};
    hta_round(part, row.start_ns, row.dur_ns);
    row.start_ns -= run.zero_ns;
    row.correlation = s.correlation[i] == kNoCorrelation ? -1 : static_cast<int64_t>(s.correlation[i]);
    row.slice = i;
    row.index = s.file_index[i];
    row.name = s.name_id[i];
    row.stream = part.streams[s.stream_id[i]];
    row.lane = lane_of[i];
    row.category = trace.categories[s.category_id[i]].kind;
    row.kernel = run.hta_class[row.name];
    row.on_device = row.stream != -1;
    rank.rows.push_back(row);
  }
  const RowSides sides = sides_of(run, rank.rows);
  link_partners(rank.rows, sides);
  set_iterations(run, part, rank.rows);
  if (run.drops_last_step && run.device_type == "MTIA") keep_mtia_steps(run, part, rank.rows, sides);
  else if (run.drops_last_step) drop_last_step(run, rank.rows, sides);
  return rank;
}

void hta_index_rows(TorchRank& rank) {
  uint32_t max = max_over<uint32_t>(rank.rows, &TorchRow::index);
  rank.row_of_index.assign(rank.rows.empty() ? 0 : max + 1, -1);
  for (size_t i = rank.rows.size(); i-- > 0;) rank.row_of_index[rank.rows[i].index] = static_cast<int32_t>(i);
  for (TorchRow& row : rank.rows) row.partner = row.partner_index > 0 ? rank.row_at(row.partner_index) : -1;
}

}  // namespace stageline
