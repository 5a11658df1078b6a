// The viewer's API: one target in, one answer out. It knows nothing of sockets, so that routes can be fuzzed and
// tested. One table has every path with its parameters and what it answers; docs/viewer-protocol.md is the contract
// with the page, and tools/tidy.py compares the two.
#pragma once

#include "server/http/http_site.h"
#include "server/http/query.h"

namespace stageline {

class RunShelf;
class ViewRun;
struct ServedRun;

// The state that a path needs before it is answered.
enum class Needs : uint8_t {
  kNothing,   // answered at any time, for a run and on the start page
  kRun,       // answered for a run at any time, read or not
  kSomeRun,   // a run of which some is read; slices may have names and classes only
  kWholeRun,  // a run that is read
  kShelf,     // the start page on which runs are opened
};

// A request, and what it is put to: a run or the start page.
struct Asked {
  const Query& query;
  const ViewRun* run = nullptr;
  RunShelf* shelf = nullptr;
  std::shared_ptr<const ServedRun> now = nullptr;  // where the path needs some or all of a run
};

struct Route {
  std::string_view path;
  // Names of parameters in the order of their page, separated by blanks; a handler gets no others. "*": any besides.
  std::string_view parameters;
  Needs needs;
  ApiAnswer (*answer)(const Asked& asked);  // nullptr: the HTTP server answers (http_session.cc)
  std::string_view summary;                 // as docs/viewer-protocol.md has it
};
std::span<const Route> routes();

// Answers every path except those that belong to the HTTP server. HEAD is handled by the caller.
ApiAnswer api_answer(const ViewRun& run, std::string_view target);
ApiAnswer shelf_answer(RunShelf& shelf, std::string_view target);

// Takes a body into a run, at /api/notes; a body at any other path is refused.
ApiAnswer api_take(const ViewRun& run, std::string_view target, std::string_view body);

// Returns the site for HttpServer; `run` and `shelf` must outlive it.
HttpSite site_of(const ViewRun& run);
HttpSite site_of(RunShelf& shelf);

}  // namespace stageline
