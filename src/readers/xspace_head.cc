#include "readers/xspace_head.h"

#include "base/proto_scan.h"

namespace stageline {
namespace {

std::string_view without_packing(std::string_view path) {
  for (const std::string_view end : {".gz", ".zst"})
    if (path.ends_with(end)) path.remove_suffix(end.size());
  return path;
}

// Returns the stem of a profile's name, "run/vm.xplane.pb" → "run/vm"; "" for other names.
std::string_view xplane_stem(std::string_view path) {
  constexpr std::string_view kEnd = ".xplane.pb";
  path = without_packing(path);
  return path.ends_with(kEnd) ? path.substr(0, path.size() - kEnd.size()) : std::string_view();
}

bool is_plane_name(std::string_view name) {
  constexpr std::string_view kBegins[] = {"/host:",   "/device:",           "#Chip", "Task Environment", "Host CPUs",
                                          "Syscalls", "Host Threads, Task", "/task:"};
  return std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view b) { return name.starts_with(b); });
}

}  // namespace

bool is_xplane_name(std::string_view path) { return !xplane_stem(path).empty(); }

bool looks_like_xspace(std::string_view head) {
  if (head.empty() || head[0] != '\x0a') return false;
  const char *at = head.data() + 1, *end = head.data() + head.size();
  uint64_t length = 0;
  if (!ProtoScan::read_varint(at, end, length)) return false;
  // The plane may go on beyond the head, but its number and name come first.
  ProtoScan plane(
      {at, std::min<size_t>(static_cast<size_t>(end - at), static_cast<size_t>(std::min<uint64_t>(length, SIZE_MAX)))});
  for (int fields = 0; fields < 2 && plane.next(); ++fields) {
    if (plane.id == 1 && plane.wire == ProtoScan::kVarint) continue;
    return plane.id == 2 && plane.is_bytes() && is_plane_name(plane.bytes);
  }
  return false;
}

bool was_filtered_as_text(std::string_view head) {
  int found = 0;
  for (size_t at = head.find("\xef\xbf\xbd"); at != std::string_view::npos && found < 3; ++found)
    at = head.find("\xef\xbf\xbd", at + 3);
  return found == 3;
}

XplaneFiles xplane_files(const Source& source) {
  XplaneFiles out;
  std::set<std::string_view> stems;
  for (size_t i = 0; i < source.files.size(); ++i) {
    if (!looks_like_xspace(source.head(i))) continue;
    out.ours.push_back(i);
    if (const std::string_view stem = xplane_stem(source.files[i].path); !stem.empty()) stems.insert(stem);
  }
  if (stems.empty()) return out;
  for (size_t i = 0; i < source.files.size(); ++i) {
    std::string_view path = without_packing(source.files[i].path);
    if (!path.ends_with(".trace.json")) continue;
    path.remove_suffix(std::string_view(".trace.json").size());
    if (stems.count(path) > 0) out.json_twins.push_back(i);
  }
  return out;
}

}  // namespace stageline
