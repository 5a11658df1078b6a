#include "engine/write_overlay.h"

namespace stageline {

Status write_overlay(const Trace&, const TraceOverlay&, const std::string& path) {
  return Error{ErrorCode::kUnavailable, "overlays are not written yet", {path}, ""};
}

}  // namespace stageline
