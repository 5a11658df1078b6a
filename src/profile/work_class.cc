#include "profile/work_class.h"

namespace stageline {
namespace {

struct WorkClass {
  std::string_view name;
  std::vector<std::string_view> words;
};

const WorkClass* class_by(std::string_view text) {
  static const std::vector<WorkClass> kClasses = {
#define WORK_CLASS(name, ...) {#name, {__VA_ARGS__}},
#include "profile/work_classes.def"
#undef WORK_CLASS
  };
  const std::string lower = to_lower(text);
  for (const WorkClass& one : kClasses)
    for (const std::string_view word : one.words)
      if (lower.find(word) != std::string::npos) return &one;
  return nullptr;
}

}  // namespace

std::string_view work_class(std::string_view kernel, std::string_view op) {
  const WorkClass* found = class_by(kernel);
  if (!found) found = class_by(op);
  return found ? found->name : "other";
}

}  // namespace stageline
