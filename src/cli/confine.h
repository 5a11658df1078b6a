// A process that answers a browser's requests does not need the rest of the user's files. If the kernel has Landlock
// (Linux 5.13), `view` drops unneeded rights before it listens. Then it can read only its inputs and the system's
// folders, and write only into one private folder for temporary files.
//
// A restriction of a thread holds for the threads that it starts later. So the Companion is split off first. It stays
// unrestricted, because the browser that it opens inherits what it may do. But its tasks are fixed from the start,
// whatever becomes of the asking process. It opens one page and removes one folder, both named before any request can
// arrive. It writes notes only below folders given at its start, in a process that can reach nothing else. Then the
// process restricts itself, listens, and starts threads.
#pragma once

#include <mutex>

#include "base/vocabulary.h"

namespace stageline {

class Companion {
 public:
  // Splits off the process. Must be called before any thread is started. `notes_below`: real folders, in and below
  // which notes may be written.
  explicit Companion(std::vector<std::string> notes_below = {});
  Companion(const Companion&) = delete;
  ~Companion() = default;  // the companion process notices the end of the program by itself

  // The first folder that is named is the one that is removed.
  void remove_at_end(const std::string& folder) { send('R', folder); }
  // Opens a file of the folder that is removed at the end, kOpenedPage.
  void open_browser() { send('O', ""); }
  // Writes the notes of a run, a file whose name ends as such files' do (kNotesSuffix), and no link: no other is
  // written. Waits for it; any thread. Returns the bytes that are there if they are not `before`, and nothing when they
  // were replaced. Errors: kIo.
  Result<std::optional<std::string>> write_notes(const std::string& path, const std::string& before,
                                                 const std::string& bytes);

 private:
  void send(char what, const std::string& text);
  bool read_reply(char* to, size_t size);
  int pipe_ = -1, reply_ = -1;
  std::mutex asking_;
};

inline constexpr const char* kOpenedPage = "stageline.html";

enum class Confined : uint8_t { kYes, kNoLandlock };

// Makes a folder that only this user can read, for temporary files and uploads, and names it in TMPDIR; the companion
// removes it. Later calls return the same folder. Errors: kIo.
Result<std::string> private_folder(Companion& companion);

// Restricts this thread and those that it will start, so it must be called before any other thread is started.
// `readable` are the files and folders that stay readable (folders with everything below them, links with their
// targets), in `writable` files may be made and replaced. Unless `connects`, it can open no TCP connection either
// (Linux 6.7). Makes the private folder. Errors: kIo when the folder cannot be made, or when the kernel has Landlock
// but refuses.
Result<Confined> confine_to(const std::vector<std::string>& readable, Companion& companion,
                            const std::vector<std::string>& writable = {}, bool connects = false);

// Returns false when there is no desktop to open it on, or no program that can. Does not wait.
bool open_browser(const std::string& url);

}  // namespace stageline
