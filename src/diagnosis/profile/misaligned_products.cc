// Finds matrix products of Ascend that take longer because their inner axes are not multiples of a line. They are
// compared with aligned products of their type whose work is nearest to the same power of two.
#include "diagnosis/profile/loss_search.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr int64_t kInnerAxis = 256;  // elements in a line of the cube cores, as msprof-analyze's advisor has it

struct Matrix {
  int64_t outer = 0, inner = 0;
};

struct Product {
  double multiplications = 0;
  bool is_aligned = true;
};

// Products of one type and about one size.
struct Products {
  std::vector<double> aligned, misaligned;       // ns for each multiplication
  std::vector<std::pair<size_t, double>> items;  // misaligned ones, with their multiplications
};
using ProductsBySize = std::map<std::pair<StringId, int64_t>, Products>;

// Returns the sizes of each tensor in "\"4,8;8,16\""; none where one is not a matrix.
std::vector<Matrix> matrices_of(std::string_view shapes) {
  std::vector<Matrix> out;
  std::string_view text = trim(shapes);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  for (const std::string_view tensor : split(text, ';')) {
    const std::vector<std::string_view> sizes = split(tensor, ',');
    if (sizes.size() != 2) return {};
    out.push_back({parse_int(sizes[0]).value_or(0), parse_int(sizes[1]).value_or(0)});
  }
  return out;
}

// Nothing where the two factors or the result are not matrices, or one of them has no elements.
std::optional<Product> product_of(std::string_view inputs, std::string_view outputs) {
  std::vector<Matrix> matrices = matrices_of(inputs);
  const std::vector<Matrix> results = matrices_of(outputs);
  if (matrices.size() < 2 || results.size() != 1) return std::nullopt;
  matrices.resize(2), matrices.push_back(results[0]);
  Product out;
  // (rows · inner) · (inner · columns) · (rows · columns) is the square of their number, whichever are transposed.
  double square = 1;
  for (const auto& [outer, inner] : matrices) {
    square *= static_cast<double>(outer) * static_cast<double>(inner);
    out.is_aligned &= inner % kInnerAxis == 0;
  }
  out.multiplications = std::sqrt(square);
  return square > 0 ? std::optional(out) : std::nullopt;
}

ProductsBySize products_by_size(const LossSearch& search) {
  const StringPool& names = search.trace.names;
  ProductsBySize all;
  for (size_t j = 0; j < search.timeline.device.size(); ++j) {
    const auto& item = search.timeline.device[j];
    const TaskFact* task = fact_of(search.part.tasks, item.slice);
    const InputFact* inputs = fact_of(search.part.inputs, item.slice);
    if (task == nullptr || inputs == nullptr || item.kernel != KernelClass::kComputation) continue;
    if (const std::string_view type = names.text(task->op_type);
        !type.starts_with("MatMul") && !type.starts_with("BatchMatMul"))
      continue;
    const std::optional<Product> product = product_of(names.text(inputs->dims), names.text(task->outputs));
    if (!product) continue;
    Products& like = all[{task->op_type, std::lround(std::log2(product->multiplications))}];
    (product->is_aligned ? like.aligned : like.misaligned)
        .push_back((item.end_ns - item.start_ns) / product->multiplications);
    if (!product->is_aligned) like.items.emplace_back(j, product->multiplications);
  }
  return all;
}

Culprit launcher_of(const DeviceTimeline::DeviceItem& item, LossSearch& search) {
  Culprit out = item.launch >= 0 ? search.culprits.of(search.timeline.host[item.launch].node) : Culprit();
  const Slices& slices = search.part.slices;
  const uint32_t op = slices.parent[item.slice];
  if (out.op.empty() && op != kNoSliceIndex) out.op = search.name(slices.name_id[op]);
  return out;
}

}  // namespace

void find_misaligned(LossSearch& search) {
  ShorterKernels kernels(search);
  for (auto& [key, products] : products_by_size(search)) {
    if (std::min(products.aligned.size(), products.misaligned.size()) < kMinLikeKernels) continue;
    const double usual = median_of(std::move(products.aligned));
    if (median_of(std::move(products.misaligned)) < kSlowedKernels * usual) continue;
    for (const auto& [j, multiplications] : products.items) {
      const auto& item = search.timeline.device[j];
      kernels.shorten(j, std::min<int64_t>(item.end_ns - item.start_ns, std::llround(usual * multiplications)));
    }
  }
  if (!(kernels.possible_ns > 0) || kernels.recorded_ns < search.min_loss_ns()) return;
  RankLoss x{.kind = LossKind::kMisaligned, .recorded_ns = kernels.recorded_ns, .longest_ns = kernels.max_saved_ns};
  if (x.longest_ns > 0) {
    const auto& worst = search.timeline.device[kernels.worst];
    x.what = search.name(fact_of(search.part.inputs, worst.slice)->dims);
    x.at = launcher_of(worst, search);
  }
  x.ratio = kernels.recorded_ns / kernels.possible_ns;
  search.add(std::move(x), kernels.out);
}

}  // namespace stageline
