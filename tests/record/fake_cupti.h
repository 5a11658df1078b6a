// CUPTI that is not there, to order.
#pragma once

#include <atomic>
#include <cstdint>

struct FakeCupti {
  int subscribe_error = 0, enable_error = 0;
  uint32_t correlation = 0;  // of the kernels and copies that follow
  std::atomic<bool> subscribed{false}, thread_ids_of_system{false};
  std::atomic<int> subscribes{0}, registered{0}, enables{0}, injections{0};
};
