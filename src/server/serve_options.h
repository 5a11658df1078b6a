// Where and within which bounds the viewer's server answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stageline {

inline constexpr uint16_t kDefaultPort = 8765;
inline constexpr size_t kMaxConnections = 1000;

class RunShelf;
class ViewRun;

// What a server serves: one run, or a shelf of them. One of the two is there, and outlives the server.
struct Served {
  const ViewRun* run = nullptr;
  RunShelf* shelf = nullptr;
};

struct ServeOptions {
  std::string host;              // "": the loopback, v4 and where there is one v6; else an address or a name
  int32_t port = -1;             // −1: kDefaultPort or the next free one; 0: any
  bool token = true;             // the address holds a secret; false only on the loopback
  int64_t request_seconds = 20;  // that a request may take to arrive, and a connection be idle
  int64_t answer_seconds = 60;   // that an answer may take to be read, and a second more for each MB
};

}  // namespace stageline
