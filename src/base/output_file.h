// OutputFile: a file that appears only when whole, and never in the place of an input. Bytes go to
// "PATH.partial.PID" beside the target; commit() puts them on the disk and renames it. A destructor without commit, or
// Ctrl-C, removes it; what a killed program left is swept when the same target is written again.
// "-" and things that are not regular files (pipes, /dev/null) are written directly. A terminal gets text that it does
// not obey (base/terminal_text.h), whatever the names of a trace hold and whatever the format; files and pipes get the
// bytes.
//
// The gate: a target that is a file of the input, under whatever name (base/input_files.h), is refused when the file is
// created and once more before the rename, since an input may become known in between. Partial files are made anew
// (O_EXCL, O_NOFOLLOW), so a link that lies ready under their name leads nowhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

class OutputFile {
 public:
  enum class Over : uint8_t {
    kNoInput,  // the rule
    kAnInput,  // pp-chart --in-place, which is told to change one, and keeps a backup
  };
  // Errors: kIo when the folder is missing or not writable (checked here, before long work); kUsage when the target is
  // a file of the input.
  static Result<OutputFile> create(const std::string& path, size_t buffer_bytes = size_t{1} << 17,
                                   Over over = Over::kNoInput);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Buffered. A failed write is remembered and reported by commit().
  void write(std::string_view bytes);
  // Text with colours of ours, whose names went through terminal_text() already: a terminal gets it as it is.
  void write_painted(std::string_view text);
  // Room for `bytes` contiguous bytes in the buffer (at most 64 KiB); follow with advance().
  char* reserve(size_t bytes);
  void advance(size_t bytes);

  // Flushes, waits until the bytes are on the disk, renames, and waits for the folder. Within an OutputSet the rename
  // is the set's. Errors: kIo; kUsage as create(). A closed pipe is success: the reader had enough.
  Status commit();
  const std::string& path() const;
  // Where the bytes are until commit(): for libraries that insist on writing a file themselves.
  const std::string& partial_path() const;

 private:
  friend class OutputSet;
  struct Impl;
  explicit OutputFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// OutputSet: files that appear together or not at all. While one lives, every OutputFile that its thread commits
// waits in it; commit() renames them all. When a rename fails, those before it are taken back and the files
// that were there before have their names again. Ctrl-C during the renames waits for the last one. Only a machine that
// stops between two renames leaves some of them: no file system renames several files at once.
// A set is its thread's own: what other threads export meanwhile is not held up. Threads that help with it join it by
// OutputSet::Join. A set within a set joins the outer one.
class OutputSet {
 public:
  struct Files;
  OutputSet();
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;
  ~OutputSet();  // without commit(): none appears

  Status commit();

  static Files* of_this_thread();  // nullptr: none
  class Join {
   public:
    explicit Join(Files* files);
    Join(const Join&) = delete;
    Join& operator=(const Join&) = delete;
    ~Join();

   private:
    Files* before_;
  };

 private:
  std::unique_ptr<Files> own_;  // empty: within another set
};

// Bytes that any OutputFile writes are added to `progress` (nullptr: to none), for a progress bar.
// Set from one thread while nothing is being written.
class Progress;
void watch_output(Progress* progress);

// Removes every file that is not committed yet. Async-signal-safe: for a handler of `signal`. False: a set of files is
// being renamed just now; return from the handler, the signal is raised once more when that is done.
bool remove_partial_files_on_signal(int signal);

// Writes a whole file at once. Errors as OutputFile.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace stageline
