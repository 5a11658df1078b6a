// The cold file: chunks appended by the background thread, each whole or not there. Rotation, names, errors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout.h"
#include "own_file.h"
#include "settings.h"

namespace slr {

class ColdFile {
 public:
  // Makes the folder and the first file. `stem`: DIR/host.r00003.p4711.1700000000, to which .000.slrec is added.
  bool open(const Settings& settings, const FileHeader& identity);
  // Appends one chunk. False when the disk refused: nothing of it is in the file, and it may be tried again.
  // Behind the last chunk room for kReserveBytes stays taken, for the totals: `last` chunks may use it, others may not.
  bool write(ChunkType type, const void* payload, size_t bytes, uint64_t first_ticks, uint16_t flags = 0,
             bool last = false);
  bool is_open() const { return file_.is_open(); }
  // A new file is due: size or age.
  bool should_rotate(int64_t now_ns) const;
  bool rotate(int64_t now_ns);
  void sync();
  void close();

  const char* path() const { return path_; }
  const char* stem() const { return stem_; }
  uint64_t bytes() const { return total_bytes_; }
  uint64_t errors() const { return errors_; }
  int last_error() const { return last_error_; }  // errno of the last refusal; 0: none
  uint32_t chunks_in_file() const { return chunks_in_file_; }

 private:
  static constexpr uint64_t kReserveBytes = 8 << 10, kRoomStep = 256 << 10;
  bool create();
  bool make_room(uint64_t bytes);

  OwnFile file_;
  char stem_[1300] = {}, path_[1400] = {};
  FileHeader header_ = {};
  uint64_t room_bytes_ = 0;  // of the file that the disk has promised
  int last_error_ = 0;
  uint64_t file_bytes_ = 0, total_bytes_ = 0, errors_ = 0, rotate_bytes_ = 0;
  int64_t opened_ns_ = 0, rotate_ns_ = 0;
  uint32_t sequence_ = 0, chunks_in_file_ = 0, keep_ = 0, first_part_ = 0;
};

// Makes a folder and what is missing above it.
bool make_folders(const char* path);

}  // namespace slr
