// Values packed into bytes, and read from them. A packer walks the fields of a struct once for both ends: each field is
// handed to a PackWriter or to a PackReader, which has the same functions.
//
// Whole numbers are varints, zigzag; of a column each value, or each one's distance to the one before, whichever is
// shorter. Real numbers are mostly whole nanoseconds: those go the same way, others as eight bytes.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// 2^52: whole numbers up to here are exact in a double, with one bit to spare.
inline constexpr double kMaxWhole = 4'503'599'627'370'496;

class PackWriter {
 public:
  static constexpr bool kReads = false;
  template <class... T> void whole(const T&... values) { (put(bytes_, zigzag(static_cast<int64_t>(values))), ...); }
  void real(const double& value) { put_real(bytes_, value); }
  void text(const std::string& value) {
    put(bytes_, value.size());
    bytes_ += value;
  }
  template <class... T> void column(const std::vector<T>&... columns) { (one_column(columns), ...); }
  template <class List, class Each> void list(const List& values, const Each& each) {
    put(bytes_, values.size());
    for (const auto& value : values) each(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T> void one_column(const std::vector<T>& values) {
    std::string plain, distances;
    T before{};
    for (const T& value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        put_real(plain, static_cast<double>(value));
      } else {
        put(plain, zigzag(static_cast<int64_t>(value)));
        put(distances, zigzag(static_cast<int64_t>(value) - static_cast<int64_t>(before)));
      }
      before = value;
    }
    const bool are_shorter = !std::is_floating_point_v<T> && distances.size() < plain.size();
    put(bytes_, values.size() * 2 + (are_shorter ? 1 : 0));
    bytes_ += are_shorter ? distances : plain;
  }
  static uint64_t zigzag(int64_t value) { return (static_cast<uint64_t>(value) << 1) ^ (value >> 63); }
  static void put(std::string& out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  }
  // A whole number as twice its zigzag code; any other number as 1 and its eight bytes.
  static void put_real(std::string& out, double value) {
    if (std::abs(value) < kMaxWhole && value == std::floor(value) && !(value == 0 && std::signbit(value)))
      return put(out, zigzag(static_cast<int64_t>(value)) << 1);
    put(out, 1);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out.append(raw, sizeof raw);
  }

  std::string bytes_;
};

class PackReader {
 public:
  static constexpr bool kReads = true;
  explicit PackReader(std::string_view bytes) : rest_(bytes) {}
  template <class... T> void whole(T&... values) { ((values = static_cast<T>(unzigzag(get()))), ...); }
  void real(double& value) { value = get_real(); }
  void text(std::string& value) { value = bytes_of(get()); }
  template <class... T> void column(std::vector<T>&... columns) { (one_column(columns), ...); }
  template <class List, class Each> void list(List& values, const Each& each) {
    values.resize(counted(get()));
    for (auto& value : values) each(value);
  }
  // For values that contradict each other: nothing of what was read is used.
  void break_off() { broken_ = true; }
  bool all_was_read() const { return !broken_ && rest_.empty(); }

 private:
  template <class T> void one_column(std::vector<T>& values) {
    const uint64_t head = get();
    values.resize(counted(head / 2));
    int64_t before = 0;
    for (T& value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        value = static_cast<T>(get_real());
      } else {
        before = unzigzag(get()) + (head % 2 != 0 ? before : 0);
        value = static_cast<T>(before);
      }
    }
  }
  static int64_t unzigzag(uint64_t value) {
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  uint64_t get() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    broken_ = true;
    return 0;
  }
  double get_real() {
    const uint64_t head = get();
    if (head != 1) return unzigzag(head >> 1);
    double value = 0;
    const std::string_view raw = bytes_of(sizeof value);
    if (raw.size() == sizeof value) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view bytes_of(uint64_t count) {
    const std::string_view own = rest_.substr(0, counted(count));
    rest_.remove_prefix(own.size());
    return own;
  }
  // Every value takes at least one byte, so a count beyond the remaining bytes is wrong.
  size_t counted(uint64_t count) {
    if (count <= rest_.size()) return count;
    broken_ = true;
    return 0;
  }

  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace stageline
