// Opens a page in the user's browser.
#pragma once

#include <string>

namespace stageline {

// Returns false when there is no desktop to open it on, or no program that can. Does not wait.
bool open_browser(const std::string& url);

}  // namespace stageline
