// One connection of the viewer's server: takes requests and sends answers within limits of size and time.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "server/http/http_site.h"

namespace stageline {

class HttpSession;

// The shared data of all connections of a server.
struct HttpContext {
  HttpContext(HttpSite what, const ServeOptions& how) : site(std::move(what)), options(how) {}

  HttpSite site;
  ServeOptions options;
  std::string token;      // the first part of every path; "": none is needed
  bool any_host = false;  // true where it listens on more than the loopback; then requests may name any host
  std::atomic<size_t> unsent_bytes{0};  // bytes of answers that clients have not read yet
  std::mutex assets_mutex;
  std::map<std::string, std::string> small_assets;  // by ETag; assets never change, so they are compressed once
  struct Sessions {
    std::mutex mutex;
    std::set<HttpSession*> open;
    bool closing = false;
  };
  std::shared_ptr<Sessions> sessions = std::make_shared<Sessions>();
};

// Takes over a connection, or closes it when there are too many. `context` must outlive it.
void start_session(HttpContext& context, boost::asio::ip::tcp::socket socket);
// Every connection ends as soon as the answer that it is computing is finished; no new ones start.
void close_sessions(HttpContext& context);

}  // namespace stageline
