#include "readers/nsys/tables.h"

namespace stageline::nsys {

std::string_view api_name(std::string_view name) {
  if (name.ends_with("_ptsz")) name.remove_suffix(5);
  const size_t v = name.rfind("_v");
  if (v != std::string_view::npos && v + 2 < name.size() &&
      name.find_first_not_of("0123456789", v + 2) == std::string_view::npos)
    name = name.substr(0, v);
  return name;
}

const char* memory_kind(int64_t kind) {
  constexpr const char* kNames[] = {"Pageable", "Pinned",        "Device",        "Array",
                                    "Managed",  "Device Static", "Managed Static"};
  return kind >= 0 && kind < 7 ? kNames[kind] : "Unknown";
}
const char* copy_kind(int64_t kind) {
  constexpr const char* kNames[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
                                    "DtoA",    "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
  return kind >= 0 && kind < 14 ? kNames[kind] : "Unknown";
}
const char* sync_name(int64_t type) {
  constexpr const char* kNames[] = {"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
  return type >= 0 && type < 5 ? kNames[type] : "Unknown Sync";
}

TorchRange torch_range(std::string_view text) {
  TorchRange out{text, {}, -1, false};
  size_t first = std::string_view::npos;
  for (const std::string_view key : {", op_id = ", ", seq = ", ", sizes = "}) first = std::min(first, text.find(key));
  if (first == std::string_view::npos) return out;
  out.is_operator = true;
  out.name = text.substr(0, first);
  if (const size_t at = text.find(", seq = "); at != std::string_view::npos) {
    const size_t from = at + 8, end = text.find_first_not_of("0123456789", from);
    out.sequence = parse_int(text.substr(from, end == std::string_view::npos ? end : end - from)).value_or(-1);
  }
  if (const size_t at = text.find(", sizes = "); at != std::string_view::npos) {
    out.sizes = text.substr(at + 10);
    if (const size_t end = out.sizes.rfind(']'); end != std::string_view::npos)
      out.sizes = out.sizes.substr(0, end + 1);
  }
  return out;
}

std::optional<int64_t> step_of(std::string_view name, bool* counted) {
  *counted = false;
  const std::string lower = to_lower(name.substr(0, 64));
  for (const std::string_view word : {"iteration", "train_step", "training_step", "step"}) {
    if (!lower.starts_with(word)) continue;
    std::string_view rest = std::string_view(lower).substr(word.size());
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '_' || rest[0] == ':' || rest[0] == '#' || rest[0] == '='))
      rest.remove_prefix(1);
    if (rest.empty()) {
      *counted = word != "step";
      return *counted ? std::optional<int64_t>(0) : std::nullopt;
    }
    const auto number = parse_int(rest);
    return number && *number >= 0 && *number < 1'000'000'000 ? number : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace stageline::nsys
