// Reads the objects of one long JSON array, one window of the file at a time. Memory is bounded by the window and the
// largest object, never by the file.
//
// Objects are found by matching braces outside strings; the caller parses what is inside them. A missing brace or quote
// would swallow the rest of the file. An object is damaged if it grows past kMaxJsonObjectBytes, has a raw line end
// inside a string, or is still open at the end of the file. It is split where one object visibly ends and the next
// starts ("},{", or a brace at the start of a line). The pieces are handed out, and the caller decides which of them
// are good.
#pragma once

#include "base/input.h"

namespace stageline {

inline constexpr size_t kMaxJsonObjectBytes = size_t{1} << 22;
// The number of readable bytes after every span, which SIMD parsers need.
inline constexpr size_t kJsonPaddingBytes = 64;

struct JsonSpan {
  std::string_view text;  // "{…}", followed by kJsonPaddingBytes readable bytes
  int64_t offset;         // position of text[0] in the decompressed file
};

enum class JsonLayout : uint8_t {
  kTrace,     // [{…},…] or {"traceEvents":[{…},…],…}
  kSequence,  // objects in a row, with or without line ends between them, in an array or not
};

class JsonEvents {
 public:
  JsonEvents(Input& input, JsonLayout layout);

  // Returns the next objects, at least one; an empty result means the end. The views are valid until the next call. An
  // error (damaged compression, failed read) is returned after all objects before it.
  Result<std::vector<JsonSpan>> next();

  // Passes every byte of the input once, in order, to `watch` when it is read, which is before the objects that end in
  // it are returned. The result of finished() then refers to the bytes passed so far.
  void watch_bytes(std::function<void(std::string_view)> watch) { watch_ = std::move(watch); }

  bool found_array() const { return found_array_; }  // for kSequence: an object was found
  bool finished() const { return finished_; }        // the array was closed; for kSequence: no object was left open
  // Position of the bracket that closed the array; -1 when it was not closed.
  int64_t array_end() const { return array_end_; }
  bool in_object() const { return in_array_object_; }  // the array stands inside {"traceEvents": …}
  int64_t bytes() const { return base_ + static_cast<int64_t>(filled_); }
  // The number of places that hold something other than an object, or where an object was split.
  int64_t damaged() const { return damaged_; }
  int64_t first_damage() const { return first_damage_; }

 private:
  enum class State : uint8_t { kStart, kObject, kArray, kEvent, kDone };

  void scan(std::vector<JsonSpan>& spans);
  void scan_start();
  void scan_object();
  void scan_array();
  bool scan_event(std::vector<JsonSpan>& spans);  // false when it needs more bytes
  void end_at_next_object(size_t end, size_t next, std::vector<JsonSpan>& spans);
  void cut_event(size_t end, bool more, std::vector<JsonSpan>& spans);
  void damage_at(size_t position);
  Result<size_t> read_more();

  Input& input_;
  std::function<void(std::string_view)> watch_;
  JsonLayout layout_;
  detail::WindowBuffer buffer_;
  size_t filled_ = 0, position_ = 0, event_ = 0;
  int64_t base_ = 0;  // position of buffer[0] in the decompressed file
  State state_ = State::kStart;
  bool in_array_object_ = false;  // the array stands inside {"traceEvents": …}
  int64_t depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;  // the latter in the outer object alone: a backslash stands before
  bool in_garbage_ = false;                      // damage is here that was counted
  std::string last_string_;                      // the last string at depth 1 of the outer object
  bool key_is_events_ = false;
  bool found_array_ = false, finished_ = false, ended_ = false;
  int64_t array_end_ = -1;
  int64_t damaged_ = 0, first_damage_ = -1;
  std::unique_ptr<Error> pending_;
};

// Splits `text` at the places where one object visibly ends and the next begins. A text without such a place is one
// piece. The last piece may be unfinished.
void split_json_objects(std::string_view text, int64_t offset, std::vector<JsonSpan>& pieces);

// Returns the index after the bracket or brace that closes the one at text[open]; npos when it is not closed.
size_t after_closing_brace(std::string_view text, size_t open);

}  // namespace stageline
