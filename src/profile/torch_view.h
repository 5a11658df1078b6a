// Makes the rows of profiler traces that analyses use, one rank at a time, in one of two modes:
//
//   default   every slice, exact nanoseconds; device work by category; steps by the host's own
//             ProfilerStep rows, device work through its launch
//   hta       what Holistic Trace Analysis holds after loading: microsecond rounding (§ "nanosecond
//             traces"), partner by file order, iteration from any ProfilerStep row, its drop of the last
//             step with duplicated rows. Definitions: docs/analyses/hta-loading.md.
//
// Times of both modes are int64 ns counted from the run's earliest start, so one analysis serves both.
#pragma once

#include <mutex>

#include "base/parallel.h"
#include "profile/torch_rows.h"

namespace stageline {

// Keeps rows that were laid out for one question and serves the next ones with them, since laying out is most of what a
// question costs. It is meant for programs that ask one trace often (Python). A command that asks several questions at
// once uses SharedRows, and one that asks once none. Thread-safe.
class TorchRowStore {
 public:
  static constexpr size_t kMaxBytes = size_t{2} << 30;  // ranks beyond this are laid out again each time
  explicit TorchRowStore(size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}
  virtual ~TorchRowStore() = default;

  virtual std::optional<TorchRun> run(const TorchOptions& options) const;  // as it was kept
  virtual void keep(const TorchRun& run);
  virtual std::shared_ptr<const TorchRank> rank(const TorchRun& run, size_t part);  // kept, or laid out now
  virtual bool in_order() const { return false; }  // whether ranks are asked for one after another

 private:
  static int mode(const TorchOptions& options) { return options.hta * 2 + options.include_last_step; }

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::map<int, TorchRun> runs_;
  std::map<std::pair<int, size_t>, std::shared_ptr<const TorchRank>> ranks_;
};

// Errors: kBadInput when the trace has no profiler slices, or none of the ranks that are asked for.
Result<TorchRun> make_torch_run(const Trace& trace, const TorchOptions& options);
// Never returns nullptr. O(slices of the part), unless the run's store has the rank. The caller should release it when
// done, so that memory is bounded by the ranks in use and the store.
std::shared_ptr<const TorchRank> torch_rank(const TorchRun& run, size_t part);
TorchRank lay_out_rank(const TorchRun& run, size_t part);  // the same without the store

// Asks each rank of the run, on all threads unless its store has them in order; the answers are in the order of
// run.parts.
template <class Ask, class Answer = std::invoke_result_t<Ask, const TorchRank&>>
auto ask_ranks(const TorchRun& run, Ask ask, Answer none = {}) {
  std::vector<Answer> answers(run.parts.size(), std::move(none));
  const auto answer = [&](size_t k) { answers[k] = ask(*torch_rank(run, run.parts[k])); };
  if (run.options.store && run.options.store->in_order())
    for (size_t k = 0; k < answers.size(); ++k) answer(k);
  else parallel_for(answers.size(), answer);
  return answers;
}

// As ask_ranks() where asking may fail: all answers, or the error of the first rank that fails.
template <class Ask> auto try_ranks(const TorchRun& run, Ask ask) {
  using Asked = std::invoke_result_t<Ask, const TorchRank&>;
  std::vector<Asked> asked = ask_ranks(run, ask, Asked(Error()));
  using Answers = std::vector<std::remove_cvref_t<decltype(**asked.data())>>;
  Answers answers;
  for (Asked& one : asked) {
    if (!one) return Result<Answers>(std::move(one).error());
    answers.push_back(std::move(*one));
  }
  return Result<Answers>(std::move(answers));
}

// Converts a row's time as HTA prints it: microseconds from the run's zero.
inline double to_us(int64_t ns) { return ns / 1000.0; }

// Notes that an answer is of all steps but the last one, if it is (TorchRun::drops_last_step).
void note_last_step(const TorchRun& run, Diagnostics& notes);

}  // namespace stageline
