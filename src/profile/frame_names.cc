#include "profile/frame_names.h"

namespace stageline {

bool is_own_frame(std::string_view name) {
  const auto contains = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return contains(".py(") && !name.starts_with("torch/") && !contains("/torch/") && !contains("site-packages") &&
         !contains("dist-packages") && !contains("lib/python") && !name.starts_with("<frozen") &&
         !name.starts_with("threading.py") && !name.starts_with("contextlib.py");
}

std::string frame_line(std::string_view frame) {
  const size_t open = frame.find('('), close = frame.find("): ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  const size_t slash = frame.find_last_of("/\\", open);
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  return std::string(frame.substr(begin, open - begin)) + ":" + std::string(frame.substr(open + 1, close - open - 1));
}

std::string built_in_name(std::string_view name) {
  if (name.size() < 2 || name.front() != '<' || name.back() != '>') return std::string(name);
  name = name.substr(1, name.size() - 2);
  for (const std::string_view of : {"built-in function ", "built-in method "})
    if (name.starts_with(of)) return std::string(name.substr(of.size(), name.find(' ', of.size()) - of.size()));
  return std::string(name.substr(name.rfind(' ') + 1));
}

std::string name_with_line(const Trace& trace, const Part& part, uint32_t slice) {
  const Slices& s = part.slices;
  const std::string_view own = trace.names.text(s.name_id[slice]);
  std::string line;
  for (uint32_t at = slice; at != kNoSliceIndex && line.empty(); at = s.parent[at])
    if (const std::string_view frame = trace.names.text(s.name_id[at]); is_own_frame(frame)) line = frame_line(frame);
  const size_t function = own.find("): ");
  const std::string name = is_own_frame(own) && function != std::string_view::npos ? std::string(own.substr(function + 3))
                                                                                  : built_in_name(own);
  return line.empty() ? name : name + " (" + line + ")";
}

}  // namespace stageline
