// Runs another program as `stageline record` does: with variables of its own, and as if it had been called itself.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace stageline {

// How a program ended.
struct Ended {
  int exit_code = 0;
  int signal = 0;  // that ended it; 0: none
};

// Runs `command` (found on the PATH) with the environment and `variables` on top of it, and waits for it. It has our
// standard streams and process group, so that Ctrl-C and Ctrl-Z reach it as they would; other signals that others send
// to us are sent on to it. Errors: kNotFound where there is no such program, kIo where it cannot be run.
Result<Ended> run_program(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables);

// Ends this process as the other was ended: with its exit code, which is returned, or with its signal.
int end_alike(const Ended& ended);

}  // namespace stageline
