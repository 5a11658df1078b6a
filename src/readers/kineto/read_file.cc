#include "readers/kineto/read_file.h"

#include <algorithm>

#include "base/input.h"
#include "base/json_events.h"
#include "base/json_members.h"
#include "readers/kineto/tolerant_event.h"

namespace stageline::kineto {
namespace {

constexpr size_t kMetadataWindow = size_t{16} << 20;

// Top-level members before and after the array of events, from the ends of the file.
void read_members(std::string_view text, std::vector<MetaField>& out) {
  size_t at = text.find('{');
  if (at == std::string_view::npos) return;
  ++at;
  while (at < text.size()) {
    const size_t open = text.find_first_of("\"}", at);
    if (open == std::string_view::npos || text[open] == '}') return;
    const size_t close = text.find('"', open + 1);
    if (close == std::string_view::npos) return;
    const size_t value = text.find_first_not_of(" \t\r\n:", close + 1);
    if (value == std::string_view::npos) return;
    const std::string_view key = text.substr(open + 1, close - open - 1);
    size_t end = 0;
    if (text[value] == '{' || text[value] == '[') {
      end = after_closing_brace(text, value);
    } else if (text[value] == '"') {
      end = value + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = end < text.size() ? end + 1 : std::string_view::npos;
    } else {
      end = text.find_first_of(",}\r\n", value);
    }
    if (end == std::string_view::npos) return;
    if (key != "traceEvents") out.push_back({std::string(key), std::string(text.substr(value, end - value))});
    at = end;
  }
}

}  // namespace

namespace {

// The text of the object without its array of events: at most kMetadataWindow on each side.
std::string around_array(const std::string& path, int64_t begin, int64_t end) {
  if (begin < 0) return {};
  std::string text = read_head(path, std::min(static_cast<size_t>(begin), kMetadataWindow));
  if (static_cast<size_t>(begin) > text.size() || end < 0) return text;
  text += "[";
  Result<Input> input = Input::open(path);
  std::string window(kDefaultWindowBytes, '\0');
  const size_t before = text.size();
  for (int64_t at = 0; input && text.size() - before < kMetadataWindow;) {
    Result<size_t> got = input->read(window.data(), window.size());
    if (!got || *got == 0) break;
    const int64_t from = std::max<int64_t>(0, end - at);
    if (from < static_cast<int64_t>(*got))
      text.append(window, static_cast<size_t>(from), *got - static_cast<size_t>(from));
    at += static_cast<int64_t>(*got);
  }
  return text;
}

// One event per line without an array around them, which some tools write and jq makes.
bool is_sequence(const std::string& path) {
  const std::string head = read_head(path, size_t{1} << 14);
  const size_t open = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (open == std::string::npos || head[open] != '{') return false;
  for (const JsonMember& member : json_members(std::string_view(head).substr(open), 32))
    if (member.key == "ph") return true;
  return false;
}

}  // namespace

Result<FileRows> read_file(const std::string& path, Progress* progress) {
  Result<Input> input = Input::open(path, progress);
  if (!input) return std::move(input).error();
  const bool sequence = is_sequence(path);
  JsonEvents events(*input, sequence ? JsonLayout::kSequence : JsonLayout::kTrace);
  RowBuilder rows(path);
  EventParser parser;
  TolerantParser tolerant;
  Event event;
  for (;;) {
    Result<std::vector<JsonSpan>> spans = events.next();
    if (!spans) {
      rows.lose("kineto.read_stopped", "the file could not be read to its end: " + spans.error().what,
                spans.error().where.byte);
      break;
    }
    if (spans->empty()) break;
    for (const JsonSpan& span : *spans) {
      if (parser.parse(span.text, event) == Fault::kNone) {
        rows.add(event, span.offset);
      } else if (tolerant.parse(span.text, event) == Fault::kNone) {
        rows.rows().diagnostics.add("kineto.repaired_event", Severity::kWarning,
                                    "an event that is not valid JSON was read as well as its text allows",
                                    {path, 0, span.offset});
        rows.add(event, span.offset);
      } else {
        rows.skip_entry();
        rows.lose("kineto.bad_event", "an event that is not valid JSON was left out", span.offset);
      }
    }
  }
  if (!events.found_array())
    return Error{ErrorCode::kBadInput,
                 "no array of trace events in this file",
                 {path},
                 "a Chrome trace is [{…},…] or {\"traceEvents\":[{…},…]}"};
  if (!events.finished())
    rows.lose("kineto.truncated", "the file ends inside the array of events; every complete event was kept",
              events.bytes());
  FileRows out = rows.finish();
  if (!sequence) read_members(around_array(path, events.array_begin(), events.array_end()), out.metadata);
  return out;
}

}  // namespace stageline::kineto
