#include "base/json_tree.h"

#include <simdjson.h>

#include <vector>

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
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
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

}  // namespace

Result<JsonTree> parse_json_tree(std::string_view text, const std::string& path) {
  JsonTree out;
  simdjson::dom::parser parser;
  if (parser.allocate(text.size() + 1, kMaxDepth) != simdjson::SUCCESS)
    return Error{ErrorCode::kLimit, "this JSON is too large to be read at once", {path}, ""};
  simdjson::dom::element root;
  auto problem = parser.parse(text.data(), text.size()).get(root);
  if (problem != simdjson::SUCCESS) {
    const std::string whole = whole_part(text, &out.broken_at);
    if (whole.empty() || parser.parse(whole).get(root) != simdjson::SUCCESS)
      return Error{ErrorCode::kBadInput,
                   std::string("this JSON cannot be read: ") + simdjson::error_message(problem),
                   {path},
                   ""};
  }
  out.tree.set_root(take(root, out.tree));
  return out;
}

}  // namespace stageline
