// Reads a file of JSON objects, which logs write a line each.
#pragma once

#include "base/diagnostics.h"
#include "base/error_words.h"
#include "base/json_events.h"

namespace stageline {

// The first line of a file whose text begins with an object; "" of others.
inline std::string_view first_json_line(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == std::string_view::npos || head[at] != '{') return {};
  return head.substr(at, std::min(head.find('\n', at), head.size()) - at);
}

struct JsonLineProblems {
  const Problem &bad_line, &damaged_text, &read_stopped;  // read_stopped says `why`
};

// Calls take(span) for each object in the order of the file; one for which it returns false is a bad line. Text that is
// not JSON, and the rest of a file that cannot be read, are counted as well. Errors: those of Input::open().
template <class Take>  // bool(const JsonSpan&)
Status each_json_line(const std::string& path, Progress* progress, const JsonLineProblems& problems,
                      Diagnostics& diagnostics, Take take) {
  TRY(input, Input::open(path, progress));
  JsonEvents events(*input, JsonLayout::kSequence);
  for (;;) {
    Result<std::vector<JsonSpan>> spans = events.next();
    if (!spans)
      diagnostics.add(problems.read_stopped, Args().set("why", error_text(spans.error())),
                      {path, 0, spans.error().where.byte});
    if (!spans || spans->empty()) break;
    for (const JsonSpan& span : *spans)
      if (span.text.find('\0') != std::string_view::npos || !take(span))
        diagnostics.add(problems.bad_line, {path, 0, span.offset});
  }
  if (events.damaged() > 0) diagnostics.add(problems.damaged_text, {path, 0, events.first_damage()}, events.damaged());
  return {};
}

}  // namespace stageline
