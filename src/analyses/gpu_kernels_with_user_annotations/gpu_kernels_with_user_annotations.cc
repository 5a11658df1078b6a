// Computes which annotated range every piece of device work belongs to. Definitions:
// docs/analyses/gpu-kernels-with-user-annotations.md.
#include "analyses/analysis.h"
#include "model/numpy_order.h"
#include "model/statistics.h"
#include "profile/range_index.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

struct Options {
  bool expand = true, shorten = true;
};

struct HtaKernel {
  TorchRow row;
  int64_t annotation = -1;  // id of the annotation's name
};

struct HtaRank {
  bool raises = false;
  std::vector<HtaKernel> kernels;
};

struct SpanHash {
  size_t operator()(const Interval& i) const {
    return std::hash<int64_t>()(i.start) * 0x9e3779b97f4a7c15U ^ std::hash<int64_t>()(i.end);
  }
};
struct SpanEqual {
  bool operator()(const Interval& a, const Interval& b) const { return a.start == b.start && a.end == b.end; }
};

// Takes annotations from long to short, process by process. Each gives its name to the kernels of its stream that it
// overlaps, so the shortest annotation wins. HTA identifies kernels by their interval, so kernels of any stream with
// the same start and end get the name too.
HtaRank hta_rank(const TorchRun& run, const TorchRank& rank) {
  HtaRank out;
  std::vector<TorchRow> annotations;
  for (const TorchRow& row : rank.rows) {
    if (run.category_text(*rank.part, row) == "gpu_user_annotation") annotations.push_back(row);
    if (hta_gpu_side(run, row)) out.kernels.push_back({row, -1});
  }
  if (annotations.empty()) {
    out.kernels.clear();
    return out;
  }
  const auto negative = [](const TorchRow& row) { return row.dur_ns < 0; };
  out.raises = std::ranges::any_of(annotations, negative) ||
               std::ranges::any_of(out.kernels, [&](const HtaKernel& k) { return negative(k.row); });
  if (out.raises) return out;
  // Pandas sorts in descending order by reversing the list, sorting it, and reversing the result.
  std::ranges::reverse(annotations);
  sort_as_numpy(annotations, &TorchRow::dur_ns);
  std::ranges::reverse(annotations);
  std::vector<uint16_t> lanes;  // in the order in which annotations first name them
  std::vector<std::vector<uint32_t>> annotations_of(rank.part->lanes.size()), kernels_of(rank.part->lanes.size());
  for (uint32_t i = 0; i < annotations.size(); ++i) {
    std::vector<uint32_t>& list = annotations_of[annotations[i].lane];
    if (list.empty()) lanes.push_back(annotations[i].lane);
    list.push_back(i);
  }
  for (uint32_t i = 0; i < out.kernels.size(); ++i) kernels_of[out.kernels[i].row.lane].push_back(i);
  std::unordered_map<Interval, StringId, SpanHash, SpanEqual> name_of_span;
  name_of_span.reserve(out.kernels.size());
  for (const uint16_t lane : lanes) {
    std::vector<Interval> ranges;
    for (const uint32_t i : annotations_of[lane]) ranges.push_back({annotations[i].start_ns, annotations[i].end_ns()});
    const RangeIndex index(ranges);
    for (const uint32_t i : kernels_of[lane]) {
      const TorchRow& kernel = out.kernels[i].row;
      const int32_t found = index.last_touched(kernel.start_ns, kernel.end_ns());
      if (found < 0) continue;
      const uint32_t annotation = annotations_of[lane][found];
      name_of_span[{kernel.start_ns, kernel.end_ns()}] = annotations[annotation].name;
    }
  }
  for (HtaKernel& kernel : out.kernels) {
    const auto it = name_of_span.find({kernel.row.start_ns, kernel.row.end_ns()});
    if (it != name_of_span.end()) kernel.annotation = it->second;
  }
  return out;
}

Table hta_gpu_kernels_with_user_annotations_table(const TorchRun& run, const std::vector<HtaRank>& ranks,
                                                  const Options& options) {
  Table table(declared_table("gpu-kernels-with-user-annotations/kernels", options.expand ? "hta-expanded" : "hta"));
  const auto text = [&](int64_t id) -> std::string {
    if (id < 0) return "";
    const std::string_view name = run.trace->names.text(static_cast<StringId>(id));
    return options.expand && options.shorten ? short_kernel_name(name) : std::string(name);
  };
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Part& part = run.trace->parts[run.parts[k]];
    const int64_t rank = run.ranks[run.parts[k]];
    for (const HtaKernel& kernel : ranks[k].kernels) {
      const TorchRow& row = kernel.row;
      std::vector<Table::Value> values({rank, int64_t{row.index}, to_us(row.start_ns), to_us(row.dur_ns), row.stream,
                                        row.correlation, row.partner_index, text(row.name), text(kernel.annotation)});
      if (options.expand) values.emplace_back(run.category_text(part, row));
      table.add_row(std::move(values));
    }
  }
  return table;
}

struct Kernel {
  TorchRow row;
  uint32_t annotation = kNoSliceIndex;  // the innermost range, as a slice of the part
};

// The range around the launch on the launching thread decides, because Kineto makes the ranges of devices in the same
// way. For work without a launch, the device's own range that overlaps it decides.
std::vector<Kernel> exact_rank(const TorchRun& run, const TorchRank& rank) {
  const Part& part = *rank.part;
  const Slices& s = part.slices;
  std::vector<bool> is_range;
  for (const CategoryInfo& c : run.trace->categories) is_range.push_back(c.kind == Category::kUserAnnotation);
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
                                                    const Options& options) {
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
  Options options;
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
  const auto ranks = ask_ranks(*torch, [&](const TorchRank& rank) { return hta_rank(*torch, rank); });
  for (size_t k = 0; k < ranks.size(); ++k)
    if (ranks[k].raises)
      return make_error(ErrorCode::kBadInput, "ValueError: left side of interval must be <= right side",
                        "HTA's rounding makes durations of -1 us (rank " +
                            std::to_string(torch->ranks[torch->parts[k]]) + "); without --compat hta times are exact");
  return result.with(hta_gpu_kernels_with_user_annotations_table(*torch, ranks, options));
}

}  // namespace stageline
