// Names of pipeline operations as the field's tools write them, and what they mean here. One
// vocabulary for every reader whose source carries such names.
#pragma once

#include <optional>
#include <string_view>

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

}  // namespace stageline
