#include "plan/search.h"

namespace stageline::plan {
namespace {

std::string stage_text(int32_t layers) {
  return layers < 3 ? std::string(static_cast<size_t>(layers), 't') : "t*" + std::to_string(layers);
}

}  // namespace

std::string write_megatron_layout(const std::vector<int32_t>& layers, int32_t mtp) {
  const size_t count = layers.size();
  // The longest run of equal stages without E and L is written once.
  size_t best = 0, length = 0;
  for (size_t from = 1; from + 1 < count;) {
    size_t to = from;
    while (to + 1 < count && layers[to] == layers[from]) ++to;
    if (to - from > length) best = from, length = to - from;
    from = std::max(to, from + 1);
  }
  std::string text = "E";
  for (size_t s = 0; s < count; ++s) {
    if (length >= 3 && s == best) {
      text += "(" + stage_text(layers[s]) + "|)*" + std::to_string(length);
      s += length - 1;
      continue;
    }
    text += stage_text(layers[s]);
    if (s + 1 < count) text += '|';
  }
  return text + std::string(static_cast<size_t>(mtp), 'm') + "L";
}

std::vector<int32_t> torchtitan_default(int32_t stages, int32_t layers, int32_t first_less, int32_t last_less) {
  std::vector<int32_t> out = even_layers(int64_t{layers} + first_less + last_less, stages);
  out.front() -= first_less;
  out.back() -= last_less;
  return out;
}

}  // namespace stageline::plan
