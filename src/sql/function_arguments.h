// Arguments of table-valued functions: whole numbers, ranks and ids of slices. Errors are kUsage and name the function.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sql/row_table.h"
#include "sql/run_data.h"

namespace stageline::sql {

// A function of a run. Its table "sql/NAME" is declared with its arguments, which follow the columns.
std::shared_ptr<const TableSource> table_function(
    const std::shared_ptr<const RunData>& data, const char* name,
    std::function<RunData::Made(const RunData&, const std::vector<Argument>&)> make);

bool is_given(const Argument& argument);

// Returns the first arguments as whole numbers, nullopt where one is not given; `what` names each for an error: "the
// rank".
Result<std::vector<std::optional<int64_t>>> whole_numbers(const char* function, std::span<const char* const> what,
                                                          const std::vector<Argument>& arguments);

// Returns the indexes of the parts with data that belong to a rank, or of all parts without one.
Result<std::vector<size_t>> parts_of_rank(const RunData& data, const char* function, std::optional<int64_t> rank);

struct SlicePlace {
  size_t part = 0;
  uint32_t slice = 0;
};
// Returns the slice whose id an argument gives.
Result<SlicePlace> slice_of(const RunData& data, const char* function, const Argument& argument);

}  // namespace stageline::sql
