// The form of answers with many numbers. The length of a JSON header (u32) comes first, then the header, and zeros up
// to a multiple of 8. Columns follow, each at a multiple of 8 counted from the first one. All numbers are little-endian
// (docs/viewer-protocol.md).
#pragma once

#include "base/json_writer.h"

namespace stageline {

class WireColumns {
 public:
  static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

  // Returns the offset at which the column begins.
  template <class T> size_t add(std::string name, const char* type, const std::vector<T>& values) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const size_t offset = bytes_.size();
    columns_.push_back({std::move(name), type, offset, values.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return offset;
  }
  size_t add_bytes(std::string_view bytes) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    bytes_ += bytes;
    return bytes_.size() - bytes.size();
  }
  // Writes "columns": [{name, type, offset, count}].
  void describe(JsonWriter& json) const {
    json.key("columns").begin_array();
    for (const Column& c : columns_)
      json.begin_object()
          .field("name", c.name)
          .field("type", c.type)
          .field("offset", c.offset)
          .field("count", c.count)
          .end_object();
    json.end_array();
  }
  std::string with_header(std::string_view json) && {
    const auto length = static_cast<uint32_t>(json.size());
    std::string out(sizeof length, '\0');
    std::memcpy(out.data(), &length, sizeof length);
    out.reserve(out.size() + json.size() + 8 + bytes_.size());
    out += json;
    out.resize((out.size() + 7) / 8 * 8);
    out += bytes_;
    return out;
  }

 private:
  struct Column {
    std::string name;
    const char* type;
    size_t offset, count;
  };
  std::string bytes_;
  std::vector<Column> columns_;
};

}  // namespace stageline
