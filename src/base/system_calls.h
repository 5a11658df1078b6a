// System calls that only some systems have. For some of Linux glibc has functions only since 2.25 and 2.27; they are
// called by number, so that one program also runs on older systems. When the system has no such call, it fails with
// ENOSYS, as the function would.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#if defined(__linux__)
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#else
#include <stdio.h>
#include <sys/random.h>

#include "base/vocabulary.h"
#endif

namespace stageline {

#if defined(__linux__)

// Does not wait until the system has enough of chance.
inline constexpr unsigned kNoWaiting = GRND_NONBLOCK;
inline ssize_t random_bytes(void* to, size_t size, unsigned flags) { return syscall(SYS_getrandom, to, size, flags); }

inline ssize_t copy_between_files(int in, off_t* read_at, int out, off_t* write_at, size_t size) {
  return syscall(SYS_copy_file_range, in, read_at, out, write_at, size, 0u);
}
// Makes all of `out` the same blocks of the disk as `in`, until one of them is changed.
inline bool share_blocks(int in, int out) { return ioctl(out, FICLONE, in) == 0; }

// Gives each of two files the other's name.
inline bool exchange_files(const char* one, const char* other) {
  constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE, which headers before 3.15 lack
  return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, kExchange) == 0;
}

inline ssize_t read_mark(const char* path, const char* name, char* to, size_t size) {
  return getxattr(path, name, to, size);
}
inline int write_mark(int fd, const char* name, const char* bytes, size_t size) {
  return fsetxattr(fd, name, bytes, size, 0);
}

#else

extern "C" {  // of sys/xattr.h, which compilers for other systems do not carry
ssize_t getxattr(const char*, const char*, void*, size_t, uint32_t, int);
int fsetxattr(int, const char*, const void*, size_t, uint32_t, int);
}

inline constexpr unsigned kNoWaiting = 0;
inline ssize_t random_bytes(void* to, size_t size, unsigned) {
  return getentropy(to, size) == 0 ? static_cast<ssize_t>(size) : -1;
}

inline ssize_t copy_between_files(int, off_t*, int, off_t*, size_t) {
  errno = ENOSYS;
  return -1;
}
inline bool share_blocks(int, int) { return false; }

inline bool exchange_files(const char* one, const char* other) { return renamex_np(one, other, RENAME_SWAP) == 0; }

inline ssize_t read_mark(const char* path, const char* name, char* to, size_t size) {
  return getxattr(path, name, to, size, 0, 0);
}
inline int write_mark(int fd, const char* name, const char* bytes, size_t size) {
  return fsetxattr(fd, name, bytes, size, 0, 0);
}

#endif

}  // namespace stageline
