// Names of pipeline operations as the field's tools write them, and what they mean here. One
// vocabulary for every reader whose source carries such names.
#pragma once

#include <optional>
#include <string_view>

#include "model/cells.h"

namespace stageline {

// The kind of an operation type such as "forward-compute", "grads-reduce-scatter" or "wgrad", of
// a kind's code ("F", "B", "W") or of its name ("weight grad"). Letter case, '_' and ' ' for '-'
// do not matter. nullopt when the word is not known. Sources: ByteDance StragglerAnalysis,
// veScale ndtimeline (legacy), MegatronApp, our own exports.
//
// Operations that are two messages at once ("forward-send-backward-recv") are kOther: neither
// direction is the whole truth.
std::optional<CellKind> kind_of_op(std::string_view op_type);

// "F3", "B1", "F&B2", "F3.c1", "F3_VP1": what people call a cell.
struct CellLabel {
  CellKind kind;
  int32_t micro_batch;
  int32_t chunk = kUnknown;
};
std::optional<CellLabel> parse_cell_label(std::string_view label);

}  // namespace stageline
