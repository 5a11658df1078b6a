#include "profile/shared_rows.h"

#include <thread>

#include "torch_traces.h"

using namespace stageline;

namespace {

using Held = std::vector<std::shared_ptr<const TorchRank>>;

Trace trace_of(int ranks) {
  const Folder folder;
  std::vector<std::string> paths;
  for (int rank = 0; rank < ranks; ++rank)
    paths.push_back(
        folder.add("rank" + std::to_string(rank) + ".json",
                   torch_file({torch_event("cpu_op", "x" + std::to_string(rank), 100, 1, "50", "5")}, rank)));
  return read_with("kineto", paths);
}

// Asks for the ranks at these places, and keeps their rows.
Held asked(SharedRows& shared, size_t question, const Trace& trace, const std::vector<size_t>& places) {
  SharedRows::Seat seat(shared, question);
  const auto run = make_torch_run(trace, {.store = &seat});
  Held held;
  for (const size_t place : places) held.push_back(torch_rank(*run, run->parts[place]));
  return held;
}

std::vector<Held> asked_together(const Trace& trace, const std::vector<std::vector<size_t>>& places, size_t max_ranks) {
  SharedRows shared(places.size(), max_ranks);
  std::vector<Held> held(places.size());
  std::vector<std::thread> threads;
  for (size_t q = 0; q < places.size(); ++q)
    threads.emplace_back([&, q] { held[q] = asked(shared, q, trace, places[q]); });
  for (std::thread& thread : threads) thread.join();
  return held;
}

}  // namespace

TEST_CASE("questions at the same time share the rows of each rank") {
  const Trace trace = trace_of(5);
  for (const size_t max_ranks : {1, 2, 8}) {
    const auto held = asked_together(trace, {{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}, max_ranks);
    for (int rank = 0; rank < 5; ++rank) {
      CHECK(held[0][rank]->rank == rank);
      CHECK(held[1][rank] == held[0][rank]);
      CHECK(held[2][rank] == held[0][rank]);
    }
  }
}

TEST_CASE("questions about some ranks, about none, and in another order do not stop the others") {
  const Trace trace = trace_of(5);
  const std::vector<std::vector<size_t>> places = {{0, 1, 2, 3, 4}, {}, {3}, {4, 2, 0, 1}, {2, 4}};
  for (const size_t max_ranks : {1, 2}) {
    const auto held = asked_together(trace, places, max_ranks);
    for (size_t q = 0; q < places.size(); ++q)
      for (size_t k = 0; k < places[q].size(); ++k) CHECK(held[q][k]->rank == static_cast<int32_t>(places[q][k]));
  }
}
