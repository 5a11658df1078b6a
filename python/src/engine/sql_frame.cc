// The rows of a query as a Frame: numbers are views of the answer, texts are put into 32-bit offsets batch by batch.
#include <algorithm>

#include "frame.h"

namespace stageline::python {
namespace {

constexpr size_t kRowsPerBatch = size_t{1} << 20;

class SqlFrame : public Frame {
 public:
  explicit SqlFrame(std::shared_ptr<const sql::AnswerTable> answer)
      : Frame("sql", "Query"), answer_(std::move(answer)) {
    for (const sql::AnswerTable::Column& c : answer_->columns()) {
      const bool is_text = c.type == sql::SqlType::kText, is_real = c.type == sql::SqlType::kReal;
      const char* const type = is_text                           ? "text"
                               : is_real                         ? "real"
                               : c.spec.name.ends_with("dur_ns") ? "duration"
                                                                 : "integer";
      columns_.push_back({c.spec.name, c.spec.name, type, c.spec.unit, "",
                          is_text   ? Form::kUtf8
                          : is_real ? Form::kFloat64
                                    : Form::kInt64});
    }
  }
  int64_t row_count() const override { return static_cast<int64_t>(answer_->row_count()); }
  size_t batch_count() const override { return (answer_->row_count() + kRowsPerBatch - 1) / kRowsPerBatch; }
  int64_t batch_rows(size_t batch) const override {
    return static_cast<int64_t>(std::min(kRowsPerBatch, answer_->row_count() - batch * kRowsPerBatch));
  }

  FrameData data(size_t batch, size_t column) const override {
    const sql::AnswerTable::Column& c = answer_->columns()[column];
    const size_t begin = batch * kRowsPerBatch;
    const auto rows = static_cast<size_t>(batch_rows(batch));
    FrameData out;
    out.owner = answer_;
    if (c.type == sql::SqlType::kText) {
      auto texts = std::make_shared<Texts>();
      for (size_t i = 0; i < rows; ++i) texts->add(c.text(begin + i));
      out.values = texts->offsets.data();
      out.bytes = texts->bytes.data();
      out.owner = texts;
    } else if (c.type == sql::SqlType::kReal) {
      out.values = c.reals.data() + begin;
    } else {
      out.values = c.integers.data() + begin;
    }
    std::vector<uint8_t> bits((rows + 7) / 8, 0);
    for (size_t i = 0; i < rows; ++i)
      if (c.valid[begin + i]) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << (i % 8));
      else ++out.nulls;
    if (out.nulls > 0) out.valid = std::make_shared<const std::vector<uint8_t>>(std::move(bits));
    return out;
  }

 private:
  std::shared_ptr<const sql::AnswerTable> answer_;
};

}  // namespace

std::shared_ptr<const Frame> sql_frame(std::shared_ptr<const sql::AnswerTable> answer) {
  return std::make_shared<const SqlFrame>(std::move(answer));
}

}  // namespace stageline::python
