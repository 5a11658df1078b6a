// Tells another program what happens, in the moment it does: a plain HTTP POST of JSON for each event, on a thread of
// its own, in order. A receiver that is slow or away holds nothing up.
//
// A message is tried kTries times, then given up and counted; of more than kMostWaiting the oldest is given up.
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
  static constexpr size_t kMostWaiting = 256;
  static constexpr int kTries = 3;

  // "http://host:port/path". Errors: kUsage for what is no such address; https is refused, for there is no TLS in this
  // program.
  static Result<std::unique_ptr<Webhook>> to(std::string_view url);
  // Waits until what was given to send() is sent or given up, at most `kPatience` seconds.
  ~Webhook();
  static constexpr int kPatience = 10;
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  void send(std::string json);

  struct Sums {
    int64_t sent = 0, given_up = 0;
    std::string problem;  // of the last try that failed; "": none since one went through
  };
  Sums sums() const;

 private:
  Webhook(std::string host, std::string port, std::string target);
  void work();
  std::string post(const std::string& body) const;  // "" when the receiver answered 2xx, else what went wrong

  const std::string host_, port_, target_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  Sums sums_;
  bool stopping_ = false, through_ = false;
  std::thread thread_;
};

}  // namespace stageline
