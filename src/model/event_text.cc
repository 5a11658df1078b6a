#include "model/event_text.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/input.h"
#include "base/json_events.h"

namespace stageline {

Status check_unchanged(const SourceRef& file) {
  struct stat now;
  if (file.path == "-" || stat(file.path.c_str(), &now) != 0)
    return Error{ErrorCode::kUnavailable, "the source cannot be opened again", {file.path}, "name it as a file"};
  const int64_t modified = now.st_mtim.tv_sec * int64_t{1'000'000'000} + now.st_mtim.tv_nsec;
  if (now.st_size != file.size_bytes || modified != file.modified_ns)
    return Error{ErrorCode::kBadInput, "the file changed since it was read", {file.path}, "open the run again"};
  return {};
}

Result<std::string> event_text(const Part& part, uint32_t slice) {
  const Slices& s = part.slices;
  if (slice >= s.args_offset_low.size() || part.files.empty())
    return Error{ErrorCode::kUnavailable, "this source keeps no positions of its events", {part.source}, ""};
  const int64_t offset = s.args_offset(slice);
  const auto after = std::upper_bound(part.files.begin(), part.files.end(), offset,
                                      [](int64_t at, const SourceRef& file) { return at < file.first_offset; });
  const SourceRef& file = *(after == part.files.begin() ? after : after - 1);
  if (Status unchanged = check_unchanged(file); !unchanged) return unchanged.error();
  Result<Input> input = Input::open(file.path);
  if (!input) return std::move(input).error();
  int64_t skip = offset - file.first_offset;
  std::string window(size_t{1} << 18, '\0');
  std::string text;
  for (;;) {
    Result<size_t> got = input->read(window.data(), window.size());
    if (!got) return std::move(got).error();
    if (*got == 0) return Error{ErrorCode::kBadInput, "the event is not where it was", {file.path, 0, offset}, ""};
    if (skip >= static_cast<int64_t>(*got)) {
      skip -= static_cast<int64_t>(*got);
      continue;
    }
    text.append(window, static_cast<size_t>(skip), *got - static_cast<size_t>(skip));
    skip = 0;
    if (text[0] != '{') return Error{ErrorCode::kBadInput, "the event is not where it was", {file.path, 0, offset}, ""};
    if (const size_t end = after_closing_brace(text, 0); end != std::string::npos) {
      text.resize(end);
      return text;
    }
    if (text.size() > kMaxJsonObjectBytes)
      return Error{ErrorCode::kLimit, "the event is too long", {file.path, 0, offset}, ""};
  }
}

}  // namespace stageline
