#include "engine/write_overlay.h"

#include "exporters/overlay_file.h"

namespace stageline {

Status write_overlay(const Trace& trace, const TraceOverlay& overlay, const std::string& path) {
  return write_overlay_file(trace, overlay, path);
}

}  // namespace stageline
