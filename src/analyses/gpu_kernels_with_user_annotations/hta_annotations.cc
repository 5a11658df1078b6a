#include "analyses/gpu_kernels_with_user_annotations/hta_annotations.h"

#include "model/numpy_order.h"
#include "profile/range_index.h"

namespace stageline {
namespace {

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

}  // namespace

Result<Table> hta_annotated_kernels(const TorchRun& run, const AnnotationOptions& options) {
  const auto ranks = ask_ranks(run, [&](const TorchRank& rank) { return hta_rank(run, rank); });
  for (size_t k = 0; k < ranks.size(); ++k)
    if (ranks[k].raises)
      return make_error(ErrorCode::kBadInput, "ValueError: left side of interval must be <= right side",
                        "HTA's rounding makes durations of -1 us (rank " + std::to_string(run.ranks[run.parts[k]]) +
                            "); without --compat hta times are exact");
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

}  // namespace stageline
