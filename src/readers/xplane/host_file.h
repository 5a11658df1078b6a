// One *.xplane.pb: what one host recorded of itself and its devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "model/trace.h"
#include "readers/common/relate_slices.h"

namespace stageline {
class Progress;
namespace xplane {

struct DevicePart {  // a device is a rank; where there is none, the host
  Part part;         // times since the epoch where the file says when it began; ids of `names`
  FileNames names;
  Diagnostics notes;
  int64_t device = -1;  // its number on the host; −1: there is none
};

struct HostFile {
  std::string path, host;
  std::string writer;  // "jax 0.10.2"; may be empty
  std::vector<DevicePart> parts;  // by device; what the host did stands in the first
  bool is_dated = false;
  int64_t shared_host = 0;  // devices besides the first
  Diagnostics notes;
};

Result<HostFile> read_host_file(const std::string& path, Progress* progress);

}  // namespace xplane
}  // namespace stageline
