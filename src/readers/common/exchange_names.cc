#include "readers/common/exchange_names.h"

#include <string>

#include "base/text.h"
#include "model/slice_facts.h"

namespace stageline {

bool is_exchange_annotation(std::string_view name) {
  return (name.starts_with("dispatch(") || name.starts_with("combine(")) && name.size() < 16 && name.back() == ')';
}

bool is_exchange_kernel(std::string_view name) {
  const std::string function = to_lower(short_kernel_name(name));
  for (const std::string_view word : {"dispatch", "combine", "notify", "all_to_all", "alltoall", "a2a"})
    if (function.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace stageline
