#include "base/number_list.h"

#include <algorithm>

#include "base/number.h"
#include "base/text.h"

namespace stageline {

Result<std::vector<int32_t>> parse_number_list(std::string_view text) {
  constexpr int64_t kMaxNumbers = 1'000'000;
  const auto bad = [&](std::string_view item) {
    return make_error(ErrorCode::kUsage, "\"" + std::string(item) + "\" is not a number or a range",
                      "write numbers and ranges such as 0-3,8");
  };
  std::vector<int32_t> numbers;
  for (std::string_view item : split(text, ',')) {
    item = trim(item);
    const size_t dash = item.find('-', 1);
    const auto first = parse_int(trim(item.substr(0, dash)));
    const auto last = dash == std::string_view::npos ? first : parse_int(trim(item.substr(dash + 1)));
    if (!first || !last || *first < 0 || *last < *first || *last > INT32_MAX) return bad(item);
    if (*last - *first + std::ssize(numbers) >= kMaxNumbers)
      return make_error(ErrorCode::kLimit, "the list names more than 1 000 000 numbers");
    for (int64_t n = *first; n <= *last; ++n) numbers.push_back(static_cast<int32_t>(n));
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string number_list(const std::vector<int32_t>& numbers, size_t max_count) {
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < max_count; ++i) text += (i > 0 ? "," : "") + std::to_string(numbers[i]);
  return text + (numbers.size() > max_count ? ",…" : "");
}

}  // namespace stageline
