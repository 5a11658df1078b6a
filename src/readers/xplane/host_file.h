// Reads one *.xplane.pb: what one host recorded of itself and its devices.
#pragma once

#include "readers/common/relate_slices.h"

namespace stageline {
class Progress;
namespace xplane {

struct DevicePart {  // each device is a rank; without devices the host is one
  Part part;         // with ids of `names`; times count from the epoch if the file says when it began
  FileNames names;
  Diagnostics notes;
  int64_t device = -1;  // the device's number on the host; −1 when there is none
};

struct HostFile {
  std::string path, host;
  std::string writer;             // "jax 0.10.2"; may be empty
  std::vector<DevicePart> parts;  // in order of devices; the host's own work is in the first
  bool is_dated = false;
  int64_t shared_host = 0;  // number of devices besides the first
  Diagnostics notes;
};

Result<HostFile> read_host_file(const std::string& path, Progress* progress);

}  // namespace xplane
}  // namespace stageline
