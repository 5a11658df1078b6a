#include "profile/meetings.h"

#include "profile/communication_ops.h"

namespace stageline {
namespace {

double time_of(const DeviceTimeline& timeline, uint32_t item) {
  return static_cast<double>(timeline.device[item].end_ns - timeline.device[item].start_ns);
}

}  // namespace

Meetings find_meetings(const TorchRun& run, const std::vector<DeviceTimeline>& timelines) {
  Meetings out;
  double all_ns = 0, known_ns = 0;
  std::vector<std::vector<uint32_t>> item_of_slice(timelines.size());
  for (size_t r = 0; r < timelines.size(); ++r) {
    const DeviceTimeline& timeline = timelines[r];
    if (timeline.part == nullptr) continue;
    item_of_slice[r].assign(timeline.part->slices.size(), kNoSliceIndex);
    for (uint32_t j = 0; j < timeline.device.size(); ++j) {
      item_of_slice[r][timeline.device[j].slice] = j;
      if (timeline.device[j].kernel == KernelClass::kCommunication) all_ns += time_of(timeline, j);
    }
  }
  auto ranks = all_communication_ops(run);
  for (const Matched& matched : {match_collectives(ranks), match_messages(ranks)})
    for (size_t c = 0; c < matched.count(); ++c) {
      Meeting meeting;
      for (size_t k = matched.begin[c]; k < matched.begin[c + 1]; ++k) {
        const CommunicationOp& op = *matched.members[k];
        const uint32_t rank = op.rank_index;
        const uint32_t item = op.slice < item_of_slice[rank].size() ? item_of_slice[rank][op.slice] : kNoSliceIndex;
        if (item != kNoSliceIndex) meeting.members.push_back({rank, item});
      }
      if (meeting.members.size() < 2) continue;
      for (const auto& [rank, item] : meeting.members) known_ns += time_of(timelines[rank], item);
      out.list.push_back(std::move(meeting));
    }
  out.known = all_ns > 0 ? known_ns / all_ns : 0;
  return out;
}

}  // namespace stageline
