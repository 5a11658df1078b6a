// Where and within which bounds the viewer's server answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stageline {

inline constexpr uint16_t kDefaultPort = 8765;
inline constexpr size_t kMaxConnections = 1000;

struct ServeOptions {
  std::string host;   // "": the loopback of IPv4 and, where it exists, of IPv6; otherwise an address or a name
  int32_t port = -1;  // −1: kDefaultPort or the next free one; 0: any free one
  bool token = true;  // the address contains a secret; false only on the loopback
  int64_t request_seconds = 20;  // seconds in which a request must arrive, and after which an idle connection is closed
  int64_t answer_seconds = 60;   // seconds in which an answer must be read, and one second more for each MB
};

}  // namespace stageline
