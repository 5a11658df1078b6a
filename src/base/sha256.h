// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), with which requests to S3 are signed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stageline {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
Sha256 hmac_sha256(std::string_view key, std::string_view bytes);
std::string_view bytes_of(const Sha256& digest);
std::string hex_of(const Sha256& digest);  // 64 digits in lower case

}  // namespace stageline
