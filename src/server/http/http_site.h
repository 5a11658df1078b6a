// An HTTP server has this content. The server handles addresses, limits and bytes; the functions here handle runs
// (page/routes.h). Every function may be called on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/api_answer.h"
#include "server/http/drop_box.h"

namespace stageline {

// A part with addresses of its own: one run, or the start page on which runs are opened.
struct HttpPart {
  std::function<ApiAnswer(std::string_view target)> answer;  // to GET and HEAD
  // To PUT /api/notes. Empty: this part takes no notes.
  std::function<ApiAnswer(std::string_view target, std::string_view body)> take;
  // The data of /api/events, and whether it will not change any more. Empty: there are no events.
  std::function<std::string()> status;
  std::function<bool()> settled;
};

struct HttpSite {
  // The part that a target names; what names it ("/runs/3") is removed from the target.
  std::function<std::shared_ptr<const HttpPart>(std::string& target)> part_of;
  DropBox* drops = nullptr;   // takes the files of PUT /api/drop; nullptr: none are taken
  size_t max_body_bytes = 0;  // of PUT /api/notes
};

// Where and within which bounds the viewer's server answers.
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
