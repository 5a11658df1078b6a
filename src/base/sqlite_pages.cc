#include "base/sqlite_pages.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace stageline {
namespace {

constexpr size_t kHeaderBytes = 100;  // at the start of the file's first page
constexpr uint8_t kInteriorTable = 5, kLeafTable = 13;
constexpr size_t kMaxDepth = 24;                  // a tree of 2³² pages is less deep
constexpr size_t kWindowBytes = size_t{1} << 18;  // pages that follow each other are read together, up to this
constexpr int kMaxPlaces = 2000;                  // of columns; SQLite's own limit
constexpr uint64_t kFirstBlob = 12;
constexpr size_t kSlack = 8;  // behind pages and records: numbers are read eight bytes at a time

// The number of bytes of a value, by its type, if the type is one byte.
constexpr auto kBytesOfType = [] {
  std::array<uint8_t, 128> bytes = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  for (size_t type = kFirstBlob; type < bytes.size(); ++type)
    bytes[type] = static_cast<uint8_t>((type - kFirstBlob) / 2);
  return bytes;
}();

// The integer that the first bytes at `at` are, eight of which can be read.
int64_t integer_at(const uint8_t* at, size_t bytes) {
  uint64_t raw = 0;
  std::memcpy(&raw, at, sizeof raw);
  if constexpr (std::endian::native == std::endian::little) raw = __builtin_bswap64(raw);
  return bytes == 0 ? 0 : static_cast<int64_t>(raw) >> (64 - 8 * bytes);
}

inline uint32_t big(const uint8_t* at, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value;
}

// Reads a number of one to nine bytes, with seven bits in each but the ninth. Returns null when it would go past `end`.
const uint8_t* varint(const uint8_t* at, const uint8_t* end, uint64_t* value) {
  if (at < end && *at < 0x80) {
    *value = *at;
    return at + 1;
  }
  uint64_t sum = 0;
  for (int i = 0; i < 8; ++i, ++at) {
    if (at >= end) return nullptr;
    sum = sum << 7 | (*at & 0x7f);
    if (*at < 0x80) {
      *value = sum;
      return at + 1;
    }
  }
  if (at >= end) return nullptr;
  *value = sum << 8 | *at;
  return at + 1;
}

double real_of(const uint8_t* bytes) {
  return std::bit_cast<double>(static_cast<uint64_t>(big(bytes, 4)) << 32 | big(bytes + 4, 4));
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view bytes_of_text(uint64_t type, const uint8_t* bytes) {
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>((type - kFirstBlob) / 2)};
}

// Returns the whole number at the beginning of a text, as SQLite casts it: 0 when there is none, and the nearest
// possible number when it is too large.
int64_t number_in(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_space(text[at])) ++at;
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  uint64_t value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (value > (UINT64_MAX - 9) / 10) {
      value = UINT64_MAX;
      break;
    }
    value = value * 10 + (text[at] - '0');
  }
  constexpr uint64_t kMax = INT64_MAX;
  if (negative) return value > kMax ? INT64_MIN : -static_cast<int64_t>(value);
  return value > kMax ? INT64_MAX : static_cast<int64_t>(value);
}

double real_in(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_space(text[at])) ++at;
  if (at + 1 < text.size() && text[at] == '+' && text[at + 1] != '-') ++at;
  // For SQLite, words such as "inf" and "nan" are not numbers.
  const size_t digit = at < text.size() && text[at] == '-' ? at + 1 : at;
  if (digit >= text.size() || !(text[digit] == '.' || (text[digit] >= '0' && text[digit] <= '9'))) return 0;
  double value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

int64_t whole_of(double value) {
  if (!(value > -9223372036854775808.0)) return value != value ? 0 : INT64_MIN;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  return static_cast<int64_t>(value);
}

}  // namespace

std::unique_ptr<SqlitePages> SqlitePages::open(const std::string& path, uint32_t root, std::vector<Column> columns) {
  std::unique_ptr<SqlitePages> self(new SqlitePages);
  self->fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  uint8_t head[kHeaderBytes];
  struct stat st;
  if (self->fd_ < 0 || fstat(self->fd_, &st) != 0 || pread(self->fd_, head, sizeof head, 0) != sizeof head)
    return nullptr;
  const uint32_t stored = big(head + 16, 2);
  self->page_bytes_ = stored == 1 ? 65536 : stored;
  if (self->page_bytes_ < 512 || !std::has_single_bit(self->page_bytes_)) return nullptr;
  constexpr size_t kMinUsable = 480;
  self->usable_bytes_ = self->page_bytes_ - head[20];
  const uint32_t schema_format = big(head + 44, 4), encoding = big(head + 56, 4);
  if (self->usable_bytes_ < kMinUsable || schema_format < 1 || schema_format > 4 || encoding != 1) return nullptr;
  self->page_count_ =
      static_cast<uint32_t>(std::min<int64_t>(st.st_size / static_cast<int64_t>(self->page_bytes_), UINT32_MAX));
  for (uint32_t c = 0; c < columns.size(); ++c) {
    const int place = columns[c].place;
    if (columns[c].is_rowid) self->rowids_.push_back(c);
    if (place < 0) continue;
    if (place >= kMaxPlaces) return nullptr;
    if (self->wanted_.size() <= static_cast<size_t>(place)) self->wanted_.resize(static_cast<size_t>(place) + 1, -1);
    // SQLite itself reads tables when a column is asked for twice.
    if (self->wanted_[place] >= 0) return nullptr;
    self->wanted_[place] = c;
  }
  self->columns_ = std::move(columns);
  self->values_.resize(self->columns_.size());
  self->printed_.resize(self->columns_.size());
  const uint8_t* const first = self->page(root);
  if (!first) return nullptr;
  const uint8_t kind = first[root == 1 ? kHeaderBytes : 0];
  if (kind != kInteriorTable && kind != kLeafTable) return nullptr;
  if (!self->enter(root)) return nullptr;
  return self;
}

SqlitePages::~SqlitePages() {
  if (fd_ >= 0) close(fd_);
}

// Returns the bytes of a page, valid until the next call; null when the file has no such page. Neighbouring pages are
// read ahead, and twice as many each time when reading continues there.
const uint8_t* SqlitePages::page(uint32_t number) {
  if (number == 0 || number > page_count_) return nullptr;
  if (number < window_first_ || number - window_first_ >= window_pages_) {
    const bool goes_on = window_pages_ > 0 && number == window_first_ + window_pages_;
    const auto max = static_cast<uint32_t>(std::max<size_t>(kWindowBytes / page_bytes_, 1));
    ahead_ = goes_on ? std::min(ahead_ * 2, max) : 1;
    const uint32_t count = std::min(ahead_, page_count_ - number + 1);
    window_.resize(std::max(window_.size(), count * page_bytes_ + kSlack));
    window_pages_ = 0;
    const size_t wanted = count * page_bytes_;
    size_t got = 0;
    while (got < wanted) {
      const ssize_t n = pread(fd_, window_.data() + got, wanted - got,
                              (number - 1) * static_cast<off_t>(page_bytes_) + static_cast<off_t>(got));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += n;
    }
    window_first_ = number;
    window_pages_ = static_cast<uint32_t>(got / page_bytes_);
    if (window_pages_ == 0) return nullptr;
  }
  return window_.data() + (number - window_first_) * page_bytes_;
}

// Goes down from a page to its first leaf.
bool SqlitePages::enter(uint32_t number) {
  for (;;) {
    // In an intact tree every page is entered once. When more pages are entered than the file has, pages lead to each
    // other in a circle.
    if (path_.size() >= kMaxDepth || pages_seen_++ >= page_count_) return damaged();
    const uint8_t* const begin = page(number);
    if (!begin) return damaged();
    const size_t at = number == 1 ? kHeaderBytes : 0;
    const uint8_t kind = begin[at];
    const size_t cells = big(begin + at + 3, 2);
    const size_t array = at + (kind == kInteriorTable ? 12 : 8);
    if (array + 2 * cells > usable_bytes_) return damaged();
    if (kind == kLeafTable) {
      leaf_ = begin;
      cell_ = 0;
      cells_ = cells;
      cell_array_ = array;
      return true;
    }
    if (kind != kInteriorTable) return damaged();
    Interior interior;
    interior.children.reserve(cells + 1);
    for (size_t i = 0; i < cells; ++i) {
      const size_t cell = big(begin + array + 2 * i, 2);
      if (cell + 4 > usable_bytes_) return damaged();
      interior.children.push_back(big(begin + cell, 4));
    }
    interior.children.push_back(big(begin + at + 8, 4));
    number = interior.children.front();
    interior.next = 1;
    path_.push_back(std::move(interior));
  }
}

bool SqlitePages::next() {
  if (is_damaged_) return false;
  while (cell_ == cells_) {
    while (!path_.empty() && path_.back().next == path_.back().children.size()) path_.pop_back();
    if (path_.empty()) return false;
    if (!enter(path_.back().children[path_.back().next++])) return false;
  }
  const size_t cell = big(leaf_ + cell_array_ + 2 * cell_, 2);
  ++cell_;
  if (cell >= usable_bytes_) return damaged();
  return read_record(leaf_ + cell, leaf_ + usable_bytes_);
}

bool SqlitePages::read_record(const uint8_t* cell, const uint8_t* page_end) {
  uint64_t length = 0, rowid = 0;
  const uint8_t* at = varint(cell, page_end, &length);
  if (at) at = varint(at, page_end, &rowid);
  if (!at) return damaged();
  // Computes how much of a long payload stays in the leaf ("the maximum and minimum embedded payload" in the file
  // format).
  const size_t max = usable_bytes_ - 35;
  const uint8_t* record = at;
  if (length <= max) {
    if (length > static_cast<size_t>(page_end - at)) return damaged();
  } else {
    if (length > static_cast<uint64_t>(page_count_) * page_bytes_) return damaged();
    const size_t min = (usable_bytes_ - 12) * 32 / 255 - 23;
    const size_t split = min + (length - min) % (usable_bytes_ - 4);
    const size_t local = split <= max ? split : min;
    if (local + 4 > static_cast<size_t>(page_end - at)) return damaged();
    if (!assemble(at, local, length, at + local)) return false;
    record = payload_.data();
  }
  const uint8_t* const record_end = record + length;
  uint64_t header_bytes = 0;
  const uint8_t* header = varint(record, record_end, &header_bytes);
  if (!header || header_bytes > length) return damaged();
  const uint8_t* const header_end = record + header_bytes;
  const uint8_t* value = header_end;
  size_t place = 0;
  for (; place < wanted_.size() && header < header_end; ++place) {
    uint64_t type = *header;
    size_t bytes = 0;
    if (type < kBytesOfType.size()) {
      ++header;
      bytes = kBytesOfType[type];
    } else {
      header = varint(header, header_end, &type);
      if (!header) return damaged();
      bytes = (type - kFirstBlob) / 2;
    }
    if (bytes > static_cast<size_t>(record_end - value)) return damaged();
    if (wanted_[place] >= 0) {
      Value& wanted = values_[wanted_[place]];
      wanted.type = type;
      wanted.bytes = value;
      wanted.number = type <= kLastInteger ? integer_at(value, bytes) : static_cast<int64_t>(type - kZero);
    }
    value += bytes;
  }
  // Columns that were added to the table after this row was written are NULL.
  for (; place < wanted_.size(); ++place)
    if (wanted_[place] >= 0) values_[wanted_[place]] = {};
  for (const size_t c : rowids_)
    if (values_[c].type == 0) values_[c] = {kLastInteger, nullptr, static_cast<int64_t>(rowid)};
  return true;
}

bool SqlitePages::assemble(const uint8_t* local, size_t local_bytes, size_t payload_bytes, const uint8_t* after) {
  payload_.assign(local, local + local_bytes);
  payload_.reserve(payload_bytes + kSlack);
  uint32_t number = big(after, 4);
  overflow_page_.resize(page_bytes_);
  while (payload_.size() < payload_bytes) {
    if (number == 0 || number > page_count_) return damaged();
    const auto place = (number - 1) * static_cast<off_t>(page_bytes_);
    if (pread(fd_, overflow_page_.data(), page_bytes_, place) != static_cast<ssize_t>(page_bytes_)) return damaged();
    const size_t more = std::min(payload_bytes - payload_.size(), usable_bytes_ - 4);
    payload_.insert(payload_.end(), overflow_page_.data() + 4, overflow_page_.data() + 4 + more);
    number = big(overflow_page_.data(), 4);
  }
  payload_.resize(payload_bytes + kSlack);
  return true;
}

int SqlitePages::type(int column) const {
  const size_t c = column;
  const uint64_t type = values_[c].type;
  if (type == 0) return SQLITE_NULL;
  if (type <= kLastInteger || type == kZero || type == kOne) return columns_[c].is_real ? SQLITE_FLOAT : SQLITE_INTEGER;
  if (type == kReal) return std::isnan(real_of(values_[c].bytes)) ? SQLITE_NULL : SQLITE_FLOAT;
  if (type < kFirstBlob) return SQLITE_NULL;
  return type % 2 == 0 ? SQLITE_BLOB : SQLITE_TEXT;
}

int64_t SqlitePages::converted_integer(const Value& value) const {
  if (value.type == kReal) return whole_of(real_of(value.bytes));
  return value.type < kFirstBlob ? 0 : number_in(bytes_of_text(value.type, value.bytes));
}

double SqlitePages::real(int column) const {
  const Value& value = values_[column];
  if (value.type == kReal) {
    const double real = real_of(value.bytes);
    return std::isnan(real) ? 0 : real;
  }
  if (value.type >= kFirstBlob) return real_in(bytes_of_text(value.type, value.bytes));
  return integer(column);
}

std::string_view SqlitePages::text(int column) const {
  const size_t c = column;
  const Value& value = values_[c];
  if (value.type >= kFirstBlob) return bytes_of_text(value.type, value.bytes);
  switch (type(column)) {
    case SQLITE_INTEGER: printed_[c] = std::to_string(integer(column)); return printed_[c];
    case SQLITE_FLOAT: {
      char* const printed = sqlite3_mprintf("%!.15g", real(column));  // as SQLite itself casts it
      printed_[c] = printed ? printed : "";
      sqlite3_free(printed);
      return printed_[c];
    }
    default: return {};
  }
}

}  // namespace stageline
