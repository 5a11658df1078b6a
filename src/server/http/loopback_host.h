// Recognises requests that use a name of this machine alone.
#pragma once

#include <string_view>

namespace stageline {

// Whether a Host header names the loopback: "localhost", "127.0.0.1" or "[::1]", with any port (tunnels change it).
bool is_loopback_host(std::string_view host_header);

}  // namespace stageline
