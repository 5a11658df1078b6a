#include "server/http/http_server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <csignal>

#include "base/parallel.h"
#include "base/system_calls.h"
#include "server/http/http_session.h"

namespace stageline {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int kPortsTried = 20;

std::string random_token() {
  unsigned char bytes[16];
  size_t have = 0;
  while (have < sizeof bytes) {
    const ssize_t got = random_bytes(bytes + have, sizeof bytes - have, 0);
    if (got > 0) have += got;
  }
  std::string out;
  for (const unsigned char b : bytes) append_hex(out, b);
  return out;
}

std::string own_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "localhost";
}

// Raises the limit of descriptors as far as allowed: a thousand connections do not fit into the usual 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string in_url(const asio::ip::address& address) {
  return address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
}

}  // namespace

struct HttpServer::Impl {
  Impl(const ServeOptions& how, HttpSite site) : options(how), context{std::move(site), how} {}

  ServeOptions options;
  HttpContext context;
  // Answers are short computations; one thread more is for reading, which takes long.
  asio::thread_pool pool{static_cast<size_t>(std::max(4, thread_count() + 1))};
  std::vector<tcp::acceptor> acceptors;
  std::string url;
  bool is_public = false;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, working = false;

  // Returns the addresses to listen on. Errors: kIo.
  Result<std::vector<asio::ip::address>> addresses() {
    if (options.host.empty()) return std::vector<asio::ip::address>{asio::ip::address_v4::loopback()};
    boost::system::error_code error;
    std::string host = options.host;
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const auto literal = asio::ip::make_address(host, error);
    if (!error) return std::vector<asio::ip::address>{literal};
    tcp::resolver resolver(pool);
    const auto found = resolver.resolve(host, "", error);
    std::vector<asio::ip::address> out;
    if (!error)
      for (const auto& entry : found)
        if (std::ranges::find(out, entry.endpoint().address()) == out.end()) out.push_back(entry.endpoint().address());
    if (out.empty())
      return make_error(ErrorCode::kIo, "no address is known for the host \"" + options.host + "\"",
                        "--host takes an address of this machine, such as 0.0.0.0 for all");
    return out;
  }

  boost::system::error_code open_one(const asio::ip::address& address, uint16_t port) {
    boost::system::error_code error;
    tcp::acceptor acceptor(pool);
    const tcp::endpoint endpoint(address, port);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && address.is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) acceptors.push_back(std::move(acceptor));
    return error;
  }

  Status open() {
    TRY(wanted, addresses());
    for (const auto& address : *wanted) is_public = is_public || !address.is_loopback();
    if (is_public && !options.token)
      return make_error(ErrorCode::kUsage, "without a token anyone in the network could read the run",
                        "--token none is for this machine alone; leave it or --host out");
    const auto first = static_cast<uint16_t>(options.port < 0 ? kDefaultPort : options.port);
    boost::system::error_code error;
    for (int k = 0; k < (options.port < 0 ? kPortsTried : 1) && acceptors.empty(); ++k) {
      error = open_one(wanted->front(), static_cast<uint16_t>(first + k));
      if (error && error != asio::error::address_in_use) break;
    }
    if (acceptors.empty() && options.port < 0 && error == asio::error::address_in_use)
      error = open_one(wanted->front(), 0);
    if (acceptors.empty())
      return make_error(ErrorCode::kIo,
                        "cannot listen on " + in_url(wanted->front()) + ", port " + std::to_string(first) + ": " +
                            (error == asio::error::address_in_use ? "the port is taken" : error.message()),
                        "--port chooses another one, --port 0 any that is free");
    const uint16_t port = acceptors.front().local_endpoint().port();
    // The name's other addresses, or the loopback of IPv6, are used where they are available.
    if (options.host.empty()) wanted->push_back(asio::ip::address_v6::loopback());
    for (size_t k = 1; k < wanted->size(); ++k) (void)open_one((*wanted)[k], port);
    if (options.token) context.token = random_token();
    context.any_host = is_public;
    const auto& address = wanted->front();
    url = "http://" + (address.is_unspecified() ? own_name() : in_url(address)) + ":" + std::to_string(port) + "/";
    // The token is in the path, because a query would be lost when the page requests its own files, and cookies do not
    // reach a page in a frame.
    if (!context.token.empty()) url += context.token + "/";
    return {};
  }

  void accept(size_t which) {
    acceptors[which].async_accept(asio::make_strand(pool.get_executor()),
                                  [this, which](boost::system::error_code error, tcp::socket socket) {
                                    if (error == asio::error::operation_aborted || is_stopping()) return;
                                    if (error) return accept_later(which);
                                    start_session(context, std::move(socket));
                                    accept(which);
                                  });
  }
  // Called when no descriptor is free; connections that end will release some.
  void accept_later(size_t which) {
    const auto timer = std::make_shared<asio::steady_timer>(pool, std::chrono::milliseconds(50));
    timer->async_wait([this, which, timer](boost::system::error_code) {
      if (!is_stopping()) accept(which);
    });
  }
  bool is_stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
const std::string& HttpServer::url() const { return impl_->url; }
bool HttpServer::is_public() const { return impl_->is_public; }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const ServeOptions& options, HttpSite site) {
  raise_descriptor_limit();
  auto impl = std::make_unique<Impl>(options, std::move(site));
  TRY_OK(impl->open());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

bool HttpServer::serve(std::function<void()> work) {
  Impl& impl = *impl_;
  asio::signal_set signals(impl.pool, SIGINT, SIGTERM);
  signals.async_wait([&impl](boost::system::error_code, int) {
    const std::lock_guard lock(impl.mutex);
    impl.stopping = true;
    impl.changed.notify_all();
  });
  impl.working = true;
  asio::post(impl.pool, [&impl, work = std::move(work)] {
    work();
    const std::lock_guard lock(impl.mutex);
    impl.working = false;
  });
  for (size_t k = 0; k < impl.acceptors.size(); ++k) impl.accept(k);
  bool through = false;
  {
    std::unique_lock lock(impl.mutex);
    impl.changed.wait(lock, [&] { return impl.stopping; });
    through = !impl.working;
  }
  boost::system::error_code ignored;
  for (tcp::acceptor& acceptor : impl.acceptors) acceptor.close(ignored);
  close_sessions(impl.context);
  if (through) impl.pool.join();
  return through;
}

}  // namespace stageline
