// Payloads of NVTX ranges, as NCCL attaches them to its calls: what is communicated, with whom, how much.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/sqlite_db.h"

namespace stageline::nsys {

// The content of a payload, by the names of its fields; −1: it has no such field.
struct NcclPayload {
  uint64_t communicator = 0;
  int64_t ranks = -1, rank = -1, device = -1;  // of calls that make a communicator
  int64_t bytes = -1, root = -1, peer = -1;    // bytes: "Message size [bytes]"
  bool is_known = false;
};

class PayloadSchemas {
 public:
  // NVTX_PAYLOAD_SCHEMA_ENTRIES; without the table nothing is known.
  explicit PayloadSchemas(const SqliteDb& db);
  // The bytes of NVTX_EVENTS.binaryData: a header of 32 bytes (domain, schema, size, offset), then the fields.
  NcclPayload read(std::string_view bytes) const;
  bool empty() const { return fields_.empty(); }

 private:
  struct Field {
    std::string name;
    size_t offset = 0, size = 0;
    bool is_signed = false;
  };
  std::map<uint64_t, std::vector<Field>> fields_;  // by schema
};

}  // namespace stageline::nsys
