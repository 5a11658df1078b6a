// A process that answers a browser's requests does not need the rest of the user's files. If the kernel has Landlock
// (Linux 5.13), `view` drops unneeded rights before it listens. Then it can read only its inputs and the system's
// folders, and write only into one private folder for temporary files.
//
// A restriction of a thread holds for the threads that it starts later. So the Companion is split off first. It stays
// unrestricted, because it opens the browser and removes the private folder when the program has ended in any way. Then
// the process restricts itself, listens, and starts threads.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"

namespace stageline {

class Companion {
 public:
  // Splits off the process. Must be called before any thread is started.
  Companion();
  Companion(const Companion&) = delete;
  ~Companion() = default;  // the companion process notices the end of the program by itself

  void remove_at_end(const std::string& folder) { send('R', folder); }
  void open_browser(const std::string& url) { send('O', url); }
  // Writes the notes of a run, a file whose name ends as such files' do (kNotesSuffix): no other is written. Waits for
  // it; any thread. Errors: kIo, kUsage where this is a file of the input.
  Status write_notes(const std::string& path, const std::string& bytes);

 private:
  void send(char what, const std::string& text);
  int pipe_ = -1, reply_ = -1;
  std::mutex asking_;
};

enum class Confined : uint8_t { kYes, kNoLandlock };

// Makes a folder that only this user can read, for temporary files and uploads, and names it in TMPDIR; the companion
// removes it. Later calls return the same folder. Errors: kIo.
Result<std::string> private_folder(Companion& companion);

// Restricts this thread and those that it will start, so it must be called before any other thread is started.
// `readable` are the files and folders that stay readable (folders with everything below them, links with their
// targets). Makes the private folder. Errors: kIo when the folder cannot be made, or when the kernel has Landlock but
// refuses.
Result<Confined> confine_to(const std::vector<std::string>& readable, Companion& companion);

}  // namespace stageline
