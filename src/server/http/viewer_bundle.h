// The built viewer: web/src/viewer bundled by web/build.mjs and turned into C++ by web/embed.mjs at build time.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// A server's page: its first script, the one that its first page does not need, and what both share.
std::string_view web_viewer_js();
std::string_view web_late_pages_js();
std::string_view web_chunk_js();
std::string_view web_viewer_css();
std::string_view web_report_js();  // the only script of a report
// The page of a run that is still going on (web/src/live).
std::string_view web_live_js();
std::string_view web_live_css();
// What-if for a report's page (src/wasm): WebAssembly, as gzip; empty where the program was built without a compiler
// for it.
std::string_view web_what_if_gzip();
// "sha256-…" of the texts, by which caches know them.
std::string_view web_viewer_js_hash();
std::string_view web_late_pages_js_hash();
std::string_view web_chunk_js_hash();
std::string_view web_report_js_hash();
std::string_view web_viewer_css_hash();
std::string_view web_live_js_hash();
std::string_view web_live_css_hash();

}  // namespace stageline
