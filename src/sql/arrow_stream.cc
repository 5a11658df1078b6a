// Arrow's IPC stream, written by hand: a schema, batches of rows, an end. Each message is a length, a flatbuffer that
// describes what follows, and the columns' own memory.
//
//   ffffffff  length  [Message: Schema]
//   ffffffff  length  [Message: RecordBatch: nodes, places of buffers]  validity, values, validity, offsets, bytes …
//   ffffffff  00000000
//
// Source: https://arrow.apache.org/docs/format/Columnar.html, with Message.fbs and Schema.fbs of the same project.
// Flatbuffers are written from back to front, because what is pointed at stands behind the pointer.
#include "sql/answer.h"

namespace stageline::sql {
namespace {

static_assert(std::endian::native == std::endian::little);

class Flatbuffer {
 public:
  using Place = uint32_t;  // in bytes from the end

  Place text(std::string_view text) {
    align(4, text.size() + 1 + 4);
    push_bytes("\0", 1);
    push_bytes(text.data(), text.size());
    push<uint32_t>(static_cast<uint32_t>(text.size()));
    return place();
  }
  Place places(const std::vector<Place>& all) {
    align(4, 4 * all.size() + 4);
    for (size_t i = all.size(); i > 0; --i) push_offset(all[i - 1]);
    push<uint32_t>(static_cast<uint32_t>(all.size()));
    return place();
  }
  // A vector of structs, each of `per` 64-bit numbers.
  Place numbers(const std::vector<int64_t>& all, size_t per) {
    align(4, 8 * all.size() + 4);
    align(8, 8 * all.size());
    for (size_t i = all.size(); i > 0; --i) push<int64_t>(all[i - 1]);
    push<uint32_t>(static_cast<uint32_t>(all.size() / per));
    return place();
  }

  // Begins a table; its fields then come with their numbers in the schema, in any order.
  void begin_table() {
    fields_.clear();
    table_end_ = place();
  }
  template <class T> void field(size_t number, T value) {
    align(sizeof(T), sizeof(T));
    push<T>(value);
    remember(number);
  }
  void field_place(size_t number, Place at) {
    align(4, 4);
    push_offset(at);
    remember(number);
  }
  Place end_table() {
    align(4, 4);
    push<int32_t>(0);  // where the list of fields is; filled in below
    const Place table = place();
    for (size_t i = fields_.size(); i > 0; --i)
      push<uint16_t>(fields_[i - 1] == 0 ? uint16_t{0} : static_cast<uint16_t>(table - fields_[i - 1]));
    push<uint16_t>(static_cast<uint16_t>(table - table_end_));
    push<uint16_t>(static_cast<uint16_t>(4 + 2 * fields_.size()));
    const int32_t back = place() - table;
    std::memcpy(bytes_.data() + (bytes_.size() - table), &back, sizeof back);
    return table;
  }
  // The whole buffer with `root` first, padded to a multiple of 8 bytes; message() puts its length before it.
  std::string finish(Place root) {
    align(8, 4);
    push_offset(root);
    std::string out = bytes_;
    return out;
  }

 private:
  Place place() const { return static_cast<Place>(bytes_.size()); }
  void push_bytes(const char* from, size_t count) { bytes_.insert(0, from, count); }
  template <class T> void push(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    push_bytes(raw, sizeof(T));
  }
  void push_offset(Place at) { push<uint32_t>(place() + 4 - at); }
  // Pads so that after `coming` more bytes the place is a multiple of `size`.
  void align(size_t size, size_t coming) {
    while ((bytes_.size() + coming) % size != 0) push_bytes("\0", 1);
  }
  void remember(size_t number) {
    if (fields_.size() <= number) fields_.resize(number + 1, 0);
    fields_[number] = place();
  }

  std::string bytes_;
  std::vector<Place> fields_;
  Place table_end_ = 0;
};

// Numbers defined in Message.fbs and Schema.fbs.
constexpr int16_t kMetadataV5 = 4;
constexpr uint8_t kHeaderSchema = 1, kHeaderRecordBatch = 3;
constexpr uint8_t kTypeInt = 2, kTypeFloat = 3, kTypeUtf8 = 5;

std::string message(Flatbuffer& buffer, uint8_t kind, Flatbuffer::Place header, int64_t body_bytes) {
  buffer.begin_table();
  buffer.field<int64_t>(3, body_bytes);
  buffer.field_place(2, header);
  buffer.field<int16_t>(0, kMetadataV5);
  buffer.field<uint8_t>(1, kind);
  std::string text = buffer.finish(buffer.end_table());
  text.resize((text.size() + 7) / 8 * 8, '\0');
  const uint32_t head[2] = {0xffffffffu, static_cast<uint32_t>(text.size())};
  return std::string(reinterpret_cast<const char*>(head), sizeof head) + text;
}

std::string schema_message(const AnswerTable& answer) {
  Flatbuffer b;
  std::vector<Flatbuffer::Place> fields;
  for (const AnswerTable::Column& column : answer.columns()) {
    const Flatbuffer::Place name = b.text(column.spec.name);
    Flatbuffer::Place metadata = 0;
    if (!column.spec.unit.empty()) {
      const Flatbuffer::Place key = b.text("unit"), value = b.text(column.spec.unit);
      b.begin_table();
      b.field_place(0, key);
      b.field_place(1, value);
      metadata = b.places({b.end_table()});
    }
    b.begin_table();
    if (column.type == SqlType::kInteger) {
      b.field<int32_t>(0, 64);
      b.field<uint8_t>(1, 1);
    } else if (column.type == SqlType::kReal) {
      b.field<int16_t>(0, 2);
    }
    const Flatbuffer::Place type = b.end_table();
    const Flatbuffer::Place children = b.places({});
    b.begin_table();
    b.field_place(0, name);
    b.field_place(3, type);
    b.field_place(5, children);
    if (metadata != 0) b.field_place(6, metadata);
    b.field<uint8_t>(1, 1);
    b.field<uint8_t>(2, column.type == SqlType::kInteger ? kTypeInt
                        : column.type == SqlType::kReal  ? kTypeFloat
                                                         : kTypeUtf8);
    fields.push_back(b.end_table());
  }
  const Flatbuffer::Place list = b.places(fields);
  b.begin_table();
  b.field_place(1, list);
  b.field<int16_t>(0, 0);
  const Flatbuffer::Place schema = b.end_table();
  return message(b, kHeaderSchema, schema, 0);
}

constexpr size_t kRowsPerBatch = size_t{1} << 18;

}  // namespace

Status write_arrow(const AnswerTable& answer, const Write& write) {
  write(schema_message(answer));
  for (size_t begin = 0; begin < answer.row_count(); begin += kRowsPerBatch) {
    const size_t count = std::min(kRowsPerBatch, answer.row_count() - begin);
    std::vector<int64_t> nodes, buffers;
    std::string body;
    const auto add = [&](const void* bytes, size_t size) {
      buffers.push_back(body.size());
      buffers.push_back(size);
      body.append(static_cast<const char*>(bytes), size);
      body.resize((body.size() + 7) / 8 * 8, '\0');
    };
    for (const AnswerTable::Column& column : answer.columns()) {
      std::string bits((count + 7) / 8, '\0');
      int64_t nulls = 0;
      for (size_t i = 0; i < count; ++i)
        if (column.valid[begin + i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
        else ++nulls;
      nodes.push_back(count);
      nodes.push_back(nulls);
      add(bits.data(), nulls == 0 ? 0 : bits.size());
      if (column.type == SqlType::kInteger) {
        add(column.integers.data() + begin, 8 * count);
      } else if (column.type == SqlType::kReal) {
        add(column.reals.data() + begin, 8 * count);
      } else {
        const int64_t first = begin == 0 ? 0 : column.ends[begin - 1];
        if (column.ends[begin + count - 1] - first > INT32_MAX)
          return make_error(ErrorCode::kLimit, "the texts of column " + column.spec.name + " are too long for Arrow",
                            "--format csv has no such limit");
        std::vector<int32_t> offsets = {0};
        for (size_t i = 0; i < count; ++i) offsets.push_back(static_cast<int32_t>(column.ends[begin + i] - first));
        add(offsets.data(), 4 * offsets.size());
        add(column.bytes.data() + first, column.ends[begin + count - 1] - first);
      }
    }
    Flatbuffer b;
    const Flatbuffer::Place places = b.numbers(buffers, 2), lengths = b.numbers(nodes, 2);
    b.begin_table();
    b.field<int64_t>(0, static_cast<int64_t>(count));
    b.field_place(1, lengths);
    b.field_place(2, places);
    const Flatbuffer::Place batch = b.end_table();
    write(message(b, kHeaderRecordBatch, batch, body.size()));
    write(body);
  }
  write(std::string_view("\xff\xff\xff\xff\0\0\0\0", 8));
  return {};
}

}  // namespace stageline::sql
