#include "profile/expert_products.h"

namespace stageline {
namespace {

// Returns the sizes of each input, for example {{1536, 2048}, {2, 2048, 8192}}.
std::vector<std::vector<int64_t>> sizes_of(std::string_view shapes) {
  std::vector<std::vector<int64_t>> out(1);
  for (size_t i = 0; i < shapes.size();) {
    const char c = shapes[i];
    if (c == ';' || c == ']') out.emplace_back();
    const size_t end = shapes.find_first_not_of("0123456789", i);
    const size_t digits = std::min(end, shapes.size()) - i;
    if (const auto size = digits > 0 ? parse_int(shapes.substr(i, digits)) : std::nullopt) out.back().push_back(*size);
    i += std::max<size_t>(digits, 1);
  }
  return out;
}

// Returns true for slices that a node of autograd's engine is, or holds.
bool in_backward(const Trace& trace, const Slices& slices, uint32_t slice) {
  for (; slice != kNoSliceIndex; slice = slices.parent[slice])
    if (trace.names.text(slices.name_id[slice]).starts_with("autograd::engine::evaluate_function")) return true;
  return false;
}

}  // namespace

std::vector<bool> grouped_names(const StringPool& names) {
  std::vector<bool> out(names.size());
  for (StringId id = 0; id < names.size(); ++id) {
    const std::string_view name = names.text(id);
    out[id] = name == "GroupedMatmul" || name.find("grouped_mm") != name.npos ||
              name.find("GroupedGemm") != name.npos || name.find("grouped_gemm") != name.npos;
  }
  return out;
}

std::optional<int64_t> tokens_of(std::string_view shapes) {
  int64_t tokens = 0;
  for (const std::vector<int64_t>& sizes : sizes_of(shapes)) {
    if (sizes.size() == 3) return tokens;
    if (sizes.size() == 2) tokens += sizes[0];
  }
  return std::nullopt;
}

std::vector<ExpertProduct> expert_products(const TorchRun& run, const TorchRank& rank,
                                           const std::vector<bool>& grouped) {
  const Part& part = *rank.part;
  std::map<uint32_t, size_t> product_of;  // slice with the shapes → product
  std::vector<ExpertProduct> out;
  for (const TorchRow& row : rank.rows) {
    if (!row.on_device || row.kernel != KernelClass::kComputation) continue;
    const uint32_t owner = part.slices.parent[row.slice];
    const TaskFact* task = fact_of(part.tasks, row.slice);
    const bool by_kernel = task && grouped[task->op_type];
    if (!by_kernel && (owner == kNoSliceIndex || !grouped[part.slices.name_id[owner]])) continue;
    const uint32_t shaped = by_kernel ? row.slice : owner;
    const InputFact* inputs = fact_of(part.inputs, shaped);
    const auto tokens = inputs ? tokens_of(run.trace->names.text(inputs->dims)) : std::nullopt;
    if (!tokens) continue;
    const auto [at, fresh] = product_of.emplace(shaped, out.size());
    if (fresh)
      out.push_back({row.iteration, in_backward(*run.trace, part.slices, owner), *tokens, row.start_ns, 0, {}});
    out[at->second].start_ns = std::min(out[at->second].start_ns, row.start_ns);
    out[at->second].kernel_ns += row.dur_ns;
    out[at->second].kernels.push_back(row.slice);
  }
  sort_stably(out, {}, &ExpertProduct::start_ns);
  return out;
}

}  // namespace stageline
