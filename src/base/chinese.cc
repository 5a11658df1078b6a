#include "base/chinese.h"

#include <simdjson.h>

#include <array>
#include <map>
#include <optional>
#include <vector>

namespace stageline {

// cmake/chinese.cmake writes these.
extern const std::string_view kChineseNames, kChineseSentences, kWords;

namespace {

constexpr size_t kMaxPlaces = 10;    // {0} to {9}
constexpr size_t kMaxLength = 4096;  // longer texts are not looked up
constexpr int kMaxNested = 3;        // depth of sentences within sentences

struct Template {
  std::vector<std::string> literals;  // texts around the places; there is one more of them than of places
  std::vector<size_t> places;         // the numbers of the places, in order
  std::string english, chinese;
};

class Dictionary {
 public:
  Dictionary() {
    simdjson::dom::parser parser;
    simdjson::dom::object names, sentences;
    if (!parser.parse(kChineseNames.data(), kChineseNames.size()).get(names)) add_names(names);
    if (!parser.parse(kChineseSentences.data(), kChineseSentences.size()).get(sentences)) add_sentences(sentences);
    simdjson::dom::array folders;
    if (parser.parse(kWords.data(), kWords.size()).get(folders)) return;
    for (const auto& folder : folders) {
      if (!folder["columns_zh"].get(names)) add_names(names);
      if (!folder["sentences_zh"].get(sentences)) add_sentences(sentences);
    }
  }

  std::string_view name(std::string_view key) const {
    const auto at = names_.find(key);
    return at == names_.end() ? std::string_view() : at->second;
  }

  bool any_name(std::string_view prefix) const {
    const auto at = names_.lower_bound(prefix);
    return at != names_.end() && std::string_view(at->first).starts_with(prefix);
  }

  std::string sentence(std::string_view text, int nested) const {
    if (text.empty() || text.size() > kMaxLength || nested > kMaxNested) return std::string(text);
    if (const auto at = whole_.find(text); at != whole_.end()) return at->second;
    for (const Template& one : templates_)
      if (const auto values = fit(one, text)) return filled(one, *values, nested);
    return std::string(text);
  }

  std::string_view of_template(std::string_view english) const {
    if (const auto at = whole_.find(english); at != whole_.end()) return at->second;
    for (const Template& one : templates_)
      if (one.english == english) return one.chinese;
    return {};
  }

 private:
  void add_names(const simdjson::dom::object& names) {
    for (const auto& field : names)
      if (std::string_view text; !field.value.get(text)) names_.emplace(field.key, text);
  }
  void add_sentences(const simdjson::dom::object& sentences) {
    for (const auto& field : sentences)
      if (std::string_view text; !field.value.get(text)) add(field.key, text);
  }

  using Values = std::array<std::string_view, kMaxPlaces>;

  void add(std::string_view english, std::string_view chinese) {
    Template one;
    one.english = english;
    one.chinese = chinese;
    std::string literal;
    for (size_t i = 0; i < english.size(); ++i) {
      if (english[i] == '{' && i + 2 < english.size() && english[i + 2] == '}' && english[i + 1] >= '0' &&
          english[i + 1] <= '9') {
        one.literals.push_back(std::move(literal));
        literal.clear();
        one.places.push_back(static_cast<size_t>(english[i + 1] - '0'));
        i += 2;
      } else {
        literal += english[i];
      }
    }
    one.literals.push_back(std::move(literal));
    if (one.places.empty())
      whole_.emplace(english, chinese);
    else
      templates_.push_back(std::move(one));
  }

  static std::optional<Values> fit(const Template& one, std::string_view text) {
    if (!text.starts_with(one.literals.front())) return {};
    Values values;
    size_t at = one.literals.front().size();
    for (size_t p = 0; p < one.places.size(); ++p) {
      const std::string& next = one.literals[p + 1];
      size_t end = std::string_view::npos;
      if (p + 1 == one.places.size()) {
        if (text.size() >= at + next.size() && text.ends_with(next)) end = text.size() - next.size();
      } else {
        end = text.find(next, at);
      }
      if (end == std::string_view::npos || end <= at) return {};  // a place must not be empty
      values[one.places[p]] = text.substr(at, end - at);
      at = end + next.size();
    }
    return values;
  }

  std::string filled(const Template& one, const Values& values, int nested) const {
    std::string out;
    const std::string& text = one.chinese;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '{' && i + 2 < text.size() && text[i + 2] == '}' && text[i + 1] >= '0' && text[i + 1] <= '9') {
        out += sentence(values[text[i + 1] - '0'], nested + 1);
        i += 2;
      } else {
        out += text[i];
      }
    }
    return out;
  }

  std::map<std::string, std::string, std::less<>> names_, whole_;
  std::vector<Template> templates_;
};

const Dictionary& dictionary() {
  static const Dictionary known;
  return known;
}

}  // namespace

std::string_view chinese_name(std::string_view key) { return dictionary().name(key); }
bool any_chinese_name(std::string_view prefix) { return dictionary().any_name(prefix); }
std::string in_chinese(std::string_view sentence) { return dictionary().sentence(sentence, 0); }
std::string_view chinese_template(std::string_view english) { return dictionary().of_template(english); }

}  // namespace stageline
