#include "server/page/run_notes.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/input.h"
#include "base/json_tree.h"
#include "base/json_writer.h"
#include "base/notes_name.h"
#include "base/text.h"

namespace stageline {
namespace {

constexpr std::string_view kFormat = "stageline notes 1";

}  // namespace

std::string notes_path(const std::vector<std::string>& paths) {
  if (paths.empty() || paths[0] == "-" || paths[0].find("://") != std::string::npos) return "";
  std::string path = paths[0];
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  return whole.has_filename() ? whole.string() + std::string(kNotesSuffix) : "";
}

RunNotes::RunNotes(std::string path, Keep keep) : path_(std::move(path)), keep_(std::move(keep)) {
  if (path_.empty()) {
    why_not_ = "no-file";
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (access(path_.c_str(), F_OK) != 0) {
    if (keep_ && access(folder.c_str(), W_OK) != 0) why_not_ = "read-only";
    return;
  }
  const Result<std::string> bytes = read_all(path_, kMaxBytes);
  const Result<JsonTree> json = bytes ? parse_json_tree(*bytes, path_) : Result<JsonTree>(bytes.error());
  // A file that is not ours, or not whole, is not overwritten.
  if (!json || json->broken_at >= 0 || json->tree.root()["format"].text() != kFormat) {
    why_not_ = "unreadable";
    return;
  }
  const Value list = json->tree.root()["notes"];
  for (size_t i = 0; i < std::min(list.size(), kMaxNotes); ++i)
    if (const std::optional<int64_t> at = list.item(i)["at_ns"].integer())
      notes_.push_back({*at, std::string(list.item(i)["text"].text().substr(0, kMaxText))});
}

std::string RunNotes::json(int64_t origin_ns) const {
  const std::lock_guard lock(mutex_);
  JsonWriter json;
  json.begin_object().key("notes").begin_array();
  for (const Note& note : notes_)
    json.begin_object().field("t", note.at_ns - origin_ns).field("text", valid_utf8(note.text)).end_object();
  json.end_array()
      .field("file", keep_ ? valid_utf8(path_) : "")
      .field("keeps", keep_ && why_not_.empty())
      .field("why_not", keep_ ? why_not_ : "");
  json.end_object();
  return json.take();
}

Status RunNotes::take(std::string_view body, int64_t origin_ns) {
  if (!why_not_.empty() || !keep_)
    return Error{
        ErrorCode::kUnavailable, "notes are not kept here" + (why_not_.empty() ? "" : ": " + why_not_), {path_}, ""};
  if (body.size() > kMaxBytes) return make_error(ErrorCode::kLimit, "more notes than are kept");
  const Result<JsonTree> tree = parse_json_tree(body, "notes");
  const Value list = tree ? tree->tree.root()["notes"] : Value();
  if (!tree || tree->broken_at >= 0 || !list.is_list())
    return make_error(ErrorCode::kUsage, "notes are {\"notes\": [{\"t\": nanoseconds, \"text\": \"…\"}]}");
  if (list.size() > kMaxNotes) return make_error(ErrorCode::kLimit, "more notes than are kept");
  std::vector<Note> notes;
  JsonWriter json;
  json.begin_object().field("format", kFormat).key("notes").begin_array();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<int64_t> t = list.item(i)["t"].integer();
    const std::string_view text = list.item(i)["text"].text();
    if (!t || text.size() > kMaxText)
      return make_error(ErrorCode::kUsage, "a note has a time in nanoseconds and at most 1000 bytes of text");
    notes.push_back({static_cast<int64_t>(origin_ns + static_cast<uint64_t>(*t)), std::string(text)});
    json.begin_object().field("at_ns", notes.back().at_ns).field("text", valid_utf8(text)).end_object();
  }
  json.end_array().end_object();
  const std::lock_guard lock(mutex_);
  TRY_OK(keep_(path_, json.take() + "\n"));
  notes_ = std::move(notes);
  return {};
}

}  // namespace stageline
