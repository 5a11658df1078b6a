#include "base/json_places.h"

namespace stageline {
namespace {

constexpr size_t kMaxDepth = 64;

class Walker {
 public:
  Walker(const std::function<JsonPlace(const JsonPath&)>& place,
         const std::function<void(const JsonPath&, std::string_view)>& take, size_t max_bytes)
      : place_(place), take_(take), max_bytes_(max_bytes) {}

  // Returns false when the rest cannot be understood, or when nothing more is wanted.
  bool read(std::string_view window) {
    window_ = window;
    from_ = 0;
    for (at_ = 0; at_ < window.size();) {
      const char c = window[at_];
      if (in_value_ ? !inside(c) : !between(c)) return false;
    }
    if (in_value_) keep(window.size());
    return true;
  }
  size_t at() const { return at_; }
  bool whole() const { return done_; }
  int64_t too_long() const { return too_long_; }

 private:
  // Reads a byte inside a value that is taken or skipped, up to the end of the value.
  bool inside(char c) {
    if (in_string_) {
      skip_string(c);
      return true;
    }
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      if (depth_ == 0) return end_value(at_);  // the end of a number; the bracket closes the object or array around it
      if (--depth_ == 0) return end_value(++at_);
    } else if (depth_ == 0 && (c == ',' || c == '\n' || c == '\r')) {
      return end_value(at_);
    }
    ++at_;
    return true;
  }
  void skip_string(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      ++at_;
      if (depth_ == 0) end_value(at_);
      return;
    } else {
      const size_t next = window_.find_first_of("\"\\", at_);
      at_ = next == std::string_view::npos ? window_.size() : next;
      return;
    }
    ++at_;
  }

  // Reads a byte between values: brackets, keys, commas.
  bool between(char c) {
    if (in_key_) return read_key(c);
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',') return ++at_, true;
    if (done_) return false;
    if (started_ && open_.empty()) return false;
    if (!started_) {
      if (static_cast<unsigned char>(c) >= 0x80) return ++at_, true;  // part of a byte order mark
      started_ = true;
      return begin_value(c);
    }
    if (c == open_.back()) {
      ++at_;
      return close();
    }
    if (c == '}' || c == ']') return false;
    if (open_.back() == ']') {
      path_.emplace_back();
      return begin_value(c);
    }
    if (!have_key_) {
      if (c != '"') return false;
      in_key_ = true;
      key_.clear();
      return ++at_, true;
    }
    if (c == ':' && !have_colon_) return have_colon_ = true, ++at_, true;
    if (!have_colon_) return false;
    have_key_ = have_colon_ = false;
    path_.push_back(key_);
    return begin_value(c);
  }
  bool read_key(char c) {
    ++at_;
    if (!escaped_ && c == '"') {
      in_key_ = false;
      have_key_ = true;
      return true;
    }
    escaped_ = !escaped_ && c == '\\';
    if (key_.size() < 4096) key_ += c;
    return true;
  }

  bool begin_value(char c) {
    if (c == ':' || c == '}' || c == ']') return false;
    const JsonPlace place = place_(path_);
    if (place == JsonPlace::kEnter && (c == '{' || c == '[')) {
      if (open_.size() >= kMaxDepth) return false;
      open_ += c == '{' ? '}' : ']';
      return ++at_, true;
    }
    in_value_ = true;
    taking_ = place == JsonPlace::kTake;
    depth_ = 0;
    kept_.clear();
    from_ = at_;
    return true;
  }
  bool close() {
    open_.pop_back();
    return leave_place();
  }
  bool leave_place() {
    if (open_.empty()) done_ = true;
    else path_.pop_back();
    return true;
  }

  void keep(size_t end) {
    if (!taking_) return;
    if (kept_.size() + (end - from_) > max_bytes_) {
      ++too_long_;
      taking_ = false;
      kept_.clear();
      return;
    }
    kept_.append(window_.substr(from_, end - from_));
  }
  bool end_value(size_t end) {
    in_value_ = false;
    if (taking_ && kept_.empty() && end - from_ <= max_bytes_) {
      take_(path_, window_.substr(from_, end - from_));
    } else {
      keep(end);
      if (taking_) take_(path_, kept_);
    }
    return leave_place();
  }

  const std::function<JsonPlace(const JsonPath&)>& place_;
  const std::function<void(const JsonPath&, std::string_view)>& take_;
  const size_t max_bytes_;
  std::string_view window_;
  size_t at_ = 0, from_ = 0, depth_ = 0;
  JsonPath path_;
  std::string open_, key_, kept_;  // open_: the closing brackets of everything that was entered
  bool started_ = false, done_ = false, in_value_ = false, taking_ = false, in_string_ = false, escaped_ = false,
       in_key_ = false, have_key_ = false, have_colon_ = false;
  int64_t too_long_ = 0;
};

}  // namespace

Result<JsonWalk> walk_json(Input& input, const std::function<JsonPlace(const JsonPath&)>& place,
                           const std::function<void(const JsonPath&, std::string_view)>& take, size_t max_bytes) {
  const auto buffer = std::make_unique<char[]>(kDefaultWindowBytes);
  Walker walker(place, take, max_bytes);
  JsonWalk out;
  int64_t base = 0;
  for (;;) {
    TRY(got, input.read(buffer.get(), kDefaultWindowBytes));
    if (*got == 0) break;
    const bool more = walker.read({buffer.get(), *got});
    out.broken_at = base + static_cast<int64_t>(more ? *got : walker.at());
    base += static_cast<int64_t>(*got);
    if (!more) break;
  }
  out.whole = walker.whole();
  out.too_long = walker.too_long();
  return out;
}

}  // namespace stageline
