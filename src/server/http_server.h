// The viewer's HTTP server: answers GET and HEAD for one run or a shelf of them (run_shelf.h), until it is told to
// stop.
//
// Promises. Only the API and the embedded page are served; a path never leads to a file. On the loopback (the default)
// requests must name a loopback host, so a page elsewhere cannot reach the API by making its own name point here (DNS
// rebinding). Every path begins with the token of the address that was printed, for other users of a login node reach
// the loopback too; without it only when ServeOptions says so, on the loopback alone. Headers are at most 16 KiB,
// bodies are refused but those of files that a shelf takes, a request must arrive and an answer be taken within bounds
// of time, connections are at most kMaxConnections. Asynchronous (Boost.Beast) on a few threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/api.h"
#include "server/serve_options.h"

namespace stageline {

class HttpServer {
 public:
  // Listens, does not answer yet. Errors: kIo, when the port is taken or the host is not ours.
  static Result<std::unique_ptr<HttpServer>> listen(const ServeOptions& options, const Served& what);
  ~HttpServer();

  const std::string& url() const;  // with the token, where there is one
  bool is_public() const;          // not on the loopback alone

  // Runs `work` on a thread of its own and answers requests, until SIGINT or SIGTERM. Connections are closed then; the
  // threads end, except that a `work` that is not through is left behind: false says that, and the process must end
  // without destroying what it uses.
  bool serve(std::function<void()> work);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stageline
