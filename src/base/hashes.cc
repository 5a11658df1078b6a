#include "base/hashes.h"

#include <chrono>

#include "base/system_calls.h"

namespace stageline {
namespace {

constexpr size_t kBlock = 64;

constexpr uint32_t kRound[64] = {
#include "base/sha256_rounds.def"
};

void add_block(uint32_t (&state)[8], const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t b = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  uint32_t v[8];
  std::copy(state, state + 8, v);
  for (int i = 0; i < 64; ++i) {
    const uint32_t e = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
    const uint32_t a = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
    const uint32_t one = v[7] + e + ((v[4] & v[5]) ^ (~v[4] & v[6])) + kRound[i] + w[i];
    const uint32_t two = a + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    std::copy_backward(v, v + 7, v + 8);
    v[4] += one;
    v[0] = one + two;
  }
  for (int i = 0; i < 8; ++i) state[i] += v[i];
}

uint64_t draw() {
  uint64_t seed = 0;
  if (random_bytes(&seed, sizeof seed, kNoWaiting) != static_cast<ssize_t>(sizeof seed))
    seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) * 0xd6e8feb86659fd93u;
  return seed | uint64_t{1} << 63;
}

}  // namespace

Sha256 sha256(std::string_view bytes) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  // The padding: a one bit, zeros, and the number of bits.
  std::string end(bytes.substr(bytes.size() / kBlock * kBlock));
  end += '\x80';
  end.resize((end.size() + 8 + kBlock - 1) / kBlock * kBlock);
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) end[end.size() - 1 - i] = static_cast<char>(bits >> (8 * i));
  for (const std::string_view part : {bytes.substr(0, bytes.size() / kBlock * kBlock), std::string_view(end)})
    for (size_t at = 0; at < part.size(); at += kBlock)
      add_block(state, reinterpret_cast<const uint8_t*>(part.data() + at));
  Sha256 out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

Sha256 hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string block(key.size() > kBlock ? std::string(bytes_of(sha256(key))) : std::string(key));
  block.resize(kBlock);
  std::string inner, outer;
  for (const char c : block) {
    inner += static_cast<char>(c ^ 0x36);
    outer += static_cast<char>(c ^ 0x5c);
  }
  return sha256(outer + std::string(bytes_of(sha256(inner + std::string(bytes)))));
}

std::string_view bytes_of(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex_of(const Sha256& digest) {
  std::string out;
  for (const uint8_t byte : digest) append_hex(out, byte);
  return out;
}

uint64_t hash_seed() {
  static const uint64_t seed = draw();
  return seed;
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](size_t k) { return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0u; };
    const unsigned group = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    out += kDigits[group >> 18];
    out += kDigits[group >> 12 & 63];
    out += i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
  return out;
}

}  // namespace stageline
