// The rows of an answer as columns, and as text, CSV, JSON and an Arrow stream.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sql/session.h"

namespace stageline::sql {

// An answer held whole. The type of a column is found in its values: reals where some are, texts where one is; of
// nothing but NULL it is integers.
class AnswerTable : public RowSink {
 public:
  struct Column {
    ResultColumn spec;
    SqlType type = SqlType::kInteger;
    std::vector<int64_t> integers;  // one of these three has a value for each row, whatever stands for NULL
    std::vector<double> reals;
    std::vector<int64_t> ends;   // texts: text i is bytes[ends[i − 1], ends[i])
    std::string bytes;           // valid UTF-8
    std::vector<uint8_t> valid;  // by row
    int64_t nulls = 0;
    std::string_view text(size_t row) const {
      const int64_t begin = row == 0 ? 0 : ends[row - 1];
      return std::string_view(bytes).substr(static_cast<size_t>(begin), static_cast<size_t>(ends[row] - begin));
    }
  };
  // `most_bytes`: row() says that it is enough when the values take more.
  explicit AnswerTable(int64_t most_bytes = INT64_MAX) : most_bytes_(most_bytes) {}
  void begin(const std::vector<ResultColumn>& columns) override;
  bool row(const std::vector<SqlValue>& values) override;

  const std::vector<Column>& columns() const { return columns_; }
  size_t row_count() const { return rows_; }
  bool is_full() const { return bytes_ > most_bytes_; }
  std::string shown(size_t row, size_t column) const;  // for people; "–" for NULL

 private:
  void add(Column& column, const SqlValue& value);
  std::vector<Column> columns_;
  size_t rows_ = 0;
  int64_t most_bytes_, bytes_ = 0;
};

using Write = std::function<void(std::string_view)>;

// RFC 4180 with a line of names: NULL is an empty field, an empty text "". Written as the rows come.
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

// {"columns":[{"name","unit"}],"rows":[[…],…],"row_count":n,"truncated":false}; whole numbers are written whole.
class JsonSink : public RowSink {
 public:
  // `most_bytes`: no row begins after so many.
  explicit JsonSink(Write write, int64_t most_bytes = INT64_MAX) : write_(std::move(write)), most_bytes_(most_bytes) {}
  void begin(const std::vector<ResultColumn>& columns) override;
  bool row(const std::vector<SqlValue>& values) override;
  void end(const Outcome& outcome);

 private:
  Write write_;
  std::string text_;
  bool any_ = false, full_ = false;
  int64_t rows_ = 0, written_ = 0, most_bytes_;
};

// Aligned, numbers to the right; wide texts are cut in the middle to `widest` columns, 0: never.
std::string answer_text(const AnswerTable& answer, size_t widest, bool colour);

// An Arrow IPC stream: int64, float64 and utf8 columns with their unit as metadata, in batches. Errors: kLimit for a
// text column of a batch over 2 GiB.
Status write_arrow(const AnswerTable& answer, const Write& write);

}  // namespace stageline::sql
