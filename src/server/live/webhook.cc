#include "server/live/webhook.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>

#include "base/number.h"

namespace stageline {
namespace {

namespace hook_asio = boost::asio;
namespace hook_beast = boost::beast;
namespace hook_http = boost::beast::http;

constexpr auto kAnswerWithin = std::chrono::seconds(5);
constexpr auto kBetweenTries = std::chrono::seconds(1);
constexpr uint64_t kMaxAnswerBytes = 64 * 1024;

Error no_address(std::string what) {
  return make_error(ErrorCode::kUsage, std::move(what),
                    "--webhook takes an address such as http://127.0.0.1:9000/stageline");
}

// One request from beginning to end; each part begins when the one before it is done. The stream's timeout covers all
// parts.
class Post {
 public:
  Post(const std::string& host, const std::string& port, const std::string& target, const std::string& body)
      : resolver_(context_), stream_(context_) {
    request_.method(hook_http::verb::post);
    request_.target(target);
    request_.version(11);
    request_.set(hook_http::field::host, port == "80" ? host : host + ":" + port);
    request_.set(hook_http::field::user_agent, "stageline");
    request_.set(hook_http::field::content_type, "application/json");
    request_.body() = body;
    request_.keep_alive(false);
    request_.prepare_payload();
    parser_.body_limit(kMaxAnswerBytes);
    resolver_.async_resolve(host, port, [this](hook_beast::error_code error, const auto& found) {
      if (error) return fail("its host is not known: ", error);
      stream_.expires_after(kAnswerWithin);
      stream_.async_connect(found, [this](hook_beast::error_code no, const auto&) { on_connected(no); });
    });
  }
  std::string run() {
    // A name server that does not answer is given up as well; a lookup that goes on is left until the context ends.
    context_.run_for(2 * kAnswerWithin);
    return done_ ? problem_ : "it did not answer in time";
  }

 private:
  void on_connected(hook_beast::error_code error) {
    if (error) return fail("it cannot be reached: ", error);
    hook_http::async_write(stream_, request_, [this](hook_beast::error_code no, size_t) {
      if (no) return fail("it did not take the message: ", no);
      hook_http::async_read(stream_, buffer_, parser_, [this](hook_beast::error_code bad, size_t) {
        if (bad) return fail("its answer is none: ", bad);
        const auto status = parser_.get().result_int();
        if (status < 200 || status > 299) problem_ = "it answered " + std::to_string(status);
        done_ = true;
      });
    });
  }
  void fail(const char* what, hook_beast::error_code error) {
    problem_ = what + (error == hook_beast::error::timeout ? std::string("it took too long") : error.message());
    done_ = true;
  }

  hook_asio::io_context context_;
  hook_asio::ip::tcp::resolver resolver_;
  hook_beast::tcp_stream stream_;
  hook_beast::flat_buffer buffer_;
  hook_http::request<hook_http::string_body> request_;
  hook_http::response_parser<hook_http::string_body> parser_;
  bool done_ = false;
  std::string problem_;
};

}  // namespace

Result<std::unique_ptr<Webhook>> Webhook::to(std::string_view url) {
  const std::string address(url);
  if (url.starts_with("https://"))
    return make_error(ErrorCode::kUsage, "this program speaks no https, so it cannot tell " + address,
                      "give an http address of this machine, of a relay that speaks https onwards");
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return no_address("\"" + address + "\" is no http address");
  url.remove_prefix(kScheme.size());
  const size_t path = std::min(url.find_first_of("/?#"), url.size());
  std::string_view place = url.substr(0, path);
  std::string target(url.substr(path, url.find('#', path) - path));
  if (!target.starts_with('/')) target.insert(0, "/");
  if (place.find('@') != std::string_view::npos)
    return no_address("\"" + address + "\" holds a user's name, and would send it readable by everyone on the way");
  std::string port = "80";
  const size_t bracket = place.rfind(']'), colon = place.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    port = place.substr(colon + 1);
    place = place.substr(0, colon);
    const auto number = parse_int(port);
    if (!number || *number < 1 || *number > 65'535)
      return no_address("\"" + address + "\" has no port from 1 to 65535");
  }
  std::string host(place);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  if (host.empty() || std::ranges::any_of(host, odd) || std::ranges::any_of(target, odd))
    return no_address("\"" + address + "\" is no http address");
  return std::unique_ptr<Webhook>(new Webhook(std::move(host), std::move(port), std::move(target)));
}

Webhook::Webhook(std::string host, std::string port, std::string target)
    : host_(std::move(host)), port_(std::move(port)), target_(std::move(target)), thread_([this] { work(); }) {}

Webhook::~Webhook() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(kPatience), [this] { return through_; });
    waiting_.clear();
  }
  thread_.join();  // takes at most one more try
}

void Webhook::send(std::string json) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(json));
  if (waiting_.size() > kMaxWaiting) {
    waiting_.pop_front();
    ++sums_.given_up;
  }
  changed_.notify_all();
}

Webhook::Sums Webhook::sums() const {
  const std::lock_guard lock(mutex_);
  return sums_;
}

std::string Webhook::post(const std::string& body) const {
  try {
    return Post(host_, port_, target_, body).run();
  } catch (const std::exception& error) {
    return error.what();
  }
}

void Webhook::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) break;
    const std::string body = std::move(waiting_.front());
    waiting_.pop_front();
    for (int k = 0; k < kTries; ++k) {
      if (k > 0) changed_.wait_for(lock, kBetweenTries, [this] { return stopping_; });
      lock.unlock();
      std::string problem = post(body);
      lock.lock();
      sums_.problem = std::move(problem);
      if (sums_.problem.empty()) break;
    }
    ++(sums_.problem.empty() ? sums_.sent : sums_.given_up);
  }
  through_ = true;
  changed_.notify_all();
}

}  // namespace stageline
