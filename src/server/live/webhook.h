// Notifies another program at once: with an HTTP POST of JSON for each event, in order, on a separate thread. A
// receiver that is slow or away delays nothing.
//
// A message is tried kTries times, then given up and counted. If more than kMaxWaiting wait, the oldest is given up.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"

namespace stageline {

class Webhook {
 public:
  static constexpr size_t kMaxWaiting = 256;
  static constexpr int kTries = 3;

  // Makes one for an address such as "https://host:port/path", the value of `flag`. Errors: kUsage for other forms,
  // kUnavailable without libcurl.
  static Result<std::unique_ptr<Webhook>> to(std::string_view url, const std::string& flag);
  // Waits at most `kPatience` seconds until everything that was given to send() is sent or given up.
  ~Webhook();
  static constexpr int kPatience = 10;
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  void send(std::string json);

  struct Sums {
    int64_t sent = 0, given_up = 0;
    std::string problem;  // what went wrong in the last failed try; "": none has failed since one succeeded
  };
  Sums sums() const;

 private:
  explicit Webhook(std::string url);
  void work();
  std::string post(const std::string& body) const;  // "" where the receiver answered 2xx, else what went wrong

  const std::string url_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  Sums sums_;
  bool stopping_ = false, through_ = false;
  std::thread thread_;
};

}  // namespace stageline
