// The parts of src/base that WebAssembly has otherwise: loops run in order, and of all sentences there are only
// those that say why an order cannot be simulated (cmake/wasm.cmake).
#include "base/parallel.h"

namespace stageline {

int thread_count() { return 1; }

void parallel_for(size_t count, const std::function<void(size_t)>& body) {
  for (size_t i = 0; i < count; ++i) body(i);
}

// As base/json_double.cc has it: the fewest digits that are read back as the same number, in the shorter of both forms.
// Rounding to n digits gives the nearest of all numbers of n digits, so the first n that reads back is the one.
std::string json_double(double value) {
  if (!std::isfinite(value)) return "null";
  char text[512];
  int digits = 0;
  do snprintf(text, sizeof text, "%.*e", digits++, value);
  while (digits < 17 && strtod(text, nullptr) != value);
  const std::string scientific(text);
  const int exponent = atoi(scientific.c_str() + scientific.find('e') + 1);
  snprintf(text, sizeof text, "%.*f", exponent < digits - 1 ? digits - 1 - exponent : 0, value);
  const std::string plain(text);
  return plain.size() <= scientific.size() ? plain : scientific;
}

}  // namespace stageline
