// Rows for several questions that are asked at the same time, each on a thread of its own. Every rank is laid out once.
// Its rows are let go when all questions are past it, so memory holds the rows of a few ranks instead of all.
#pragma once

#include <condition_variable>

#include "profile/torch_view.h"

namespace stageline {

class SharedRows {
 public:
  // `questions` are numbered from 0. Rows of `max_ranks` ranks are held at a time, and of one more where the question
  // that is furthest behind needs it.
  SharedRows(size_t questions, size_t max_ranks) : at_(questions), max_ranks_(max_ranks) {}

  // The store of one question; it must not outlive the SharedRows. The question is over when its seat is destroyed.
  class Seat : public TorchRowStore {
   public:
    Seat(SharedRows& shared, size_t question) : shared_(shared), question_(question) {}
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat() override { shared_.end(question_); }

    std::optional<TorchRun> run(const TorchOptions& options) const override { return shared_.runs_.run(options); }
    void keep(const TorchRun& run) override { shared_.runs_.keep(run); }
    std::shared_ptr<const TorchRank> rank(const TorchRun& run, size_t part) override {
      return shared_.rank(question_, run, part);
    }
    // Questions wait for each other's ranks, so each asks for them in one order.
    bool in_order() const override { return true; }

   private:
    SharedRows& shared_;
    const size_t question_;
  };

 private:
  std::shared_ptr<const TorchRank> rank(size_t question, const TorchRun& run, size_t part);
  void move_to(size_t question, size_t place);  // under the lock; lets go what no question needs any more
  void end(size_t question);

  TorchRowStore runs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<TorchOptions> options_;  // of the first question; others in another mode lay out their own rows
  std::vector<size_t> at_;               // by question: the place in TorchRun::parts where it is
  std::map<size_t, std::shared_ptr<const TorchRank>> held_;  // by place; nullptr while a question lays it out
  const size_t max_ranks_;
};

}  // namespace stageline
