#include "readers/paddle_log/job_type.h"

#include "base/number.h"
#include "model/source_limits.h"

namespace stageline {

JobType job_type(std::string_view text) {
  JobType type;
  if (text == "optimizer") return {CellKind::kOptimizer, 0, false};
  if (text == "lr" || text == "default") return {CellKind::kOther, 0, false};
  if (text.ends_with("_reduce")) text.remove_suffix(7);
  if (const size_t open = text.find("(chunk"); open != std::string_view::npos) {
    const auto chunk = parse_int(text.substr(open + 6, text.size() - open - 7));
    type.chunk = chunk && *chunk <= kMaxChunkNumber ? static_cast<int32_t>(*chunk) : 0;
    text = text.substr(0, open);
  } else {
    size_t digits = text.size();
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
    const auto chunk = parse_int(text.substr(digits));
    if (chunk && *chunk <= kMaxChunkNumber) {
      type.chunk = static_cast<int32_t>(*chunk);
      text = text.substr(0, digits);
    }
  }
  struct Known {
    std::string_view name;
    CellKind kind;
  };
  constexpr Known known[] = {
      {"forward", CellKind::kForward},
      {"backward", CellKind::kBackward},
      {"backward_b", CellKind::kInputGrad},
      {"backward_w", CellKind::kWeightGrad},
      {"recv_forward", CellKind::kRecvForward},
      {"send_forward", CellKind::kSendForward},
      {"recv_backward", CellKind::kRecvBackward},
      {"send_backward", CellKind::kSendBackward},
  };
  for (const Known& k : known)
    if (text == k.name) {
      type.kind = k.kind;
      return type;
    }
  type.chunk = 0;
  return type;
}

}  // namespace stageline
