// Computes which kinds of work kept the devices busy, alone and at the same time, and which kernels they were.
// Definitions: docs/analyses/gpu-kernel-breakdown.md.
#include "analyses/analysis.h"
#include "model/intervals.h"
#include "model/numpy_order.h"
#include "model/statistics.h"
#include "profile/name_totals.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr std::array kClasses = {KernelClass::kComputation, KernelClass::kCommunication, KernelClass::kMemory,
                                 KernelClass::kOther};
constexpr size_t kSets = size_t{1} << kClasses.size();

struct Options {
  FoldOptions fold;
  bool memory = true, hta = false;
  size_t class_count() const { return hta ? (memory ? 3 : 2) : kClasses.size(); }
  bool wants(size_t c) const { return c < class_count() && (memory || kClasses[c] != KernelClass::kMemory); }
};

using SetTimes = std::map<std::string, int64_t>;  // of each set of classes that ran at the same time, in ns

struct RankAnswer {
  int32_t rank = 0;
  SetTimes times;
  std::array<std::vector<DurationTotal>, kClasses.size()> names;
};

std::string set_name(size_t set) {
  std::string out;
  for (size_t c = 0; c < kClasses.size(); ++c)
    if (set >> c & 1) {
      if (!out.empty()) out += " overlapping ";
      out += kernel_class_name(kClasses[c]);
    }
  return out;
}

// Goes once over the borders of the classes' unions. HTA sorts them again with each class, and keeps sets that exist
// only between equal times.
SetTimes sweep(const std::array<std::vector<Interval>, kClasses.size()>& unions, const Options& options) {
  struct Border {
    int64_t at;
    int32_t change;
  };
  std::vector<Border> borders;
  for (size_t c = 0; c < options.class_count(); ++c) {
    for (const Interval& i : unions[c]) borders.push_back({i.start, int32_t{1} << c});
    for (const Interval& i : unions[c]) borders.push_back({i.end, -(int32_t{1} << c)});
    if (options.hta) sort_as_numpy(borders, &Border::at);
  }
  if (!options.hta) sort_stably(borders, {}, &Border::at);
  std::array<std::optional<int64_t>, kSets> times;
  int32_t running = 0;  // HTA's rounding makes intervals of negative length, for which the sum is temporarily not a set
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    running += borders[i].change;
    const int64_t length = borders[i + 1].at - borders[i].at;
    if (running > 0 && running < static_cast<int32_t>(kSets) && (length > 0 || options.hta))
      times[running] = times[running].value_or(0) + (options.hta ? length / 1000 * 1000 : length);
  }
  SetTimes named;
  for (size_t set = 1; set < kSets; ++set)
    if (times[set]) named.emplace(set_name(set), *times[set]);
  return named;
}

// Shortens "hcom_allReduce__377_4_1" to "hcom_allReduce". HCCL numbers each call, and a row for each call would be
// useless.
std::string shown_name(std::string_view name) {
  const size_t at = name.find("__");
  return std::string(name.starts_with("hcom_") && at != std::string_view::npos ? name.substr(0, at) : name);
}

// Maps names that differ only in their number to one of them, the first that occurred.
class NumberedNames {
 public:
  explicit NumberedNames(const StringPool& names) : names_(names), first_(names.size(), kUnasked) {}
  StringId first_of(StringId name) {
    if (first_[name] != kUnasked) return first_[name];
    const std::string_view text = names_.text(name);
    const std::string shown = shown_name(text);
    return first_[name] = shown.size() == text.size() ? name : of_.try_emplace(shown, name).first->second;
  }

 private:
  static constexpr StringId kUnasked = UINT32_MAX;
  const StringPool& names_;
  std::vector<StringId> first_;
  std::map<std::string, StringId> of_;
};

RankAnswer answer_for(const TorchRun& run, const TorchRank& rank, const Options& options) {
  RankAnswer answer;
  answer.rank = rank.rank;
  std::array<std::vector<Interval>, kClasses.size()> intervals;
  for (size_t c = 0; c < kClasses.size(); ++c) {
    if (!options.wants(c)) continue;
    NameTotals totals(run.trace->names.size());
    NumberedNames numbered(run.trace->names);
    for (const TorchRow& row : rank.rows) {
      if (!row.on_device || row.kernel != kClasses[c]) continue;
      intervals[c].push_back({row.start_ns, row.end_ns()});
      totals.add(options.hta ? row.name : numbered.first_of(row.name), row.dur_ns);
    }
    intervals[c] = union_of(std::move(intervals[c]));
    answer.names[c] = totals.sorted(run.trace->names);
  }
  answer.times = sweep(intervals, options);
  return answer;
}

std::vector<std::pair<std::string, int64_t>> by_time(const SetTimes& times) {
  std::vector<std::pair<std::string, int64_t>> sets(times.begin(), times.end());
  sort_stably(sets, std::ranges::greater{}, [](const auto& set) { return set.second; });
  return sets;
}

SetTimes sum_of_ranks(const std::vector<RankAnswer>& ranks) {
  SetTimes sum;
  for (const RankAnswer& answer : ranks)
    for (const auto& [set, ns] : answer.times) sum[set] += ns;
  return sum;
}

int64_t total_of(const SetTimes& times) {
  return sum_over<int64_t>(times, [&](const auto& entry) { return entry.second; });
}

Table hta_types(const std::vector<RankAnswer>& ranks) {
  Table table(declared_table("gpu-kernel-breakdown/kernel-types/hta"));
  const auto sum = sum_of_ranks(ranks);
  const int64_t total = total_of(sum);
  for (const auto& [set, ns] : by_time(sum)) table.add_row({set, ns / 1000, round_to(100 * share_of(ns, total), 1)});
  return table;
}

Table hta_kernels(const TorchRun& run, const std::vector<RankAnswer>& ranks, const Options& options) {
  Table table(declared_table("gpu-kernel-breakdown/kernels/hta"));
  struct Line {
    HtaTotal total;
    std::string_view type;
    int32_t rank;
  };
  std::vector<Line> lines;
  for (const RankAnswer& answer : ranks)
    for (size_t c = 0; c < options.class_count(); ++c)
      for (const HtaTotal& total : hta_fold(answer.names[c], run.trace->names, options.fold))
        lines.push_back({total, kernel_class_name(kClasses[c]), answer.rank});
  sort_stably(lines, {}, [](const Line& a) { return std::tie(a.type, a.total.name, a.rank); });
  for (const Line& line : lines)
    table.add_row({std::string(line.total.name), line.total.sum, line.total.max, line.total.min, line.total.std,
                   line.total.mean, std::string(line.type), int64_t{line.rank}});
  return table;
}

Table exact_types(const std::vector<RankAnswer>& ranks) {
  Table table(declared_table("gpu-kernel-breakdown/kernel-types"));
  const auto sum = sum_of_ranks(ranks);
  const int64_t total = total_of(sum);
  for (const auto& [set, ns] : by_time(sum)) table.add_row({set, ns, share_of(ns, total)});
  return table;
}

Table exact_types_by_rank(const std::vector<RankAnswer>& ranks) {
  Table table(declared_table("gpu-kernel-breakdown/kernel-types-by-rank"));
  for (const RankAnswer& answer : ranks)
    for (const auto& [set, ns] : by_time(answer.times))
      table.add_row({int64_t{answer.rank}, set, ns, share_of(ns, total_of(answer.times))});
  return table;
}

Table exact_kernels(const TorchRun& run, const std::vector<RankAnswer>& ranks, const Options& options) {
  Table table(declared_table("gpu-kernel-breakdown/kernels"));
  for (const RankAnswer& answer : ranks)
    for (size_t c = 0; c < kClasses.size(); ++c) {
      int64_t whole = 0;
      for (const DurationTotal& total : answer.names[c]) whole += total.stats.sum_ns;
      for (const DurationTotal& total : fold_by_share(answer.names[c], run.trace->names, options.fold)) {
        const DurationStats& s = total.stats;
        std::string name = total.folded > 0 ? "others (" + std::to_string(total.folded) + ")"
                                            : shown_name(run.trace->names.text(total.name));
        table.add_row({int64_t{answer.rank}, std::string(kernel_class_name(kClasses[c])), std::move(name), s.count,
                       s.sum_ns, share_of(s.sum_ns, whole), std::llround(s.mean_ns), std::llround(s.std_ns()), s.min_ns,
                       s.max_ns});
      }
    }
  return table;
}

Result<Options> options_of(const AnalysisInput& input) {
  Options options;
  options.hta = input.hta;
  TRY_OK(take(input.options.integer("num-kernels", 10, 0), options.fold.max_names));
  TRY_OK(take(input.options.share("duration-ratio", 0.8), options.fold.share));
  TRY_OK(take(input.options.flag("include-memory-kernels", true), options.memory));
  return options;
}

}  // namespace

Result<AnalysisResult> run_gpu_kernel_breakdown(const AnalysisInput& input) {
  TRY(options, options_of(input));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return answer_for(*torch, rank, *options); });
  AnalysisResult result = answer_of(*torch);
  if (input.hta) result.add(hta_types(ranks), hta_kernels(*torch, ranks, *options));
  else result.add(exact_types(ranks), exact_kernels(*torch, ranks, *options), exact_types_by_rank(ranks));
  return result;
}

}  // namespace stageline
