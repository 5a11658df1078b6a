// Computes which annotated range every piece of device work belongs to. Definitions:
// docs/analyses/gpu-kernels-with-user-annotations.md.
#include "analyses/gpu_kernels_with_user_annotations/hta_annotations.h"
#include "model/statistics.h"
#include "profile/range_index.h"

namespace stageline {
namespace {

struct Kernel {
  TorchRow row;
  uint32_t annotation = kNoSliceIndex;  // the innermost range, as a slice of the part
};

// The range around the launch on the launching thread decides, because Kineto makes the ranges of devices in the same
// way. For work without a launch, the device's own range that overlaps it decides.
std::vector<Kernel> exact_rank(const TorchRun& run, const TorchRank& rank) {
  const Part& part = *rank.part;
  const Slices& s = part.slices;
  const auto is_range =
      mapped<bool>(run.trace->categories, [](const CategoryInfo& c) { return c.kind == Category::kUserAnnotation; });
  std::vector<uint32_t> around(s.size(), kNoSliceIndex);
  for (const Lane& lane : part.lanes) {
    if (lane.kind == LaneKind::kDeviceStream) continue;
    for (size_t i = lane.begin; i < lane.end; ++i)  // a parent stands before the slices it encloses
      if (const uint32_t parent = s.parent[i]; parent != kNoSliceIndex && parent < i)
        around[i] = is_range[s.category_id[parent]] ? parent : around[parent];
  }
  std::vector<Kernel> kernels;
  for (size_t begin = 0, end = 0; begin < rank.rows.size(); begin = end) {
    std::vector<uint32_t> annotations;  // rows of this lane
    bool any = false;
    for (end = begin; end < rank.rows.size() && rank.rows[end].lane == rank.rows[begin].lane; ++end) {
      if (rank.rows[end].category == Category::kGpuAnnotation) annotations.push_back(static_cast<uint32_t>(end));
      any |= rank.rows[end].on_device;
    }
    if (!any) continue;
    sort_stably(annotations, std::greater(), [&](uint32_t a) { return rank.rows[a].dur_ns; });
    std::vector<Interval> ranges;
    for (const uint32_t i : annotations) ranges.push_back({rank.rows[i].start_ns, rank.rows[i].end_ns()});
    const RangeIndex index(ranges);
    for (size_t i = begin; i < end; ++i) {
      const TorchRow& row = rank.rows[i];
      if (!row.on_device) continue;
      Kernel kernel{.row = row};
      if (row.partner >= 0) kernel.annotation = around[rank.rows[row.partner].slice];
      else if (const int32_t found = index.last_touched(row.start_ns, row.end_ns()); found >= 0)
        kernel.annotation = rank.rows[annotations[found]].slice;
      kernels.push_back(kernel);
    }
  }
  return kernels;
}

Table exact_summary(const TorchRun& run, const std::vector<std::vector<Kernel>>& ranks) {
  Table table(declared_table("gpu-kernels-with-user-annotations/work-by-annotation"));
  struct Sum {
    std::string_view name;
    int64_t count = 0, ns = 0;
    ByEnum<KernelClass, int64_t, 5> by_class = {};
  };
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Part& part = run.trace->parts[run.parts[k]];
    std::vector<int32_t> place(run.trace->names.size() + 1, -1);
    std::vector<Sum> sums;
    int64_t whole = 0;
    for (const Kernel& kernel : ranks[k]) {
      const bool none = kernel.annotation == kNoSliceIndex;
      const size_t key = none ? place.size() - 1 : part.slices.name_id[kernel.annotation];
      if (place[key] < 0) {
        place[key] = static_cast<int32_t>(sums.size());
        sums.push_back(
            {none ? std::string_view("(no annotation)") : run.trace->names.text(static_cast<StringId>(key))});
      }
      Sum& sum = sums[place[key]];
      ++sum.count;
      sum.ns += kernel.row.dur_ns;
      sum.by_class[kernel.row.kernel] += kernel.row.dur_ns;
      whole += kernel.row.dur_ns;
    }
    std::ranges::sort(sums, [](const Sum& a, const Sum& b) { return a.ns != b.ns ? a.ns > b.ns : a.name < b.name; });
    const auto of = [](const Sum& sum, KernelClass c) { return sum.by_class[c]; };
    for (const Sum& sum : sums)
      table.add_row({int64_t{part.rank}, std::string(sum.name), sum.count, sum.ns, share_of(sum.ns, whole),
                     of(sum, KernelClass::kComputation), of(sum, KernelClass::kCommunication),
                     of(sum, KernelClass::kMemory)});
  }
  return table;
}

Table exact_gpu_kernels_with_user_annotations_table(const TorchRun& run, const std::vector<std::vector<Kernel>>& ranks,
                                                    const AnnotationOptions& options) {
  Table table(declared_table("gpu-kernels-with-user-annotations/kernels"));
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Part& part = run.trace->parts[run.parts[k]];
    const Slices& s = part.slices;
    std::unordered_map<uint32_t, std::string> paths;  // indexed by innermost range
    const auto text = [&](uint32_t slice) {
      return slice == kNoSliceIndex ? std::string() : std::string(run.trace->names.text(s.name_id[slice]));
    };
    const auto path = [&](uint32_t innermost) -> const std::string& {
      const auto [it, added] = paths.try_emplace(innermost);
      if (!added) return it->second;
      constexpr int kMaxNames = 64;  // ranges that are nested by the thousand would fill memory with their paths
      int names = 0;
      for (uint32_t at = innermost; at != kNoSliceIndex; at = s.parent[at]) {
        const Category c = run.trace->categories[s.category_id[at]].kind;
        if (at != innermost && c != Category::kUserAnnotation) continue;
        if (++names > kMaxNames) {
          it->second.insert(0, "… / ");
          break;
        }
        it->second = it->second.empty() ? text(at) : text(at) + " / " + it->second;
      }
      return it->second;
    };
    for (const Kernel& kernel : ranks[k]) {
      const TorchRow& row = kernel.row;
      const std::string_view name = run.name(row);
      table.add_row({int64_t{part.rank}, int64_t{row.index}, row.start_ns, row.dur_ns,
                     row.stream < 0 ? kNullInteger : row.stream, row.correlation < 0 ? kNullInteger : row.correlation,
                     std::string(kernel_class_name(row.kernel)),
                     options.shorten ? short_kernel_name(name) : std::string(name), text(kernel.annotation),
                     path(kernel.annotation)});
    }
  }
  return table;
}

}  // namespace

Result<AnalysisResult> run_gpu_kernels_with_user_annotations(const AnalysisInput& input) {
  AnnotationOptions options;
  TRY_OK(take(input.options.flag("expand-names", true), options.expand));
  TRY_OK(take(input.options.flag("shorten-names", input.hta), options.shorten));
  TRY(torch, make_torch_run(*input.trace, {input.hta, input.include_last_step, input.rows}));
  AnalysisResult result = answer_of(*torch);
  if (!input.hta) {
    const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return exact_rank(*torch, rank); });
    result.tables.push_back(exact_summary(*torch, ranks));
    if (!input.for_report)
      result.tables.push_back(exact_gpu_kernels_with_user_annotations_table(*torch, ranks, options));
    return result;
  }
  TRY(kernels, hta_annotated_kernels(*torch, options));
  return result.with(*std::move(kernels));
}

}  // namespace stageline
