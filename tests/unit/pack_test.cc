// Packed values come back as they were, and bytes that are not whole are refused.
#include "base/pack.h"

#include <doctest/doctest.h>

using namespace stageline;

TEST_CASE("whole and real numbers come back to the last bit") {
  const std::vector<int64_t> wholes = {0, 1, -1, 63, 64, -65, INT64_MAX, INT64_MIN};
  const std::vector<double> reals = {0, -0.0, 1, -1, 0.1, 1e300, kMaxWhole, kMaxWhole - 1, -kMaxWhole, INFINITY};
  PackWriter writer;
  for (const int64_t value : wholes) writer.whole(value);
  for (const double value : reals) writer.real(value);
  const std::string bytes = writer.take();
  PackReader reader(bytes);
  for (const int64_t value : wholes) {
    int64_t read = 7;
    reader.whole(read);
    CHECK(read == value);
  }
  for (const double value : reals) {
    double read = 7;
    reader.real(read);
    CHECK(std::bit_cast<uint64_t>(read) == std::bit_cast<uint64_t>(value));
  }
  CHECK(reader.all_was_read());
}

TEST_CASE("a column is stored by distances where these are shorter") {
  const std::vector<int64_t> rising = {1'000'000, 1'000'001, 1'000'002, 1'000'003}, jumping = {1, -1, 1, -1};
  PackWriter near, far;
  near.column(rising), far.column(jumping);
  const std::string near_bytes = near.take(), far_bytes = far.take();
  CHECK(near_bytes.size() == 1 + 3 + 3);
  CHECK(far_bytes.size() == 1 + 4);
  std::vector<int64_t> read;
  PackReader near_reader(near_bytes);
  near_reader.column(read);
  CHECK(read == rising);
  PackReader far_reader(far_bytes);
  far_reader.column(read);
  CHECK(read == jumping);
}

TEST_CASE("bytes that end early, that are left over, or that count more than there is, are not whole") {
  PackWriter writer;
  writer.column(std::vector<int64_t>{1, 2, 3});
  writer.text("name");
  const std::string bytes = writer.take();
  const auto is_whole = [](std::string_view some) {
    std::vector<int64_t> column;
    std::string text;
    PackReader reader(some);
    reader.column(column);
    reader.text(text);
    return reader.all_was_read();
  };
  CHECK(is_whole(bytes));
  CHECK_FALSE(is_whole(bytes + "x"));
  for (size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE_MESSAGE(is_whole(bytes.substr(0, size)), size);
  CHECK_FALSE(is_whole("\x7f\x01"));                                // a column longer than the bytes
  CHECK_FALSE(is_whole(std::string(12, static_cast<char>(0xff))));  // a number without an end
  PackReader reader(bytes);
  reader.break_off();
  CHECK_FALSE(reader.all_was_read());
}
