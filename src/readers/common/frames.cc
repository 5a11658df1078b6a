#include "readers/common/frames.h"

namespace stageline {

std::string stack_text(Value frames) {
  constexpr size_t kMaxFrames = 128;
  std::string text;
  for (size_t i = 0; i < std::min(frames.size(), kMaxFrames); ++i) {
    const Value frame = frames.item(i);
    const std::string_view file = frame["filename"].text(), name = frame["name"].text();
    if (file.empty() && name.empty()) continue;
    // Stacks of C++ begin with the functions that took the stack.
    if (text.empty() && (name.starts_with("torch::unwind::") || name.starts_with("torch::CapturedTraceback::") ||
                         name.find("gather_with_cpp(") != std::string_view::npos))
      continue;
    if (!text.empty()) text += ";";
    // In stacks of torch's profiler the name contains the place, and the file is "none".
    if (file == "none") text += name;
    else
      text += std::string(file) + "(" + std::to_string(frame["line"].integer().value_or(0)) + "): " + std::string(name);
  }
  return valid_utf8(text);
}

}  // namespace stageline
