// The built page: web/ bundled by esbuild and turned into C++ by web/embed.mjs at build time.
#pragma once

#include <string_view>

namespace stageline {

std::string_view web_report_js();
std::string_view web_report_css();
// "sha256-…" of the two texts, for the Content-Security-Policy of the page that inlines them.
std::string_view web_report_js_hash();
std::string_view web_report_css_hash();

}  // namespace stageline
