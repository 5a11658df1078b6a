// Recognises spans of OpenTelemetry as protobuf by their first bytes, which are also those of Perfetto's packets.
#pragma once

#include <string_view>

#include "base/proto_scan.h"

namespace stageline {

// Returns true where a request begins. It holds the spans of a resource, these hold the resource, and this an attribute
// with a key in printable characters, each as field 1. In a packet of Perfetto's the third of these is a number.
inline bool begins_otlp(std::string_view bytes) {
  const char *at = bytes.data(), *const end = at + bytes.size();
  uint64_t length = 0;
  for (int level = 0; level < 4; ++level)
    if (at == end || *at++ != '\x0a' || !ProtoScan::read_varint(at, end, length) || length == 0) return false;
  if (length >= static_cast<uint64_t>(end - at)) return false;
  for (const char* const key_end = at + length; at != key_end; ++at)
    if (*at <= ' ' || *at > '~') return false;
  return *at == '\x12';
}

}  // namespace stageline
