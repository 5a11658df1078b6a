// Writes columns of numbers and texts as bytes and reads them back; the body of a digest is made of them. Each column
// has its name, so a reader takes the columns it knows and skips the others.
//
//   varint name length │ name │ type │ varint count │ varint bytes │ bytes
//
// Type 'i' is whole numbers, each as the zigzag varint of its difference from the one before. Type 'd' is doubles,
// eight bytes little-endian. Type 't' is texts, each as a varint length and its bytes. Empty columns are left out
// (docs/formats/digest.md).
#pragma once

#include "base/vocabulary.h"

namespace stageline::digest {

static_assert(std::endian::native == std::endian::little, "doubles are written as they lie in memory");

template <class T>
concept Whole = std::is_integral_v<T> || std::is_enum_v<T>;

inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
inline bool take_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

class ColumnWriter {
 public:
  static constexpr bool kReads = false;

  template <class T> void list(std::string_view name, const std::vector<T>& values) {
    if (values.empty()) return;
    std::string bytes;
    if constexpr (std::is_same_v<T, std::string>) {
      for (const std::string& text : values) {
        put_varint(bytes, text.size());
        bytes += text;
      }
      put(name, 't', values.size(), bytes);
    } else if constexpr (std::is_floating_point_v<T>) {
      for (const T value : values) {
        const double wide = value;
        bytes.append(reinterpret_cast<const char*>(&wide), sizeof wide);
      }
      put(name, 'd', values.size(), bytes);
    } else {
      static_assert(Whole<T>);
      uint64_t before = 0;
      for (const T value : values) {
        const uint64_t wide = static_cast<int64_t>(value);
        const int64_t more = wide - before;
        put_varint(bytes, static_cast<uint64_t>(more) << 1 ^ (more >> 63));
        before = wide;
      }
      put(name, 'i', values.size(), bytes);
    }
  }
  template <class T> void value(std::string_view name, const T& value) { list(name, std::vector<T>{value}); }
  std::string take() { return std::move(out_); }

 private:
  void put(std::string_view name, char type, size_t count, const std::string& bytes) {
    put_varint(out_, name.size());
    out_ += name;
    out_ += type;
    put_varint(out_, count);
    put_varint(out_, bytes.size());
    out_ += bytes;
  }
  std::string out_;
};

class ColumnReader {
 public:
  static constexpr bool kReads = true;

  // `body` must outlive the reader.
  explicit ColumnReader(std::string_view body) {
    while (good_ && !body.empty()) good_ = take_column(body);
  }
  // Memory of all columns after unpacking them into vectors.
  int64_t memory_bytes() const {
    int64_t bytes = 0;
    for (const auto& [name, column] : columns_)
      bytes += static_cast<int64_t>(column.count * (column.type == 't' ? sizeof(std::string) : sizeof(int64_t)) +
                                    (column.type == 't' ? column.bytes.size() : 0));
    return bytes;
  }
  // False once a column was not what it should be.
  bool good() const { return good_; }
  void fail() { good_ = false; }

  template <class T> void list(std::string_view name, std::vector<T>& values) {
    values.clear();
    const auto at = columns_.find(name);
    if (at == columns_.end()) return;
    auto [type, count, bytes] = at->second;
    values.reserve(count);
    if constexpr (std::is_same_v<T, std::string>) {
      for (size_t i = 0; i < count; ++i) {
        uint64_t size = 0;
        if (type != 't' || !take_varint(bytes, size) || size > bytes.size()) return fail();
        values.emplace_back(bytes.substr(0, size));
        bytes.remove_prefix(size);
      }
    } else if constexpr (std::is_floating_point_v<T>) {
      if (type != 'd' || bytes.size() != count * sizeof(double)) return fail();
      for (size_t i = 0; i < count; ++i) {
        double wide = 0;
        std::memcpy(&wide, bytes.data() + i * sizeof wide, sizeof wide);
        values.push_back(static_cast<T>(wide));
      }
    } else {
      static_assert(Whole<T>);
      if (type != 'i') return fail();
      uint64_t before = 0, more = 0;
      for (size_t i = 0; i < count; ++i) {
        if (!take_varint(bytes, more)) return fail();
        before += more >> 1 ^ (~(more & 1) + 1);
        const auto value = static_cast<T>(static_cast<int64_t>(before));
        // Larger than the column's type holds.
        if (static_cast<uint64_t>(static_cast<int64_t>(value)) != before) return fail();
        values.push_back(value);
      }
    }
  }
  template <class T> void value(std::string_view name, T& value) {
    std::vector<T> one;
    list(name, one);
    if (!one.empty()) value = std::move(one.front());
  }

 private:
  struct Column {
    char type;
    size_t count;
    std::string_view bytes;
  };
  bool take_column(std::string_view& body) {
    uint64_t length = 0, count = 0, size = 0;
    if (!take_varint(body, length) || length >= body.size()) return false;
    const std::string_view name = body.substr(0, length);
    const char type = body[length];
    body.remove_prefix(length + 1);
    if (!take_varint(body, count) || !take_varint(body, size) || size > body.size() || count > size) return false;
    columns_[name] = {type, static_cast<size_t>(count), body.substr(0, size)};
    body.remove_prefix(size);
    return true;
  }
  std::map<std::string_view, Column> columns_;
  bool good_ = true;
};

// A member of a row and the name of its column.
template <class Row, class T> struct Member {
  const char* name;
  T Row::* at;
};
template <class Row, class T> Member<Row, T> member(const char* name, T Row::* at) { return {name, at}; }

// Writes or reads rows as one column per member: "collectives.seq".
template <class Io, class Row, class... T>
void rows(Io& io, std::string_view table, std::vector<Row>& all, Member<Row, T>... members) {
  const auto one = [&]<class M>(const Member<Row, M>& m) {
    using Held = std::conditional_t<std::is_same_v<M, bool>, uint8_t, M>;
    const std::string name = std::string(table) + "." + m.name;
    std::vector<Held> column;
    if constexpr (Io::kReads) {
      io.list(name, column);
      if (all.empty()) all.resize(column.size());
      if (column.size() != all.size()) return io.fail();
      for (size_t i = 0; i < all.size(); ++i) all[i].*m.at = static_cast<M>(std::move(column[i]));
    } else {
      column.reserve(all.size());
      for (const Row& row : all) column.push_back(static_cast<Held>(row.*m.at));
      io.list(name, column);
    }
  };
  (one(members), ...);
}

}  // namespace stageline::digest
