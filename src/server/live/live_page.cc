#include "server/live/live_page.h"

#include "server/http/viewer_bundle.h"
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

std::optional<ApiAnswer> live_answer(const LiveRun* live, bool settled, const Query& query) {
  const std::string& path = query.path;
  if (path == "/live.js") return asset_answer(web_live_js(), "text/javascript; charset=utf-8", web_live_js_hash());
  if (path == "/live.css") return asset_answer(web_live_css(), "text/css; charset=utf-8", web_live_css_hash());
  if (path != "/api/live" && path != "/metrics" && path != "/live" && path != "/") return {};
  if (path == "/" && (!live || settled)) return {};
  if (!live)
    return error_answer(404, "this server does not follow a running job", "stageline view FOLDER --follow does");
  if (path == "/metrics") return ApiAnswer{200, "text/plain; version=0.0.4; charset=utf-8", live->metrics(), {}};
  if (path != "/api/live") return ApiAnswer{200, "text/html; charset=utf-8", std::string(kLivePage), {}};
  const auto known = integer_parameter(query, "known", -1, -1, INT64_MAX);
  const auto after = integer_parameter(query, "after", -1, -1, INT64_MAX);
  if (!known) return error_answer(400, known.error().what, known.error().hint);
  if (!after) return error_answer(400, after.error().what, after.error().hint);
  return ApiAnswer{200, "application/json; charset=utf-8", live->json(*known, *after), {}};
}

}  // namespace stageline
