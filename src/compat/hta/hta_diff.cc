#include "compat/hta/hta.h"

namespace stageline {
namespace {

struct Sums {
  int64_t count = 0, dur_ns = 0;
};
using SumsByName = std::map<std::string, Sums>;

Error hta_error(std::string what) {
  return make_error(ErrorCode::kBadInput, "ValueError: " + std::move(what), "without --compat hta this is not needed");
}

// Prints the argument as Python does: a number, or a list of numbers.
std::string python_argument(const std::vector<int32_t>& numbers) {
  if (numbers.size() == 1) return std::to_string(numbers[0]);
  std::string out = "[";
  for (const int32_t n : numbers) out += (out.size() > 1 ? ", " : "") + std::to_string(n);
  return out + "]";
}

// Returns sums by name for the given ranks and iterations; by default for the first of each.
Result<SumsByName> sums_of(const Trace& trace, const char* label, const std::vector<int32_t>& ranks,
                           const std::vector<int32_t>& steps, const DiffOptions& options) {
  TRY(run, make_torch_run(trace, {true, true}));
  run->drops_last_step = false;  // a comparison loads without alignment and without dropping a step
  for (StringId id = 0; id < trace.names.size(); ++id) {
    std::string name(trace.names.text(id));
    if (!name.starts_with("ProfilerStep")) continue;
    if (name.starts_with("ProfilerStep#")) name.erase(0, 13);
    if (!parse_int(name)) return hta_error("invalid literal for int() with base 10: '" + name + "'");
  }
  std::vector<size_t> parts;
  if (ranks.empty()) parts.push_back(run->parts.front());
  for (const int32_t rank : ranks) {
    const auto it = std::ranges::find_if(run->parts, [&](size_t p) { return trace.parts[p].rank == rank; });
    if (it == run->parts.end()) return hta_error("Invalid argument rank=" + python_argument(ranks) + ".");
    parts.push_back(*it);
  }
  const std::vector<int64_t>& listed = run->listed_steps;
  std::vector<int32_t> chosen = steps;
  if (chosen.empty()) {
    if (listed.empty()) return hta_error("Trace " + std::string(label) + " doesn't have any iteration.");
    chosen.push_back(static_cast<int32_t>(listed.front()));
  }
  for (const int32_t step : chosen)
    if (!std::ranges::binary_search(listed, step))
      return hta_error("Invalid argument iteration=" + python_argument(chosen) + ".");

  std::vector<Sums> by_name(trace.names.size());
  for (const size_t p : parts)
    for (const auto rank = torch_rank(*run, p); const TorchRow& row : rank->rows) {
      if (std::ranges::find(chosen, row.iteration) == chosen.end()) continue;
      if (options.side != DeviceSide::kAll && (options.side == DeviceSide::kHost) == (row.stream != -1)) continue;
      ++by_name[row.name].count;
      by_name[row.name].dur_ns += row.dur_ns;
    }
  SumsByName out;
  for (StringId id = 0; id < by_name.size(); ++id) {
    if (by_name[id].count == 0) continue;
    const std::string_view name = trace.names.text(id);
    Sums& own = out[options.short_names ? short_kernel_name(name) : std::string(name)];
    own.count += by_name[id].count;
    own.dur_ns += by_name[id].dur_ns;
  }
  return out;
}

}  // namespace

Result<std::vector<Table>> hta_trace_diff(const Trace& control_run, const Trace& test_run, const DiffOptions& options) {
  TRY(control, sums_of(control_run, "Control", options.control_ranks, options.control_steps, options));
  TRY(test, sums_of(test_run, "Test", options.test_ranks, options.test_steps, options));
  TableSpec compared_as = declared_table("trace-diff/compare-traces/hta");
  if (options.short_names) compared_as.columns[0].name = "short_name";
  Table compared(std::move(compared_as));
  // HTA's lists are by full name, whatever the comparison uses; without short names both are the same.
  std::map<std::string_view, std::vector<std::string>> lists;
  const auto add = [&](const std::string& name, const Sums& a, const Sums& b) {
    const int64_t diff = b.count - a.count;
    compared.add_row({name, a.count, to_us(a.dur_ns), b.count, to_us(b.dur_ns), diff, to_us(b.dur_ns) - to_us(a.dur_ns),
                      std::string(diff > 0   ? "+"
                                  : diff < 0 ? "-"
                                             : "=")});
  };
  const auto list = [&](const std::string& name, const Sums& a, const Sums& b) {
    const char* change = a.count == 0        ? "added"
                         : b.count == 0      ? "deleted"
                         : b.count > a.count ? "increased"
                         : b.count < a.count ? "decreased"
                                             : "unchanged";
    lists[change].push_back(name);
  };
  const auto each = [](const SumsByName& a, const SumsByName& b, const auto& body) {
    for (const auto& [name, sums] : a) body(name, sums, value_at(b, name));
    for (const auto& [name, sums] : b)
      if (!a.contains(name)) body(name, Sums{}, sums);
  };
  each(*control, *test, add);
  if (options.short_names) {
    DiffOptions full = options;
    full.short_names = false;
    control = sums_of(control_run, "Control", options.control_ranks, options.control_steps, full);
    if (!control) return std::move(control).error();
    test = sums_of(test_run, "Test", options.test_ranks, options.test_steps, full);
    if (!test) return std::move(test).error();
  }
  each(*control, *test, list);
  Table lists_table(declared_table("trace-diff/ops-diff/hta"));
  for (const char* change : {"added", "deleted", "increased", "decreased", "unchanged"})
    for (const std::string& name : lists[change]) lists_table.add_row({std::string(change), name});
  std::vector<Table> tables;
  tables.push_back(std::move(compared));
  tables.push_back(std::move(lists_table));
  return tables;
}

}  // namespace stageline
