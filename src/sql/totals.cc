#include "sql/totals.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/number.h"
#include "base/parallel.h"
#include "base/text.h"
#include "model/statistics.h"
#include "sql/run_tables.h"
#include "sql/slice_rows.h"

namespace stageline::sql {
namespace {

struct Sums {
  int64_t count = 0, total_ns = 0, self_ns = 0, min_ns = INT64_MAX, max_ns = INT64_MIN;
  void add(int64_t ns) {
    ++count;
    total_ns = sum_or_limit(total_ns, ns);
    self_ns = sum_or_limit(self_ns, ns);
    min_ns = std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
  }
  void merge(const Sums& other) {
    count += other.count;
    total_ns = sum_or_limit(total_ns, other.total_ns);
    self_ns = sum_or_limit(self_ns, other.self_ns);
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
  }
};

enum class By : uint8_t { kName, kOpName, kClass, kCategory, kRank, kStep, kStream, kStage, kKind };
constexpr std::pair<const char*, By> kBys[] = {
    {"name", By::kName},         {"op_name", By::kOpName}, {"class", By::kClass},
    {"category", By::kCategory}, {"rank", By::kRank},      {"step", By::kStep},
    {"stream", By::kStream},     {"stage", By::kStage},    {"kind", By::kKind}};

struct Asked {
  By by = By::kName;
  std::optional<int64_t> rank, step;
  std::optional<std::string> kernel_class, category;
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
};

// What one rank's slices add up to: by name and class (name · 8 + class), else by the value of a column.
using Groups = std::unordered_map<int64_t, Sums>;
constexpr int64_t kNoKey = INT64_MIN;

Groups sums_of_part(const RunData& data, size_t p, const Asked& asked) {
  const Trace& trace = data.trace();
  const Part& part = trace.parts[p];
  const Slices& s = part.slices;
  const std::vector<uint32_t>* const rows = data.chosen_rows(p);
  const bool facts = !s.category_id.empty();
  std::vector<uint8_t> categories(trace.categories.size(), 1);
  if (asked.category)
    for (size_t c = 0; c < categories.size(); ++c) categories[c] = trace.categories[c].text == *asked.category;
  // Waits for a device have a class of their own, and are no work of it.
  const auto kernel_class = [&](size_t i) { return data.is_device(p, i) ? s.class_of(i) : KernelClass::kNone; };
  const auto class_of = [&](size_t i) { return static_cast<int64_t>(kernel_class(i)); };
  const auto passes = [&](size_t i) {
    if (asked.category && (!facts || !categories[s.category_id[i]])) return false;
    if (asked.kernel_class && kernel_class_name(kernel_class(i)) != *asked.kernel_class) return false;
    if (asked.step && (s.step.empty() || s.step[i] == 0 || part.steps[s.step[i] - 1u].number != *asked.step))
      return false;
    if (asked.from_ns != INT64_MIN || asked.to_ns != INT64_MAX) {
      const int64_t at = data.time_ns(p, s.start_ns[i]);
      if (at < asked.from_ns || at >= asked.to_ns) return false;
    }
    return true;
  };
  const auto key_of = [&](size_t i) -> int64_t {
    switch (asked.by) {
      case By::kName: return s.name_id[i];
      case By::kOpName:
        if (s.parent.empty() || s.parent[i] == kNoSliceIndex || !data.is_device(p, i)) return kNoKey;
        return s.name_id[s.parent[i]];
      case By::kClass: return class_of(i);
      case By::kCategory: return facts ? s.category_id[i] : kNoKey;
      case By::kRank: return part.rank;
      case By::kStep: return s.step.empty() || s.step[i] == 0 ? kNoKey : part.steps[s.step[i] - 1u].number;
      case By::kStream: return s.stream_id.empty() || s.stream_id[i] == 0 ? kNoKey : part.streams[s.stream_id[i]];
      case By::kStage:
      case By::kKind: break;  // of cells
    }
    return kNoKey;
  };
  // Names are dense: an array access a slice. A name nearly always has one class.
  const bool by_name = asked.by == By::kName;
  std::vector<int32_t> place(by_name ? trace.names.size() : 0, -1);
  std::vector<std::pair<int64_t, Sums>> first;  // by place: key as of Groups
  Groups groups;
  const auto group = [&](size_t i) -> Sums& {
    if (!by_name) return groups[key_of(i)];
    const StringId name = s.name_id[i];
    const int64_t key = static_cast<int64_t>(name) * 8 + class_of(i);
    if (place[name] < 0) {
      place[name] = static_cast<int32_t>(first.size());
      first.push_back({key, {}});
    }
    auto& known = first[static_cast<size_t>(place[name])];
    return known.first == key ? known.second : groups[key];
  };
  const size_t count = rows ? rows->size() : s.size();
  size_t lane = 0;
  for (size_t r = 0; r < count; ++r) {
    const size_t i = rows ? (*rows)[r] : r;
    const int64_t dur = s.dur_ns[i];
    if (passes(i)) group(i).add(dur);
    if (s.parent.empty()) continue;
    // Its time is not its parent's own.
    const uint32_t parent = s.parent[i];
    if (parent == kNoSliceIndex || data.is_device(p, i)) continue;
    while (lane + 1 < part.lanes.size() && i >= part.lanes[lane].end) ++lane;
    if (parent < part.lanes[lane].begin || parent >= part.lanes[lane].end || !passes(parent)) continue;
    Sums& around = group(parent);
    around.self_ns = sum_or_limit(around.self_ns, -dur);
  }
  for (const auto& [key, sums] : first) groups.emplace(key, sums);
  return groups;
}

struct Total {
  int64_t key;
  KernelClass kernel_class;
  Sums sums;
};
// Cells nest in nothing: their time is their own.
std::vector<Total> totals_of_cells(const RunData& data, const Asked& asked) {
  const Trace& trace = data.trace();
  const Cells& cells = trace.cells;
  std::map<int64_t, Sums> all;
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto p = static_cast<size_t>(cells.part[i]);
    const Part& part = trace.parts[p];
    if ((asked.rank && part.rank != *asked.rank) || (asked.step && cells.step[i] != *asked.step)) continue;
    if (asked.from_ns != INT64_MIN || asked.to_ns != INT64_MAX) {
      const int64_t at = data.time_ns(p, cells.start_ns[i]);
      if (at < asked.from_ns || at >= asked.to_ns) continue;
    }
    const int64_t stage = part.stage == kUnknown ? kNoKey : part.stage;
    all[asked.by == By::kKind ? static_cast<int64_t>(cells.kind[i]) : stage].add(cells.dur_ns(i));
  }
  std::vector<Total> out;
  for (const auto& [key, sums] : all) out.push_back({key, KernelClass::kNone, sums});
  return out;
}

std::vector<Total> totals_of(const RunData& data, const Asked& asked) {
  const Trace& trace = data.trace();
  if (asked.by == By::kStage || asked.by == By::kKind) return totals_of_cells(data, asked);
  std::vector<size_t> parts;
  for (size_t p = 0; p < trace.parts.size(); ++p)
    if (data.has_part(p) && (!asked.rank || trace.parts[p].rank == *asked.rank)) parts.push_back(p);
  std::vector<Groups> made(parts.size());
  parallel_for(parts.size(), [&](size_t i) { made[i] = sums_of_part(data, parts[i], asked); });
  std::map<int64_t, Sums> all;
  for (const Groups& groups : made)
    for (const auto& [key, sums] : groups) all[key].merge(sums);
  std::vector<Total> out;
  for (const auto& [key, sums] : all) {
    if (sums.count == 0) continue;
    if (asked.by == By::kName)
      out.push_back({key / 8, static_cast<KernelClass>(key % 8), sums});
    else
      out.push_back({key, asked.by == By::kClass ? static_cast<KernelClass>(key) : KernelClass::kNone, sums});
  }
  return out;
}

// The key as SQL shows it: a text, or a number as text.
Table totals_table(const RunData& data, const Asked& asked) {
  using Type = ColumnType;
  Table table("totals", "Totals",
              {{"key", "key", Type::kText, "The value of the column that is added up by; empty: none."},
               {"class", "class", Type::kText, "By name and class: of device work its class; else empty."},
               {"count", "count", Type::kInteger, "How many slices."},
               {"total_ns", "total", Type::kDuration, "Sum of their durations."},
               {"self_ns", "self", Type::kDuration, "The same without what is nested in them."},
               {"min_ns", "shortest", Type::kDuration, "The shortest."},
               {"max_ns", "longest", Type::kDuration, "The longest."},
               {"mean_ns", "mean", Type::kReal, "total_ns / count."}});
  const Trace& trace = data.trace();
  for (const Total& t : totals_of(data, asked)) {
    std::string key;
    if (t.key != kNoKey) switch (asked.by) {
        case By::kName:
        case By::kOpName: key = trace.names.text(static_cast<StringId>(t.key)); break;
        case By::kClass: key = kernel_class_name(static_cast<KernelClass>(t.key)); break;
        case By::kKind: key = kind_code(static_cast<CellKind>(t.key)); break;
        case By::kCategory: key = trace.categories[static_cast<size_t>(t.key)].text; break;
        default: key = std::to_string(t.key);
      }
    table.add_row({key, std::string(kernel_class_name(t.kernel_class)), t.sums.count, t.sums.total_ns,
                   std::max<int64_t>(0, t.sums.self_ns), t.sums.min_ns, t.sums.max_ns,
                   share_of(t.sums.total_ns, t.sums.count)});
  }
  return table;
}

Table names_table(const RunData& data) {
  using Type = ColumnType;
  Table table("names", "Names",
              {{"name_id", "id", Type::kInteger, "Number of the name in this run."},
               {"name", "name", Type::kText, "As the source writes it."},
               {"count", "count", Type::kInteger, "Slices that bear it."},
               {"total_ns", "total", Type::kDuration, "Sum of their durations."},
               {"self_ns", "self", Type::kDuration, "The same without what is nested in them."},
               {"min_ns", "shortest", Type::kDuration, "The shortest."},
               {"max_ns", "longest", Type::kDuration, "The longest."}});
  std::map<int64_t, Sums> by_name;
  for (const Total& t : totals_of(data, {})) by_name[t.key].merge(t.sums);
  for (const auto& [name, sums] : by_name)
    table.add_row({name, std::string(data.trace().names.text(static_cast<StringId>(name))), sums.count, sums.total_ns,
                   std::max<int64_t>(0, sums.self_ns), sums.min_ns, sums.max_ns});
  return table;
}

Result<Asked> asked_of(const std::vector<Argument>& arguments) {
  Asked asked;
  std::vector<std::string> names;
  for (const auto& [name, by] : kBys) names.emplace_back(name);
  const std::string by = std::holds_alternative<std::monostate>(arguments[0]) ? "name" : argument_text(arguments[0]);
  const auto found = std::find(names.begin(), names.end(), by);
  if (found == names.end()) {
    const std::string near = nearest(by, names);
    return Error{ErrorCode::kUsage,
                 "totals() does not add up by \"" + by + "\"",
                 {},
                 near.empty()
                     ? "it does by name, op_name, class, category, rank, step, stream; of cells by stage and kind"
                     : "did you mean " + near + "?"};
  }
  asked.by = kBys[found - names.begin()].second;
  const auto number = [&](size_t i) -> std::optional<int64_t> {
    if (const auto* value = std::get_if<int64_t>(&arguments[i])) return *value;
    return parse_int(argument_text(arguments[i]));
  };
  for (const size_t i : {1, 2, 5, 6})
    if (!std::holds_alternative<std::monostate>(arguments[i]) && !number(i))
      return Error{
          ErrorCode::kUsage,
          "totals() takes whole numbers for ranks, steps and times, not \"" + argument_text(arguments[i]) + "\"",
          {},
          ""};
  const bool of_cells = asked.by == By::kStage || asked.by == By::kKind;
  for (const size_t i : {3, 4})
    if (of_cells && !std::holds_alternative<std::monostate>(arguments[i]))
      return Error{ErrorCode::kUsage,
                   "totals() by " + by + " adds up cells, which have neither class nor category",
                   {},
                   "leave out of_class and of_category"};
  asked.rank = number(1);
  asked.step = number(2);
  if (!std::holds_alternative<std::monostate>(arguments[3])) asked.kernel_class = argument_text(arguments[3]);
  if (!std::holds_alternative<std::monostate>(arguments[4])) asked.category = argument_text(arguments[4]);
  asked.from_ns = number(5).value_or(INT64_MIN);
  asked.to_ns = number(6).value_or(INT64_MAX);
  return asked;
}

std::vector<SqlColumn> with_options(std::vector<SqlColumn> columns, std::vector<SqlColumn> options) {
  for (SqlColumn& option : options) {
    option.is_option = true;
    columns.push_back(std::move(option));
  }
  return columns;
}

}  // namespace

void add_totals(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out) {
  static const Trace kEmpty;
  static const auto kNothing =
      std::make_shared<const RunData>(std::make_shared<const Run>(kEmpty), nullptr, std::vector<std::string>());
  out.push_back(std::make_shared<RowTable>(
      "totals",
      "totals(by, of_rank, of_step, of_class, of_category, from_ns, to_ns): sums of slices, or of cells, made "
      "natively.",
      with_options(columns_of(totals_table(*kNothing, {})),
                   {{"by", SqlType::kText, "",
                     "name (default), op_name, class, category, rank, step or stream; of pipeline cells "
                     "stage or kind."},
                    {"of_rank", SqlType::kInteger, "", "Only this rank."},
                    {"of_step", SqlType::kInteger, "", "Only this step."},
                    {"of_class", SqlType::kText, "", "Only this class."},
                    {"of_category", SqlType::kText, "", "Only this category."},
                    {"from_ns", SqlType::kInteger, "ns", "Only slices that start then or later."},
                    {"to_ns", SqlType::kInteger, "ns", "Only slices that start before."}}),
      [data](const std::vector<Argument>& arguments) -> RunData::Made {
        Result<Asked> asked = asked_of(arguments);
        if (!asked) return std::move(asked).error();
        return table_rows(totals_table(*data, *asked));
      }));
  out.push_back(made_once(data, "names", "Every name with its count and sums.", columns_of(names_table(*kNothing)),
                          [d = data.get()]() -> RunData::Made { return table_rows(names_table(*d)); }));
}

}  // namespace stageline::sql
