#include "plan/search.h"

namespace stageline::plan {

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> list = {
#define FRAMEWORK(...) {__VA_ARGS__},
#include "plan/frameworks.def"
  };
  return list;
}

const Framework* find_framework(std::string_view name) { return first_with(frameworks(), name, &Framework::name); }

}  // namespace stageline::plan
