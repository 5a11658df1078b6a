#include "profile/open_collective.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/message_names.h"
#include "profile/problems.h"

namespace stageline {

void leave_out_open_collective(Trace& trace) {
  const auto category = [&](const Part& part, size_t i) { return trace.categories[part.slices.category_id[i]].kind; };
  std::vector<std::pair<Part*, uint32_t>> firsts;
  for (Part& part : trace.parts) {
    const Slices& s = part.slices;
    if (!s.has_facts()) return;
    uint32_t first = kNoSliceIndex;
    for (uint32_t i = 0; i < s.size(); ++i)
      if (is_device_work(category(part, i)) && (first == kNoSliceIndex || s.start_ns[i] < s.start_ns[first])) first = i;
    if (first == kNoSliceIndex) continue;
    if (!part.steps.empty() || s.class_of(first) != KernelClass::kCommunication) return;
    firsts.emplace_back(&part, first);
    if (s.name_id[first] != firsts.front().first->slices.name_id[firsts.front().second]) return;
  }
  if (firsts.size() < 2 || trace.categories.size() >= kMaxCategories) return;
  const auto [last, shortest] = *std::ranges::min_element(firsts, [](const auto& a, const auto& b) {
    return a.first->slices.dur_ns[a.second] < b.first->slices.dur_ns[b.second];
  });
  const Slices& s = last->slices;
  const std::string name(trace.names.text(s.name_id[shortest]));
  if (is_message_name(name)) return;
  const int64_t launched = s.start_ns[s.partner[shortest] == kNoSliceIndex ? shortest : s.partner[shortest]];
  bool shows_host = false;  // where no host was recorded, nothing shows what a rank did before
  for (size_t i = 0; i < s.size(); ++i) {
    if (!is_host(category(*last, i))) continue;
    if (s.end_ns(i) <= launched) return;
    shows_host = true;
  }
  if (!shows_host) return;
  trace.categories.push_back({std::string(trace.categories[s.category_id[shortest]].text), Category::kOther});
  for (const auto& [part, first] : firsts)
    part->slices.category_id[first] = static_cast<uint8_t>(trace.categories.size() - 1);
  trace.diagnostics.add(problem::profile_open_collective,
                        Args().set("name", valid_utf8(name)).set("rank", int64_t{last->rank}));
}

}  // namespace stageline
