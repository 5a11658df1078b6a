// Finds the position of a cell in the lists of a schedule.
#pragma once

#include "model/schedule.h"
#include "pipeline/order/rank_lists.h"

namespace stageline {

// Index by (micro-batch, chunk, direction) for each stage. Memory: stages · chunks · micro-batches.
class SchedulePlaces {
 public:
  explicit SchedulePlaces(const Schedule& schedule)
      : chunks_(schedule.sizes.chunks), micro_batches_(schedule.sizes.micro_batches) {
    const size_t per_stage = chunks_ * static_cast<size_t>(micro_batches_) * 3;
    place_.resize(schedule.ranks.size());
    flat_.resize(place_.size());
    for (size_t s = 0; s < place_.size(); ++s) {
      place_[s].assign(per_stage, kUnknown);
      for (size_t i = 0; i < schedule.ranks[s].size(); ++i)
        for (const Action& a : schedule.ranks[s][i].actions()) {
          place_[s][key(a.micro_batch, a.chunk, a.kind)] = static_cast<int32_t>(i);
          flat_[s].emplace_back(direction_of(a.kind), static_cast<int32_t>(i));
        }
    }
  }

  // Returns the place of a list's `nth` token. Where the token's numbers are unknown, this is place `nth` if the work
  // there has the same direction. kUnknown when the schedule has no such work.
  int32_t find(int32_t stage, const WorkToken& t, size_t nth) const {
    const size_t s = stage;
    if (t.micro_batch == kUnknown || t.chunk == kUnknown)
      return nth < flat_[s].size() && flat_[s][nth].first == direction_of(t.kind) ? flat_[s][nth].second : kUnknown;
    if (t.micro_batch < 0 || t.micro_batch >= micro_batches_ || t.chunk < 0 || t.chunk >= chunks_) return kUnknown;
    return place_[s][key(t.micro_batch, t.chunk, t.kind)];
  }

 private:
  size_t key(int32_t micro_batch, int32_t chunk, CellKind kind) const {
    return (chunk * static_cast<size_t>(micro_batches_) + micro_batch) * 3 + direction_of(kind);
  }
  int32_t chunks_, micro_batches_;
  std::vector<std::vector<int32_t>> place_;
  std::vector<std::vector<std::pair<size_t, int32_t>>> flat_;  // (direction, place) of every action, in order
};

// Changes a schedule whose forwards and backwards follow each other into what a run does that works on two of them at
// once.
//
// Megatron's overlap_moe_expert_parallel_comm and Paddle's enable_backward_forward_overlap keep the order and run a
// forward and a backward of the steady phase as one cell. A replay that runs these one after the other would be slower
// than the run itself.
// Neighbours that more than half of the stage's lists ran as one become one cell. Returns `schedule` unchanged when it
// has such cells itself, or when no list with its number of micro-batches has. O(tokens + cells).
Schedule fuse_pairs(Schedule schedule, const RankLists& lists);

// Two cells that ran as one have no order of their own. In a comparison with an order of single cells they take the
// order of that schedule, given by `places`. O(tokens).
void order_pairs_as(const SchedulePlaces& places, int32_t stage, std::vector<WorkToken>& tokens);

// Returns true when the schedule has cells of two actions.
bool has_pairs(const Schedule& schedule);

}  // namespace stageline
