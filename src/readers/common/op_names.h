// Names of pipeline operations as the field's tools write them, and what they mean here. One
// vocabulary for every reader whose source carries such names.
#pragma once

#include "model/cells.h"

namespace stageline {

// Returns the kind of an operation type such as "forward-compute", "grads-reduce-scatter" or "wgrad", of a kind's code
// ("F", "B", "W"), or of a kind's name ("weight grad"). Letter case does not matter, and '_' and ' ' count as '-'.
// nullopt when the word is not known. Sources: ByteDance StragglerAnalysis, veScale ndtimeline (legacy), MegatronApp,
// our own exports.
//
// Operations that are two messages at once ("forward-send-backward-recv") are kOther, since neither direction alone
// would be true.
std::optional<CellKind> kind_of_op(std::string_view op_type);

// A parsed name of a cell: "F3", "B1", "F&B2", "F3.c1", "F3_VP1".
struct CellLabel {
  CellKind kind;
  int32_t micro_batch;
  int32_t chunk = kUnknown;
};
std::optional<CellLabel> parse_cell_label(std::string_view label);

// Removes the duration that our own exports write into names, "F3 (8.05 ms)": it does not belong to the name.
std::string_view without_duration(std::string_view name);

// Classifies XLA's ops by the category that XProf gives them ("all-reduce", "copy-done") or, in a profile without it,
// by their names ("copy-done.3", "%all-reduce.1 = …").
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
