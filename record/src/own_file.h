// A descriptor that is used only while it is the file that we opened. Programs close descriptors that are not theirs
// (daemons close all of them), and the number is then the next file that they open.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace slr {

class OwnFile {
 public:
  // Takes a descriptor that was just opened.
  void take(int fd) {
    struct stat facts;
    fd_ = fd;
    if (fd >= 0 && fstat(fd, &facts) == 0) device_ = facts.st_dev, inode_ = facts.st_ino;
  }
  bool is_ours() const { return fd_ >= 0 && is_it(fd_); }
  // Returns true while it has a name: it was not deleted.
  bool has_name() const {
    struct stat facts;
    return fstat(fd_, &facts) == 0 && facts.st_nlink > 0;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Returns true when it is ours, or could be opened again: the same file, where it was.
  bool keep(const char* path, int flags) {
    if (is_ours()) return true;
    struct stat facts;
    if (fd_ < 0 || stat(path, &facts) != 0) return false;
    errno = ENOENT;
    if (!is_it(facts)) return false;
    const int fd = ::open(path, flags | O_CLOEXEC);
    if (fd < 0) return false;
    // A program that closes all descriptors may have closed this one meanwhile. Its number may then be that program's
    // next file, so it is not closed here.
    errno = ENOENT;
    if (!is_it(fd)) return false;
    fd_ = fd;
    return true;
  }
  void close() {
    if (is_ours()) ::close(fd_);
    fd_ = -1;
  }

 private:
  bool is_it(const struct stat& facts) const { return facts.st_dev == device_ && facts.st_ino == inode_; }
  bool is_it(int fd) const {
    struct stat facts;
    return fstat(fd, &facts) == 0 && is_it(facts);
  }
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// The first bytes of a small file, `size` at most; fewer where there are fewer, −1 where it cannot be opened.
inline ssize_t read_start(const char* path, char* to, size_t size) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  OwnFile file;
  file.take(fd);
  size_t got = 0;
  for (ssize_t n; got < size && file.is_ours() && (n = ::read(fd, to + got, size - got)) > 0;)
    got += static_cast<size_t>(n);
  file.close();
  return static_cast<ssize_t>(got);
}

}  // namespace slr
