// Makes a Part of rows in file order: puts lanes in order, and finds the facts that many questions need.
#pragma once

#include "readers/common/relate_slices.h"
#include "readers/common/rows/file_rows.h"

namespace stageline::rows {

// Builds the part with the file's own name and category ids; several files can be built at once. `base_ns` is added to
// every time. `rows` are freed on the way. Rows whose times cannot be are left out, and counted in `notes` under the
// name of the reader, `format`.
FileNames build_part(FileRows rows, int64_t base_ns, Part& part, Diagnostics& notes,
                     std::string_view format = "kineto");

// Sets Part::device to the most common process number among the rows of device work.
void find_device(Part& part);

// Steps of build_part() that do not need all rows. names_of() returns the file's own names and categories.
FileNames names_of(const FileRows& rows);
// Lanes of the rows, threads in order of first appearance; returned, by thread, where its first row goes.
// `external_ids`: set where a row has one.
std::vector<size_t> make_lanes(const FileRows& rows, std::vector<Lane>& lanes, bool* external_ids = nullptr);
// Names the lanes as the rows do.
void name_lanes(const FileRows& rows, std::vector<Lane>& lanes);
// Puts column[begin …] into the order of these slices.
template <class T> void permute_lane(std::vector<T>& column, const std::vector<uint32_t>& order, size_t begin) {
  std::vector<T> sorted(order.size());
  for (size_t k = 0; k < order.size(); ++k) sorted[k] = column[order[k]];
  std::ranges::copy(sorted, column.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace stageline::rows
