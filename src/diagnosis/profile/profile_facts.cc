#include "diagnosis/profile/profile_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/statistics.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {

TableReader::TableReader(const std::vector<Table>& tables, std::string_view name) {
  for (const Table& table : tables)
    if (table.name() == name) {
      table_ = &table;
      return;
    }
}

int TableReader::column(size_t row, std::string_view name, Storage storage) const {
  if (!table_) return -1;
  const int c = table_->column_index(name);
  if (c < 0 || table_->is_null(row, static_cast<size_t>(c))) return -1;
  const ColumnType type = table_->columns()[c].type;
  const bool is_real = type == ColumnType::kReal || type == ColumnType::kShare || type == ColumnType::kRatio;
  const Storage own = type == ColumnType::kText ? kText : is_real ? kReal : kInteger;
  return own == storage ? c : -1;
}

int64_t TableReader::integer(size_t row, std::string_view name) const {
  const int c = column(row, name, kInteger);
  return c < 0 ? 0 : table_->integer(row, static_cast<size_t>(c));
}
double TableReader::real(size_t row, std::string_view name) const {
  const int c = column(row, name, kReal);
  return c < 0 ? 0 : table_->real(row, static_cast<size_t>(c));
}
std::string_view TableReader::text(size_t row, std::string_view name) const {
  const int c = column(row, name, kText);
  return c < 0 ? std::string_view() : std::string_view(table_->text(row, static_cast<size_t>(c)));
}

bool TableReader::has(size_t row, std::string_view name) const {
  const int c = table_ ? table_->column_index(name) : -1;
  return c >= 0 && !table_->is_null(row, static_cast<size_t>(c));
}

namespace {

double ns(const TableReader& table, size_t row, std::string_view column) {
  return static_cast<double>(table.integer(row, column));
}

RankFacts* rank_of(ProfileFacts& f, int64_t rank) {
  for (RankFacts& r : f.ranks)
    if (r.rank == rank) return &r;
  return nullptr;
}

void read_breakdown(const std::vector<Table>& tables, ProfileFacts& f) {
  const TableReader breakdown(tables, "temporal-breakdown");
  for (size_t i = 0; i < breakdown.row_count(); ++i) {
    RankFacts r;
    r.rank = static_cast<int32_t>(breakdown.integer(i, "rank"));
    r.span_ns = ns(breakdown, i, "span_ns");
    r.compute_ns = ns(breakdown, i, "compute_ns");
    r.exposed_comm_ns = ns(breakdown, i, "exposed_communication_ns");
    r.exposed_memory_ns = ns(breakdown, i, "exposed_memory_ns");
    r.idle_ns = ns(breakdown, i, "idle_ns");
    if (r.span_ns > 0) f.ranks.push_back(r);
  }
  const TableReader overlap(tables, "comm-comp-overlap");
  for (size_t i = 0; i < overlap.row_count(); ++i) {
    f.comm_overlap_ns += ns(overlap, i, "overlap_ns");
    if (RankFacts* r = rank_of(f, overlap.integer(i, "rank"))) r->comm_ns = ns(overlap, i, "communication_ns");
  }
  for (const RankFacts& r : f.ranks) {
    f.whole.span_ns += r.span_ns;
    f.whole.compute_ns += r.compute_ns;
    f.whole.exposed_comm_ns += r.exposed_comm_ns;
    f.whole.exposed_memory_ns += r.exposed_memory_ns;
    f.whole.idle_ns += r.idle_ns;
    f.whole.comm_ns += r.comm_ns;
  }
}

void read_idle(const std::vector<Table>& tables, ProfileFacts& f) {
  const TableReader idle(tables, "device-idle");
  f.idle_known = idle.row_count() > 0;
  for (size_t i = 0; i < idle.row_count(); ++i) {
    const std::string_view cause = idle.text(i, "cause");
    const auto rank = static_cast<int32_t>(idle.integer(i, "rank"));
    RankFacts* const own = rank_of(f, rank);
    if (!own) continue;
    IdleCause& sum = cause == "host_wait"     ? f.host_wait
                     : cause == "kernel_wait" ? f.kernel_wait
                     : cause == "other"       ? f.other
                                              : f.outside;
    sum.ns += ns(idle, i, "idle_ns");
    sum.count += idle.integer(i, "count");
    if (&sum == &f.host_wait) own->host_wait_ns += ns(idle, i, "idle_ns");
    if (ns(idle, i, "max_ns") <= sum.max_ns) continue;
    sum.max_ns = ns(idle, i, "max_ns");
    sum.max_rank = rank;
  }
  f.recorded_ns = f.whole.span_ns + f.outside.ns;
}

// Takes steps from the devices if they did anything. The host runs ahead and blocks, so its rows are alternately long
// and short even if the devices' steps are all alike.
void read_steps(const std::vector<Table>& tables, ProfileFacts& f) {
  const TableReader steps(tables, "profiler-steps");
  for (size_t i = 0; i < steps.row_count(); ++i) f.device_steps |= steps.has(i, "device_ns");
  std::set<int64_t> numbers;
  std::vector<double> durations;
  double first = 0, last = 0;
  for (size_t i = 0; i < steps.row_count(); ++i) {
    numbers.insert(steps.integer(i, "step"));
    const double start = ns(steps, i, "start_ns"), host = ns(steps, i, "dur_ns");
    first = i == 0 ? start : std::min(first, start);
    last = std::max(last, start + host);
    if (f.device_steps && !steps.has(i, "device_ns")) continue;
    durations.push_back(f.device_steps ? ns(steps, i, "device_ns") : host);
    if (durations.back() <= f.max_step_ns) continue;
    f.max_step_ns = durations.back();
    f.max_step = steps.integer(i, "step");
    f.max_step_rank = static_cast<int32_t>(steps.integer(i, "rank"));
  }
  f.step_count = numbers.size();
  f.host_steps_ns = last - first;
  f.median_step_ns = median_of(durations);
  for (const double d : durations) f.slow_steps += d >= kSlowStepRatio * f.median_step_ns;
  f.step_ns = mean_of(durations);
}

void read_launches(const std::vector<Table>& tables, ProfileFacts& f) {
  const TableReader outliers(tables, "outliers");
  for (size_t i = 0; i < outliers.row_count(); ++i) {
    f.launches += outliers.integer(i, "events");
    f.short_work += outliers.integer(i, "short_gpu_kernels");
    f.call_ns += ns(outliers, i, "call_ns");
  }
  const TableReader full(tables, "time-spent-blocked-on-full-queue");
  for (size_t i = 0; i < full.row_count(); ++i) {
    if (full.real(i, "full_share") <= f.full_queue_share) continue;
    f.full_queue_share = full.real(i, "full_share");
    f.full_queue_rank = static_cast<int32_t>(full.integer(i, "rank"));
  }
}

void read_stragglers(const std::vector<Table>& tables, ProfileFacts& f) {
  const TableReader ranks(tables, "potential-stragglers");
  f.stragglers_known = ranks.row_count() > 0;
  for (size_t i = 0; i < ranks.row_count(); ++i) {
    if (ns(ranks, i, "caused_wait_ns") <= f.caused_wait_ns) continue;
    f.caused_wait_ns = ns(ranks, i, "caused_wait_ns");
    f.straggler = static_cast<int32_t>(ranks.integer(i, "rank"));
    f.came_last = ranks.integer(i, "last_count");
    f.collectives = ranks.integer(i, "collective_count");
  }
}

void read_copies(const std::vector<Table>& tables, ProfileFacts& f) {
  const TableReader kernels(tables, "kernels");
  std::map<std::string_view, double> by_name;
  for (size_t i = 0; i < kernels.row_count(); ++i) {
    const std::string_view name = kernels.text(i, "name");
    if (kernels.text(i, "kernel_type") != "MEMORY" || name.find("Pageable") == std::string_view::npos) continue;
    by_name[name] += ns(kernels, i, "sum_ns");
    f.pageable_ns += ns(kernels, i, "sum_ns");
  }
  double most = 0;
  for (const auto& [name, sum] : by_name) {
    if (sum <= most) continue;
    most = sum;
    f.pageable_name = std::string(name);
  }
}

}  // namespace

ProfileFacts profile_facts(const std::vector<Table>& tables) {
  ProfileFacts f;
  read_breakdown(tables, f);
  read_idle(tables, f);
  read_steps(tables, f);
  read_launches(tables, f);
  read_stragglers(tables, f);
  read_copies(tables, f);
  for (const Table& table : tables)
    if (table.name() == "temporal-breakdown") f.splits_other = table.column_index("exposed_communication_ns") >= 0;
  const TableReader devices(tables, "devices");
  double first = 0, last = 0;
  for (size_t i = 0; i < devices.row_count(); ++i) {
    if (!f.ranks.empty() && !rank_of(f, devices.integer(i, "rank"))) continue;
    const double start = ns(devices, i, "start_ns"), end = ns(devices, i, "end_ns");
    first = first == 0 ? start : std::min(first, start);
    last = std::max(last, end);
  }
  f.window_ns = f.step_count > 0 ? f.host_steps_ns : last - first;
  if (f.ranks.empty()) return f;
  f.window_ns = 0;
  for (const RankFacts& r : f.ranks) f.window_ns = std::max(f.window_ns, r.span_ns);
  return f;
}

const IdleCause* main_idle_cause(const ProfileFacts& facts) {
  const IdleCause* top = &facts.host_wait;
  for (const IdleCause* cause : {&facts.kernel_wait, &facts.other})
    if (cause->ns > top->ns) top = cause;
  return facts.idle_known && top->count > 0 ? top : nullptr;
}

Text device_graphs(const ProfileFacts& facts) { return words("profile.graphs", Args().flag("npu", facts.npu)); }

}  // namespace stageline
