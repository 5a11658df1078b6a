#include "cold_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <initializer_list>

#include "clock.h"
#include "crc32c.h"

namespace slr {

bool make_folders(const char* path) {
  char part[1024];
  const size_t size = strlen(path);
  if (size == 0 || size >= sizeof part) return false;
  for (size_t i = 1; i <= size; ++i) {
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST) return false;
  }
  struct stat facts;
  return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool ColdFile::open(const Settings& settings, const FileHeader& identity) {
  if (!make_folders(settings.dir)) return false;
  header_ = identity;
  sequence_ = 0;
  total_bytes_ = errors_ = 0;
  first_part_ = 0;
  last_error_ = 0;
  keep_ = settings.keep_files;
  rotate_bytes_ = static_cast<uint64_t>(settings.rotate_mb) << 20;
  rotate_ns_ = static_cast<int64_t>(settings.rotate_s) * 1'000'000'000;
  char rank[16];
  if (settings.rank >= 0) snprintf(rank, sizeof rank, "r%05d", settings.rank);
  else snprintf(rank, sizeof rank, "rX");
  // A process can record twice within a second; names are never used again.
  for (uint64_t second = identity.start_realtime_ns / 1'000'000'000, tries = 0; tries < 100; ++second, ++tries) {
    snprintf(stem_, sizeof stem_, "%s/%s.%s.p%u.%llu", settings.dir, settings.host, rank, identity.pid,
             static_cast<unsigned long long>(second));
    header_.part = 0;
    if (create()) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

bool ColdFile::create() {
  char path[sizeof path_];
  snprintf(path, sizeof path, "%s.%03u.slrec", stem_, header_.part);
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  header_.crc = 0;
  header_.crc = crc32c(&header_, sizeof header_);
  if (::write(fd, &header_, sizeof header_) != static_cast<ssize_t>(sizeof header_)) {
    const int why = errno;
    ::close(fd);
    unlink(path);
    errno = why;
    return false;
  }
  close();
  file_.take(fd);
  memcpy(path_, path, sizeof path_);
  file_bytes_ = room_bytes_ = sizeof header_;
  total_bytes_ += sizeof header_;
  chunks_in_file_ = 0;
  opened_ns_ = clock_ns(CLOCK_MONOTONIC);
  return true;
}

// Blocks for `bytes` more and the reserve, beyond what the file's size says. False with errno: the disk has no more.
// File systems that cannot promise anything (EOPNOTSUPP) are trusted: there the totals may be lost on a full disk.
bool ColdFile::make_room(uint64_t bytes) {
  const uint64_t need = file_bytes_ + bytes + kReserveBytes;
  if (need <= room_bytes_) return true;
  for (const uint64_t want : {need + kRoomStep, need}) {
    if (fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(room_bytes_),
                  static_cast<off_t>(want - room_bytes_)) == 0) {
      room_bytes_ = want;
      return true;
    }
    if (errno != ENOSPC && errno != EDQUOT) {
      room_bytes_ = UINT64_MAX / 2;
      return true;
    }
  }
  return false;
}

bool ColdFile::write(ChunkType type, const void* payload, size_t bytes, uint64_t first_ticks, uint16_t flags,
                     bool last) {
  if (!file_.is_open()) return false;
  // Closed by the program and gone, or deleted under us: what is to come goes to a new file.
  const bool is_lost = !file_.keep(path_, O_WRONLY | O_APPEND) || !file_.has_name();
  if (is_lost && !rotate(clock_ns(CLOCK_MONOTONIC))) return false;
  ChunkHeader h{};
  memcpy(h.magic, kChunkMagic, sizeof h.magic);
  h.type = type;
  h.flags = flags;
  h.payload_bytes = static_cast<uint32_t>(bytes);
  h.sequence = sequence_;
  h.first_ticks = first_ticks;
  h.header_crc = crc32c(&h, sizeof h);
  h.payload_crc = crc32c(payload, bytes);
  static const char kZeros[8] = {};
  const size_t padding = (8 - bytes % 8) % 8;
  const size_t whole = sizeof h + bytes + padding;
  if (!last && !make_room(whole)) {
    last_error_ = errno;
    ++errors_;
    return false;
  }
  iovec parts[3] = {{&h, sizeof h}, {const_cast<void*>(payload), bytes}, {const_cast<char*>(kZeros), padding}};
  const ssize_t n = writev(file_.get(), parts, 3);
  if (n != static_cast<ssize_t>(whole)) {
    last_error_ = n < 0 ? errno : ENOSPC;
    ++errors_;
    // A piece of a chunk would be found torn by every reader: take it back. Where that fails too the reader resyncs.
    if (n > 0 && ftruncate(file_.get(), static_cast<off_t>(file_bytes_)) != 0) file_bytes_ += static_cast<uint64_t>(n);
    return false;
  }
  file_bytes_ += whole;
  total_bytes_ += whole;
  ++sequence_;
  ++chunks_in_file_;
  return true;
}

bool ColdFile::should_rotate(int64_t now_ns) const {
  return file_.is_open() && (file_bytes_ >= rotate_bytes_ || now_ns - opened_ns_ >= rotate_ns_);
}

bool ColdFile::rotate(int64_t now_ns) {
  opened_ns_ = now_ns;  // not again at once when the disk refuses
  ++header_.part;
  if (!create()) {
    last_error_ = errno;
    --header_.part;
    ++errors_;
    return false;
  }
  for (; keep_ > 0 && header_.part - first_part_ >= keep_; ++first_part_) {
    char old[sizeof path_];
    snprintf(old, sizeof old, "%s.%03u.slrec", stem_, first_part_);
    unlink(old);
  }
  return true;
}

void ColdFile::sync() {
  if (file_.is_ours() && fdatasync(file_.get()) != 0) ++errors_;
}

void ColdFile::close() {
  // Reserved but unused bytes go back to the disk.
  if (file_.is_ours() && room_bytes_ > file_bytes_ && ftruncate(file_.get(), static_cast<off_t>(file_bytes_)) != 0)
    ++errors_;
  file_.close();
}

}  // namespace slr
