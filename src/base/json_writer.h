// Writes compact JSON text in the order of the calls. It builds no tree: begin and end calls nest as the text does.
#pragma once

#include "base/words.h"

namespace stageline {

// Appends `text` as a JSON string with quotes. Control characters are escaped; invalid UTF-8
// becomes U+FFFD. `ascii` writes everything above 0x7e as \uXXXX (Python's json.dumps default).
// "</" is written "<\/", so the text may stand inside an HTML script element.
void append_json_string(std::string& out, std::string_view text, bool ascii = false);
// Returns the text in quotes, as a whole JSON value.
std::string json_quoted(std::string_view text);

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::integral auto number) { return integer(static_cast<int64_t>(number)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  JsonWriter& value(const std::optional<int64_t>& number) { return number ? integer(*number) : null(); }
  // Writes text that already is JSON.
  JsonWriter& raw(std::string_view json);
  // Writes the text of both languages, as NAME_en and NAME_zh.
  JsonWriter& field(std::string_view name, const Text& text);
  template <class T> JsonWriter& field(std::string_view name, const T& v) { return key(name).value(v); }
  // Writes a member that holds a list: what `show` makes of each element.
  template <class List, class Show = std::identity>
  JsonWriter& list(std::string_view name, const List& list, Show show = {}) {
    key(name).begin_array();
    for (const auto& one : list) value(std::invoke(show, one));
    return end_array();
  }
  // Writes a member that holds a list, whose elements `write` writes: any number for each element of `list`.
  template <class List, class Write> JsonWriter& each(std::string_view name, const List& list, Write write) {
    key(name).begin_array();
    for (const auto& one : list) write(one);
    return end_array();
  }
  // Writes a member that holds a list of objects: `write` writes the members of each.
  template <class List, class Write> JsonWriter& objects(std::string_view name, const List& list, Write write) {
    return each(name, list, [&](const auto& one) {
      begin_object();
      write(one);
      end_object();
    });
  }
  // Writes a member that is null where its value is not known.
  template <class T> JsonWriter& maybe(std::string_view name, bool is_known, const T& v) {
    key(name);
    return is_known ? value(v) : null();
  }
  // Writes a time as whole nanoseconds; null where it is not finite.
  JsonWriter& field_ns(std::string_view name, double ns);

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }
  // Gives what was written so far to `write`, and goes on within the document in the same memory.
  void hand_over(std::invocable<std::string_view> auto&& write) {
    write(out_);
    out_.clear();
  }

 private:
  JsonWriter& integer(int64_t number);
  JsonWriter& open(char c);
  JsonWriter& close(char c);
  void separate();

  std::string out_;
  bool need_comma_ = false;
};

}  // namespace stageline
