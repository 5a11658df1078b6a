// Digests with arbitrary content and correct checksums: huge counts, missing rows, times that run backwards, parents in
// a circle, texts of another alphabet. A trace that the reader accepts must keep the promises of every trace, and the
// code that uses traces must bear it.
//
// Input: byte 0 and 1 as of fuzz_reader (byte 0, bit 7: sums are left wrong), then up to three digests, unpacked:
//
//   u16 bytes of the head │ u24 bytes of the body │ head: a JSON object │ body: columns (readers/digest/columns.h)
//
// A mutator changes values, rows and columns in place, so that the result is mostly still a digest. The program
// fuzz_replay makes some such changes of every input too (STAGELINE_FUZZ_DRAWN is their number). tests/fuzz/run.py
// makes inputs of real digests.
#include <zstd.h>

#include <algorithm>
#include <random>

#include "base/crc32c.h"
#include "base/parallel.h"
#include "look_at_trace.h"
#include "readers/digest/columns.h"
#include "readers/digest/digest_file.h"
#include "readers/reader.h"

namespace stageline::fuzz {
namespace {

constexpr size_t kMaxDigests = 3;
constexpr size_t kPrefixBytes = 5;

struct Plain {
  std::string head, body;
};

std::vector<Plain> split_digests(std::string_view bytes) {
  std::vector<Plain> out;
  while (out.size() < kMaxDigests && bytes.size() > kPrefixBytes) {
    const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
    const size_t head = at(0) | at(1) << 8, body = at(2) | at(3) << 8 | at(4) << 16;
    bytes.remove_prefix(kPrefixBytes);
    Plain one;
    one.head = bytes.substr(0, head);
    bytes.remove_prefix(one.head.size());
    one.body = bytes.substr(0, body);
    bytes.remove_prefix(one.body.size());
    out.push_back(std::move(one));
  }
  return out;
}

template <class T> void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string packed(const Plain& plain, bool sums_fit) {
  std::string body(ZSTD_compressBound(plain.body.size()), '\0');
  body.resize(ZSTD_compress(body.data(), body.size(), plain.body.data(), plain.body.size(), 1));
  std::string out(digest::kMagic);
  put(out, digest::kVersion);
  put(out, static_cast<uint32_t>(plain.head.size()));
  put(out, static_cast<uint64_t>(body.size()));
  put(out, static_cast<uint64_t>(plain.body.size()));
  put(out, crc32c(body, crc32c(plain.head)) ^ (sums_fit ? 0 : 1));
  put(out, crc32c(out));
  return out + plain.head + body;
}

using Dice = std::minstd_rand;

struct Column {
  std::string name;
  char type = 'i';
  std::vector<int64_t> numbers;     // of type i
  std::vector<std::string> others;  // of t, and eight bytes each of d
  size_t rows() const { return type == 'i' ? numbers.size() : others.size(); }
  std::string table() const { return name.substr(0, name.find('.')); }
};

bool take_column(std::string_view& body, Column& column) {
  uint64_t length = 0, count = 0, size = 0, before = 0;
  if (!digest::take_varint(body, length) || length >= body.size()) return false;
  column.name = body.substr(0, length);
  column.type = body[length];
  body.remove_prefix(length + 1);
  if (!digest::take_varint(body, count) || !digest::take_varint(body, size) || size > body.size()) return false;
  std::string_view bytes = body.substr(0, size);
  body.remove_prefix(size);
  for (uint64_t value = 0; column.rows() < count;) {
    if (column.type == 'd') {
      if (bytes.size() < sizeof(double)) return false;
      column.others.emplace_back(bytes.substr(0, sizeof(double)));
      bytes.remove_prefix(sizeof(double));
      continue;
    }
    if (!digest::take_varint(bytes, value)) return false;
    if (column.type == 'i') {
      before += value >> 1 ^ (~(value & 1) + 1);
      column.numbers.push_back(static_cast<int64_t>(before));
      continue;
    }
    if (value > bytes.size()) return false;
    column.others.emplace_back(bytes.substr(0, value));
    bytes.remove_prefix(value);
  }
  return true;
}

std::string as_body(const std::vector<Column>& columns) {
  std::string out;
  for (const Column& column : columns) {
    std::string bytes;
    uint64_t before = 0;
    for (const int64_t value : column.numbers) {
      const auto more = static_cast<int64_t>(static_cast<uint64_t>(value) - before);
      digest::put_varint(bytes, static_cast<uint64_t>(more) << 1 ^ static_cast<uint64_t>(more >> 63));
      before = static_cast<uint64_t>(value);
    }
    for (const std::string& other : column.others) {
      if (column.type == 't') digest::put_varint(bytes, other.size());
      bytes += other;
    }
    digest::put_varint(out, column.name.size());
    out += column.name;
    out += column.type;
    digest::put_varint(out, column.rows());
    digest::put_varint(out, bytes.size());
    out += bytes;
  }
  return out;
}

int64_t hostile_number(Dice& dice, int64_t now) {
  constexpr int64_t kFar = 4'000'000'000'000'000'000;
  const auto plus = [](int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); };
  const int64_t negative = plus(0, 0 - static_cast<uint64_t>(now));  // at the ends of the range all of these wrap
  const int64_t some[] = {0,
                          1,
                          -1,
                          2,
                          255,
                          256,
                          65535,
                          int64_t{1} << 20,
                          1 << 24,
                          INT32_MAX,
                          INT32_MIN,
                          UINT32_MAX,
                          INT64_MAX,
                          INT64_MIN,
                          kFar,
                          -kFar,
                          kFar + 1,
                          plus(now, 1),
                          plus(now, UINT64_MAX),
                          negative,
                          now ^ 0x80,
                          now / 2};
  return some[dice() % std::size(some)];
}
std::string hostile_text(Dice& dice) {
  const std::string some[] = {"",
                              "\x1b]0;x\x07",
                              "\xff\xfe",
                              "=1+1",
                              "../../etc/passwd",
                              "</script>",
                              "kineto",
                              "a,b\n\"",
                              std::string(3000, 'x'),
                              std::string("\0y", 2),
                              "s3://b/k",
                              "\xe2\x80\xae"
                              "txt"};
  return some[dice() % std::size(some)];
}

// One change of a value, a row of a whole table, or a column.
void change(std::vector<Column>& columns, Dice& dice) {
  if (columns.empty()) return;
  Column& column = columns[dice() % columns.size()];
  const size_t rows = column.rows();
  const size_t row = rows > 0 ? dice() % rows : 0;
  // Every column of the table, so that their lengths still agree.
  const auto of_table = [&](auto&& act) {
    const std::string table = column.table();
    for (Column& other : columns)
      if (other.table() == table && other.rows() == rows) other.type == 'i' ? act(other.numbers) : act(other.others);
  };
  switch (dice() % 8) {
    case 0:
      of_table([&](auto& values) {
        if (row < values.size()) values.erase(values.begin() + static_cast<std::ptrdiff_t>(row));
      });
      break;
    case 1:
      of_table([&](auto& values) {
        if (row < values.size()) values.push_back(values[row]);
      });
      break;
    case 2:
      of_table([&](auto& values) {
        if (row < values.size()) std::swap(values[row], values.back());
      });
      break;
    case 3: columns.erase(columns.begin() + (&column - columns.data())); break;
    default:
      if (rows == 0) break;
      if (column.type == 'i') {
        int64_t& value = column.numbers[row];
        value = dice() % 3 == 0 ? column.numbers[dice() % rows] : hostile_number(dice, value);
      } else if (column.type == 't') {
        column.others[row] = dice() % 3 == 0 ? column.others[dice() % rows] : hostile_text(dice);
      } else {
        const double values[] = {0, -1, 1e300, INFINITY, -INFINITY, NAN, 1e18};
        std::memcpy(column.others[row].data(), &values[dice() % std::size(values)], sizeof(double));
      }
  }
}

// Puts the columns' true numbers into the head, so that code behind that check is reached.
std::string agreeing(std::string head, const std::vector<Column>& columns) {
  const auto set = [&](const std::string& name, int64_t value) {
    const size_t at = head.find("\"" + name + "\":");
    if (at == std::string::npos) return;
    const size_t begin = at + name.size() + 3;
    head.replace(begin, head.find_first_of(",}", begin) - begin, std::to_string(value));
  };
  int64_t cells = 0, slices = 0;
  for (const Column& column : columns) {
    if (column.name == "cells.step") cells = static_cast<int64_t>(column.rows());
    if (column.name == "slices.start_ns") slices = static_cast<int64_t>(column.rows());
    if (column.name == "part.rank" && !column.numbers.empty()) set("rank", column.numbers[0]);
  }
  set("cells", cells);
  set("slices", slices);
  return head;
}

// The input with one to three changes to one of its digests; "" where it holds none.
std::string changed(std::string_view input, Dice& dice) {
  std::vector<Plain> digests = split_digests(input.substr(std::min<size_t>(input.size(), 2)));
  if (digests.empty()) return {};
  Plain& one = digests[dice() % digests.size()];
  std::vector<Column> columns;
  std::string_view body = one.body;
  for (Column column; !body.empty() && take_column(body, column); column = {}) columns.push_back(std::move(column));
  for (size_t changes = 1 + dice() % 3; changes > 0; --changes) change(columns, dice);
  one.body = as_body(columns);
  if (dice() % 8 != 0) one.head = agreeing(one.head, columns);
  std::string out(input.substr(0, 2));
  if (dice() % 16 == 0) out[0] = static_cast<char>(dice());
  if (dice() % 4 == 0) out[1] = static_cast<char>(dice());
  for (const Plain& plain : digests) {
    const size_t head = std::min<size_t>(plain.head.size(), 0xffff);
    const size_t bytes = std::min<size_t>(plain.body.size(), 0xffffff);
    for (const size_t byte : {head, head >> 8, bytes, bytes >> 8, bytes >> 16}) out += static_cast<char>(byte & 0xff);
    out += plain.head.substr(0, head) + plain.body.substr(0, bytes);
  }
  return out;
}

void try_digests(std::string_view bytes) {
  static const TempFolder folder, out;
  set_thread_count(1);
  folder.clear();
  Bytes input{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  const uint8_t how = input.byte(), exporter = input.byte();
  char name = 'a';
  for (const Plain& plain : split_digests(input.rest()))
    folder.write(std::string(1, name++) + std::string(digest::kExtension), packed(plain, (how & 128) == 0));
  Result<Source> source = scan_source({folder.path()});
  FUZZ_CHECK(source, source.error().text());
  Result<Trace> trace = find_reader("digest")->read(*source, {});
  if (!trace) {
    FUZZ_CHECK(!trace.error().what.empty(), "no words");
    return;
  }
  FUZZ_CHECK((how & 128) == 0, "a digest was read whose sum does not fit");
  look_at(*trace, out, how, exporter, Places::kElsewhere);
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(digest) {
  using namespace stageline::fuzz;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try_digests(input);
#ifdef STAGELINE_FUZZ_REPLAY
  // Without libFuzzer the same changes are drawn here, each on top of the one before, eight deep.
  const char* const wanted = getenv("STAGELINE_FUZZ_DRAWN");
  const unsigned most = wanted ? static_cast<unsigned>(atoi(wanted)) : 100;
  std::string last;
  for (unsigned seed = 0; seed < most; ++seed) {
    Dice dice(seed + 1);
    last = changed(seed % 8 == 0 ? input : last, dice);
    if (last.empty()) break;
    if (wanted) fprintf(stderr, "drawn %u\n", seed);
    try_digests(last);
  }
#endif
  return 0;
}

#ifndef STAGELINE_FUZZ_REPLAY
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace stageline::fuzz;
  Dice dice(seed);
  const std::string out = dice() % 6 == 0 ? "" : changed({reinterpret_cast<const char*>(data), size}, dice);
  if (out.empty() || out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
#endif
