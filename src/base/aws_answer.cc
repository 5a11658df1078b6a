#include "base/aws_answer.h"

#include <time.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace stageline {

std::string xml_text(std::string_view xml, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const size_t begin = xml.find(open);
  const size_t end = begin == std::string_view::npos ? begin : xml.find(close, begin);
  if (end == std::string_view::npos) return {};
  std::string_view text = xml.substr(begin + open.size(), end - begin - open.size());
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};
  std::string out;
  while (!text.empty()) {
    const auto* const entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                                            [&](const auto& one) { return text.starts_with(one.first); });
    const bool found = entity != std::end(kEntities);
    out += found ? entity->second : text[0];
    text.remove_prefix(found ? entity->first.size() : 1);
  }
  return out;
}

int64_t iso_seconds(std::string_view text) {
  struct tm utc{};
  return strptime(std::string(text).c_str(), "%Y-%m-%dT%H:%M:%S", &utc) ? timegm(&utc) : 0;
}

}  // namespace stageline
