// Help, man page and completions, all made from the flag table and the registries.
#pragma once

#include "cli/flags.h"

namespace stageline {

std::string overview_text();
std::string command_help_text(const Command& command);

}  // namespace stageline
