#include "compat/msprof/dualpipev_rows.h"

namespace stageline {
namespace {

using What = DualPipeVRow::What;

// Appends rows, and counts how far each chunk has come.
class Builder {
 public:
  Builder(int32_t micro_batches, bool first_stage) : m_(micro_batches), first_stage_(first_stage) {}

  void phase(int8_t phase) { phase_ = phase; }
  void forward(int chunk, What what = What::kForward) { add(what, next_forward(chunk), -1); }
  void backward(int chunk) { add(What::kBackward, -1, next_backward(chunk)); }
  void halves(int chunk) {
    const int32_t b = next_backward(chunk);
    add(What::kInput, -1, b);
    add(What::kWeight, -1, b);
  }
  void overlap(int chunk) {
    const int32_t f = next_forward(chunk);
    add(What::kOverlap, f, next_backward(1 - chunk));
  }
  void logits() {
    if (first_stage_) add(What::kLogits, -1, -1);
  }
  bool has_backward(int chunk) const { return backwards_[chunk] < m_; }

  std::vector<DualPipeVRow> rows;

 private:
  int32_t next_forward(int chunk) { return chunk * m_ + forwards_[chunk]++; }
  int32_t next_backward(int chunk) { return chunk * m_ + backwards_[chunk]++; }
  void add(What what, int32_t f, int32_t b) { rows.push_back({what, phase_, f, b}); }

  int32_t m_;
  bool first_stage_;
  int8_t phase_ = 0;
  int32_t forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
};

}  // namespace

std::string DualPipeVRow::name() const {
  const std::string f = std::to_string(forward), b = std::to_string(backward);
  switch (what) {
    case What::kForward: return f;
    case What::kForwardAlone: return f + "F";
    case What::kBackward: return b + "B";
    case What::kInput: return b + "b";
    case What::kWeight: return b + "w";
    case What::kOverlap: return f + "F+" + b + "B";
    case What::kLogits: return "logits";
  }
  return "";
}

int64_t dualpipev_row_count(int64_t stages, int64_t micro_batches, int64_t stage) {
  if (stages < 1 || stage < 0 || stage >= stages || micro_batches > kMaxMicroBatches ||
      micro_batches < std::max<int64_t>(2, 2 * stages - 1))
    return 0;
  return 2 * micro_batches + 4 * stages - 2 - 2 * stage + (stage == 0 ? micro_batches : 0) +
         (stage == stages - 1 ? 1 : 0);
}

std::vector<DualPipeVRow> dualpipev_rows(int32_t stages, int32_t micro_batches, int32_t stage) {
  const int64_t count = dualpipev_row_count(stages, micro_batches, stage);
  if (count == 0) return {};
  Builder to(micro_batches, stage == 0);
  to.rows.reserve(count);
  const int32_t below = stages - 1 - stage;
  for (int32_t k = 0; k < 2 * below; ++k) to.forward(0);
  to.phase(1);
  for (int32_t k = 0; k <= stage; ++k) {
    to.forward(0);
    to.forward(1);
  }
  to.phase(2);
  for (int32_t k = 0; k < below; ++k) {
    to.logits();
    to.halves(1);
    to.forward(1);
  }
  to.phase(3);
  for (int32_t k = 0; k < micro_batches - 2 * stages + stage + 1; ++k) {
    to.logits();
    if (below == 0 && k == 0) {
      to.forward(0, What::kForwardAlone);
      to.backward(1);
    } else {
      to.overlap(0);
    }
    to.overlap(1);
  }
  to.phase(4);
  for (int32_t k = 0; k < below; ++k) {
    to.logits();
    to.backward(1);
    to.overlap(1);
  }
  to.phase(5);
  for (int32_t k = 0; k <= stage; ++k) {
    if (k % 2 == 0) to.logits();
    to.backward(k % 2 == 0 ? 1 : 0);
  }
  to.phase(6);
  for (int chunk = stage % 2 == 0 ? 0 : 1; to.has_backward(0) || to.has_backward(1); chunk = 1 - chunk)
    if (to.has_backward(chunk)) to.backward(chunk);
  return std::move(to.rows);
}

}  // namespace stageline
