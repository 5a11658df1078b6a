#include "readers/common/join_ranks.h"

#include <string>
#include <utility>

#include "readers/common/relate_slices.h"

namespace stageline {

void join_rank(Trace& trace, Trace one) {
  FileNames names;
  for (size_t id = 0; id < one.names.size(); ++id) names.names.emplace_back(one.names.text(static_cast<StringId>(id)));
  names.categories = std::move(one.categories);
  std::vector<StringId> name_map;
  std::vector<uint8_t> category_map;
  adopt_names(names, trace, name_map, category_map);
  const auto part = static_cast<int32_t>(trace.parts.size());
  for (Part& own : one.parts) {
    rename_part(name_map, category_map, own);
    trace.parts.push_back(std::move(own));
  }
  Cells& cells = trace.cells;
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(cells.step, one.cells.step);
  append(cells.kind, one.cells.kind);
  append(cells.chunk, one.cells.chunk);
  append(cells.micro_batch, one.cells.micro_batch);
  append(cells.start_ns, one.cells.start_ns);
  append(cells.end_ns, one.cells.end_ns);
  append(cells.slice, one.cells.slice);
  for (const int32_t own : one.cells.part) cells.part.push_back(part + own);
  trace.diagnostics.merge(one.diagnostics);
}

}  // namespace stageline
