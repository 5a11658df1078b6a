#include "sql/run_tables.h"

namespace stageline::sql {
namespace {

std::optional<int64_t> number(const Argument& argument) {
  if (const auto* value = std::get_if<int64_t>(&argument)) return *value;
  return parse_int(argument_text(argument));
}

Error no_number(const char* function, const char* what, const Argument& argument) {
  return make_error(ErrorCode::kUsage, std::string(function) + "() takes a whole number for " + what + ", not \"" +
                                           argument_text(argument) + "\"");
}

}  // namespace

std::shared_ptr<const TableSource> table_function(
    const std::shared_ptr<const RunData>& data, const char* name,
    std::function<RunData::Made(const RunData&, const std::vector<Argument>&)> make) {
  const TableSpec& spec = declared_table(std::string("sql/") + name);
  return std::make_shared<RowTable>(
      name, spec.summary, columns_of(spec),
      [data, make = std::move(make)](const std::vector<Argument>& arguments) { return make(*data, arguments); });
}

bool is_given(const Argument& argument) { return !std::holds_alternative<std::monostate>(argument); }

Result<std::vector<std::optional<int64_t>>> whole_numbers(const char* function, std::span<const char* const> what,
                                                          const std::vector<Argument>& arguments) {
  std::vector<std::optional<int64_t>> numbers;
  for (size_t i = 0; i < what.size(); ++i) {
    numbers.push_back(number(arguments[i]));
    if (is_given(arguments[i]) && !numbers.back()) return no_number(function, what[i], arguments[i]);
  }
  return numbers;
}

Result<std::vector<size_t>> parts_of_rank(const RunData& data, const char* function, std::optional<int64_t> rank) {
  std::vector<size_t> parts;
  for (size_t p = 0; p < data.trace().parts.size(); ++p)
    if (data.has_part(p) && (!rank || data.trace().parts[p].rank == *rank)) parts.push_back(p);
  if (parts.empty() && rank)
    return make_error(ErrorCode::kUsage, std::string(function) + "(): there is no rank " + std::to_string(*rank),
                      "SELECT rank FROM ranks lists them");
  return parts;
}

Result<SlicePlace> slice_of(const RunData& data, const char* function, const Argument& argument) {
  const std::optional<int64_t> id = number(argument);
  if (!is_given(argument))
    return make_error(ErrorCode::kUsage, std::string(function) + "() needs the id of a slice",
                      std::string("SELECT * FROM ") + function + "(17)");
  if (!id) return no_number(function, "the id of a slice", argument);
  const size_t part = *id >> 32;
  const auto slice = static_cast<uint32_t>(*id & UINT32_MAX);
  if (*id < 0 || part >= data.trace().parts.size() || slice >= data.trace().parts[part].slices.size())
    return make_error(ErrorCode::kUsage, std::string(function) + "(): no slice has the id " + std::to_string(*id),
                      "slices.id has them");
  return SlicePlace{part, slice};
}

}  // namespace stageline::sql
