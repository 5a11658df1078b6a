// The rows of an answer, kept as columns or written as text, CSV, JSON or an Arrow stream.
#pragma once

#include "sql/session.h"

namespace stageline::sql {

// A whole answer. A column's type follows from its values: text if one is a text, real if one is a real, else integer
// (also if all are NULL).
class AnswerTable : public RowSink {
 public:
  struct Column {
    ResultColumn spec;
    SqlType type = SqlType::kInteger;
    // One of integers, reals and texts has an entry for each row, of any value where the row is NULL.
    std::vector<int64_t> integers;
    std::vector<double> reals;
    std::vector<int64_t> ends;   // texts: text i is bytes[ends[i − 1], ends[i])
    std::string bytes;           // valid UTF-8
    std::vector<uint8_t> valid;  // for each row: it is not NULL
    int64_t nulls = 0;
    std::string_view text(size_t row) const {
      const int64_t begin = row == 0 ? 0 : ends[row - 1];
      return std::string_view(bytes).substr(begin, ends[row] - begin);
    }
  };
  // row() returns false, which stops the query, when the values take more than `max_bytes`.
  explicit AnswerTable(int64_t max_bytes = INT64_MAX) : max_bytes_(max_bytes) {}
  void begin(const std::vector<ResultColumn>& columns) override;
  bool row(const std::vector<SqlValue>& values) override;

  const std::vector<Column>& columns() const { return columns_; }
  size_t row_count() const { return rows_; }
  bool is_full() const { return bytes_ > max_bytes_; }
  std::string shown(size_t row, size_t column) const;  // as shown to people; "–" for NULL

 private:
  void add(Column& column, const SqlValue& value);
  std::vector<Column> columns_;
  size_t rows_ = 0;
  int64_t max_bytes_, bytes_ = 0;
};

using Write = std::function<void(std::string_view)>;

// CSV after RFC 4180 with a line of names; NULL is an empty field, and an empty text is "". Writes rows as they come.
class CsvSink : public RowSink {
 public:
  explicit CsvSink(Write write) : write_(std::move(write)) {}
  void begin(const std::vector<ResultColumn>& columns) override;
  bool row(const std::vector<SqlValue>& values) override;
  void end();

 private:
  Write write_;
  std::string text_;
};

// Writes {"columns":[{"name","unit"}],"rows":[[…],…],"row_count":n,"truncated":false}; whole numbers have no decimals.
class JsonSink : public RowSink {
 public:
  // No row begins after `max_bytes` bytes.
  explicit JsonSink(Write write, int64_t max_bytes = INT64_MAX) : write_(std::move(write)), max_bytes_(max_bytes) {}
  void begin(const std::vector<ResultColumn>& columns) override;
  bool row(const std::vector<SqlValue>& values) override;
  void end(const Outcome& outcome);

 private:
  Write write_;
  std::string text_;
  bool any_ = false, full_ = false;
  int64_t rows_ = 0, written_ = 0, max_bytes_;
};

// The answer as aligned text, numbers to the right. Texts wider than `widest` columns are cut in the middle (0: never).
std::string answer_text(const AnswerTable& answer, size_t widest, bool colour);

// Writes an Arrow IPC stream in batches: int64, float64 and utf8 columns with their unit as metadata. Errors: kLimit
// where a text column of a batch exceeds 2 GiB.
Status write_arrow(const AnswerTable& answer, const Write& write);

}  // namespace stageline::sql
