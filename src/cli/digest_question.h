// The common part of `stageline digest` and the cluster program: the flags, and the messages at the end.
#pragma once

#include "base/result.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "engine/make_digests.h"

namespace stageline {

// --reader, --ranks A:B. Errors: kUsage.
Result<DigestOptions> digest_options(const Arguments& arguments);

// Prints notes and failures on stderr, and one line (with --json an object) on stdout. Returns the exit code:
// kExitError when a rank failed.
Result<int> say_digests(const Arguments& arguments, const Terminal& terminal, const DigestPlan& plan,
                        const DigestCount& count);

}  // namespace stageline
