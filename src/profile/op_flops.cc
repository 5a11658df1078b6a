#include "profile/op_flops.h"

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

uint64_t times(uint64_t a, int64_t b) { return product_or_limit(a, b); }

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

constexpr int64_t kNoSize = -1;
// Reads the number that starts at `at` and moves past it. `value` is kNoSize if it is not a whole number of 64 bits,
// such as 1e300 or 1.5, so that its digits are not used as sizes. Returns false when no number starts here.
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
  while (at < end)
    if (read_number(at, end, value)) out.push_back(value);
    else ++at;
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
    const double kernel = weight[2 + d], step = stride[d];
    const double out = (input[2 + d] + 2 * static_cast<double>(padding[d]) - dilation[d] * (kernel - 1) - 1) / step + 1;
    if (!(out >= 1 && out < 9e15)) return 0;
    flops = times(flops, static_cast<int64_t>(out));
  }
  for (const int64_t factor : {input[0], weight[2], weight[3], input[1], weight[0]}) flops = times(flops, factor);
  return flops == UINT64_MAX ? flops : flops / groups[0];
}

// ---- what torch does not count -----------------------------------------------------------------------------------

using Shape = std::vector<int64_t>;

// Returns the bytes of one element; 0 for types that are unknown or do not belong to a tensor.
uint64_t bytes_of_type(std::string_view type) {
  static constexpr std::pair<std::string_view, uint64_t> kTypes[] = {
#define TYPE(name, bytes) {name, bytes},
#include "profile/element_bytes.def"
  };
  for (const auto& [name, bytes] : kTypes)
    if (name == type) return bytes;
  return 0;
}

uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

enum class Work : uint8_t { kNone, kListed, kLowPrecision, kGrouped, kConvolution, kConvolutionBackward, kAttention };

Work work_of(std::string_view name) {
  if (formula_of(name) != Formula::kNone) return Work::kListed;
  if (is_attention(name)) return Work::kAttention;
  if (!name.starts_with("aten::")) return Work::kNone;
  name = name.substr(6, name.find('.') - 6);
  if (name.ends_with("_v2")) name.remove_suffix(3);
  if (name == "_scaled_mm" || name == "_int_mm") return Work::kLowPrecision;
  if (name == "_grouped_mm" || name == "_scaled_grouped_mm") return Work::kGrouped;
  if (name == "convolution_backward") return Work::kConvolutionBackward;
  for (const std::string_view one :
       {"convolution", "_convolution", "cudnn_convolution", "miopen_convolution", "_slow_conv2d_forward"})
    if (name == one) return Work::kConvolution;
  return Work::kNone;
}

// Holds an operator's inputs, side by side.
struct Inputs {
  std::vector<Shape> shapes;
  std::vector<std::string_view> types, values;

  const Shape& shape(size_t i) const {
    static const Shape kNothing;
    return i < shapes.size() ? shapes[i] : kNothing;
  }
  std::string_view type(size_t i) const { return i < types.size() ? types[i] : std::string_view(); }
  std::string_view value(size_t i) const { return i < values.size() ? values[i] : std::string_view(); }
  bool is_true(size_t i) const { return value(i) == "True" || value(i) == "true" || value(i) == "1"; }
  bool says(size_t i) const { return !value(i).empty(); }
};

// The output of an operator, in elements, and the input whose type the output and the arithmetic have.
struct Outcome {
  uint64_t flops = 0, written = 0;
  size_t typed_by = 0;
  uint64_t max_flops = 0;      // 0: those that are counted
  uint64_t written_size = 0;   // bytes of an element of the output; 0: as the input's
  std::vector<size_t> unread;  // inputs that need not be read, or whose bytes do not follow from their shape
};

// Adds up the bytes of all inputs that are read; none where the size of an element is not known.
std::optional<uint64_t> input_bytes(const Inputs& in, const Outcome& out) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < in.shapes.size(); ++i) {
    if (std::ranges::find(out.unread, i) != out.unread.end()) continue;
    const uint64_t size = bytes_of_type(in.type(i));
    if (size == 0 && !in.shapes[i].empty()) return std::nullopt;
    bytes = plus(bytes, times(product_of(in.shapes[i]), size));
  }
  return bytes;
}

// Returns true for "0", "0." and "0.0".
bool is_zero(std::string_view number) {
  return number.find('0') != std::string_view::npos && number.find_first_not_of("0.") == std::string_view::npos;
}

// Returns the shape that both broadcast to; empty when they do not.
Shape broadcast(const Shape& a, const Shape& b) {
  Shape out = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& dim = out[out.size() - other.size() + d];
    if (dim == 1) dim = other[d];
    if (dim != other[d] && other[d] != 1) return {};
  }
  return out;
}

std::optional<Outcome> listed_outcome(const Inputs& in, std::string_view name, int64_t flops) {
  const Formula formula = formula_of(name);
  Outcome out{static_cast<uint64_t>(flops), 0, 0};
  if (flops <= 0 || flops == INT64_MAX) return std::nullopt;
  if (formula == Formula::kElements) {
    const Shape shape = in.shape(1).empty() ? in.shape(0) : broadcast(in.shape(0), in.shape(1));
    if (shape.empty() && !in.shape(0).empty()) return std::nullopt;
    out.flops = out.written = product_of(shape);
    return out;
  }
  if (formula == Formula::kConv2d) {
    const Shape& weight = in.shape(1);  // every element that is written costs what the weight of one channel has
    const uint64_t each = times(product_of({weight[1], weight[2], weight[3]}), 2);
    const std::vector<int64_t> groups = numbers_of(in.value(6));  // one number, or there were no FLOPs
    if (each == 0 || times(weight[1], groups[0]) != static_cast<uint64_t>(in.shape(0)[1])) return std::nullopt;
    out.written = out.flops / each;
    return out;
  }
  const bool batched = formula == Formula::kBmm || formula == Formula::kBaddBmm;
  if (formula == Formula::kAddMm || formula == Formula::kBaddBmm) {
    out.typed_by = 1;
    if (is_zero(in.value(3))) out.unread = {0};  // beta · input + …: torch does not read what is multiplied by 0
  }
  const Shape &a = in.shape(out.typed_by), &b = in.shape(out.typed_by + 1);
  const size_t dims = batched ? 3 : 2;
  if (a.size() != dims || b.size() != dims || a.back() != b[dims - 2] || (batched && a[0] != b[0])) return std::nullopt;
  out.written = times(times(batched ? static_cast<uint64_t>(a[0]) : 1, a[dims - 2]), b.back());
  return out;
}

// Arguments: convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
// cudnn_convolution(input, weight, padding, stride, dilation, groups); miopen_convolution has a bias before the
// padding; _slow_conv2d_forward(input, weight, kernel_size, bias, stride, padding); convolution_backward(grad_output,
// input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask).
std::optional<Outcome> convolution_outcome(const Inputs& in, std::string_view name) {
  const Shape &input = in.shape(0), &weight = in.shape(1);
  const bool slow = name.ends_with("_slow_conv2d_forward"), miopen = name.ends_with("miopen_convolution");
  const bool vendor = miopen || name.ends_with("cudnn_convolution");
  const size_t first = miopen ? 3 : 2;  // of a vendor's
  const std::vector<int64_t> stride = numbers_of(in.value(vendor ? first + 1 : slow ? 4 : 3));
  const std::vector<int64_t> padding = numbers_of(in.value(vendor ? first : slow ? 5 : 4));
  const std::vector<int64_t> dilation = slow ? Shape{1, 1} : numbers_of(in.value(vendor ? first + 2 : 5));
  const std::vector<int64_t> groups = slow ? Shape{1} : numbers_of(in.value(vendor ? first + 3 : 8));
  const std::vector<int64_t> more = numbers_of(in.value(7));
  const bool plain = vendor || slow;
  if (input.size() < 3 || input.size() != weight.size() || (!plain && !in.says(6))) return std::nullopt;
  const size_t space = input.size() - 2;
  if (stride.size() != space || padding.size() != space || dilation.size() != space || groups.size() != 1 ||
      groups[0] <= 0 || weight[1] <= 0)
    return std::nullopt;
  const bool transposed = !plain && in.is_true(6);
  // The channels of the input must be those of the weight.
  if (times(transposed ? 1 : groups[0], transposed ? weight[0] : weight[1]) != static_cast<uint64_t>(input[1]))
    return std::nullopt;
  if (transposed && more.size() != space) return std::nullopt;
  uint64_t places = 1;
  for (size_t d = 0; d < space; ++d) {
    constexpr int64_t kMaxSize = int64_t{1} << 30;  // beyond what any convolution has, so that nothing below overflows
    for (const int64_t size : {input[2 + d], weight[2 + d], stride[d], dilation[d]})
      if (size <= 0 || size > kMaxSize) return std::nullopt;
    if (padding[d] < 0 || padding[d] > kMaxSize) return std::nullopt;
    if (transposed && (more[d] < 0 || more[d] > kMaxSize)) return std::nullopt;
    const int64_t reach = dilation[d] * (weight[2 + d] - 1) + 1;
    const int64_t out = transposed ? (input[2 + d] - 1) * stride[d] - 2 * padding[d] + reach + more[d]
                                   : (input[2 + d] + 2 * padding[d] - reach) / stride[d] + 1;
    if (out <= 0 || (!transposed && input[2 + d] + 2 * padding[d] < reach)) return std::nullopt;
    places = times(places, out);
  }
  uint64_t multiplied = places;  // places at which the whole weight is applied
  if (transposed) {
    multiplied = 1;
    for (size_t d = 0; d < space; ++d) multiplied = times(multiplied, input[2 + d]);
  }
  Outcome out{.flops = times(product_of(weight), input[0])};
  if (multiplied > INT64_MAX) return std::nullopt;
  out.flops = times(times(out.flops, multiplied), 2);
  out.written = times(times(places, input[0]), transposed ? weight[1] : weight[0]);
  if (transposed) out.written = times(out.written, groups[0]);
  return out;
}

std::optional<Outcome> convolution_backward_outcome(const Inputs& in) {
  const Shape &grad = in.shape(0), &input = in.shape(1), &weight = in.shape(2);
  if (grad.size() < 3 || grad.size() != input.size() || grad.size() != weight.size() || !in.says(7) || !in.says(10))
    return std::nullopt;
  std::vector<bool> wanted;  // gradients of input, weight, bias
  for (size_t at = 0; at < in.value(10).size(); ++at)
    if (in.value(10).substr(at).starts_with("True") || in.value(10).substr(at).starts_with("true"))
      wanted.push_back(true);
    else if (in.value(10).substr(at).starts_with("False") || in.value(10).substr(at).starts_with("false"))
      wanted.push_back(false);
  if (wanted.size() != 3) return std::nullopt;
  const Shape& applied = in.is_true(7) ? input : grad;
  uint64_t once = times(product_of(weight), applied[0]);
  for (size_t d = 2; d < applied.size(); ++d) once = times(once, applied[d]);
  Outcome out;
  for (const bool one : {bool{wanted[0]}, bool{wanted[1]}})
    if (one) out.flops = plus(out.flops, times(once, 2));
  if (wanted[0]) out.written = plus(out.written, product_of(input));
  if (wanted[1]) out.written = plus(out.written, product_of(weight));
  if (wanted[2]) out.written = plus(out.written, static_cast<uint64_t>(std::max<int64_t>(grad[1], 0)));
  if (!wanted[1]) out.unread.push_back(1);  // the input's gradient needs the weight, the weight's needs the input
  if (!wanted[0]) out.unread.push_back(2);
  return out;
}

std::optional<Outcome> attention_outcome(const Inputs& in, std::string_view name) {
  const std::optional<AttentionWork> work = attention_work(name, in.shapes, in.values);
  if (!work) return std::nullopt;
  Outcome out{work->flops, work->written, work->query, work->max_flops};
  if (work->mask) out.unread = {*work->mask};
  return out;
}

// Returns the bytes of an element by the number that torch gives its type; 0: not known.
uint64_t bytes_of_scalar_type(std::string_view number) {
  return number == "6" || number == "3" ? 4 : number == "5" || number == "15" ? 2 : 0;
}

// Arguments: _scaled_mm(a, b, scale_a, scale_b, bias, scale_result, out_dtype), _int_mm(a, b).
std::optional<Outcome> low_precision_outcome(const Inputs& in, bool is_int) {
  const Shape &a = in.shape(0), &b = in.shape(1);
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) return std::nullopt;
  const int64_t in_one = in.type(0).find("Float4") == std::string_view::npos ? 1 : 2;  // values of an element
  Outcome out{.flops = times(times(times(2 * in_one, a[0]), a[1]), b[1]), .written = times(product_of({a[0]}), b[1])};
  out.written_size = is_int ? 4 : bytes_of_scalar_type(in.value(6));
  return out;
}

// [M, K] × [G, K, N] and [G, M, K] × [K, N]: the rows or columns of all groups one after another; [M, K] × [K, N]: a
// gradient of weights, whose inner dimension holds the groups; [G, M, K] × [G, K, N].
std::optional<Outcome> grouped_outcome(const Inputs& in) {
  const Shape &a = in.shape(0), &b = in.shape(1);
  if (a.size() < 2 || a.size() > 3 || b.size() < 2 || b.size() > 3 || a.back() != b[b.size() - 2]) return std::nullopt;
  const bool batch = a.size() == 3 && b.size() == 3;
  if (batch && a[0] != b[0]) return std::nullopt;
  const int64_t groups = batch ? a[0] : 1, rows = a[a.size() - 2], columns = b.back();
  const int64_t in_one = in.type(0).find("Float4") == std::string_view::npos ? 1 : 2;
  Outcome out{.flops = times(times(times(times(2 * in_one, groups), rows), a.back()), columns),
              .written = times(times(product_of({groups}), rows), columns)};
  // A gradient of weights is written once for each group; offsets have one number for each.
  if (a.size() == 2 && b.size() == 2 && in.shape(2).size() == 1) out.written = times(out.written, in.shape(2)[0]);
  if (in.type(0).find("Float8") != std::string_view::npos || in_one == 2) out.written_size = 2;
  return out;
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
  if (dims.starts_with('"')) return std::string(dims.substr(1, dims.size() - 2));  // of Ascend's kernels
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
  return std::min<uint64_t>(flops, INT64_MAX);
}

bool has_work_formula(std::string_view name) { return work_of(name) != Work::kNone; }

std::optional<OpWork> op_work(std::string_view name, std::string_view dims, std::string_view types,
                              std::string_view concrete) {
  const Work work = work_of(name);
  if (work == Work::kNone) return std::nullopt;
  const Inputs in{input_shapes(dims), strings_of(types), strings_of(concrete)};
  std::optional<Outcome> out;
  switch (work) {
    case Work::kListed: out = listed_outcome(in, name, op_flops(name, dims, types, concrete)); break;
    case Work::kLowPrecision: out = low_precision_outcome(in, name.find("_int_mm") != name.npos); break;
    case Work::kGrouped: out = grouped_outcome(in); break;
    case Work::kConvolution: out = convolution_outcome(in, name.substr(0, name.find('.'))); break;
    case Work::kConvolutionBackward: out = convolution_backward_outcome(in); break;
    case Work::kAttention: out = attention_outcome(in, name); break;
    case Work::kNone: break;
  }
  if (!out || out->flops == 0) return std::nullopt;
  const std::string_view type = in.type(out->typed_by);
  const uint64_t size = out->written_size > 0 ? out->written_size : bytes_of_type(type);
  const std::optional<uint64_t> read = input_bytes(in, *out);
  const uint64_t bytes = read && size > 0 ? plus(*read, times(out->written, size)) : UINT64_MAX;
  const uint64_t max = std::max(out->flops, out->max_flops);
  if (max > INT64_MAX) return std::nullopt;
  return OpWork{static_cast<int64_t>(out->flops), static_cast<int64_t>(max),
                bytes > INT64_MAX ? -1 : static_cast<int64_t>(bytes), type, formula_of(name) != Formula::kElements};
}

}  // namespace stageline
