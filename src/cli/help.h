// Help and man page, made from the flag table and the registries.
#pragma once

#include "cli/flags.h"

namespace stageline {

std::string overview_text();
std::string command_help_text(const Command& command);

struct HelpItem {
  std::string name, text;
};
// Returns the registered parts of a topic: "readers", "analyses", "exporters", "schedules". Empty for another topic.
std::vector<HelpItem> topic_items(std::string_view topic);

}  // namespace stageline
