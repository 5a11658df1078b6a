// CUPTI that is not there, to order.
#pragma once

#include <atomic>
#include <cstdint>

struct FakeCupti {
  int subscribe_error = 0, enable_error = 0;
  std::atomic<bool> subscribed{false};
  std::atomic<int> subscribes{0}, registered{0}, enables{0}, injections{0};
};
