// Opens a page in the user's browser.
#pragma once

#include <string>

namespace stageline {

// False where there is no desktop to open it on, or no program that does. Does not wait.
bool open_browser(const std::string& url);

}  // namespace stageline
