// System calls for which glibc has functions only since 2.25 and 2.27. They are called by number, so that one program
// also runs on older systems. When the kernel is too old for one, it fails with ENOSYS, as the function would.
#pragma once

#include <linux/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

namespace stageline {

inline ssize_t random_bytes(void* to, size_t size, unsigned flags) { return syscall(SYS_getrandom, to, size, flags); }

inline ssize_t copy_between_files(int in, off_t* read_at, int out, off_t* write_at, size_t size) {
  return syscall(SYS_copy_file_range, in, read_at, out, write_at, size, 0u);
}

}  // namespace stageline
