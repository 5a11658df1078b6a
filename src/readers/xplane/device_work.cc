#include "readers/xplane/device_work.h"

namespace stageline::xplane {

std::vector<bool> enclosing_events(const Plane& plane, const LineHead& line, const StatKeys& keys) {
  struct Span {
    int64_t start, end;
    size_t event;
  };
  std::vector<Span> spans;
  for (size_t k = 0; k < line.events.size(); ++k) {
    const Event event = read_event(plane, keys, line.events[k], false);
    if (event.is_aggregate || event.dur_ps < 0 || event.dur_ps > kMaxPs || std::abs(event.offset_ps) > kMaxPs) continue;
    spans.push_back({event.offset_ps, event.offset_ps + event.dur_ps, k});
  }
  std::ranges::sort(spans, {}, [](const Span& span) { return std::tuple(span.start, -span.end, span.event); });
  std::vector<bool> encloses(line.events.size());
  std::vector<const Span*> open;
  for (const Span& span : spans) {
    while (!open.empty() && span.end > open.back()->end) open.pop_back();
    if (!open.empty() && span.start < open.back()->end && span.end > span.start) encloses[open.back()->event] = true;
    open.push_back(&span);
  }
  return encloses;
}

KernelFact kernel_of(const Facts& facts, uint32_t row, PartBuilder& out) {
  const auto number = [&](std::string_view key) { return parse_int(detail(facts.kernel_details, key)).value_or(-1); };
  KernelFact fact{.slice = row};
  fact.registers = static_cast<int32_t>(std::clamp<int64_t>(number("regs"), -1, 65'536));
  const int64_t fixed_bytes = number("static_shared"), dynamic = number("dynamic_shared");
  if (fixed_bytes >= 0 || dynamic >= 0)
    fact.shared_bytes = static_cast<int32_t>(std::clamp<int64_t>(
        sum_or_limit(std::max<int64_t>(fixed_bytes, 0), std::max<int64_t>(dynamic, 0)), 0, INT32_MAX));
  fact.occupancy_percent = static_cast<float>(parse_double(detail(facts.kernel_details, "occ_pct")).value_or(-1));
  const auto size = [&](std::string_view key) -> StringId {
    const std::string_view text = detail(facts.kernel_details, key);
    if (text.empty()) return 0;
    std::string spelt = "[";
    for (const char c : text) spelt += c == ',' ? std::string(", ") : std::string(1, c);
    return out.text(valid_utf8(spelt + "]"));
  };
  fact.grid = size("grid");
  fact.block = size("block");
  return fact;
}

int64_t copied_bytes(const Facts& facts, bool is_copy) {
  return parse_int(detail(is_copy ? facts.copy_details : facts.memset_details, "size"))
      .value_or(parse_int(detail(facts.memset_details, "num_elements")).value_or(facts.bytes));
}

CollectiveFact collective_of(const Facts& facts, std::string_view opcode, uint32_t row, PartBuilder& out) {
  // XLA counts operands and results as accessed (HloCostAnalysis). Where each is the whole message, its size is half of
  // that; of other operations it depends on the group, which is not in the profile.
  bool whole = opcode == "all-to-all" || opcode == "collective-permute";
  if (opcode.ends_with("-start")) opcode.remove_suffix(6);
  whole = whole || opcode == "all-reduce";
  return {
      .slice = row, .name = out.text(std::string(opcode)), .bytes = whole && facts.bytes >= 0 ? facts.bytes / 2 : -1};
}

}  // namespace stageline::xplane
