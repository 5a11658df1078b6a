// Hashes, and bytes as text.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), with which requests to S3 are signed.
using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
Sha256 hmac_sha256(std::string_view key, std::string_view bytes);
std::string_view bytes_of(const Sha256& digest);
std::string hex_of(const Sha256& digest);  // 64 digits in lower case

// One random number for each process, for tables whose keys come from files: whoever writes a file cannot choose keys
// that all fall into one place. No output depends on it.
uint64_t hash_seed();  // not 0

// Returns a hash of 64 bits. The seed makes different keys collide in each process.
inline uint64_t seeded_hash(uint64_t key, uint64_t seed) {
  const auto product = static_cast<unsigned __int128>(key ^ seed) * (seed | 1);
  const auto again =
      static_cast<unsigned __int128>(static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64)) *
      0x9e3779b97f4a7c15u;
  return static_cast<uint64_t>(again) ^ static_cast<uint64_t>(again >> 64);
}

// Hash for unordered_map and similar containers.
struct SeededHash {
  size_t operator()(int64_t key) const { return seeded_hash(key, hash_seed()); }
};

// Base64 writes bytes as text of 64 letters (RFC 4648), padded.
std::string base64(std::string_view bytes);

}  // namespace stageline
