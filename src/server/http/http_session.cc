#include "server/http/http_session.h"

#include <unistd.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/http/file_body.hpp>
#include <new>

#include "base/gzip_bytes.h"
#include "base/json_writer.h"
#include "server/http/query.h"

namespace stageline {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr size_t kMaxHeaderBytes = 16 * 1024;
constexpr size_t kMinCompressed = 1400;  // bytes; compressing an answer that fits one packet saves nothing
// The limit is for all connections together, so that clients who do not read cannot fill the memory.
constexpr size_t kMaxUnsentBytes = size_t{1} << 29;
constexpr auto kStatusEvery = std::chrono::milliseconds(200);

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

template <class Fields> void secure(Fields& answer) {
  answer.set(http::field::server, "stageline");
  answer.set("Content-Security-Policy",
             "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
             "worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  answer.set("X-Content-Type-Options", "nosniff");
  answer.set("X-Frame-Options", "DENY");
  answer.set("Referrer-Policy", "no-referrer");
  answer.set("Cross-Origin-Resource-Policy", "same-origin");
}

}  // namespace

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(HttpContext& context, asio::ip::tcp::socket socket)
      : context_(context), sessions_(context.sessions), stream_(std::move(socket)), timer_(stream_.get_executor()) {}
  ~HttpSession() {
    forget_unsent();
    const std::lock_guard lock(sessions_->mutex);
    sessions_->open.erase(this);
  }

  bool enter() {
    const std::lock_guard lock(sessions_->mutex);
    if (sessions_->closing || sessions_->open.size() >= kMaxConnections) return false;
    sessions_->open.insert(this);
    return true;
  }
  void read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(takes_files() ? DropBox::kMaxBytes : context_.site.max_body_bytes);
    stream_.expires_after(std::chrono::seconds(context_.options.request_seconds));
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code error, size_t) { self->on_request(error); });
  }
  void close() {
    closing_ = true;
    timer_.cancel();
    beast::error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    stream_.close();
  }
  auto executor() { return stream_.get_executor(); }

 private:
  using Request = http::request<http::empty_body>;

  void on_request(beast::error_code error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refuse(431, "the request's headers are too long", "16 KiB are the most");
    if (error == http::error::body_limit || error == http::error::unexpected_body)
      return refuse(413, "requests have no body", "GET and HEAD");
    if (error && error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message)
      return refuse(400, "this is no HTTP request", "");
    if (error) return close();
    if (parser_->get().method() == http::verb::put) return start_body();
    // A request with a body is refused unread, and the connection cannot be used any further, since that body would
    // follow.
    if (!parser_->is_done()) return refuse(413, "requests have no body", "GET and HEAD");
    request_ = parser_->release();
    if (request_.method() != http::verb::get && request_.method() != http::verb::head)
      return refuse(405, "only GET and HEAD are answered", "");
    keep_alive_ = request_.keep_alive();
    if (std::optional<ApiAnswer> no = why_not()) return send(std::move(*no));
    find_part();
    if (part_->status && path_ == "/api/events" && request_.method() == http::verb::get) return start_events();
    send(answer());
  }

  bool takes_files() const { return context_.site.drops && context_.site.drops->takes(); }

  // Finds the part that is asked. `path_` then is the path within it.
  void find_part() {
    const size_t size = target_.size();
    part_ = context_.site.part_of(target_);
    if (target_.size() != size)
      if (Result<Query> query = parse_target(target_); query) path_ = std::move(query->path);
  }

  ApiAnswer answer() const {
    try {
      return part_->answer(target_);
    } catch (const std::bad_alloc&) {
      return error_answer(503, "not enough memory for this", "ask for less of it");
    }
  }

  // Returns the refusal of a request from a page of another host, or without the token; nullopt for all others.
  std::optional<ApiAnswer> why_not() {
    const auto hosts = request_.equal_range(http::field::host);
    if (hosts.first == hosts.second || std::next(hosts.first) != hosts.second)
      return error_answer(400, "a request names one host", "");
    if (!context_.any_host && !is_loopback_host(view_of(hosts.first->value())))
      return error_answer(403, "this host is not served", "open the address that stageline printed");
    target_ = view_of(request_.target());
    if (!context_.token.empty() && !take_token())
      return error_answer(403, "the token is missing or wrong", "open the whole address that stageline printed");
    // The path that the part will use: decoded, so that no spelling of it gets past the checks.
    Result<Query> query = parse_target(target_);
    if (!query) return error_answer(400, query.error().what, query.error().hint);
    path_ = std::move(query->path);
    const std::string_view site = view_of(request_["Sec-Fetch-Site"]);
    if (path_.find("/api/") != std::string::npos && (site == "cross-site" || site == "same-site"))
      return error_answer(403, "another site's page may not read this", "");
    return {};
  }

  // Removes "/TOKEN" from the target; false where the target does not begin with it and a slash after it.
  bool take_token() {
    const size_t size = context_.token.size() + 1;
    if (target_.size() <= size || target_[0] != '/' || target_[size] != '/') return false;
    if (!same_secret(std::string_view(target_).substr(1, size - 1), context_.token)) return false;
    target_.erase(0, size);
    return true;
  }

  void refuse(int status, std::string_view what, std::string_view hint) {
    keep_alive_ = false;
    request_ = {};
    request_.version(11);
    send(error_answer(status, what, hint));
  }

  bool wants_gzip() const {
    const std::string_view accepted = view_of(request_[http::field::accept_encoding]);
    return accepted.find("gzip") != std::string_view::npos && accepted.find("gzip;q=0") == std::string_view::npos;
  }

  std::string small_asset(const ApiAnswer& asset) {
    const std::lock_guard lock(context_.assets_mutex);
    std::string& small = context_.small_assets[asset.etag];
    if (small.empty()) small = gzip_bytes(asset.body);
    return small;
  }

  void forget_unsent() {
    context_.unsent_bytes -= unsent_;
    unsent_ = 0;
  }

  void send(ApiAnswer made) {
    unsent_ = made.body.size();
    if (context_.unsent_bytes.fetch_add(unsent_) + unsent_ > kMaxUnsentBytes && unsent_ > 4096) {
      forget_unsent();
      made = error_answer(503, "too many answers wait to be read", "ask again when some of them are");
    }
    http::response<http::string_body> out{static_cast<http::status>(made.status), request_.version()};
    secure(out);
    out.set(http::field::content_type, made.type);
    out.set(http::field::cache_control, made.etag.empty() ? "no-store" : "no-cache");
    if (made.status == 405) out.set(http::field::allow, "GET, HEAD");
    if (!made.etag.empty()) out.set(http::field::etag, made.etag);
    if (!made.etag.empty() && view_of(request_[http::field::if_none_match]) == made.etag) {
      out.result(http::status::not_modified);
      made.body.clear();
    } else if (made.body.size() >= kMinCompressed && made.type != "application/octet-stream" &&
               (!made.etag.empty() || context_.any_host)) {
      out.set(http::field::vary, "Accept-Encoding");
      if (wants_gzip()) {
        // On the loopback, compressing is worth the time only for what caches keep.
        made.body = made.etag.empty() ? gzip_bytes(made.body) : small_asset(made);
        out.set(http::field::content_encoding, "gzip");
      }
    }
    const size_t size = made.body.size();
    if (request_.method() != http::verb::head) out.body() = std::move(made.body);
    out.keep_alive(keep_alive_);
    out.content_length(size);
    response_ = std::move(out);
    serializer_.emplace(*response_);
    stream_.expires_after(
        std::chrono::seconds(context_.options.answer_seconds + static_cast<int64_t>(size / 1'000'000)));
    const auto done = [self = shared_from_this()](beast::error_code error, size_t) { self->on_sent(error); };
    if (request_.method() == http::verb::head) {
      serializer_->split(true);
      http::async_write_header(stream_, *serializer_, done);
    } else {
      http::async_write(stream_, *serializer_, done);
    }
  }

  void on_sent(beast::error_code error) {
    serializer_.reset();
    response_.reset();
    forget_unsent();
    if (closing_) return;
    if (error || !keep_alive_) return end();
    read();
  }

  // Says that nothing more will be sent, and lets the peer read what is on its way.
  void end() {
    beast::error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    drain(0);
  }
  // While the peer still sends (the body of a refused request), a reset would destroy the answer; so up to a bound its
  // bytes are read and dropped.
  void drain(size_t taken) {
    constexpr size_t kMaxDrained = size_t{1} << 20;
    if (taken > kMaxDrained || closing_) return close();
    buffer_.clear();
    stream_.expires_after(std::chrono::seconds(2));
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this(), taken](beast::error_code error, size_t count) {
                              if (error) return self->close();
                              self->drain(taken + count);
                            });
  }

  // Handles a request with a body: a file for the start page, or the notes of a run.
  void start_body() {
    request_ = parser_->get();
    keep_alive_ = false;  // a refusal may leave the body unread
    if (std::optional<ApiAnswer> no = why_not()) return send(std::move(*no));
    find_part();
    if (part_->take && path_ == "/api/notes") return start_notes();
    if (!takes_files()) return send(error_answer(405, "only /api/notes takes a body", ""));
    start_file();
  }

  void start_notes() {
    if (!parser_->content_length() || *parser_->content_length() > context_.site.max_body_bytes)
      return send(error_answer(413, "notes say their length, and have 1 MiB at most", ""));
    text_.emplace(std::move(*parser_));
    stream_.expires_after(std::chrono::seconds(context_.options.request_seconds));
    http::async_read(stream_, buffer_, *text_, [self = shared_from_this()](beast::error_code error, size_t) {
      if (error) return self->close();
      const std::string body = std::move(self->text_->get().body());
      self->text_.reset();
      self->keep_alive_ = self->request_.keep_alive();
      self->send(self->part_->take(self->target_, body));
    });
  }

  // Takes a file that the start page sends. Its bytes are written as they come; a file that does not arrive whole is
  // removed.
  void start_file() {
    const Result<Query> query = parse_target(target_);
    if (path_ != "/api/drop") return send(error_answer(405, "only /api/drop takes files", ""));
    const auto drop = integer_parameter(*query, "drop", 0, 0, INT64_MAX);
    if (!drop) return send(refused_answer(drop.error()));
    if (!parser_->content_length()) return send(error_answer(411, "the file's length is not said", ""));
    DropBox& box = *context_.site.drops;
    file_bytes_ = *parser_->content_length();
    if (!box.take_bytes(file_bytes_)) {
      file_bytes_ = 0;
      return send(error_answer(413, "the files that were dropped have no room together",
                               "stageline view PATH reads them where they lie"));
    }
    Result<DropBox::Place> place = box.place(*drop, query->text("name"));
    if (!place) return fail_file(refused_answer(place.error()));
    place_ = std::move(*place);
    file_.emplace(std::move(*parser_));
    beast::error_code error;
    file_->get().body().open(place_.path.c_str(), beast::file_mode::write_new, error);
    if (error) return fail_file(error_answer(409, "this file is there already", ""));
    file_->eager(true);
    read_file();
  }
  void read_file() {
    if (file_->is_done()) return end_file();
    stream_.expires_after(std::chrono::seconds(context_.options.request_seconds));
    http::async_read_some(stream_, buffer_, *file_, [self = shared_from_this()](beast::error_code error, size_t) {
      if (self->closing_ || error) return self->fail_file(error_answer(400, "the file did not come whole", ""));
      self->read_file();
    });
  }
  void end_file() {
    file_->get().body().close();
    file_.reset();
    keep_alive_ = request_.keep_alive();
    JsonWriter json;
    json.begin_object().field("drop", place_.drop).end_object();
    send({200, "application/json; charset=utf-8", json.take(), {}});
  }
  void fail_file(ApiAnswer why) {
    if (file_ && file_->get().body().is_open()) {
      file_.reset();
      ::unlink(place_.path.c_str());
    }
    context_.site.drops->give_back(file_bytes_);
    if (closing_) return close();
    send(std::move(why));
  }

  // Sends server-sent events: the status several times a second, until it is settled.
  void start_events() {
    http::response<http::empty_body> head{http::status::ok, request_.version()};
    secure(head);
    head.set(http::field::content_type, "text/event-stream");
    head.set(http::field::cache_control, "no-store");
    head.keep_alive(false);
    event_.clear();
    std::ostringstream text;  // the header as Beast writes it, once per connection
    text << head.base();
    event_ = text.str();
    next_event();
  }
  void next_event() {
    const bool last = part_->settled();
    event_ += "data: " + part_->status() + "\n\n";
    stream_.expires_after(std::chrono::seconds(context_.options.answer_seconds));
    asio::async_write(stream_, asio::buffer(event_),
                      [self = shared_from_this(), last](beast::error_code error, size_t) {
                        if (self->closing_) return;
                        if (error || last) return self->end();
                        self->event_.clear();
                        self->wait_event();
                      });
  }
  void wait_event() {
    stream_.expires_never();
    timer_.expires_after(kStatusEvery);
    timer_.async_wait([self = shared_from_this()](beast::error_code error) {
      if (!error && !self->closing_) self->next_event();
    });
  }

  HttpContext& context_;
  std::shared_ptr<HttpContext::Sessions> sessions_;
  beast::tcp_stream stream_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_{kMaxHeaderBytes + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Request request_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::string event_;
  size_t unsent_ = 0;
  std::string target_;                    // of the request, without the token and without what names the part
  std::string path_;                      // the same, decoded and without parameters
  std::shared_ptr<const HttpPart> part_;  // that is asked
  std::optional<http::request_parser<http::string_body>> text_;  // notes that are arriving
  std::optional<http::request_parser<http::file_body>> file_;    // a file that is arriving
  DropBox::Place place_;
  uint64_t file_bytes_ = 0;
  bool keep_alive_ = false, closing_ = false;
};

void start_session(HttpContext& context, asio::ip::tcp::socket socket) {
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const auto session = std::make_shared<HttpSession>(context, std::move(socket));
  if (!session->enter()) return;  // the socket closes with it
  asio::dispatch(session->executor(), [session] { session->read(); });
}

void close_sessions(HttpContext& context) {
  std::vector<std::shared_ptr<HttpSession>> open;
  {
    const std::lock_guard lock(context.sessions->mutex);
    context.sessions->closing = true;
    for (HttpSession* session : context.sessions->open)
      if (auto alive = session->weak_from_this().lock()) open.push_back(std::move(alive));
  }
  for (const auto& session : open) asio::post(session->executor(), [session] { session->close(); });
}

}  // namespace stageline
