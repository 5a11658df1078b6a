// Counters that the profiler measured for each kernel, with the operators that launched it. Definitions:
// docs/analyses/cupti-counter-data-with-operators.md.
//
// CUPTI's ranges have no correlation. It runs one kernel at a time while it measures, so the n-th range of a device
// belongs to the n-th launch. Ascend's counters name their task, which is the kernel that starts then on its stream.
#include "analyses/analysis.h"
#include "analyses/cupti_counters/problems.h"
#include "base/error_words.h"
#include "base/json_events.h"
#include "base/sqlite_db.h"
#include "model/numpy_order.h"
#include "profile/event_text.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

using Names = std::set<std::string, std::less<>>;

struct Measured {
  TorchRow range, launch;
  bool has_launch = false;
  std::vector<std::pair<std::string_view, double>> counters;  // names in RankCounters::names
  std::vector<StringId> ops;                                  // outermost first
};
struct RankCounters {
  const Part* part = nullptr;
  std::vector<Measured> ranges;
  Names names;
  bool unequal = false;  // the numbers of launches and ranges differ, or there are no operators
};

// Returns the pairs of "name": number in the event's args.
std::vector<std::pair<std::string_view, double>> counters_of(std::string_view event, Names& names) {
  std::vector<std::pair<std::string_view, double>> out;
  const size_t key = event.rfind("\"args\"");
  size_t at = key == std::string_view::npos ? key : event.find('{', key);
  while (at != std::string_view::npos && at < event.size()) {
    const size_t open = event.find('"', at);
    if (open == std::string_view::npos) break;
    size_t close = open + 1;
    while (close < event.size() && event[close] != '"') close += event[close] == '\\' ? 2 : 1;
    const size_t value = event.find_first_not_of(" \t\r\n:", std::min(close + 1, event.size()));
    if (value == std::string_view::npos) break;
    const bool quoted = event[value] == '"';
    const size_t end = event.find_first_of(quoted ? "\"" : " \t\r\n,}", value + 1);
    if (end == std::string_view::npos) break;
    const std::string_view text = event.substr(value + (quoted ? 1 : 0), end - value - (quoted ? 1 : 0));
    if (const auto number = parse_double(text))
      out.emplace_back(*names.emplace(event.substr(open + 1, close - open - 1)).first, *number);
    if (event[end] == '}') break;
    at = end + 1;
  }
  return out;
}

// Reads the counters of all ranges in one pass over the part's files.
Status read_counters(RankCounters& own) {
  const Part& part = *own.part;
  std::map<int64_t, Measured*> wanted;  // by position
  for (Measured& m : own.ranges) wanted[part.slices.args_offset(m.range.slice)] = &m;
  for (const SourceRef& file : part.files) {
    TRY_OK(check_unchanged(file));
    TRY(input, Input::open(file.path));
    JsonEvents events(*input, JsonLayout::kTrace);
    for (;;) {
      Result<std::vector<JsonSpan>> spans = events.next();
      if (!spans || spans->empty()) break;
      for (const JsonSpan& span : *spans)
        if (const auto it = wanted.find(span.offset + file.first_offset); it != wanted.end())
          it->second->counters = counters_of(span.text, own.names);
    }
  }
  return {};
}

std::vector<int32_t> sorted_by_start(const TorchRank& rank, const std::vector<int32_t>& rows) {
  auto keys = mapped<int64_t>(rows, [&](const int32_t row) { return rank.rows[row].start_ns; });
  return mapped<int32_t>(numpy_order(keys), [&](const uint32_t at) { return rows[at]; });
}

// Returns the operators around the launch, outermost first.
std::vector<StringId> operators_of(const TorchRun& run, const Part& part, const TorchRow& launch) {
  const Slices& s = part.slices;
  std::vector<StringId> ops;
  for (uint32_t at = launch.slice; at != kNoSliceIndex; at = s.parent[at])
    if (run.trace->categories[s.category_id[at]].kind == Category::kCpuOp) ops.push_back(s.name_id[at]);
  std::ranges::reverse(ops);
  return ops;
}

RankCounters counters_of_rank(const TorchRun& run, size_t part, bool hta) {
  RankCounters out;
  const auto held = torch_rank(run, part);
  const TorchRank& rank = *held;
  out.part = rank.part;
  std::map<std::string_view, std::vector<int32_t>> ranges;  // for each device; with HTA all devices together
  std::vector<int32_t> launches;
  for (uint32_t i = 0; i < rank.rows.size(); ++i) {
    const TorchRow& row = rank.rows[i];
    const std::string_view name = run.name(row);
    if (row.category == Category::kProfilerRange)
      ranges[hta ? std::string_view() : rank.part->lanes[row.lane].pid].push_back(i);
    const bool is_call = hta ? run.category_text(*rank.part, row).starts_with("cuda_runtime")
                             : is_launch_call(row.category) && name.find("raphLaunch") == std::string_view::npos;
    if (is_call && (name.starts_with("cudaLaunchKernel") ||
                    (!hta && (name.starts_with("cuLaunchKernel") || name.find("LaunchKernel") != name.npos))))
      launches.push_back(i);
  }
  launches = sorted_by_start(rank, launches);
  for (auto& [device, own] : ranges) {
    own = sorted_by_start(rank, own);
    const bool paired = own.size() == launches.size();
    out.unequal |= !paired;
    for (size_t i = 0; i < own.size(); ++i) {
      Measured m;
      m.range = rank.rows[own[i]];
      if (paired) {
        m.has_launch = true;
        m.launch = rank.rows[launches[i]];
        m.ops = operators_of(run, *rank.part, m.launch);
      }
      out.ranges.push_back(std::move(m));
    }
  }
  return out;
}

// Reads TASK_PMU_INFO of an Ascend database: the counters of the cube (aic_) and vector (aiv_) units for each task.
Status read_task_counters(const TorchRun& run, const TorchRank& rank, RankCounters& own) {
  const Part& part = *own.part;
  Diagnostics notes;
  TRY(db, SqliteDb::open_read(part.source, notes));
  if (!db->has_table("TASK_PMU_INFO")) return {};
  std::map<std::pair<int64_t, int64_t>, int32_t> kernels;  // (stream, start) → row
  for (uint32_t i = 0; i < rank.rows.size(); ++i)
    if (const TorchRow& row = rank.rows[i]; row.category == Category::kKernel)
      kernels.try_emplace({row.stream, part.slices.start_ns[row.slice]}, i);
  std::map<int64_t, int32_t> tasks;  // of those kernels
  SqliteRows rows = rows_of(*db, "TASK", {"globalTaskId", "startNs", "streamId"});
  while (rows.next())
    if (const auto it = kernels.find({rows.integer(2), rows.integer(1)}); it != kernels.end())
      tasks.emplace(rows.integer(0), it->second);
  std::map<int32_t, std::vector<std::pair<int64_t, double>>> counted;  // by row: (name, value)
  std::set<int64_t> used;
  SqliteRows values = rows_of(*db, "TASK_PMU_INFO", {"globalTaskId", "name", "value"});
  while (values.next()) {
    const auto task = tasks.find(values.integer(0));
    if (task == tasks.end() || values.is_null(2)) continue;
    counted[task->second].emplace_back(*used.insert(values.integer(1)).first, values.real(2));
  }
  std::string ids;
  for (const int64_t id : used) append_item(ids, std::to_string(id));
  std::map<int64_t, std::string_view> names;
  SqliteRows texts(*db, "SELECT id, value FROM STRING_IDS WHERE id IN (" + ids + ")");
  while (texts.next()) names.emplace(texts.integer(0), *own.names.emplace(texts.text(1)).first);
  for (const auto& [row, counters] : counted) {
    Measured m;
    for (const auto& [id, value] : counters)
      if (const auto name = names.find(id); name != names.end()) m.counters.emplace_back(name->second, value);
    if (m.counters.empty()) continue;
    m.range = rank.rows[row];
    m.ops = operators_of(run, part, m.range);
    m.has_launch = m.range.partner >= 0;
    if (m.has_launch) m.launch = rank.rows[m.range.partner];
    own.ranges.push_back(std::move(m));
  }
  sort_stably(own.ranges, {}, [](const Measured& m) { return m.range.start_ns; });
  for (const SqliteRows* read : {&texts, &rows, &values}) TRY_OK(read->status());
  return {};
}

// Returns the names of all counters in the order in which they first occur.
std::vector<std::string> counter_names(const std::vector<RankCounters>& ranks) {
  std::vector<std::string> names;
  std::set<std::string_view> known;
  for (const RankCounters& rank : ranks)
    for (const Measured& m : rank.ranges)
      for (const auto& [name, value] : m.counters)
        if (known.insert(name).second) names.emplace_back(name);
  return names;
}

void append_counters(std::vector<Table::Value>& row, const Measured& m, const std::vector<std::string>& names,
                     double missing) {
  const std::map<std::string_view, double> own(m.counters.begin(), m.counters.end());
  for (const std::string& name : names) {
    const auto it = own.find(name);
    row.emplace_back(it == own.end() ? missing : it->second);
  }
}

// Formats names as Python prints a list of texts.
std::string python_list(const TorchRun& run, const std::vector<StringId>& ops) {
  std::string out = "[";
  for (const StringId op : ops) out += (out.size() > 1 ? ", '" : "'") + std::string(run.trace->names.text(op)) + "'";
  return out + "]";
}

constexpr int kHtaColumnsBefore = 10;  // HTA has the counters behind the columns of the event

Result<Table> hta_cupti_counters_table(const TorchRun& run, const std::vector<RankCounters>& ranks) {
  const std::vector<std::string> names = counter_names(ranks);
  TableSpec spec = declared_table("cupti-counter-data-with-operators/cupti-counter-data-with-operators/hta");
  std::vector<ColumnSpec> counters;
  for (const std::string& name : names) counters.push_back({name, name, ColumnType::kReal, ""});
  spec.columns.insert(spec.columns.begin() + kHtaColumnsBefore, counters.begin(), counters.end());
  Table table(std::move(spec));
  for (const RankCounters& own : ranks) {
    if (own.unequal) continue;
    for (const Measured& m : own.ranges) {
      if (m.ops.empty())
        return make_error(
            ErrorCode::kBadInput, "IndexError: list index out of range",
            "HTA fails on a launch outside every operator; without --compat hta its operators stay empty");
      const TorchRow& r = m.range;
      const Lane& lane = own.part->lanes[r.lane];
      std::vector<Table::Value> row({int64_t{own.part->rank}, int64_t{r.index}, run.category_text(*own.part, r),
                                     std::string(run.name(r)), lane.pid, lane.tid, to_us(r.start_ns), to_us(r.dur_ns),
                                     int64_t{r.stream}, r.correlation});
      append_counters(row, m, names, -1);
      row.insert(row.end(),
                 {r.partner_index, r.iteration == kNoIteration ? kNullInteger : int64_t{r.iteration}, to_us(r.end_ns()),
                  int64_t{m.launch.index}, python_list(run, m.ops), std::string(run.trace->names.text(m.ops.front())),
                  std::string(run.trace->names.text(m.ops.back()))});
      table.add_row(std::move(row));
    }
  }
  return table;
}

// Returns the floating-point operations according to NVIDIA's counters of executed instructions. A fused multiply-add
// counts as two.
double flops_of(const Measured& m) {
  double sum = NAN;
  for (const auto& [name, value] : m.counters) {
    if (!name.starts_with("smsp__sass_thread_inst_executed_op_") || !name.ends_with("_pred_on.sum")) continue;
    const std::string_view op = name.substr(35, name.size() - 35 - 12);
    const bool counted = op.size() == 4 && (op[0] == 'h' || op[0] == 'f' || op[0] == 'd') &&
                         (op.ends_with("add") || op.ends_with("mul") || op.ends_with("fma"));
    if (counted) sum = (std::isnan(sum) ? 0 : sum) + value * (op.ends_with("fma") ? 2 : 1);
  }
  return sum;
}

Table exact_cupti_counters_table(const TorchRun& run, const std::vector<RankCounters>& ranks) {
  const std::vector<std::string> names = counter_names(ranks);
  TableSpec spec = declared_table("cupti-counter-data-with-operators/cupti-counter-data-with-operators");
  for (const std::string& name : names)
    spec.columns.push_back({name, name, ColumnType::kReal, "The profiler's counter of that name"});
  Table table(std::move(spec));
  for (const RankCounters& own : ranks)
    for (const Measured& m : own.ranges) {
      const TorchRow& r = m.range;
      const auto text = [&](StringId id) { return std::string(run.trace->names.text(id)); };
      std::string stack;
      for (const StringId op : m.ops) append_item(stack, text(op), " > ");
      std::vector<Table::Value> row({int64_t{own.part->rank}, own.part->lanes[r.lane].pid, text(r.name), r.start_ns,
                                     r.dur_ns, m.has_launch ? text(m.launch.name) : std::string(), std::move(stack),
                                     m.ops.empty() ? std::string() : text(m.ops.front()),
                                     m.ops.empty() ? std::string() : text(m.ops.back()), flops_of(m)});
      append_counters(row, m, names, NAN);
      table.add_row(std::move(row));
    }
  return table;
}

}  // namespace

Result<AnalysisResult> run_cupti_counter_data_with_operators(const AnalysisInput& input) {
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  std::vector<RankCounters> ranks(torch->parts.size());
  std::vector<Status> read(ranks.size());
  parallel_for(ranks.size(), [&](size_t k) {
    ranks[k] = counters_of_rank(*torch, torch->parts[k], input.hta);
    if (!ranks[k].ranges.empty()) read[k] = read_counters(ranks[k]);
    else if (!input.hta && input.trace->format == "ascend" && ranks[k].part->source.ends_with(".db"))
      read[k] = read_task_counters(*torch, *torch_rank(*torch, torch->parts[k]), ranks[k]);
  });
  AnalysisResult result = answer_of(*torch);
  for (size_t k = 0; k < ranks.size(); ++k) {
    if (!read[k]) {
      if (input.hta || input.trace->format != "ascend") return std::move(read[k]).error();
      result.notes.add(problem::cupti_damaged, Args().set("why", error_text(read[k].error())), read[k].error().where);
    }
    if (ranks[k].unequal && !ranks[k].ranges.empty()) result.notes.add(problem::cupti_unequal);
  }
  if (!input.hta) return result.with(exact_cupti_counters_table(*torch, ranks));
  TRY(table, hta_cupti_counters_table(*torch, ranks));
  return result.with(std::move(*table));
}

}  // namespace stageline
