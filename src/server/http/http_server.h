// The viewer's HTTP server: it answers GET and HEAD for a site (http_site.h), and PUT for files and notes, until it is
// told to stop. It knows nothing of runs.
//
// The server keeps these promises. Only the API and the embedded page are served; a path never leads to a file. On the
// loopback (the default), requests must name a loopback host, so that a page elsewhere cannot reach the API by pointing
// its own name here (DNS rebinding). Every path starts with the token of the printed address, because other users of a
// login node reach the loopback too. Only ServeOptions can omit it, and only on the loopback. Headers are at most 16
// KiB. Bodies are refused, except files that a shelf takes and the notes of a run. Requests must arrive, and answers be
// taken, within bounds of time, and there are at most kMaxConnections connections. It is asynchronous (Boost.Beast), on
// a few threads.
#pragma once

#include "server/http/http_site.h"

namespace stageline {

class HttpServer {
 public:
  // Listens, but does not answer yet. Errors: kIo when the port is taken or the host is not this machine's.
  static Result<std::unique_ptr<HttpServer>> listen(const ServeOptions& options, HttpSite site);
  ~HttpServer();

  const std::string& url() const;  // with the token, where there is one
  bool is_public() const;          // it listens on more than the loopback

  // Runs `work` on a thread of its own and answers requests until SIGINT or SIGTERM. Then connections are closed and
  // the threads end, except a `work` that is not finished, which is left behind. In that case it returns false, and the
  // process must end without destroying what `work` uses.
  bool serve(std::function<void()> work);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stageline
