#include "readers/common/join_ranks.h"

#include <functional>
#include <iterator>
#include <utility>

#include "base/parallel.h"
#include "readers/common/relate_slices.h"

namespace stageline {

namespace {

// Appends all of `one` but its cells.
void join_part(Trace& trace, Trace& one) {
  FileNames names;
  for (uint32_t id = 0; id < one.names.size(); ++id) names.names.emplace_back(one.names.text(id));
  names.categories = std::move(one.categories);
  const NameMap map = adopt_names(names, trace);
  for (Part& own : one.parts) {
    rename_part(map, own);
    trace.parts.push_back(std::move(own));
  }
  trace.diagnostics.merge(one.diagnostics);
}

}  // namespace

void join_ranks(Trace& trace, std::vector<Trace> ranks) {
  std::vector<int32_t> first_part;  // of each
  for (Trace& one : ranks) {
    first_part.push_back(static_cast<int32_t>(trace.parts.size()));
    join_part(trace, one);
  }
  Cells& cells = trace.cells;
  const auto append = [&](auto Cells::* column) {
    return [&ranks, &to = cells.*column, column] {
      for (const Trace& one : ranks) to.insert(to.end(), (one.cells.*column).begin(), (one.cells.*column).end());
    };
  };
  // A column is mostly new memory, and each takes as long as its bytes.
  const std::function<void()> columns[] = {append(&Cells::start_ns),
                                           append(&Cells::end_ns),
                                           append(&Cells::step),
                                           [&] {
                                             for (size_t i = 0; i < ranks.size(); ++i)
                                               for (const int32_t own : ranks[i].cells.part)
                                                 cells.part.push_back(first_part[i] + own);
                                           },
                                           append(&Cells::chunk),
                                           append(&Cells::micro_batch),
                                           append(&Cells::slice),
                                           append(&Cells::kind)};
  parallel_for(std::size(columns), [&](size_t i) { columns[i](); });
}

void join_rank(Trace& trace, Trace one) {
  std::vector<Trace> ranks;
  ranks.push_back(std::move(one));
  join_ranks(trace, std::move(ranks));
}

}  // namespace stageline
