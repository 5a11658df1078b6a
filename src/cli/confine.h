// A process that answers requests of a browser has no business with the rest of a user's files. Where the kernel has
// Landlock (Linux 5.13), `view` gives up what it does not need before it listens: it can read its inputs, the system's
// folders and nothing else, and write into one private folder of its own for temporaries.
//
// What the kernel holds a thread to it holds the threads to that it starts. So the order is: split off the Companion,
// which stays outside (it opens the browser and, when the program has ended, however it did, removes the private
// folder); confine; listen and start threads.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stageline {

class Companion {
 public:
  // Splits off the process. Before any thread is started.
  Companion();
  Companion(const Companion&) = delete;
  ~Companion() = default;  // it notices the end of the program by itself

  void remove_at_end(const std::string& folder) { send('R', folder); }
  void open_browser(const std::string& url) { send('O', url); }

 private:
  void send(char what, const std::string& text);
  int pipe_ = -1;
};

enum class Confined : uint8_t { kYes, kNoLandlock };

// Makes a folder that only this user can read, for temporaries and what is sent to us, and names it in TMPDIR; the
// companion removes it. Made once. Errors: kIo.
Result<std::string> private_folder(Companion& companion);

// From here on, for this thread and those that it starts: to be called before any other thread is. `readable`: files
// and folders that stay readable (folders with all below them, links with what they lead to). Makes the private folder.
// Errors: kIo when it cannot be made or the kernel, which has Landlock, refuses.
Result<Confined> confine_to(const std::vector<std::string>& readable, Companion& companion);

}  // namespace stageline
