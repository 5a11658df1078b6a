#include "base/hash_seed.h"

#include <chrono>

#include "base/system_calls.h"

namespace stageline {
namespace {

uint64_t draw() {
  uint64_t seed = 0;
  if (random_bytes(&seed, sizeof seed, kNoWaiting) != static_cast<ssize_t>(sizeof seed))
    seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) * 0xd6e8feb86659fd93u;
  return seed | uint64_t{1} << 63;
}

}  // namespace

uint64_t hash_seed() {
  static const uint64_t seed = draw();
  return seed;
}

}  // namespace stageline
