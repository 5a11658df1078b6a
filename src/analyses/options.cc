// Reads typed values of analysis options.
#include "analyses/analysis.h"
#include "base/csv.h"

namespace stageline {
namespace {

Error bad_value(std::string_view name, const std::string& value, const std::string& wanted,
                const std::string& hint = "") {
  return make_error(ErrorCode::kUsage, "--" + std::string(name) + " must be " + wanted + ", not \"" + value + "\"",
                    hint);
}

}  // namespace

std::string AnalysisOptions::text(std::string_view name, std::string_view fallback) const {
  const auto it = values_.find(name);
  return it == values_.end() ? std::string(fallback) : it->second;
}

Result<bool> AnalysisOptions::flag(std::string_view name, bool fallback) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return fallback;
  if (it->second.empty() || it->second == "true" || it->second == "1" || it->second == "yes") return true;
  if (it->second == "false" || it->second == "0" || it->second == "no") return false;
  return bad_value(name, it->second, "true or false");
}

Result<int64_t> AnalysisOptions::integer(std::string_view name, int64_t fallback, int64_t min, int64_t max) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return fallback;
  const auto value = parse_int(trim(it->second));
  if (value && *value >= min && *value <= max) return *value;
  std::string wanted = "a whole number";
  if (min != INT64_MIN) wanted += " from " + std::to_string(min);
  if (max != INT64_MAX) wanted += " to " + std::to_string(max);
  return bad_value(name, it->second, wanted);
}

Result<double> AnalysisOptions::real(std::string_view name, double fallback) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return fallback;
  const auto value = parse_double(trim(it->second));
  if (!value) return bad_value(name, it->second, "a number");
  return *value;
}

Result<double> AnalysisOptions::share(std::string_view name, double fallback) const {
  Result<double> value = real(name, fallback);
  if (value && !(*value >= 0 && *value <= 1))
    return bad_value(name, text(name), "from 0 to 1", "0.8 stands for 80 % of the time");
  return value;
}

Result<int64_t> AnalysisOptions::duration_ns(std::string_view name, int64_t fallback_ns) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return fallback_ns;
  std::string text(trim(it->second));
  if (!text.ends_with('s')) text += "us";  // every unit ends in s
  const auto value = parse_duration(text);
  if (!value) return bad_value(name, it->second, "a time such as 30, 30us or 1ms (without a unit: microseconds)");
  return *value;
}

std::vector<std::string> AnalysisOptions::list(std::string_view name) const {
  std::vector<std::string> out;
  const std::string all = text(name);
  for (const std::string_view item : split(all, ','))
    if (!trim(item).empty()) out.emplace_back(trim(item));
  return out;
}

Result<std::vector<int64_t>> AnalysisOptions::table(std::string_view name,
                                                    const std::vector<std::string_view>& columns) const {
  const std::string all = text(name);
  std::string_view rest = all;
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  std::vector<int64_t> out;
  int64_t line = 0;
  for (bool first = true; next_csv_record(rest, fields, storage, &line); first = false) {
    if ((fields.size() == 1 && trim(fields[0]).empty()) || (first && fields == columns)) continue;
    bool good = fields.size() == columns.size();
    for (const std::string_view field : fields) {
      const auto value = parse_int(trim(field));
      good &= value && *value >= 0;
      out.push_back(value.value_or(0));
    }
    if (good) continue;
    std::string wanted;
    for (const std::string_view column : columns) append_item(wanted, column, ",");
    return make_error(ErrorCode::kBadInput,
                      "--" + std::string(name) + ": line " + std::to_string(line) + " is not " + wanted);
  }
  return out;
}

Result<std::vector<int32_t>> AnalysisOptions::numbers(std::string_view name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return std::vector<int32_t>();
  Result<std::vector<int32_t>> numbers = parse_number_list(it->second);
  if (numbers) return numbers;
  Error error = std::move(numbers).error();
  error.what = "--" + std::string(name) + ": " + error.what;
  return error;
}

}  // namespace stageline
