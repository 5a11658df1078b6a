// The source is read once, in windows. JsonEvents finds the events in it and also hands over all other bytes, so all
// text between and around the events is written unchanged:
//
//   { "schemaVersion": 1, …, "traceEvents": [   {event},   {event},   {event}   ], "traceName": … }
//   └────────── head ─────────────────────────┘ └────────┘└─────────┘         └─── tail ────────┘
//                                                         gap + event
//
// An event that is dropped takes the gap before it along. New events are written before the tail. Events of further
// files are also put before the tail, without the heads and tails of those files.
#include "exporters/overlay_file.h"

#include <sys/stat.h>

#include "base/json_events.h"
#include "exporters/export_sink.h"
#include "profile/event_text.h"

namespace stageline {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Holds a top-level member of an event: the positions of its key and its value.
struct Member {
  size_t key = 0, value = 0, end = 0;  // positions in the text; `end` is after the value
  bool found = false;
};

size_t after_string(std::string_view text, size_t open) {
  for (size_t i = open + 1; i < text.size(); ++i)
    if (text[i] == '\\') ++i;
    else if (text[i] == '"') return i + 1;
  return text.size();
}

Member member_of(std::string_view event, std::string_view wanted) {
  Member member;
  size_t at = 1;
  while (true) {
    const size_t key = event.find('"', at);
    if (key == std::string_view::npos) return member;
    const size_t key_end = after_string(event, key);
    const size_t value = event.find_first_not_of(" \t\r\n:", key_end);
    if (value == std::string_view::npos) return member;
    size_t end = std::string_view::npos;
    if (event[value] == '{' || event[value] == '[') end = after_closing_brace(event, value);
    else if (event[value] == '"') end = after_string(event, value);
    else end = event.find_first_of(" \t\r\n,}", value);
    if (end == std::string_view::npos) return member;
    if (event.substr(key + 1, key_end - key - 2) == wanted) return {key, value, end, true};
    at = end;
  }
}

// Refuses to replace the source by what is made from it.
Status check_other_file(const std::string& path, const SourceRef& file) {
  struct stat out, in;
  if (path == "-" || stat(path.c_str(), &out) != 0 || stat(file.path.c_str(), &in) != 0) return {};
  if (!S_ISREG(out.st_mode) || in.st_dev != out.st_dev || in.st_ino != out.st_ino) return {};
  return make_error(ErrorCode::kUsage, "this is the source; it would be overwritten",
                    "choose another name for the output", {path});
}

bool only_blanks(std::string_view text) { return text.find_first_not_of(kBlanks) == std::string_view::npos; }

// Appends members to the text of an object.
void add_members(std::string& object, std::string_view members) {
  const size_t close = object.rfind('}');
  if (close == std::string::npos || close == 0) return;
  const size_t last = object.find_last_not_of(kBlanks, close - 1);
  const bool empty = object[last] == '{' || object[last] == ',';
  object.insert(last + 1, (empty ? "" : ", ") + std::string(members));
}

class OverlayWriter {
 public:
  OverlayWriter(const TraceOverlay& overlay, ExportSink& sink) : overlay_(overlay), sink_(sink) {}

  Status add_file(const SourceRef& file, bool first, bool last) {
    TRY_OK(check_unchanged(file));
    TRY(input, Input::open(file.path));
    first_ = first;
    last_ = last;
    pending_.clear();
    used_ = 0;
    position_ = 0;
    in_head_ = true;
    tail_begun_ = false;
    uint32_t index = file.first_index;
    JsonEvents events(*input, JsonLayout::kTrace);
    events.watch_bytes([&](std::string_view bytes) {
      if (!tail_begun_ && events.finished()) begin_tail(events.array_end());
      take_bytes(bytes);
    });
    for (;;) {
      Result<std::vector<JsonSpan>> spans = events.next();
      // The fault was already reported when the trace was read; the whole events are written.
      if (!spans || spans->empty()) break;
      for (const JsonSpan& span : *spans)
        if (!tail_begun_) add_event(span, index++);
    }
    if (!events.found_array())
      return make_error(ErrorCode::kBadInput, "no array of trace events in this file", "open the run again",
                        {file.path});
    if (!tail_begun_) end_file(events);
    return {};
  }

  // Is called after the last file.
  void finish() {
    if (!frame_end_.empty()) {
      add_new_events();
      write(frame_end_);
    }
  }

 private:
  void take_bytes(std::string_view bytes) {
    if (tail_begun_) {
      add_to_tail(bytes);
      return;
    }
    pending_.erase(0, used_);
    used_ = 0;
    pending_ += bytes;
  }

  // Takes the source's bytes from the end of the last event to `offset`.
  std::string_view take_to(int64_t offset) {
    const auto size = std::min<size_t>(offset - position_, pending_.size() - used_);
    const std::string_view bytes = std::string_view(pending_).substr(used_, size);
    used_ += size;
    position_ += static_cast<int64_t>(size);
    return bytes;
  }

  void add_event(const JsonSpan& span, uint32_t index) {
    const std::string_view gap = take_to(span.offset);
    take_to(span.offset + std::ssize(span.text));
    const bool leaves = index < overlay_.leave_out.size() && overlay_.leave_out[index];
    if (in_head_ && first_) write(gap);
    if (!leaves) {
      separate(in_head_ ? std::string_view() : gap);
      const bool drops = index < overlay_.drop_args.size() && overlay_.drop_args[index];
      const auto extra = overlay_.extra_args.find(index);
      const auto name = overlay_.new_names.find(index);
      if (!drops && extra == overlay_.extra_args.end() && name == overlay_.new_names.end()) {
        write(span.text);
      } else {
        write(changed_event(span.text, extra == overlay_.extra_args.end() ? "" : std::string_view(extra->second), drops,
                            name == overlay_.new_names.end() ? "" : std::string_view(name->second)));
      }
    }
    in_head_ = false;
  }

  // Writes the separator before every event but the first: the source's own one, or ours when it has none.
  void separate(std::string_view gap) {
    if (any_written_) {
      const bool usual =
          std::ranges::count(gap, ',') == 1 && gap.find_first_not_of(" \t\r\n,") == std::string_view::npos;
      write(usual ? gap : std::string_view(",\n"));
    }
    any_written_ = true;
  }

  void add_new_events() {
    for (const std::string& event : overlay_.new_events) {
      separate({});
      write(event);
    }
  }

  // Keeps the text that closes the frame of the first file. It is written after the events of the other files.
  void add_to_tail(std::string_view bytes) {
    if (!first_) return;
    if (last_) write(bytes);
    else frame_end_ += bytes;
  }

  // `close` is the position of the bracket that closes the array.
  void begin_tail(int64_t close) {
    tail_begun_ = true;
    // Blanks are kept; a comma after the last event, or damaged bytes, are not.
    const std::string before(take_to(close));
    if (in_head_ && first_) write(before);
    if (first_ && last_) add_new_events();
    if (!in_head_ && only_blanks(before)) add_to_tail(before);
    add_to_tail(std::string_view(pending_).substr(used_));
    pending_.clear();
    used_ = 0;
  }

  void end_file(const JsonEvents& events) {
    if (events.finished()) return begin_tail(events.array_end());
    // The source breaks off: after the last whole event there is only a piece of an event.
    if (in_head_ && first_) write(std::string_view(pending_).substr(used_));
    tail_begun_ = true;
    if (first_ && last_) add_new_events();
    add_to_tail(events.in_object() ? "\n]}\n" : "\n]\n");
  }

  void write(std::string_view bytes) { sink_.write(bytes); }

  const TraceOverlay& overlay_;
  ExportSink& sink_;
  std::string pending_;  // bytes read; those from used_ on are not written yet
  size_t used_ = 0;
  int64_t position_ = 0;  // position of pending_[used_] in the source
  std::string frame_end_;
  bool first_ = true, last_ = true;
  bool in_head_ = true, tail_begun_ = false, any_written_ = false;
};

}  // namespace

std::string changed_event(std::string_view event, std::string_view extra, bool drop_args, std::string_view name) {
  std::string out(event);
  if (!name.empty())
    if (const Member old = member_of(out, "name"); old.found) out.replace(old.value, old.end - old.value, name);
  Member args = member_of(out, "args");
  if (drop_args && args.found) {
    if (!extra.empty()) {
      out.replace(args.value, args.end - args.value, "{}");
    } else {
      // The member is removed together with one adjacent comma.
      size_t from = args.key, to = args.end;
      const size_t before = out.find_last_not_of(kBlanks, from - 1);
      const size_t after = out.find_first_not_of(kBlanks, to);
      if (out[before] == ',') from = before;
      else if (after != std::string::npos && out[after] == ',') to = after + 1;
      out.erase(from, to - from);
    }
    args = member_of(out, "args");
  }
  if (extra.empty()) return out;
  if (!args.found) {
    add_members(out, "\"args\": {" + std::string(extra) + "}");
  } else if (out[args.value] != '{') {
    out.replace(args.value, args.end - args.value, "{" + std::string(extra) + "}");
  } else {
    std::string object = out.substr(args.value, args.end - args.value);
    add_members(object, extra);
    out.replace(args.value, args.end - args.value, object);
  }
  return out;
}

Status write_overlay_file(const Trace& trace, const TraceOverlay& overlay, const std::string& path) {
  const Part& part = trace.parts[overlay.part];
  if (part.files.empty())
    return make_error(ErrorCode::kUnavailable, "this source keeps no positions of its events", "", {part.source});
  for (const SourceRef& file : part.files) TRY_OK(check_other_file(path, file));
  TRY(sink, ExportSink::create(path));
  OverlayWriter writer(overlay, *sink);
  for (size_t f = 0; f < part.files.size(); ++f)
    TRY_OK(writer.add_file(part.files[f], f == 0, f + 1 == part.files.size()));
  writer.finish();
  return sink->commit();
}

}  // namespace stageline
