// Where the time of annotated ranges went. Definitions: docs/analyses/gpu-user-annotation-breakdown.md.
#include "analyses/analysis.h"
#include "model/statistics.h"
#include "profile/name_totals.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

struct Options {
  FoldOptions fold;
  bool gpu = true, hta = false;
};

struct RankAnswer {
  int32_t rank = 0;
  std::vector<DurationTotal> names;
  std::vector<int64_t> busy_ns;  // for each name id: the device work within its ranges
};

// The work of one device stream; computes the part of it that is within a range.
class LaneWork {
 public:
  LaneWork(const TorchRank& rank, size_t begin, size_t end) {
    int64_t sum = 0, reached = INT64_MIN;
    for (size_t i = begin; i < end; ++i) {
      const TorchRow& row = rank.rows[i];
      if (!row.on_device || row.end_ns() <= reached) continue;
      const int64_t start = std::max(row.start_ns, reached);
      start_.push_back(start);
      end_.push_back(row.end_ns());
      before_.push_back(sum);
      sum += row.end_ns() - start;
      reached = row.end_ns();
    }
  }
  int64_t until(int64_t time) const {  // returns the busy time before `time`
    const size_t after = std::ranges::upper_bound(start_, time) - start_.begin();
    if (after == 0) return 0;
    return before_[after - 1] + std::min(time, end_[after - 1]) - start_[after - 1];
  }

 private:
  std::vector<int64_t> start_, end_, before_;
};

RankAnswer answer_for(const TorchRun& run, const TorchRank& rank, const std::vector<bool>& wanted,
                      const Options& options) {
  RankAnswer answer;
  answer.rank = rank.rank;
  NameTotals totals(run.trace->names.size());
  for (const TorchRow& row : rank.rows)
    if (wanted[rank.part->slices.category_id[row.slice]]) totals.add(row.name, row.dur_ns);
  answer.names = totals.sorted(run.trace->names);
  if (options.hta || !options.gpu) return answer;
  answer.busy_ns.assign(run.trace->names.size(), 0);
  // Rows are sorted by lane, and within a lane by start.
  for (size_t begin = 0, end = 0; begin < rank.rows.size(); begin = end) {
    bool any = false;
    for (end = begin; end < rank.rows.size() && rank.rows[end].lane == rank.rows[begin].lane; ++end)
      any |= wanted[rank.part->slices.category_id[rank.rows[end].slice]];
    if (!any) continue;
    const LaneWork work(rank, begin, end);
    for (size_t i = begin; i < end; ++i) {
      const TorchRow& row = rank.rows[i];
      if (wanted[rank.part->slices.category_id[row.slice]])
        answer.busy_ns[row.name] += work.until(row.end_ns()) - work.until(row.start_ns);
    }
  }
  return answer;
}

Table hta_gpu_user_annotation_breakdown_table(const TorchRun& run, const std::vector<RankAnswer>& ranks,
                                              const Options& options) {
  Table table(declared_table("gpu-user-annotation-breakdown/annotations/hta"));
  for (const RankAnswer& answer : ranks) {
    std::vector<HtaTotal> lines = hta_fold(answer.names, run.trace->names, options.fold);
    sort_stably(lines, {}, &HtaTotal::name);
    for (const HtaTotal& t : lines)
      table.add_row({std::string(t.name), t.sum, t.max, t.min, t.std, t.mean, int64_t{answer.rank}});
  }
  return table;
}

Table exact_gpu_user_annotation_breakdown_table(const TorchRun& run, const std::vector<RankAnswer>& ranks,
                                                const Options& options) {
  Table table(declared_table("gpu-user-annotation-breakdown/annotations", options.gpu ? "" : "host"));
  for (const RankAnswer& answer : ranks) {
    int64_t whole = sum_over<int64_t>(answer.names, [&](const DurationTotal& total) { return total.stats.sum_ns; });
    const std::vector<DurationTotal> shown = fold_by_share(answer.names, run.trace->names, options.fold);
    int64_t busy_left = sum_over<int64_t>(answer.busy_ns);
    for (const DurationTotal& total : shown) {
      const DurationStats& s = total.stats;
      std::string name = total.folded > 0 ? "others (" + std::to_string(total.folded) + ")"
                                          : std::string(run.trace->names.text(total.name));
      int64_t busy = kNullInteger;
      if (!answer.busy_ns.empty()) {
        busy = total.folded > 0 ? busy_left : answer.busy_ns[total.name];
        busy_left -= busy;
      }
      table.add_row({int64_t{answer.rank}, std::move(name), s.count, s.sum_ns, share_of(s.sum_ns, whole), busy,
                     std::llround(s.mean_ns), std::llround(s.std_ns()), s.min_ns, s.max_ns});
    }
  }
  return table;
}

Result<Options> options_of(const AnalysisInput& input) {
  Options options;
  options.hta = input.hta;
  TRY_OK(take(input.options.flag("use-gpu-annotation", true), options.gpu));
  TRY_OK(take(input.options.integer("num-kernels", 1000, 0), options.fold.max_names));
  // Without --compat, --duration-ratio is a share of the time. Its default is all, because 1000 names are few enough to
  // show.
  TRY_OK(take(input.options.share("duration-ratio", input.hta ? 0.8 : 1.0), options.fold.share));
  options.fold.keep = input.options.list("allowlist-patterns");
  return options;
}

}  // namespace

Result<AnalysisResult> run_gpu_user_annotation_breakdown(const AnalysisInput& input) {
  TRY(options, options_of(input));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  std::vector<bool> wanted;
  for (const CategoryInfo& c : input.trace->categories)
    wanted.push_back(input.hta ? c.text == (options->gpu ? "gpu_user_annotation" : "user_annotation")
                               : c.kind == (options->gpu ? Category::kGpuAnnotation : Category::kUserAnnotation));
  const auto ranks =
      ask_ranks(*torch, [&](const TorchRank& rank) { return answer_for(*torch, rank, wanted, *options); });
  AnalysisResult result = answer_of(*torch);
  return result.with(input.hta ? hta_gpu_user_annotation_breakdown_table(*torch, ranks, *options)
                               : exact_gpu_user_annotation_breakdown_table(*torch, ranks, *options));
}

}  // namespace stageline
