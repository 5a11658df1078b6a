#include "readers/nsys/payload.h"

#include <algorithm>
#include <set>

namespace stageline::nsys {
namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kMaxFields = 4096;

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

// NVTX's own entry types, nvtxPayloadEntryType: 1 char … 22 size_t; from 2^24 on another schema, an enumeration here.
size_t size_of_type(int64_t type) {
  switch (type) {
    case 1:
    case 2:
    case 11:
    case 12: return 1;
    case 3:
    case 4:
    case 13:
    case 14: return 2;
    case 5:
    case 6:
    case 15:
    case 16: return 4;
    case 7:
    case 8:
    case 9:
    case 10:
    case 17:
    case 18:
    case 22: return 8;
    default: return type >= (int64_t{1} << 24) ? 4 : 0;
  }
}
bool is_signed_type(int64_t type) {
  return type == 3 || type == 5 || type == 7 || type == 9 || type == 11 || type == 13 || type == 15 || type == 17;
}

}  // namespace

PayloadSchemas::PayloadSchemas(const SqliteDb& db) {
  std::set<std::pair<uint64_t, int64_t>> seen;  // rows repeat once per process
  SqliteRows rows = rows_of(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"schemaId", "idx", "type", "name", "offset?"}, nullptr,
                            "ORDER BY schemaId, idx");
  size_t count = 0;
  while (rows.next() && count < kMaxFields) {
    const uint64_t schema = rows.integer(0);
    if (!seen.insert({schema, rows.integer(1)}).second) continue;
    Field field;
    field.name = rows.text(3);
    field.offset = std::max<int64_t>(0, rows.integer_or(4, 0));
    field.size = size_of_type(rows.integer(2));
    field.is_signed = is_signed_type(rows.integer(2));
    fields_[schema].push_back(std::move(field));
    ++count;
  }
}

NcclPayload PayloadSchemas::read(std::string_view bytes) const {
  NcclPayload out;
  if (bytes.size() < kHeaderBytes) return out;
  const auto schema = fields_.find(little_endian(bytes.substr(8, 8)));
  if (schema == fields_.end()) return out;
  const std::string_view payload = bytes.substr(kHeaderBytes);
  for (const Field& field : schema->second) {
    if (field.size == 0 || field.offset > payload.size() || payload.size() - field.offset < field.size) continue;
    uint64_t value = little_endian(payload.substr(field.offset, field.size));
    if (field.is_signed && field.size < 8 && (value >> (8 * field.size - 1)) != 0)
      value |= ~uint64_t{0} << (8 * field.size);
    const int64_t number = value;
    const auto says = [&](std::string_view word) { return field.name.find(word) != std::string::npos; };
    if (says("ommunicator ID"))
      out.communicator = value, out.is_known = true;
    else if (says("No. of ranks"))
      out.ranks = number;
    else if (says("Peer rank"))
      out.peer = number;
    else if (field.name == "Rank")
      out.rank = number;
    else if (says("CUDA device"))
      out.device = number;
    else if (says("Message size"))
      out.bytes = number;
    else if (field.name == "Root")
      out.root = number;
  }
  return out;
}

}  // namespace stageline::nsys
