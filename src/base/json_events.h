// The objects of one long JSON array, a window of the file at a time: memory is bounded by the
// window and the largest object, never by the file.
//
// Objects are found by matching braces outside strings; what is inside them is the caller's to
// parse. A brace or quote that went missing would swallow the rest of the file, so an object that
// grows past kMaxJsonObjectBytes, holds a raw line end inside a string, or is open at the end of
// the file is cut at the places where one object visibly ends and the next begins ("},{", or a brace
// at a line's start), and the pieces are handed out for the caller to judge.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/input.h"
#include "base/result.h"

namespace stageline {

inline constexpr size_t kMaxJsonObjectBytes = size_t{1} << 22;
// Readable bytes after every span, as SIMD parsers ask for.
inline constexpr size_t kJsonPaddingBytes = 64;

struct JsonSpan {
  std::string_view text;  // "{…}", followed by kJsonPaddingBytes readable bytes
  int64_t offset;         // decompressed position of text[0]
};

enum class JsonLayout : uint8_t {
  kTrace,     // [{…},…] or {"traceEvents":[{…},…],…}
  kSequence,  // objects in a row, one per line or not, in an array or not
};

class JsonEvents {
 public:
  JsonEvents(Input& input, JsonLayout layout);

  // The next objects, at least one; empty at the end. Views live until the next call. An error
  // (damaged compression, failed read) comes after everything before it was handed out.
  Result<std::vector<JsonSpan>> next();

  // Hands every byte of the input over once, in order, when it is read: before the objects that end in it are
  // returned. finished() then speaks of the bytes before.
  void watch_bytes(std::function<void(std::string_view)> watch) { watch_ = std::move(watch); }

  bool found_array() const { return found_array_; }    // kSequence: an object was found
  bool finished() const { return finished_; }          // the array was closed; kSequence: no object was left open
  int64_t array_end() const { return array_end_; }     // position of the bracket that closed the array; -1
  bool in_object() const { return in_array_object_; }  // the array stands inside {"traceEvents": …}
  int64_t bytes() const { return base_ + static_cast<int64_t>(filled_); }
  // Places where something other than an object stood, or an object was cut.
  int64_t damaged() const { return damaged_; }
  int64_t first_damage() const { return first_damage_; }

 private:
  enum class State : uint8_t { kStart, kObject, kArray, kEvent, kDone };

  void scan(std::vector<JsonSpan>& spans);
  void scan_start();
  void scan_object();
  void scan_array();
  bool scan_event(std::vector<JsonSpan>& spans);  // false: needs more bytes
  void cut_event(size_t end, bool more, std::vector<JsonSpan>& spans);
  void damage_at(size_t position);
  Result<size_t> read_more();

  Input& input_;
  std::function<void(std::string_view)> watch_;
  JsonLayout layout_;
  detail::WindowBuffer buffer_;
  size_t filled_ = 0, position_ = 0, event_ = 0;
  int64_t base_ = 0;  // decompressed position of buffer[0]
  State state_ = State::kStart;
  bool in_array_object_ = false;  // the array stands inside {"traceEvents": …}
  int64_t depth_ = 0;
  bool in_string_ = false, in_garbage_ = false;
  std::string last_string_;  // the last string at depth 1 of the outer object
  bool key_is_events_ = false;
  bool found_array_ = false, finished_ = false, ended_ = false;
  int64_t array_end_ = -1;
  int64_t damaged_ = 0, first_damage_ = -1;
  std::unique_ptr<Error> pending_;
};

// The pieces of `text` between places where one object visibly ends and the next begins. A text
// without such a place is one piece. The last piece may be unfinished.
void split_json_objects(std::string_view text, int64_t offset, std::vector<JsonSpan>& pieces);

// Index after the bracket or brace that closes the one at text[open]; npos when it is not closed.
size_t after_closing_brace(std::string_view text, size_t open);

}  // namespace stageline
