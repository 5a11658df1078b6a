#include "profile/op_flops.h"

#include <algorithm>
#include <charconv>

namespace stageline {
namespace {

enum class Formula : uint8_t { kNone, kMm, kAddMm, kBmm, kBaddBmm, kConv2d, kElements };

Formula formula_of(std::string_view name) {
  if (!name.starts_with("aten::")) return Formula::kNone;
  name.remove_prefix(6);
  name = name.substr(0, name.find('.'));  // an overload may follow the name: aten::add.Tensor
  if (name == "mm") return Formula::kMm;
  if (name == "addmm") return Formula::kAddMm;
  if (name == "bmm") return Formula::kBmm;
  if (name == "baddbmm") return Formula::kBaddBmm;
  if (name == "conv2d") return Formula::kConv2d;
  return name == "mul" || name == "add" ? Formula::kElements : Formula::kNone;
}

// Multiplies up to a ceiling, since shapes in damaged files may be anything.
uint64_t times(uint64_t a, int64_t b) {
  uint64_t product = 0;
  if (b < 0) return 0;
  return __builtin_mul_overflow(a, static_cast<uint64_t>(b), &product) ? UINT64_MAX : product;
}

uint64_t product_of(const std::vector<int64_t>& shape) {
  uint64_t product = 1;
  for (const int64_t dim : shape) product = times(product, dim);
  return product;
}

// Returns the texts of ["a", "", …]. Kineto does not escape quotes inside, and none occur.
std::vector<std::string_view> strings_of(std::string_view json) {
  std::vector<std::string_view> out;
  for (size_t at = json.find('"'); at != std::string_view::npos; at = json.find('"', at + 1)) {
    const size_t close = json.find('"', at + 1);
    if (close == std::string_view::npos) break;
    out.push_back(json.substr(at + 1, close - at - 1));
    at = close;
  }
  return out;
}

// Reads the number that starts at `at` and moves past it. `value` is kNoSize for what is no whole number of 64 bits,
// such as 1e300 or 1.5, so that its digits are not taken for sizes. Returns false when no number starts here.
constexpr int64_t kNoSize = -1;
bool read_number(const char*& at, const char* end, int64_t& value) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!is_digit(*at) && (*at != '-' || at + 1 == end || !is_digit(at[1]))) return false;
  const auto [next, error] = std::from_chars(at, end, value);
  const char* rest = next;
  while (rest < end && (is_digit(*rest) || std::string_view("+-.eE").find(*rest) != std::string_view::npos)) ++rest;
  if (error != std::errc() || rest != next) value = kNoSize;
  at = rest;
  return true;
}

// Parses "[2, 2]" or "1".
std::vector<int64_t> numbers_of(std::string_view text) {
  std::vector<int64_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  int64_t value = 0;
  while (at < end) {
    if (read_number(at, end, value)) {
      out.push_back(value);
    } else {
      ++at;
    }
  }
  return out;
}

uint64_t matrix_flops(const std::vector<int64_t>& a, const std::vector<int64_t>& b, bool batched) {
  if (a.empty() || b.empty() || a.back() <= 0 || (batched && (a.size() < 2 || a.front() <= 0))) return 0;
  uint64_t flops = 2;  // b repeats the last dimension of a and, when batched, its first
  for (size_t d = batched ? 1 : 0; d + 1 < a.size(); ++d) flops = times(flops, a[d]);
  for (const int64_t dim : b) flops = times(flops, dim);
  return flops;
}

// Arguments: aten::conv2d(input, weight, bias, stride, padding, dilation, groups).
uint64_t conv2d_flops(const std::vector<std::vector<int64_t>>& shapes, std::string_view concrete) {
  const std::vector<std::string_view> values = strings_of(concrete);
  if (shapes.size() < 2 || values.size() < 7 || shapes[0].size() != 4 || shapes[1].size() != 4) return 0;
  const std::vector<int64_t> stride = numbers_of(values[3]), padding = numbers_of(values[4]);
  const std::vector<int64_t> dilation = numbers_of(values[5]), groups = numbers_of(values[6]);
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2 || groups.size() != 1) return 0;
  if (stride[0] <= 0 || stride[1] <= 0 || groups[0] <= 0) return 0;
  const std::vector<int64_t>&input = shapes[0], &weight = shapes[1];
  uint64_t flops = 2;
  for (size_t d = 0; d < 2; ++d) {
    // Sizes of a real convolution are far below 2^53; beyond that the answer is unknown.
    const double kernel = static_cast<double>(weight[2 + d]), step = static_cast<double>(stride[d]);
    const double out = (static_cast<double>(input[2 + d]) + 2 * static_cast<double>(padding[d]) -
                        static_cast<double>(dilation[d]) * (kernel - 1) - 1) /
                           step +
                       1;
    if (!(out >= 1 && out < 9e15)) return 0;
    flops = times(flops, static_cast<int64_t>(out));
  }
  for (const int64_t factor : {input[0], weight[2], weight[3], input[1], weight[0]}) flops = times(flops, factor);
  return flops == UINT64_MAX ? flops : flops / static_cast<uint64_t>(groups[0]);
}

}  // namespace

std::vector<std::vector<int64_t>> input_shapes(std::string_view dims) {
  std::vector<std::vector<int64_t>> shapes;
  int depth = 0;
  const char* at = dims.data();
  const char* const end = at + dims.size();
  while (at < end) {
    if (*at == '[') {
      ++depth;
      if (depth == 2) shapes.emplace_back();
      if (depth == 3 && !shapes.empty()) shapes.back().clear();
    } else if (*at == ']') {
      --depth;
    } else if (depth == 2) {
      int64_t value = 0;
      if (read_number(at, end, value)) {
        shapes.back().push_back(value);
        continue;
      }
    }
    ++at;
  }
  return shapes;
}

std::string shapes_text(std::string_view dims) {
  std::string out = "[";
  for (const std::vector<int64_t>& shape : input_shapes(dims)) {
    out += out.size() > 1 ? ", [" : "[";
    for (size_t d = 0; d < shape.size(); ++d) out += (d > 0 ? ", " : "") + std::to_string(shape[d]);
    out += ']';
  }
  return out + "]";
}

bool has_flops_formula(std::string_view name) { return formula_of(name) != Formula::kNone; }

int64_t op_flops(std::string_view name, std::string_view dims, std::string_view types, std::string_view concrete) {
  const Formula formula = formula_of(name);
  if (formula == Formula::kNone) return 0;
  const std::vector<std::vector<int64_t>> shapes = input_shapes(dims);
  const size_t first = formula == Formula::kAddMm || formula == Formula::kBaddBmm ? 1 : 0;
  if (shapes.size() < first + (formula == Formula::kElements ? 1 : 2)) return 0;
  uint64_t flops = 0;
  if (formula == Formula::kElements) {
    const std::vector<std::string_view> kinds = strings_of(types);
    const bool tensor = kinds.empty() || (kinds[0] != "Scalar" && kinds[0] != "ScalarList" && !kinds[0].empty());
    flops = tensor ? product_of(shapes[0]) : 0;
  } else if (formula == Formula::kConv2d) {
    flops = conv2d_flops(shapes, concrete);
  } else {
    const bool batched = formula == Formula::kBmm || formula == Formula::kBaddBmm;
    flops = matrix_flops(shapes[first], shapes[first + 1], batched);
  }
  return static_cast<int64_t>(std::min<uint64_t>(flops, INT64_MAX));
}

}  // namespace stageline
