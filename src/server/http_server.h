// The viewer's HTTP server: answers GET and HEAD for one run, until it is told to stop.
//
// Promises. Only the API and the embedded page are served; a path never leads to a file. On the loopback (the default)
// requests must name a loopback host, so a page elsewhere cannot reach the API by making its own name point here (DNS
// rebinding); on any other address every request needs the token in the URL that was printed, or the cookie that it
// sets. Headers are at most 16 KiB, bodies are refused, a request must arrive and an answer be taken within bounds of
// time, connections are at most kMaxConnections. Asynchronous (Boost.Beast) on a few threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/api.h"

namespace stageline {

inline constexpr uint16_t kDefaultPort = 8765;
inline constexpr size_t kMaxConnections = 1000;

struct ServeOptions {
  std::string host;              // "": the loopback, v4 and where there is one v6; else an address or a name
  int32_t port = -1;             // −1: kDefaultPort or the next free one; 0: any
  int64_t request_seconds = 20;  // that a request may take to arrive, and a connection be idle
  int64_t answer_seconds = 60;   // that an answer may take to be read, and a second more for each MB
};

class HttpServer {
 public:
  // Listens, does not answer yet. Errors: kIo, when the port is taken or the host is not ours.
  static Result<std::unique_ptr<HttpServer>> listen(const ServeOptions& options, const ViewRun& run);
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

// Whether a Host header names the loopback: "localhost", "127.0.0.1", "[::1]", with any port (tunnels change it).
bool is_loopback_host(std::string_view host_header);

}  // namespace stageline
