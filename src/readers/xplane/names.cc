#include "readers/xplane/names.h"

#include <algorithm>
#include <cctype>

#include "base/number.h"
#include "base/text.h"

namespace stageline::xplane {

std::string frame_name(std::string_view name) {
  name.remove_prefix(1);
  const size_t blank = name.find(' ');
  if (blank == std::string_view::npos) return std::string(name);
  const std::string_view where = name.substr(0, blank), function = name.substr(blank + 1);
  const size_t colon = where.rfind(':');
  if (colon == std::string_view::npos || !parse_int(where.substr(colon + 1)))
    return std::string(where) + "(0): " + std::string(function);
  return std::string(where.substr(0, colon)) + "(" + std::string(where.substr(colon + 1)) +
         "): " + std::string(function);
}

std::string_view detail(std::string_view details, std::string_view key) {
  for (size_t at = details.find(key); at != std::string_view::npos; at = details.find(key, at + 1)) {
    const size_t colon = at + key.size();
    if ((at > 0 && details[at - 1] != ' ') || colon >= details.size() || details[colon] != ':') continue;
    const std::string_view rest = details.substr(colon + 1);
    return rest.substr(0, rest.find(' '));
  }
  return {};
}

bool is_api_call(std::string_view name) {
  return name.starts_with("cu") || name.starts_with("hip") || name.starts_with("cuda");
}

bool is_tf_operator(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || name[colon - 1] == ':' || colon + 1 == name.size()) return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(colon) + 1, name.end(),
                     [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; });
}

bool waits_for_executor(std::string_view name) { return name == "FunctionRun" || name.starts_with("KernelAndDevice"); }

bool is_internal(std::string_view name) {
  constexpr std::string_view kOwn[] = {
      "ParseArguments",          "Handle inputs", "AllocateOutputBuffersWithInputReuse",
      "Wait for usage holds",    "D2D Dispatch",  "Handle input event recording",
      "Wait for donation holds", "BufferAlloc",   "ConvertArguments"};
  return name.find("::") != std::string_view::npos || name.starts_with("PjitFunction(") || name.starts_with("end: ") ||
         name.starts_with("ExecutorState") || std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
}

std::optional<DeviceName> device_of(std::string_view plane) {
  if (!plane.starts_with("/device:")) return std::nullopt;
  plane.remove_prefix(8);
  const size_t colon = plane.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const size_t end = plane.find_first_not_of("0123456789", colon + 1);
  const auto number = parse_int(plane.substr(colon + 1, end == std::string_view::npos ? end : end - colon - 1));
  if (!number || *number > 65'535) return std::nullopt;
  return DeviceName{std::string(plane.substr(0, colon)),
                    end == std::string_view::npos ? "" : std::string(trim(plane.substr(end))), *number};
}

bool is_derived(std::string_view line) {
  constexpr std::string_view kDerived[] = {"Steps",         "XLA Modules",          "XLA TraceMe",
                                           "Framework Ops", "Framework Name Scope", "TensorFlow Ops",
                                           "Source code",   "Launch Stats",         "Step"};
  return std::find(std::begin(kDerived), std::end(kDerived), line) != std::end(kDerived) ||
         line.starts_with("TensorFlow Name Scope") || line.starts_with("Source");
}

int64_t stream_number(const std::string& line) {
  const size_t at = line.find('#');
  const size_t end = line.find_first_not_of("0123456789", at + 1);
  return parse_int(std::string_view(line).substr(at + 1, end == std::string::npos ? end : end - at - 1)).value_or(-1);
}

std::string copy_name(std::string_view name) {
  if (name.size() == 9 && name.starts_with("Memcpy") && name[7] == '2')
    return std::string("Memcpy ") + name[6] + "to" + name[8];
  return std::string(name);
}

}  // namespace stageline::xplane
