#include "base/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>

#include "base/input_files.h"

namespace stageline {

int64_t machine_memory_bytes() {
  int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  // A container sees its own group as the root; "max" means that there is no limit.
  const auto max = parse_int(trim(own_file("/sys/fs/cgroup/memory.max").value_or("")));
  if (max && *max > 0) bytes = std::min(bytes, *max);
  return bytes;
}

int64_t resident_bytes() {
  const std::string pages = own_file("/proc/self/statm").value_or("");  // "SIZE RESIDENT …"
  const auto resident = split(pages, ' ');
  return resident.size() < 2 ? 0 : parse_int(resident[1]).value_or(0) * sysconf(_SC_PAGESIZE);
}

namespace {
std::atomic<int64_t> g_max_memory{0};
}  // namespace

void set_max_memory(int64_t bytes) { g_max_memory = bytes; }
int64_t max_memory() { return g_max_memory; }

}  // namespace stageline
