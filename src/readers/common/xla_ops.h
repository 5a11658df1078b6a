// Classifies XLA's ops by the category that XProf gives them ("all-reduce", "copy-done") or, in a profile without it,
// by their names ("copy-done.3", "%all-reduce.1 = …").
#pragma once

#include <string_view>

namespace stageline {

inline std::string_view xla_opcode(std::string_view category, std::string_view name) {
  name = name.substr(name.starts_with('%') ? 1 : 0);
  return category.empty() ? name.substr(0, name.find_first_of(". =")) : category;
}

inline bool is_xla_collective(std::string_view category, std::string_view name) {
  const std::string_view op = xla_opcode(category, name);
  for (const std::string_view word :
       {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"})
    if (op.find(word) != std::string_view::npos) return true;
  for (const std::string_view word : {"send", "send-done", "recv", "recv-done"})
    if (op == word) return true;
  return false;
}

// Ops that start or await a transfer by the DMA engines (between memories, or with the host): nothing is computed in
// them. A plain "copy" is executed by the core.
inline bool is_xla_transfer(std::string_view category, std::string_view name) {
  const std::string_view op = xla_opcode(category, name);
  for (const std::string_view word : {"copy", "slice", "dynamic-slice", "dynamic-update-slice"})
    if (op.starts_with(word) && (op.substr(word.size()) == "-start" || op.substr(word.size()) == "-done")) return true;
  return op == "infeed" || op == "outfeed" || op.starts_with("host send") || op.starts_with("host recv");
}

}  // namespace stageline
