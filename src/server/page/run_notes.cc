#include "server/page/run_notes.h"

#include <unistd.h>

#include <filesystem>

#include "base/input.h"
#include "base/json_tree.h"
#include "base/json_writer.h"
#include "base/notes_name.h"

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
  std::optional<std::vector<Note>> notes = bytes ? notes_in(*bytes, path_) : std::nullopt;
  if (!notes) {
    why_not_ = "unreadable";
    return;
  }
  notes_ = std::move(*notes);
  bytes_ = *bytes;
}

// A file that is not ours, or not whole, gives nothing: it is not overwritten.
std::optional<std::vector<RunNotes::Note>> RunNotes::notes_in(const std::string& bytes, const std::string& path) {
  const Result<JsonTree> json = parse_json_tree(bytes, path);
  if (!json || json->broken_at >= 0 || json->tree.root()["format"].text() != kFormat) return std::nullopt;
  std::vector<Note> notes;
  const Value list = json->tree.root()["notes"];
  for (size_t i = 0; i < std::min(list.size(), kMaxNotes); ++i)
    if (const std::optional<int64_t> at = list.item(i)["at_ns"].integer())
      notes.push_back({*at, std::string(list.item(i)["text"].text().substr(0, kMaxText))});
  return notes;
}

std::string RunNotes::file_of(const std::vector<Note>& notes) {
  JsonWriter json;
  json.begin_object().field("format", kFormat);
  json.objects("notes", notes, [&](const Note& note) { json.field("at_ns", note.at_ns).field("text", note.text); });
  return json.end_object().take() + "\n";
}

std::string RunNotes::json(int64_t origin_ns) const {
  const std::lock_guard lock(mutex_);
  JsonWriter json;
  json.begin_object().objects(
      "notes", notes_, [&](const Note& note) { json.field("t", note.at_ns - origin_ns).field("text", note.text); });
  json.field("file", keep_ ? path_ : "").field("keeps", keep_ && why_not_.empty());
  return json.field("why_not", keep_ ? why_not_ : "").end_object().take();
}

Status RunNotes::take(std::string_view body, int64_t origin_ns) {
  if (!why_not_.empty() || !keep_)
    return make_error(ErrorCode::kUnavailable, "notes are not kept here" + (why_not_.empty() ? "" : ": " + why_not_),
                      "", {path_});
  if (body.size() > kMaxBytes) return make_error(ErrorCode::kLimit, "more notes than are kept");
  const Result<JsonTree> tree = parse_json_tree(body, "notes");
  const Value list = tree ? tree->tree.root()["notes"] : Value();
  if (!tree || tree->broken_at >= 0 || !list.is_list())
    return make_error(ErrorCode::kUsage, "notes are {\"notes\": [{\"t\": nanoseconds, \"text\": \"…\"}]}");
  if (list.size() > kMaxNotes) return make_error(ErrorCode::kLimit, "more notes than are kept");
  std::vector<Note> notes;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<int64_t> t = list.item(i)["t"].integer();
    const std::string_view text = list.item(i)["text"].text();
    if (!t || text.size() > kMaxText)
      return make_error(ErrorCode::kUsage, "a note has a time in nanoseconds and at most 1000 bytes of text");
    notes.push_back({static_cast<int64_t>(origin_ns + static_cast<uint64_t>(*t)), std::string(text)});
  }
  const auto has = [](const std::vector<Note>& in, const Note& note) {
    return std::ranges::find(in, note) != in.end();
  };
  const std::lock_guard lock(mutex_);
  constexpr int kTries = 4;
  for (int tried = 1;; ++tried) {
    std::string bytes = file_of(notes);
    TRY(kept, keep_(path_, bytes_, bytes));
    if (!*kept) {
      notes_ = std::move(notes);
      bytes_ = std::move(bytes);
      return {};
    }
    // Another viewer wrote since these notes were read: what it added and removed is taken over.
    const std::optional<std::vector<Note>> theirs = (*kept)->empty() ? std::vector<Note>() : notes_in(**kept, path_);
    if (!theirs || tried == kTries)
      return make_error(
          ErrorCode::kUnavailable,
          theirs ? "other viewers of this run write notes all the time" : "the file there is not one of notes",
          "move it away", {path_});
    for (const Note& note : *theirs)
      if (!has(notes_, note) && !has(notes, note)) notes.push_back(note);
    std::erase_if(notes, [&](const Note& note) { return has(notes_, note) && !has(*theirs, note); });
    if (notes.size() > kMaxNotes) return make_error(ErrorCode::kLimit, "more notes than are kept");
    notes_ = *theirs;
    bytes_ = **kept;
  }
}

}  // namespace stageline
