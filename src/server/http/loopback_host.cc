#include "server/http/loopback_host.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace stageline {

bool is_loopback_host(std::string_view host) {
  std::string name = to_lower(host);
  const size_t colon = name.rfind(':');
  const bool bracketed = name.starts_with('[');
  if (colon != std::string::npos && (!bracketed || name[colon - 1] == ']')) {
    const std::string_view port = std::string_view(name).substr(colon + 1);
    if (port.size() > 5 || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) return false;
    name.resize(colon);
  }
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

}  // namespace stageline
