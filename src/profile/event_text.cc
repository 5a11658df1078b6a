#include "profile/event_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/input.h"
#include "base/input_files.h"
#include "base/json_events.h"
#include "base/remote_file.h"

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

}  // namespace

Status check_unchanged(const SourceRef& file) {
  struct stat now;
  if (is_remote(file.path))
    return make_error(ErrorCode::kUnavailable, "single events are not looked up behind a network address",
                      "copy the file, and name the copy", {file.path});
  if (file.size_bytes < 0)
    return make_error(ErrorCode::kUnavailable, "digests hold no single events, and the paths in them are not opened",
                      "open the source that they were made of", {file.path});
  if (file.path == "-" || stat(file.path.c_str(), &now) != 0)
    return make_error(ErrorCode::kUnavailable, "the source cannot be opened again", "name it as a file", {file.path});
  const int64_t modified = now.st_mtim.tv_sec * int64_t{1'000'000'000} + now.st_mtim.tv_nsec;
  if (now.st_size != file.size_bytes || modified != file.modified_ns)
    return make_error(ErrorCode::kBadInput, "the file changed since it was read", "open the run again", {file.path});
  return {};
}

Result<std::string> EventTexts::read(const std::string& path, int64_t offset, size_t size) {
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

}  // namespace stageline
