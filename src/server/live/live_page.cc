#include "server/live/live_run.h"

namespace stageline {
namespace {

constexpr std::string_view kLivePage =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Stageline</title>\n<link rel=\"icon\" "
    "href=\"data:,\">\n"
    "<link rel=\"stylesheet\" href=\"live.css\">\n</head>\n<body>\n<div id=\"live\"></div>\n"
    "<noscript>This page needs JavaScript.</noscript>\n<script src=\"live.js\"></script>\n"
    "</body>\n</html>\n";

}  // namespace

ApiAnswer live_page() { return {200, "text/html; charset=utf-8", std::string(kLivePage), {}}; }

ApiAnswer live_state(const LiveRun& live, const Query& query) {
  const auto known = integer_parameter(query, "known", -1, -1, INT64_MAX);
  const auto after = integer_parameter(query, "after", -1, -1, INT64_MAX);
  if (!known) return error_answer(400, known.error().what, known.error().hint);
  if (!after) return error_answer(400, after.error().what, after.error().hint);
  return {200, "application/json; charset=utf-8", live.json(*known, *after), {}};
}

ApiAnswer live_metrics(const LiveRun& live, const Query&) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", live.metrics(), {}};
}

}  // namespace stageline
