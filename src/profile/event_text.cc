#include "profile/event_text.h"

#include <errno.h>
#include <fcntl.h>
#include <simdjson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_files.h"
#include "base/json_events.h"
#include "base/json_token.h"
#include "base/remote_file.h"
#include "base/zip_archive.h"
#include "profile/torch_rows.h"

namespace stageline {
namespace {

constexpr size_t kFirstBytes = size_t{1} << 12;  // most events are shorter than this

bool is_gzip(std::string_view head) { return head.size() >= 2 && head[0] == '\x1f' && head[1] == '\x8b'; }
bool is_zstd(std::string_view head) { return head.starts_with("\x28\xb5\x2f\xfd"); }

// Reads bytes of a file that is not compressed.
Result<std::string> read_plain(const std::string& path, int64_t offset, size_t size) {
  const int fd = open_input_file(path);
  if (fd < 0) return make_error(ErrorCode::kIo, std::string("cannot open: ") + strerror(errno), "", {path});
  std::string out(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const ssize_t n = ::pread(fd, out.data() + filled, size - filled, offset + static_cast<int64_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    filled += n;
  }
  ::close(fd);
  out.resize(filled);
  return out;
}

// Reads a compressed file from its start, since zstd has no restart points.
Result<std::string> read_through(const std::string& path, int64_t offset, size_t size) {
  TRY(input, Input::open(path));
  std::string window(kDefaultWindowBytes, '\0');
  std::string out;
  for (int64_t at = 0; out.size() < size;) {
    Result<size_t> got = input->read(window.data(), window.size());
    if (!got && out.empty()) return std::move(got).error();
    if (!got || *got == 0) break;
    const int64_t from = std::max<int64_t>(0, offset - at);
    if (from < static_cast<int64_t>(*got)) out.append(window, from, *got - static_cast<size_t>(from));
    at += static_cast<int64_t>(*got);
  }
  out.resize(std::min(out.size(), size));
  return out;
}

// Returns the file that holds this position of the part's decompressed bytes.
const SourceRef& file_of(const Part& part, int64_t offset) {
  const auto after = std::ranges::upper_bound(part.files, offset, {}, &SourceRef::first_offset);
  return *(after == part.files.begin() ? after : after - 1);
}

namespace od = simdjson::ondemand;
constexpr size_t kNoRow = SIZE_MAX;

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value> using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

// One column while it is being filled.
struct Filling {
  ArgumentColumn column;
  TextMap<int32_t> known;

  int32_t code(std::string_view json) {
    if (const auto found = known.find(json); found != known.end()) return found->second;
    const auto next = static_cast<int32_t>(column.values.size());
    column.values.emplace_back(json);
    return known.emplace(json, next).first->second;
  }
  void set(size_t row, size_t rows, std::string_view json) {
    if (column.codes.empty()) column.codes.assign(rows, -1);
    column.codes[row] = code(json);
  }
};

// The whole text of a value. simdjson's text of lists and objects reaches to the next token.
bool value_text(od::value& value, std::string_view json, std::string_view& out) {
  out = raw_token(value, json);
  if (out.empty() || (out[0] != '[' && out[0] != '{')) return !out.empty();
  od::array list;
  od::object members;
  const bool failed = out[0] == '[' ? value.get_array().get(list) || list.raw_json().get(out)
                                    : value.get_object().get(members) || members.raw_json().get(out);
  if (failed) return false;
  out = trim(out);
  return true;
}

class ArgumentReader {
 public:
  ArgumentReader(size_t rows, const std::vector<std::string>& names) : rows_(rows), takes_all_(names.empty()) {
    for (const std::string& name : names) add(name);
  }

  // kNoRow: an event without a row, which still decides the types of processes, threads and durations.
  void read(std::string_view text, size_t row) {
    od::document document;
    od::object object;
    bool has_pid = false, has_tid = false, has_ts = false, has_dur = false;
    if (parser_.iterate(text.data(), text.size(), text.size() + kJsonPaddingBytes).get(document) ||
        document.get_object().get(object))
      return;
    for (auto field : object) {
      std::string_view key, json;
      od::value value;
      if (field.unescaped_key().get(key) || field.value().get(value)) break;
      if (key == "args") {
        if (row != kNoRow) read_arguments(value, text, row);
      } else if (key == "pid" || key == "tid") {
        if (value_text(value, text, json)) take(key == "pid" ? pid_ : tid_, row, json);
        (key == "pid" ? has_pid : has_tid) = !json.empty();
      } else if (key == "ts") {
        has_ts = raw_token(value, text) != "null";
      } else if (key == "dur") {
        json = raw_token(value, text);
        has_dur = json.find_first_not_of("-0123456789") == std::string_view::npos;
      }
    }
    if (!has_pid) pid_.code("NaN");
    if (!has_tid) tid_.code("NaN");
    all_starts_ &= has_ts;
    whole_durations_ &= has_dur;
  }

  EventArguments finish(std::vector<uint32_t> slices) {
    EventArguments out{.slices = std::move(slices), .all_starts = all_starts_, .whole_durations = whole_durations_};
    const auto taken = [&](Filling& filling) {
      if (filling.column.codes.empty()) filling.column.codes.assign(rows_, -1);
      return std::move(filling.column);
    };
    out.pid = taken(pid_);
    out.tid = taken(tid_);
    for (Filling& filling : columns_) out.arguments.push_back(taken(filling));
    return out;
  }

 private:
  Filling& add(std::string_view name) {
    Filling& filling = columns_.emplace_back();
    filling.column.name = name;
    place_.emplace(name, columns_.size() - 1);
    return filling;
  }

  void take(Filling& filling, size_t row, std::string_view json) {
    if (row == kNoRow) filling.code(json);
    else filling.set(row, rows_, json);
  }

  void read_arguments(od::value& value, std::string_view text, size_t row) {
    od::object arguments;
    if (value.get_object().get(arguments)) return;
    for (auto field : arguments) {
      std::string_view name, json;
      od::value one;
      if (field.unescaped_key().get(name) || field.value().get(one)) return;
      const auto found = place_.find(name);
      if (found == place_.end() && !takes_all_) continue;
      Filling& filling = found == place_.end() ? add(name) : columns_[found->second];
      if (value_text(one, text, json)) filling.set(row, rows_, json);
    }
  }

  size_t rows_;
  bool takes_all_, all_starts_ = true, whole_durations_ = true;
  od::parser parser_;
  Filling pid_, tid_;
  std::deque<Filling> columns_;
  TextMap<size_t> place_;
};

Status read_file(const Part& part, const SourceRef& file, const std::vector<uint32_t>& slices, ArgumentReader& reader) {
  TRY_OK(check_unchanged(file));
  TRY(input, Input::open(file.path));
  JsonEvents events(*input, JsonLayout::kTrace);
  const auto offset = [&](size_t row) { return part.slices.args_offset(slices[row]) - file.first_offset; };
  size_t row = std::ranges::lower_bound(slices, file.first_index, {},
                                        [&](uint32_t slice) { return part.slices.file_index[slice]; }) -
               slices.begin();
  for (;;) {
    TRY(spans, events.next());
    if (spans->empty()) return {};
    for (const JsonSpan& span : *spans) {
      while (row < slices.size() && offset(row) < span.offset) ++row;
      reader.read(span.text, row < slices.size() && offset(row) == span.offset ? row : kNoRow);
    }
  }
}

}  // namespace

Status check_unchanged(const SourceRef& file) {
  struct stat now;
  if (is_remote(file.path))
    return make_error(ErrorCode::kUnavailable, "single events are not looked up behind a network address",
                      "copy the file, and name the copy", {file.path});
  if (file.size_bytes < 0)
    return make_error(ErrorCode::kUnavailable, "digests hold no single events, and the paths in them are not opened",
                      "open the source that they were made of", {file.path});
  if (file.path == "-" || stat(disk_path(file.path).c_str(), &now) != 0)
    return make_error(ErrorCode::kUnavailable, "the source cannot be opened again", "name it as a file", {file.path});
  const int64_t modified = now.st_mtim.tv_sec * int64_t{1'000'000'000} + now.st_mtim.tv_nsec;
  if (now.st_size != file.size_bytes || modified != file.modified_ns)
    return make_error(ErrorCode::kBadInput, "the file changed since it was read", "open the run again", {file.path});
  return {};
}

Result<std::string> EventTexts::read(const std::string& path, int64_t offset, size_t size) {
  if (disk_path(path) != path) return read_through(path, offset, size);
  const Result<std::string> head = read_plain(path, 0, 4);
  if (!head) return head;
  if (is_gzip(*head)) return indexes_.try_emplace(path, path).first->second.read_at(offset, size);
  return is_zstd(*head) ? read_through(path, offset, size) : read_plain(path, offset, size);
}

Result<std::string> EventTexts::text(const Part& part, uint32_t slice) {
  const Slices& s = part.slices;
  if (slice >= s.args_offset_low.size() || part.files.empty())
    return make_error(ErrorCode::kUnavailable, "this source keeps no positions of its events", "", {part.source});
  const SourceRef& file = file_of(part, s.args_offset(slice));
  const int64_t offset = s.args_offset(slice) - file.first_offset;
  TRY_OK(check_unchanged(file));
  for (size_t size = kFirstBytes;; size *= 16) {
    Result<std::string> text = read(file.path, offset, size);
    if (!text) return text;
    if (text->empty() || (*text)[0] != '{')
      return make_error(ErrorCode::kBadInput, "the event is not where it was", "", {file.path, 0, offset});
    if (const size_t end = after_closing_brace(*text, 0); end != std::string::npos) {
      text->resize(end);
      return text;
    }
    if (text->size() < size || size > kMaxJsonObjectBytes) {
      // Quotes that were never escaped may hide the closing brace; then the event ends where the next one begins.
      std::vector<JsonSpan> pieces;
      split_json_objects(*text, 0, pieces);
      if (pieces.size() > 1) return std::string(pieces[0].text);
      return make_error(ErrorCode::kLimit, "the event does not end", "", {file.path, 0, offset});
    }
  }
}

Result<std::string> event_text(const Part& part, uint32_t slice) { return EventTexts().text(part, slice); }

uint32_t slice_of_index(const Part& part, int64_t index) {
  const std::vector<uint32_t>& of = part.slices.file_index;
  const auto it = std::ranges::find(of, static_cast<uint32_t>(index));
  return index < 0 || index > UINT32_MAX || it == of.end() ? kNoSliceIndex : static_cast<uint32_t>(it - of.begin());
}

Result<EventArguments> event_arguments(const Trace& trace, size_t part_place, const std::vector<std::string>& names) {
  const Part& part = trace.parts[part_place];
  const Slices& s = part.slices;
  if (s.args_offset_low.size() != s.size() || part.files.empty())
    return make_error(ErrorCode::kUnavailable, "this source keeps no positions of its events", "", {part.source});
  std::vector<uint32_t> slices;
  for (size_t i = 0; i < s.size(); ++i)
    if (is_hta_row(trace, s, i)) slices.push_back(static_cast<uint32_t>(i));
  std::ranges::sort(slices, {}, [&](uint32_t slice) { return s.file_index[slice]; });
  ArgumentReader reader(slices.size(), names);
  for (const SourceRef& file : part.files) TRY_OK(read_file(part, file, slices, reader));
  return reader.finish(std::move(slices));
}

}  // namespace stageline
