// An HTTP server has this content. The server handles addresses, limits and bytes; the functions here handle runs
// (page/routes.h). Every function may be called on any thread.
#pragma once

#include <cstddef>
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

}  // namespace stageline
