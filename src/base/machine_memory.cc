#include "base/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/input_files.h"
#include "base/number.h"
#include "base/text.h"

namespace stageline {

int64_t machine_memory_bytes() {
  int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  // A container sees its own group as the root; "max" means that there is no limit.
  const auto most = parse_int(trim(own_file("/sys/fs/cgroup/memory.max").value_or("")));
  if (most && *most > 0) bytes = std::min(bytes, *most);
  return bytes;
}

}  // namespace stageline
