#include "server/http/query.h"

namespace stageline {
namespace {

Error bad(std::string what, std::string hint = "docs/viewer-protocol.md lists paths and parameters") {
  return make_error(ErrorCode::kUsage, std::move(what), std::move(hint));
}

// Decodes a text; nullopt for a broken escape or a control character. With `lines`, tabs and the ends of lines stay.
std::optional<std::string> decoded(std::string_view text, bool plus_is_space, bool lines = false) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    const bool white = c == '\t' || c == '\n' || c == '\r';
    if ((static_cast<unsigned char>(c) < 0x20 && !(lines && white)) || c == 0x7f) return std::nullopt;
    out += c;
  }
  return out;
}

}  // namespace

const std::string* Query::find(std::string_view name) const {
  for (auto at = parameters.rbegin(); at != parameters.rend(); ++at)
    if (at->first == name) return &at->second;
  return nullptr;
}

std::string_view Query::text(std::string_view name, std::string_view fallback) const {
  const std::string* found = find(name);
  return found ? std::string_view(*found) : fallback;
}

Result<Query> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return bad("the request's target does not begin with /");
  target = target.substr(0, target.find('#'));
  const size_t mark = target.find('?');
  Query query;
  auto path = decoded(target.substr(0, mark), false);
  if (!path) return bad("a broken escape or a control character in the path");
  query.path = std::move(*path);
  if (mark == std::string_view::npos) return query;
  for (const std::string_view pair : split(target.substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    if (query.parameters.size() == kMaxParameters) return bad("too many parameters");
    const size_t equals = pair.find('=');
    auto name = decoded(pair.substr(0, equals), true);
    const bool lines = name == "model";  // a description of several lines; a path has none
    auto value = equals == std::string_view::npos ? std::string() : decoded(pair.substr(equals + 1), true, lines);
    if (!name || !value) return bad("a broken escape or a control character in a parameter");
    query.parameters.emplace_back(std::move(*name), std::move(*value));
  }
  return query;
}

Result<int64_t> integer_parameter(const Query& query, std::string_view name, std::optional<int64_t> fallback,
                                  int64_t min, int64_t max) {
  const std::string* text = query.find(name);
  if (!text && fallback) return *fallback;
  if (!text) return bad(std::string(name) + " is missing");
  const auto number = parse_int(*text);
  if (!number || *number < min || *number > max)
    return bad(std::string(name) + " is a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return *number;
}

Result<double> number_parameter(const Query& query, std::string_view name, std::optional<double> fallback) {
  const std::string* text = query.find(name);
  if (!text && fallback) return *fallback;
  if (!text) return bad(std::string(name) + " is missing");
  const auto number = parse_double(*text);
  if (!number || std::abs(*number) > 1e19) return bad(std::string(name) + " is a number of nanoseconds");
  return *number;
}

Result<std::vector<uint32_t>> list_parameter(const Query& query, std::string_view name, uint32_t end) {
  std::vector<uint32_t> out;
  const std::string* text = query.find(name);
  if (!text) {
    for (uint32_t i = 0; i < end; ++i) out.push_back(i);
    return out;
  }
  if (text->empty()) return out;
  const auto numbers = parse_number_list(*text);
  if (!numbers || numbers->front() < 0 || numbers->back() >= static_cast<int64_t>(end))
    return bad(std::string(name) + " is a list such as 0-3,8 of numbers below " + std::to_string(end));
  out.assign(numbers->begin(), numbers->end());
  return out;
}

int64_t TimeWindow::from_ns() const { return static_cast<int64_t>(std::floor(std::clamp(t0_ns, -4e18, 4e18))); }
int64_t TimeWindow::to_ns() const { return static_cast<int64_t>(std::ceil(std::clamp(t1_ns, -4e18, 4e18))); }

Result<TimeWindow> window_parameters(const Query& query, int64_t span_ns) {
  TRY(t0, number_parameter(query, "t0", 0.0));
  TRY(t1, number_parameter(query, "t1", static_cast<double>(std::max<int64_t>(1, span_ns))));
  if (!(*t1 > *t0)) return bad("t1 has to be after t0");
  return TimeWindow{*t0, *t1};
}

bool is_loopback_host(std::string_view host) {
  std::string name = to_lower(host);
  const size_t colon = name.rfind(':');
  const bool bracketed = name.starts_with('[');
  if (colon != std::string::npos && (!bracketed || name[colon - 1] == ']')) {
    const std::string_view port = std::string_view(name).substr(colon + 1);
    if (port.size() > 5 || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) return false;
    name.resize(colon);
  }
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

}  // namespace stageline
