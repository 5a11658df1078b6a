// Compares two runs operator by operator. Definitions: docs/analyses/trace-diff.md.
#include "analyses/analysis.h"
#include "analyses/trace_diff/problems.h"
#include "compat/hta/hta.h"
#include "model/statistics.h"
#include "profile/torch_view.h"
#include "profile/trace_diff_options.h"

namespace stageline {
namespace {

struct Sums {
  int64_t count = 0, self_ns = 0, total_ns = 0;
};

// Returns true for rows that are summed: work of the host and of the device, but not the spans that cover the same time
// again.
bool counts(Category c, DeviceSide side) {
  if (is_device_work(c)) return side != DeviceSide::kHost;
  return is_host(c) && side != DeviceSide::kDevice;
}

std::string_view category_name(Category c) {
  static constexpr auto kTexts = texts_by<Category::kSpan>(
      {"other", "cpu_op", "user_annotation", "python_function", "runtime", "driver", "overhead", "kernel", "memcpy",
       "memset", "other", "other", "other", "other", "other", "other", "other", "other"});
  return kTexts[c];
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Returns the name in a form in which names of two runs can be compared: addresses become "0x…", and the number of a
// profiler step is removed.
std::string cleaned(std::string_view name, bool shorten) {
  if (name.starts_with("ProfilerStep")) return "ProfilerStep";
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool starts = name.substr(i).starts_with("0x") && (i == 0 || !is_hex(name[i - 1]));
    size_t end = i + 2;
    while (starts && end < name.size() && is_hex(name[end])) ++end;
    if (starts && end - i >= 2 + 6) {  // shorter numbers are constants
      out += "0x…";
      i = end - 1;
    } else {
      out += name[i];
    }
  }
  return shorten ? short_kernel_name(out) : out;
}

using Key = std::pair<std::string, std::string_view>;  // cleaned name, category
struct Side {
  TorchRun run;
  std::vector<size_t> parts;
  std::vector<int64_t> steps;  // ascending; empty: everything counts
};

void choose_ranks(Side& a, Side& b, const DiffOptions& options, Diagnostics& notes) {
  const auto rank_at = [](const Side& side, size_t p) { return side.run.trace->parts[p].rank; };
  const auto named = [&](Side& side, const std::vector<int32_t>& ranks) {
    for (const size_t p : side.run.parts)
      if (std::ranges::find(ranks, rank_at(side, p)) != ranks.end()) side.parts.push_back(p);
  };
  named(a, options.control_ranks);
  named(b, options.test_ranks);
  if (options.control_ranks.empty() && options.test_ranks.empty()) {
    for (const size_t p : a.run.parts)
      for (const size_t q : b.run.parts)
        if (rank_at(a, p) == rank_at(b, q)) {
          a.parts.push_back(p);
          b.parts.push_back(q);
        }
    if (a.parts.size() < std::max(a.run.parts.size(), b.run.parts.size()))
      notes.add(problem::diff_ranks, Args().flag("apart", a.parts.empty()));
  }
  if (options.control_ranks.empty() && a.parts.empty()) a.parts.push_back(a.run.parts.front());
  if (options.test_ranks.empty() && b.parts.empty()) b.parts.push_back(b.run.parts.front());
}

std::vector<int64_t> steps_of(const Side& side, const std::vector<int32_t>& wanted) {
  std::vector<int64_t> out;
  for (const int64_t step : side.run.listed_steps)
    if (wanted.empty() || std::ranges::find(wanted, step) != wanted.end()) out.push_back(step);
  if (wanted.empty() && side.run.drops_last_step) out.pop_back();
  return out;
}

void choose_steps(Side& a, Side& b, const DiffOptions& options, Diagnostics& notes) {
  a.steps = steps_of(a, options.control_steps);
  b.steps = steps_of(b, options.test_steps);
  if (a.steps.empty() != b.steps.empty() && options.control_steps.empty() && options.test_steps.empty()) {
    a.steps.clear();
    b.steps.clear();
    notes.add(problem::diff_steps_one_side);
  }
  if (options.control_steps.empty() && options.test_steps.empty() && a.steps.size() != b.steps.size()) {
    const size_t both = std::min(a.steps.size(), b.steps.size());
    a.steps.resize(both);
    b.steps.resize(both);
    notes.add(problem::diff_steps, Args().set("both", std::to_string(both)));
  }
}

// Returns the sums of one rank for each name id and category.
std::map<std::pair<StringId, Category>, Sums> rank_sums(const Side& side, size_t p, DeviceSide devices) {
  const auto held = torch_rank(side.run, p);
  const TorchRank& rank = *held;
  const Slices& s = rank.part->slices;
  std::vector<int64_t> children(s.size());
  for (const TorchRow& row : rank.rows)
    if (is_host(row.category) && s.parent[row.slice] != kNoSliceIndex) children[s.parent[row.slice]] += row.dur_ns;
  std::map<std::pair<StringId, Category>, Sums> out;
  Sums* sums = nullptr;
  std::pair<StringId, Category> last{};
  for (const TorchRow& row : rank.rows) {
    if (!counts(row.category, devices)) continue;
    if (!side.steps.empty() && !std::ranges::binary_search(side.steps, int64_t{row.iteration})) continue;
    if (const std::pair own{row.name, row.category}; sums == nullptr || own != last) {
      sums = &out[own];
      last = own;
    }
    ++sums->count;
    sums->total_ns += row.dur_ns;
    sums->self_ns += is_host(row.category) ? row.dur_ns - children[row.slice] : row.dur_ns;
  }
  return out;
}

std::map<Key, Sums> side_sums(const Side& side, const DiffOptions& options) {
  std::vector<std::map<std::pair<StringId, Category>, Sums>> ranks(side.parts.size());
  parallel_for(ranks.size(), [&](size_t k) { ranks[k] = rank_sums(side, side.parts[k], options.side); });
  std::unordered_map<StringId, std::string> names;
  std::map<Key, Sums> out;
  for (const auto& rank : ranks)
    for (const auto& [key, own] : rank) {
      const auto [it, added] = names.try_emplace(key.first);
      if (added) it->second = cleaned(side.run.trace->names.text(key.first), options.short_names);
      Sums& sums = out[{it->second, category_name(key.second)}];
      sums.count += own.count;
      sums.self_ns += own.self_ns;
      sums.total_ns += own.total_ns;
    }
  return out;
}

struct Compared {
  Key key;
  Sums control, test;
  int64_t self_diff() const { return test.self_ns - control.self_ns; }
  const char* change() const {
    return control.count == 0           ? "added"
           : test.count == 0            ? "deleted"
           : test.count > control.count ? "increased"
           : test.count < control.count ? "decreased"
                                        : "unchanged";
  }
};

std::vector<Compared> joined(const std::map<Key, Sums>& control, const std::map<Key, Sums>& test) {
  std::vector<Compared> out;
  for (const auto& [key, sums] : control) out.push_back({key, sums, value_at(test, key)});
  for (const auto& [key, sums] : test)
    if (!control.contains(key)) out.push_back({key, {}, sums});
  sort_stably(out, [](const Compared& a, const Compared& b) {
    const int64_t x = std::llabs(a.self_diff()), y = std::llabs(b.self_diff());
    return x != y ? x > y : a.key < b.key;
  });
  return out;
}

Result<AnalysisResult> exact_trace_diff(const AnalysisInput& input, const DiffOptions& options) {
  Side control, test;
  for (const auto& [trace, side] : {std::pair{input.control, &control}, std::pair{input.test, &test}}) {
    Result<TorchRun> run = make_torch_run(*trace, {false, true});  // steps are chosen by number below
    if (!run) return std::move(run).error();
    side->run = std::move(*run);
    side->run.drops_last_step = !options.include_last_step && side->run.listed_steps.size() >= 2;
  }
  AnalysisResult result;
  choose_ranks(control, test, options, result.notes);
  choose_steps(control, test, options, result.notes);
  for (const Side* side : {&control, &test})
    if (side->parts.empty() ||
        (side->steps.empty() && !(side == &control ? options.control_steps : options.test_steps).empty()))
      return make_error(ErrorCode::kBadInput,
                        std::string("the ") + (side == &control ? "control" : "test") + " run has none of the " +
                            (side->parts.empty() ? "ranks" : "steps") + " asked for",
                        "stageline info lists what there is");
  for (Side* side : {&control, &test}) side->run.drops_last_step = false;
  const std::vector<Compared> all = joined(side_sums(control, options), side_sums(test, options));
  Table compared(declared_table("trace-diff/compare-traces"));
  for (const Compared& c : all)
    compared.add_row({c.key.first, std::string(c.key.second), c.control.count, c.test.count,
                      c.test.count - c.control.count, c.control.self_ns, c.test.self_ns, c.self_diff(),
                      share_of(c.test.self_ns, c.control.self_ns), c.control.total_ns, c.test.total_ns,
                      c.test.total_ns - c.control.total_ns});
  Table lists(declared_table("trace-diff/ops-diff"));
  for (const std::string_view change : {"added", "deleted", "increased", "decreased", "unchanged"})
    for (const Compared& c : all)
      if (c.change() == change)
        lists.add_row({std::string(change), c.key.first, std::string(c.key.second), c.control.count, c.test.count});
  return result.with(std::move(compared), std::move(lists));
}

}  // namespace

Result<AnalysisResult> run_trace_diff(const AnalysisInput& input) {
  DiffOptions options;
  for (const auto& [name, list] :
       {std::pair{"control-rank", &options.control_ranks}, std::pair{"test-rank", &options.test_ranks},
        std::pair{"control-iteration", &options.control_steps}, std::pair{"test-iteration", &options.test_steps}}) {
    TRY(numbers, input.options.numbers(name));
    *list = std::move(*numbers);
  }
  TRY_OK(take(input.options.flag("use-short-name", false), options.short_names));
  options.include_last_step = input.include_last_step;
  const std::string side = input.options.text("device-type", "ALL");
  options.side = side == "CPU" ? DeviceSide::kHost : side == "GPU" ? DeviceSide::kDevice : DeviceSide::kAll;
  if (!input.hta) return exact_trace_diff(input, options);
  TRY(tables, hta_trace_diff(*input.control, *input.test, options));
  AnalysisResult result;
  return result.with(std::move(*tables));
}

}  // namespace stageline
