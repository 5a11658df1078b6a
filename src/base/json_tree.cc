#include "base/json_tree.h"

#include <simdjson.h>

namespace stageline {
namespace {

constexpr size_t kMaxDepth = 64;

uint32_t take(simdjson::dom::element element, ValueTree& tree) {
  using Type = simdjson::dom::element_type;
  const auto text = [&](std::string_view value) {
    const size_t at = tree.bytes().size();
    tree.bytes().append(value);
    return tree.add_text(at, value.size());
  };
  switch (element.type()) {
    case Type::ARRAY: {
      const uint32_t list = tree.add_list();
      for (const simdjson::dom::element item : simdjson::dom::array(element)) tree.append(list, take(item, tree));
      return list;
    }
    case Type::OBJECT: {
      const uint32_t dict = tree.add_dict();
      for (const simdjson::dom::key_value_pair pair : simdjson::dom::object(element)) {
        tree.append(dict, text(pair.key));
        tree.append(dict, take(pair.value, tree));
      }
      return dict;
    }
    case Type::INT64: return tree.add_integer(int64_t(element));
    case Type::UINT64: return tree.add_unsigned(uint64_t(element));
    case Type::DOUBLE: return tree.add_real(double(element));
    case Type::STRING: return text(std::string_view(element));
    case Type::BOOL: return tree.add_bool(bool(element));
    default: return tree.add_none();
  }
}

// Returns the text up to the last element that was closed, and closes behind it what is still open. *at is the position
// of that place.
std::string whole_part(std::string_view text, int64_t* at) {
  std::vector<char> open;
  size_t safe = 0, safe_depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') open.push_back(c == '{' ? '}' : ']');
    if (c != '}' && c != ']') continue;
    if (open.empty() || open.back() != c) break;
    open.pop_back();
    safe = i + 1;
    safe_depth = open.size();
  }
  *at = safe;
  if (safe == 0) return {};
  std::string whole(text.substr(0, safe));
  for (size_t i = safe_depth; i > 0; --i) whole += open[i - 1];
  return whole;
}

// Reads over a JSON text up to the first character that is not allowed at its place.
class JsonOutline {
 public:
  explicit JsonOutline(std::string_view text) : text_(text) {}
  size_t at() const { return at_; }
  bool value(size_t depth) {
    space();
    if (at_ == text_.size() || depth > kMaxDepth) return false;
    if (text_[at_] == '"') return string();
    if (text_[at_] == '{' || text_[at_] == '[') return list(text_[at_] == '{', depth);
    const size_t from = at_;
    while (at_ < text_.size() && std::string_view(",]} \t\r\n").find(text_[at_]) == std::string_view::npos) ++at_;
    const std::string_view word = text_.substr(from, at_ - from);
    if (word == "true" || word == "false" || word == "null" || parse_double(word)) return true;
    at_ = from;
    return false;
  }
  bool end() {
    space();
    return at_ == text_.size();
  }

 private:
  void space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool is(char c) {
    space();
    const bool here = at_ < text_.size() && text_[at_] == c;
    at_ += here ? 1 : 0;
    return here;
  }
  bool string() {
    const size_t from = at_++;
    for (; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    if (at_ < text_.size() && text_[at_++] == '"') return true;
    at_ = from;
    return false;
  }
  bool list(bool object, size_t depth) {
    ++at_;
    if (is(object ? '}' : ']')) return true;
    do {
      space();
      if (object && (at_ == text_.size() || text_[at_] != '"' || !string() || !is(':'))) return false;
      if (!value(depth + 1)) return false;
    } while (is(','));
    return is(object ? '}' : ']');
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<ValueTree> parse_whole_json(std::string_view text, const std::string& path) {
  Result<JsonTree> tree = parse_json_tree(text, path);
  if (tree && tree->broken_at < 0) return std::move(tree->tree);
  if (!tree && tree.error().code == ErrorCode::kLimit) return tree.error();
  JsonOutline outline(text);
  const bool whole = outline.value(0) && outline.end();
  const std::string_view before = text.substr(0, outline.at());
  const size_t line = before.rfind('\n') + 1;
  return make_error(ErrorCode::kBadInput,
                    "column " + std::to_string(before.size() - line + 1) +
                        (whole ? ": this JSON cannot be read" : ": from here on this is no JSON"),
                    "", {path, static_cast<int64_t>(std::ranges::count(before, '\n')) + 1});
}

Result<JsonTree> parse_json_tree(std::string_view text, const std::string& path) {
  JsonTree out;
  simdjson::dom::parser parser;
  if (parser.allocate(text.size() + 1, kMaxDepth) != simdjson::SUCCESS)
    return make_error(ErrorCode::kLimit, "this JSON is too large to be read at once", "", {path});
  simdjson::dom::element root;
  auto problem = parser.parse(text.data(), text.size()).get(root);
  if (problem != simdjson::SUCCESS) {
    const std::string whole = whole_part(text, &out.broken_at);
    if (whole.empty() || parser.parse(whole).get(root) != simdjson::SUCCESS)
      return make_error(ErrorCode::kBadInput,
                        std::string("this JSON cannot be read: ") + simdjson::error_message(problem), "", {path});
  }
  out.tree.set_root(take(root, out.tree));
  return out;
}

}  // namespace stageline
