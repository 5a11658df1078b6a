#include "profile/path_graph.h"

namespace stageline {

std::string_view path_edge_name(PathEdgeKind kind, bool hta) {
  static constexpr ByEnum<PathEdgeKind, std::string_view, 10> kHta = {
      {"critical_path_operator", "critical_path_dependency", "critical_path_kernel_launch_delay",
       "critical_path_kernel_kernel_delay", "critical_path_sync_dependency", "critical_path_gap",
       "critical_path_hand_over", "critical_path_hand_over_inferred", "critical_path_stream_wait_inferred",
       "critical_path_stream_gap"}};
  static constexpr ByEnum<PathEdgeKind, std::string_view, 10> kOurs = {
      {"operator", "dependency", "launch", "kernel-kernel", "sync", "gap", "hand-over", "inferred hand-over",
       "inferred stream wait", "stream gap"}};
  return hta ? kHta[kind] : kOurs[kind];
}

std::vector<uint8_t> names_equal(const TorchRun& run, const std::vector<std::string_view>& wanted) {
  std::vector<uint8_t> out(run.trace->names.size());
  for (StringId id = 0; id < out.size(); ++id)
    out[id] = std::ranges::find(wanted, run.trace->names.text(id)) != wanted.end();
  return out;
}

std::vector<uint8_t> names_with(const TorchRun& run, const std::vector<std::string>& parts) {
  std::vector<uint8_t> out(run.trace->names.size());
  if (parts.empty()) return out;
  for (StringId id = 0; id < out.size(); ++id)
    out[id] = std::ranges::any_of(
        parts, [&](const std::string& part) { return run.trace->names.text(id).find(part) != std::string_view::npos; });
  return out;
}

}  // namespace stageline
