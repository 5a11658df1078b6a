// `stageline version`: prints the version, the libraries contained or linked, and their licences.
#include <cairo.h>
#include <simdjson.h>
#include <sqlite3.h>
#include <zlib.h>
#include <zstd.h>

#include <boost/version.hpp>
#include <cstdio>

#include "base/embedded.h"
#include "base/json_writer.h"
#include "cli/commands.h"
#include "server/http/viewer_bundle.h"

namespace stageline {

extern const std::string_view kBuiltFromCommit;  // set by CMakeLists.txt; empty when the commit is unknown

namespace {

struct Work {
  std::string name, version, licence, purpose;
};

// NOTICE is the one list of the work of others: `== NAME VERSION | LICENCE | WHAT FOR`. The last word before the first
// bar is the version if it is a number.
std::vector<Work> works_in(std::string_view notice) {
  std::vector<Work> works;
  for (size_t at = 0; at < notice.size();) {
    const size_t end = std::min(notice.find('\n', at), notice.size());
    const std::string_view line = notice.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(" | "), second = line.find(" | ", first + 1);
    if (!line.starts_with("== ") || second == line.npos) continue;
    Work work{std::string(line.substr(3, first - 3)), "", std::string(line.substr(first + 3, second - first - 3)),
              std::string(line.substr(second + 3))};
    if (const size_t space = work.name.rfind(' '); space != std::string::npos && isdigit(work.name[space + 1])) {
      work.version = work.name.substr(space + 1);
      work.name.resize(space);
    }
    works.push_back(std::move(work));
  }
  return works;
}

// Returns the versions that the libraries report themselves. Shared libraries are the system's, so their versions are
// not in NOTICE.
std::map<std::string_view, std::string> versions_now() {
  return {{"zlib", zlibVersion()},
          {"zstd", ZSTD_versionString()},
          {"SQLite", sqlite3_libversion()},
          {"simdjson", std::to_string(simdjson::SIMDJSON_VERSION_MAJOR) + "." +
                           std::to_string(simdjson::SIMDJSON_VERSION_MINOR) + "." +
                           std::to_string(simdjson::SIMDJSON_VERSION_REVISION)},
          {"cairo", cairo_version_string()},
          {"Boost", std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000)}};
}

std::vector<Work> works_here() {
#ifdef STAGELINE_SELF_CONTAINED
  constexpr bool self_contained = true;
#else
  constexpr bool self_contained = false;
#endif
  std::vector<Work> works;
  const auto versions = versions_now();
  for (Work& work : works_in(embedded_file("NOTICE"))) {
    if (const auto now = versions.find(work.name); now != versions.end()) work.version = now->second;
    // In other builds these libraries come with the system, indirectly, and their versions are not known here.
    const bool only_when_self_contained = work.name == "libpng" || work.name == "pixman" || work.name == "FreeType" ||
                                          work.name == "Zig compiler runtime" ||
                                          work.name == "GNU C Library's start files";
    const bool replays = !web_what_if_gzip().empty();  // reports carry a program of their own
    const bool here = work.name == "wasi-libc"     ? replays
                      : work.name == "LLVM libc++" ? self_contained || replays
                                                   : self_contained || !only_when_self_contained;
    if (here) works.push_back(std::move(work));
  }
  return works;
}

std::string version_json() {
  JsonWriter json;
  json.begin_object().field("version", STAGELINE_VERSION);
  if (!kBuiltFromCommit.empty()) json.field("commit", kBuiltFromCommit);
#ifdef STAGELINE_SELF_CONTAINED
  json.field("self_contained", true);
#else
  json.field("self_contained", false);
#endif
  json.field("compiler", __VERSION__).field("licence", "Apache-2.0");
  json.objects("libraries", works_here(), [&](const Work& work) {
    // The version is "" where a work has none of its own, as the files of a C library that are linked into programs.
    json.field("name", work.name).field("version", work.version);
    json.field("licence", work.licence).field("purpose", work.purpose);
  });
  return json.end_object().take() + "\n";
}

}  // namespace

Result<int> run_version(const Arguments& arguments) {
  if (arguments.has("json")) fputs(version_json().c_str(), stdout);
  else if (arguments.has("licences"))
    fputs((embedded_file("NOTICE") + "\n\n" + embedded_file("LICENSE")).c_str(), stdout);
  else puts("stageline " STAGELINE_VERSION);
  return kExitGood;
}

}  // namespace stageline
