// A Chrome trace is one of:
//
//   {"schemaVersion": 1, …, "traceEvents": [ {event}, … ], "traceName": "…"}     members before and after
//   [ {event}, … ]                                                               also without the last ]
//   {event} {event} …                                                            one per line or not
//
// It may also contain several of these in a row. The outer level is read here, and the events by chunk parsers. With
// several workers the window is cut where events seem to start, and all stretches are parsed at once. A stretch counts
// only when the one before it ended exactly where this one started; otherwise it is parsed again from there.
#include "readers/kineto/read_file.h"

#include "base/json_events.h"
#include "base/parallel.h"
#include "readers/kineto/chunk_parser.h"
#include "readers/kineto/problems.h"

namespace stageline::kineto {
namespace {

constexpr size_t kStretchBytes = size_t{1} << 20;  // fits into the second-level cache
constexpr size_t kMaxMemberBytes = size_t{1} << 24;

// A window over the decompressed text: [begin, end), with padding after it.
class Window {
 public:
  Window(Input& input, size_t bytes) : input_(input) { buffer_.grow(bytes + kTextPadding, 0); }

  const char* begin() const { return buffer_.data.get() + begin_; }
  const char* end() const { return buffer_.data.get() + end_; }
  int64_t offset_of(const char* p) const { return base_ + (p - buffer_.data.get()); }
  bool finished() const { return finished_; }
  const std::optional<Error>& error() const { return error_; }
  void consume(const char* p) { begin_ = p - buffer_.data.get(); }

  // Reads until the window is full or the text ends. It moves the text, so pointers into it become invalid.
  void fill() {
    if (begin_ > 0) {
      std::memmove(buffer_.data.get(), buffer_.data.get() + begin_, end_ - begin_);
      base_ += static_cast<int64_t>(begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ + kTextPadding == buffer_.capacity)
      buffer_.grow((buffer_.capacity - kTextPadding) * 2 + kTextPadding, end_);
    while (!finished_ && end_ + kTextPadding < buffer_.capacity) {
      Result<size_t> got = input_.read(buffer_.data.get() + end_, buffer_.capacity - kTextPadding - end_);
      if (!got) error_ = got.error();
      if (!got || *got == 0) finished_ = true;
      if (got) end_ += *got;
    }
    std::memset(buffer_.data.get() + end_, 0, kTextPadding);
  }

 private:
  Input& input_;
  detail::WindowBuffer buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t base_ = 0;
  bool finished_ = false;
  std::optional<Error> error_;
};

class FileReader {
 public:
  FileReader(const std::string& path, Input& input, size_t workers, Progress* progress, const SeeRows& so_far)
      : path_(path), window_(input, kStretchBytes * std::max<size_t>(workers, 1)), progress_(progress),
        so_far_(so_far) {
    for (size_t w = 0; w < std::max<size_t>(workers, 1); ++w) parsers_.push_back(std::make_unique<ChunkParser>(path));
    rows_.path = path;
  }

  Result<std::vector<rows::FileRows>> run() {
    window_.fill();
    if (std::string_view(window_.begin(), window_.end() - window_.begin()).starts_with("\xef\xbb\xbf"))
      window_.consume(window_.begin() + 3);
    while (state_ != State::kDone) {
      switch (state_) {
        case State::kOuter: outer(); break;
        case State::kObject: member(); break;
        case State::kEvents: events(); break;
        case State::kDone: break;
      }
    }
    if (window_.error())
      lose(problem::kineto_read_stopped, window_.error()->where.byte, Args().set("why", error_text(*window_.error())));
    if (!found_events_)
      return window_.error() ? *window_.error()
                             : make_error(ErrorCode::kBadInput, "no array of trace events in this file",
                                          "a Chrome trace is [{…},…] or {\"traceEvents\":[{…},…]}", {path_});
    blocks_.push_back(std::move(rows_));
    // Names, and events that a tool added, may stand behind the end of the last recording. One that was put into
    // another order ends anywhere.
    const size_t added = block_ended_ || cut_off_ || window_.error() ? 0 : blocks_.size() - 1;
    for (size_t b = blocks_.size() - 1; b > 0; --b) {
      if (blocks_[b].row_count > 0 && b != added) continue;
      rows::continue_rows(blocks_[b - 1], std::move(blocks_[b]));
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(b));
    }
    for (rows::FileRows& block : blocks_) {
      block.metadata = metadata_;
      block.finish();
    }
    return std::move(blocks_);
  }

 private:
  enum class State : uint8_t { kOuter, kObject, kEvents, kDone };

  void lose(const Problem& problem, int64_t offset, const Args& args = {}) {
    rows_.rest.diagnostics.add(problem, args, {path_, 0, offset});
  }

  // Skips to the next byte that is neither blank nor comma; false at the end of the text.
  bool next_byte(const char*& p) {
    for (;;) {
      while (p < window_.end() && (is_blank(*p) || *p == ',')) ++p;
      window_.consume(p);
      if (p < window_.end()) return true;
      if (window_.finished()) return false;
      window_.fill();
      p = window_.begin();
    }
  }

  void outer() {
    const char* p = window_.begin();
    if (!next_byte(p)) {
      state_ = State::kDone;
      return;
    }
    if (*p == '[') {
      window_.consume(p + 1);
      in_object_ = false;
      state_ = State::kEvents;
      found_events_ = true;
    } else if (*p == '{') {
      if (is_event(p)) {
        in_object_ = false;
        bare_ = true;
        state_ = State::kEvents;
        found_events_ = true;
      } else {
        window_.consume(p + 1);
        in_object_ = true;
        state_ = State::kObject;
      }
    } else {
      if (found_events_ || !stray_) lose(problem::kineto_damaged_text, window_.offset_of(p));
      stray_ = true;
      ++p;
      while (p < window_.end() && *p != '{' && *p != '[') ++p;  // the whole stretch counts as one flaw
      window_.consume(p);
    }
  }

  // Returns true when an object of the outer level is an event itself, as its first key shows.
  bool is_event(const char* p) const {
    ++p;
    while (p < window_.end() && is_blank(*p)) ++p;
    for (const std::string_view key : {"\"ph\"", "\"cat\"", "\"pid\"", "\"ts\""})
      if (static_cast<size_t>(window_.end() - p) > key.size() && std::memcmp(p, key.data(), key.size()) == 0)
        return true;
    return false;
  }

  // Reads one member of the outer object. Any member but traceEvents must be in the window as a whole.
  void member() {
    const char* p = window_.begin();
    if (!next_byte(p)) {
      if (in_object_ && found_events_) lose(problem::kineto_truncated, window_.offset_of(p));
      state_ = State::kDone;
      return;
    }
    if (*p != '"') {
      if (*p != '}') lose(problem::kineto_damaged_text, window_.offset_of(p));
      window_.consume(p + 1);
      if (*p == '}') state_ = State::kOuter;
      return;
    }
    const std::string_view text(p, window_.end() - p);
    const size_t key_end = end_of_text(text, 0);
    size_t value = key_end == std::string_view::npos ? key_end : text.find_first_not_of(" \t\r\n:", key_end);
    if (value != std::string_view::npos && text[value] == '[' && text.substr(0, key_end) == "\"traceEvents\"") {
      window_.consume(p + value + 1);
      state_ = State::kEvents;
      found_events_ = true;
      return;
    }
    size_t value_end = value == std::string_view::npos ? value : end_of_value(text, value);
    if (value_end == std::string_view::npos) {
      if (!window_.finished() && text.size() < kMaxMemberBytes) {
        window_.fill();
        return;
      }
      // The member has no end, so events are looked for behind it.
      lose(problem::kineto_damaged_member, window_.offset_of(p));
      const size_t events = text.find("\"traceEvents\"", 1);
      window_.consume(events == std::string_view::npos ? window_.end() : p + events);
      return;
    }
    metadata_.push_back({std::string(text.substr(1, key_end - 2)), std::string(text.substr(value, value_end - value))});
    window_.consume(p + value_end);
  }

  static size_t end_of_text(std::string_view text, size_t open) {
    for (size_t i = open + 1; i < text.size(); ++i)
      if (text[i] == '\\') ++i;
      else if (text[i] == '"') return i + 1;
    return std::string_view::npos;
  }
  static size_t end_of_value(std::string_view text, size_t at) {
    if (text[at] == '{' || text[at] == '[') return after_closing_brace(text, at);
    if (text[at] == '"') return end_of_text(text, at);
    return text.find_first_of(",}\r\n", at);
  }

  void append(size_t parser) {
    rows::ChunkRows chunk = parsers_[parser]->rows().take();
    if (block_ended_ && chunk.event_count > 0) {
      if (rows_.rest.owners.empty()) {
        blocks_.push_back(std::move(rows_));
        rows_ = rows::FileRows();
        rows_.path = path_;
      }
      block_ended_ = false;
    }
    const int64_t before = rows_.row_count;
    rows_.append(std::move(chunk), parsers_[parser]->rows().dictionaries(), parser);
    if (progress_) progress_->add_events(static_cast<int64_t>(rows_.row_count) - before);
  }

  void events() {
    const char* const begin = window_.begin();
    const char* const end = window_.end();
    ChunkParser::Place place{begin, ChunkParser::Stop::kNeedsMore};
    if (parsers_.size() > 1 && end - begin > static_cast<std::ptrdiff_t>(kStretchBytes)) {
      place = parse_stretches(begin, end);
    } else {
      place = parsers_[0]->parse(begin, end, end, window_.offset_of(begin), window_.finished());
      append(0);
    }
    window_.consume(place.at);
    if (so_far_) so_far_(rows_);
    if (place.stop == ChunkParser::Stop::kClosed) {
      state_ = in_object_ ? State::kObject : State::kOuter;
      bare_ = false;
      return;
    }
    if (place.stop == ChunkParser::Stop::kBlockEnd) {
      block_ended_ = true;
      return;
    }
    if (!window_.finished()) return window_.fill();
    cut_off_ = !bare_;
    if (cut_off_) lose(problem::kineto_truncated_events, window_.offset_of(place.at));
    state_ = State::kDone;
  }

  ChunkParser::Place parse_stretches(const char* begin, const char* end) {
    struct Stretch {
      const char* begin;
      const char* stop;
      ChunkParser::Place place;
    };
    std::vector<Stretch> stretches;
    const char* from = begin;
    for (size_t k = 0; k < parsers_.size() && from < end; ++k) {
      const char* target = k + 1 == parsers_.size()
                               ? end
                               : begin + (end - begin) / static_cast<std::ptrdiff_t>(parsers_.size()) *
                                             static_cast<std::ptrdiff_t>(k + 1);
      const char* stop = target >= end ? end : next_event(std::max(target, from + 1), end);
      stretches.push_back({from, stop, {}});
      from = stop;
    }
    parallel_for(stretches.size(), [&](size_t k) {
      Stretch& s = stretches[k];
      s.place =
          parsers_[k]->parse(s.begin, end, s.stop, window_.offset_of(s.begin), window_.finished() && s.stop == end);
    });
    const char* expected = begin;
    for (size_t k = 0; k < stretches.size(); ++k) {
      Stretch& s = stretches[k];
      if (s.begin != expected) {
        parsers_[k]->rows().take();  // throws away a guess that was wrong
        s.place =
            parsers_[k]->parse(expected, end, s.stop, window_.offset_of(expected), window_.finished() && s.stop == end);
      }
      append(k);
      if (s.place.stop != ChunkParser::Stop::kAtStop) {
        for (size_t rest = k + 1; rest < stretches.size(); ++rest) parsers_[rest]->rows().take();
        return s.place;
      }
      expected = s.place.at;
    }
    return stretches.back().place;
  }

  std::string path_;
  Window window_;
  Progress* progress_;     // may be nullptr
  const SeeRows& so_far_;  // may be empty
  std::vector<std::unique_ptr<ChunkParser>> parsers_;
  rows::FileRows rows_;                 // of the recording that is being read
  std::vector<rows::FileRows> blocks_;  // of those before it
  std::vector<MetaField> metadata_;
  bool block_ended_ = false, cut_off_ = false;
  State state_ = State::kOuter;
  bool in_object_ = false, bare_ = false, found_events_ = false, stray_ = false;
};

}  // namespace

Result<std::vector<rows::FileRows>> read_file(const std::string& path, size_t workers, Progress* progress,
                                              const SeeRows& so_far) {
  TRY(input, Input::open(path, progress));
  return FileReader(path, *input, workers, progress, so_far).run();
}

}  // namespace stageline::kineto
