// OutputFile: a file that appears only when it is complete, and never in the place of an input. Bytes go to
// "PATH.partial.PID" next to the target; commit() flushes them to the disk and renames the file. A destructor without
// commit, or Ctrl-C, removes it. The file of a killed program is removed when the same target is written again. "-" and
// everything that is not a regular file (pipes, /dev/null) is written directly. A terminal gets text without characters
// that it would obey (terminal_text() of base/text.h), whatever the names in a trace and whatever the format; files and
// pipes get the bytes unchanged.
//
// A file that is written again keeps its mode and, where the user may set them, its owner and group. A link that
// another user made in a folder of everybody (/tmp) is refused.
//
// Files of others: with protect_measurements(), a file that no OutputFile wrote is refused too, unless it is empty, a
// page or a picture. An extended attribute with size and time of the last change marks what an OutputFile wrote; where
// the file system has no such attributes, what is recognised as a measurement is refused.
//
// Protection of inputs: a target that is a file of the input, under any name (base/input_files.h), is refused when the
// file is created. It is checked once more before the rename, because an input may become known in between. Partial
// files are always newly created (O_EXCL, O_NOFOLLOW), so a link that was placed under their name has no effect.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

class OutputFile {
 public:
  enum class Over : uint8_t {
    kNoInput,  // the usual case: an input is never overwritten
    kKept,     // the same, for what is a measurement itself (a recovered recording, a digest): it is not marked as ours
    kAnInput,  // only for pp-chart --in-place, which keeps a backup, and for a history, which is read and written as a
               // new file
  };
  // Errors: kIo when the folder is missing or not writable (checked here, before long work); kUsage when the target is
  // a file of the input.
  static Result<OutputFile> create(const std::string& path, size_t buffer_bytes = size_t{1} << 17,
                                   Over over = Over::kNoInput);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Appends bytes to the buffer. A failed write is remembered and reported by commit().
  void write(std::string_view bytes);
  // Writes text with our own colours. Its names must have passed through terminal_text() already, because a terminal
  // gets it unchanged.
  void write_painted(std::string_view text);
  // Returns room for `bytes` contiguous bytes in the buffer (at most 64 KiB). Call advance() afterwards.
  char* reserve(size_t bytes);
  void advance(size_t bytes);

  // Flushes, waits until the bytes are on the disk, renames, and waits for the folder. Within an OutputSet, the set
  // does all but the first. A closed pipe counts as success: its reader had enough. Errors: kIo; kUsage as create().
  Status commit();
  const std::string& path() const;
  // Returns where the bytes are until commit(). It is for libraries that insist on writing a file themselves.
  const std::string& partial_path() const;

 private:
  friend class OutputSet;
  struct Impl;
  explicit OutputFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// OutputSet: files that appear together or not at all. While a set lives, every OutputFile that its thread commits
// waits in it; commit() renames them all. When a rename fails, the renames before it are undone, and the files that
// were there before have their names again. Ctrl-C during the renames waits for the last one. Only a machine that stops
// between two renames leaves some of the files, because no file system renames several files at once. A set belongs to
// its thread, so it does not delay what other threads export meanwhile. Threads that help with it join it by
// OutputSet::Join. A set within a set joins the outer one.
class OutputSet {
 public:
  struct Files;
  OutputSet();
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;
  ~OutputSet();  // without commit(), no file appears

  Status commit();
  // Returns the files that wait, each with its final name and with the path where its bytes are until commit().
  std::vector<std::pair<std::string, std::string>> waiting() const;

  static Files* of_this_thread();  // nullptr when the thread has no set
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
  std::unique_ptr<Files> own_;  // empty when it is within another set
};

// Refuses from now on to replace files that no OutputFile wrote. `what_is` says what kind of measurement a file is
// (readers/reader.h), "" for others. nullptr allows all again.
void protect_measurements(std::string (*what_is)(const std::string& path));

// Adds the bytes that any OutputFile writes to `progress` (nullptr: to none), for a progress bar. Call it from one
// thread while nothing is being written.
class Progress;
void watch_output(Progress* progress);

// Removes every file that is not committed yet. It is async-signal-safe, for use in a handler of `signal`. Returns
// false when a set of files is being renamed at this moment: then return from the handler; the signal is raised again
// when the renames are done.
bool remove_partial_files_on_signal(int signal);

// Writes a whole file at once. Errors: those of OutputFile.
Status write_file(const std::string& path, std::string_view bytes, OutputFile::Over over = OutputFile::Over::kNoInput);

}  // namespace stageline
