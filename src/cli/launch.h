// Runs another program as `stageline record` does: with additional environment variables, and as if the user had called
// it directly.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// The way in which a program ended.
struct Ended {
  int exit_code = 0;
  int signal = 0;  // the signal that ended it; 0 when none did
};

// Runs `command` (found on the PATH) with the environment plus `variables`, and waits for it. It has our standard
// streams and process group, so Ctrl-C and Ctrl-Z reach it as usual; other signals that are sent to us are passed on to
// it. Errors: kNotFound when there is no such program, kIo when it cannot be run.
Result<Ended> run_program(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables);

// Ends this process in the same way as the other one ended: with its exit code, which is returned, or with its signal.
int end_alike(const Ended& ended);

}  // namespace stageline
