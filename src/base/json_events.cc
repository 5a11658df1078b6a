#include "base/json_events.h"

namespace stageline {
namespace {

// The bytes that matter outside strings.
constexpr std::array<bool, 256> kOutsideStrings = [] {
  std::array<bool, 256> table{};
  table['"'] = table['{'] = table['}'] = true;
  return table;
}();
// The bytes that matter inside strings.
constexpr std::array<bool, 256> kInsideStrings = [] {
  std::array<bool, 256> table{};
  table['"'] = table['\\'] = table['\n'] = true;
  return table;
}();

size_t find_any(const char* data, size_t from, size_t to, const std::array<bool, 256>& wanted) {
  while (from < to && !wanted[static_cast<unsigned char>(data[from])]) ++from;
  return from;
}

// Returns the next brace from text[from] on at which a new object visibly starts: after the end of another, or at the
// start of a line. The text before the brace ends at *end, which is at least `floor`.
size_t next_object(std::string_view text, size_t from, size_t floor, size_t* end) {
  for (size_t open = text.find('{', from); open != std::string_view::npos; open = text.find('{', open + 1)) {
    size_t before = open;  // goes backwards over "} , "
    bool comma = false;
    while (before > floor && (is_blank(text[before - 1]) || (text[before - 1] == ',' && !comma)))
      comma |= text[--before] == ',';
    const bool after_object = comma && before > floor && text[before - 1] == '}';
    if (before == floor || !(after_object || text[open - 1] == '\n')) continue;
    *end = before;
    return open;
  }
  return std::string_view::npos;
}

}  // namespace

JsonEvents::JsonEvents(Input& input, JsonLayout layout) : input_(input), layout_(layout) {
  buffer_.grow(kDefaultWindowBytes + kJsonPaddingBytes, 0);
}

void JsonEvents::damage_at(size_t position) {
  if (damaged_++ == 0) first_damage_ = base_ + static_cast<int64_t>(position);
}

// Drops what was handed out, makes room, and reads. Returns 0 at the end of the file.
Result<size_t> JsonEvents::read_more() {
  const size_t keep_from = state_ == State::kEvent ? event_ : position_;
  if (keep_from > 0) {
    std::memmove(buffer_.data.get(), buffer_.data.get() + keep_from, filled_ - keep_from);
    filled_ -= keep_from;
    position_ -= keep_from;
    event_ = 0;
    base_ += static_cast<int64_t>(keep_from);
  }
  if (filled_ + kJsonPaddingBytes >= buffer_.capacity) buffer_.grow(buffer_.capacity * 2, filled_);
  Result<size_t> got = input_.read(buffer_.data.get() + filled_, buffer_.capacity - kJsonPaddingBytes - filled_);
  if (got) {
    if (watch_ && *got > 0) watch_({buffer_.data.get() + filled_, *got});
    filled_ += *got;
    std::memset(buffer_.data.get() + filled_, ' ', kJsonPaddingBytes);
  }
  return got;
}

Result<std::vector<JsonSpan>> JsonEvents::next() {
  std::vector<JsonSpan> spans;
  while (!ended_) {
    Result<size_t> got = read_more();
    if (!got || *got == 0) {
      ended_ = true;
      if (!got) pending_ = std::make_unique<Error>(std::move(got).error());
      if (state_ == State::kEvent) cut_event(filled_, false, spans);
      else if (layout_ == JsonLayout::kSequence) finished_ = true;
      break;
    }
    scan(spans);
    if (!spans.empty()) return spans;
  }
  if (spans.empty() && pending_) {
    Error error = std::move(*pending_);
    pending_.reset();
    return error;
  }
  return spans;
}

void JsonEvents::scan(std::vector<JsonSpan>& spans) {
  while (position_ < filled_) {
    switch (state_) {
      case State::kStart: scan_start(); break;
      case State::kObject: scan_object(); break;
      case State::kArray: scan_array(); break;
      case State::kEvent:
        if (!scan_event(spans)) return;
        break;
      case State::kDone:
        // Text after the end of the array is not read, but it is counted as damage.
        for (; position_ < filled_; ++position_)
          if (!is_blank(buffer_.data[position_]) && !in_garbage_) {
            in_garbage_ = true;
            damage_at(position_);
          }
        break;
    }
  }
}

void JsonEvents::scan_start() {
  const char c = buffer_.data[position_];
  const bool mark =
      base_ + static_cast<int64_t>(position_) < 3 && (c == '\xef' || c == '\xbb' || c == '\xbf');  // byte order mark
  if (is_blank(c) || mark) {
    ++position_;
  } else if (layout_ == JsonLayout::kSequence || c == '[') {
    state_ = State::kArray;
    if (c == '[') found_array_ = true, ++position_;
  } else if (c == '{') {
    state_ = State::kObject;
    depth_ = 1;
    ++position_;
  } else {
    state_ = State::kDone;
  }
}

// In the outer object: looks for "traceEvents" at depth 1 and skips everything else.
void JsonEvents::scan_object() {
  constexpr size_t kMaxKeyBytes = 16;
  for (; position_ < filled_; ++position_) {
    const char c = buffer_.data[position_];
    if (in_string_) {
      if (c == '\\') {
        is_escaped_ = !is_escaped_;
      } else if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '"') {
        in_string_ = false;
        continue;
      }
      if (depth_ == 1 && last_string_.size() < kMaxKeyBytes) last_string_ += c;
      continue;
    }
    switch (c) {
      case '"':
        in_string_ = true;
        if (depth_ == 1) last_string_.clear();
        break;
      case ':':
        if (depth_ == 1) key_is_events_ = last_string_ == "traceEvents";
        break;
      case ',':
        if (depth_ == 1) key_is_events_ = false;
        break;
      case '[':
        if (depth_ == 1 && key_is_events_) {
          state_ = State::kArray;
          in_array_object_ = found_array_ = true;
          key_is_events_ = false;
          ++position_;
          return;
        }
        [[fallthrough]];
      case '{': ++depth_; break;
      case ']':
      case '}':
        if (--depth_ == 0) {
          state_ = State::kDone;
          ++position_;
          return;
        }
        break;
      default: break;
    }
  }
}

void JsonEvents::scan_array() {
  for (; position_ < filled_; ++position_) {
    const char c = buffer_.data[position_];
    // A sequence of values is read like an array whose brackets may stand anywhere.
    const bool passes = is_blank(c) || c == ',' || (layout_ == JsonLayout::kSequence && (c == '[' || c == ']'));
    if (passes) {
      in_garbage_ = false;
    } else if (c == '{') {
      in_garbage_ = false;
      found_array_ = true;
      state_ = State::kEvent;
      event_ = position_++;
      depth_ = 1;
      in_string_ = false;
      return;
    } else if (c == ']') {
      in_garbage_ = false;
      finished_ = true;
      array_end_ = base_ + static_cast<int64_t>(position_);
      state_ = in_array_object_ ? State::kObject : State::kDone;
      depth_ = 1;
      ++position_;
      return;
    } else if (!in_garbage_) {
      in_garbage_ = true;
      damage_at(position_);
    }
  }
}

bool JsonEvents::scan_event(std::vector<JsonSpan>& spans) {
  const char* const data = buffer_.data.get();
  size_t at = position_;
  const size_t end = std::min(filled_, event_ + kMaxJsonObjectBytes);
  while (at < end) {
    if (in_string_) {
      at = find_any(data, at, end, kInsideStrings);
      if (at == end) break;
      if (data[at] == '\\') {
        if (at + 1 >= end) break;  // continue when the escaped byte was read
        at += 2;
      } else if (data[at] == '"') {
        in_string_ = false;
        ++at;
      } else {
        // There is a raw line end in a string, so a quote is missing or there is one too many.
        size_t before = 0;
        const size_t next = next_object({data, end}, at, event_, &before);
        position_ = at;
        if (next == std::string_view::npos) break;
        end_at_next_object(before, next, spans);
        return true;
      }
    } else {
      at = find_any(data, at, end, kOutsideStrings);
      if (at == end) break;
      const char c = data[at++];
      if (c == '"') {
        in_string_ = true;
      } else if (c == '{') {
        ++depth_;
      } else if (--depth_ == 0) {
        spans.push_back({{data + event_, at - event_}, base_ + static_cast<int64_t>(event_)});
        position_ = at;
        state_ = State::kArray;
        return true;
      }
    }
  }
  position_ = at;
  if (end - event_ >= kMaxJsonObjectBytes) {
    cut_event(end, true, spans);
    return true;
  }
  return false;
}

// A damaged event extends to `end`, where the next one visibly begins; the caller finds out whether it can be used.
void JsonEvents::end_at_next_object(size_t end, size_t next, std::vector<JsonSpan>& spans) {
  damage_at(event_);
  spans.push_back({{buffer_.data.get() + event_, end - event_}, base_ + static_cast<int64_t>(event_)});
  position_ = next;
  in_string_ = false;
  in_garbage_ = true;  // this damage is already counted
  state_ = State::kArray;
}

// The open object [event_, end) is damaged, so the pieces that look complete are handed out. With `more`, the last
// piece may continue after `end` and is scanned again; otherwise an unfinished piece is lost.
void JsonEvents::cut_event(size_t end, bool more, std::vector<JsonSpan>& spans) {
  damage_at(event_);
  std::vector<JsonSpan> pieces;
  split_json_objects({buffer_.data.get() + event_, end - event_}, base_ + static_cast<int64_t>(event_), pieces);
  const JsonSpan last = pieces.back();
  pieces.pop_back();
  spans.insert(spans.end(), pieces.begin(), pieces.end());
  in_string_ = false;
  state_ = State::kArray;
  in_garbage_ = true;  // this damage is already counted
  if (more && !pieces.empty()) {
    position_ = last.text.data() - buffer_.data.get();
  } else {
    const size_t whole = pieces.empty() ? std::string_view::npos : after_closing_brace(last.text, 0);
    if (whole != std::string_view::npos) spans.push_back({last.text.substr(0, whole), last.offset});
    position_ = std::max(end, position_);
  }
}

void split_json_objects(std::string_view text, int64_t offset, std::vector<JsonSpan>& pieces) {
  size_t from = 0, end = 0;
  for (size_t open = next_object(text, 1, from, &end); open != std::string_view::npos;
       open = next_object(text, open + 1, from, &end)) {
    pieces.push_back({text.substr(from, end - from), offset + static_cast<int64_t>(from)});
    from = open;
  }
  pieces.push_back({text.substr(from), offset + static_cast<int64_t>(from)});
}

size_t after_closing_brace(std::string_view text, size_t open) {
  int64_t depth = 0;
  bool in_string = false;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace stageline
