#include "base/words.h"

namespace stageline {

namespace {

// Returns where the place that is open at `from` ends, or its first part: at the closing brace or, at the same depth,
// at a bar.
size_t end_of_part(std::string_view text, size_t from) {
  int depth = 0;
  for (size_t at = from; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '|' && depth == 0) return at;
    if (text[at] == '}' && depth-- == 0) return at;
  }
  return std::string_view::npos;
}

// The parts of a place. `end` is after its closing brace; 0 when it has none.
struct Place {
  std::string_view name, then, otherwise;
  bool asks = false;
  size_t end = 0;
};
Place place_at(std::string_view text, size_t open) {
  Place place;
  const size_t name_end = text.find_first_of("?}", open);
  if (name_end == std::string_view::npos) return place;
  place.name = text.substr(open + 1, name_end - open - 1);
  place.asks = text[name_end] == '?';
  size_t end = name_end;
  if (place.asks) {
    end = end_of_part(text, name_end + 1);
    if (end == std::string_view::npos) return place;
    place.then = text.substr(name_end + 1, end - name_end - 1);
    if (text[end] == '|') {
      const size_t second = end + 1;
      end = end_of_part(text, second);
      if (end == std::string_view::npos || text[end] == '|') return place;
      place.otherwise = text.substr(second, end - second);
    }
  }
  place.end = end + 1;
  return place;
}

void fill(std::string_view text, const Args& args, bool chinese, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at);
    out += text.substr(at, open == std::string_view::npos ? open : open - at);
    if (open == std::string_view::npos) return;
    const Place place = place_at(text, open);
    if (place.end == 0) return;  // words_extremes_test.cc reports it
    const std::string_view value = args.of(place.name, chinese);
    if (place.asks) fill(value.empty() ? place.otherwise : place.then, args, chinese, out);
    else assert(args.has(place.name) && "a sentence asks for an argument that nobody gave"), out += value;
    at = place.end;
  }
}

}  // namespace

Text joined(const std::vector<Text>& parts, const Text& between) {
  Text all;
  for (const Text& part : parts) {
    if (&part != &parts.front()) all += between;
    all += part;
  }
  return all;
}

Args& Args::set(std::string_view name, std::string value) {
  Text text{value, {}};
  text.zh = std::move(value);
  return set(name, std::move(text));
}
Args& Args::set(std::string_view name, Text value) {
  values_.insert_or_assign(std::string(name), std::move(value));
  return *this;
}
Args& Args::set(std::string_view name, int64_t value) { return set(name, std::to_string(value)); }
Args& Args::count(std::string_view name, int64_t value) {
  return set(name, grouped(value)).flag(std::string(name) + ".one", value == 1);
}
Args& Args::flag(std::string_view name, bool on) { return set(name, std::string(on ? "1" : "")); }

std::string_view Args::of(std::string_view name, bool chinese) const {
  const auto at = values_.find(name);
  if (at == values_.end()) return {};
  return chinese ? at->second.zh : at->second.en;
}

bool has_words(std::string_view name) { return sentences().contains(name); }

Text words(std::string_view name, const Args& args) {
  const auto at = sentences().find(name);
  assert(at != sentences().end() && "a sentence that no words.json has");
  Text text;
  if (at == sentences().end()) return text;
  fill(at->second.en, args, false, text.en);
  fill(at->second.zh, args, true, text.zh);
  return text;
}

}  // namespace stageline
