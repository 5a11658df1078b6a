#include "base/http_client.h"
#include "server/live/live_run.h"

namespace stageline {
namespace {

constexpr int kAnswerWithinMs = 5'000;
constexpr auto kBetweenTries = std::chrono::seconds(1);
constexpr size_t kMaxAnswerBytes = 64 * 1024;

// Returns what is wrong with an address; "" for a good one.
std::string fault_of(std::string_view url) {
  const size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  const size_t end = std::min(url.find_first_of("/?#", scheme), url.size());
  const std::string_view place = url.substr(scheme, end - scheme);
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  if (scheme == 0 || place.empty() || place.starts_with(':') || std::ranges::any_of(url, odd))
    return "is no http address";
  if (place.find('@') != std::string_view::npos)
    return "holds a user's name, which other users of this machine can see";
  const size_t bracket = place.rfind(']'), colon = place.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) return "";
  const auto port = parse_int(place.substr(colon + 1));
  return port && *port >= 1 && *port <= 65'535 ? "" : "has no port from 1 to 65535";
}

}  // namespace

Result<std::unique_ptr<Webhook>> Webhook::to(std::string_view url, const std::string& flag) {
  if (const std::string fault = fault_of(url); !fault.empty())
    return make_error(ErrorCode::kUsage, "\"" + std::string(url) + "\" " + fault,
                      flag + " takes an address such as https://example.com/stageline");
  TRY_OK(http_available(std::string(url)));
  return std::unique_ptr<Webhook>(new Webhook(std::string(url)));
}

Webhook::Webhook(std::string url) : url_(std::move(url)), thread_([this] { work(); }) {}

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
  const Result<HttpResponse> answer = http_request({.url = url_,
                                                    .headers = {"Content-Type: application/json"},
                                                    .method = "POST",
                                                    .body = body,
                                                    .whole_ms = kAnswerWithinMs,
                                                    .tries = 1,
                                                    .max_bytes = kMaxAnswerBytes});
  if (!answer) return answer.error().what;
  const bool taken = answer->status >= 200 && answer->status <= 299;
  return taken ? "" : "it answered " + std::to_string(answer->status);
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
