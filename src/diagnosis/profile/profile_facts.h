// The facts that findings of a profiler trace are made of: sums over its ranks.
#pragma once

#include "diagnosis/profile/rank_losses.h"
#include "facts/profile_sums.h"

namespace stageline {

struct RankFacts {
  int32_t rank = 0;
  double span_ns = 0, compute_ns = 0, exposed_comm_ns = 0, exposed_memory_ns = 0, idle_ns = 0;
  double comm_ns = 0, wait_ns = 0, transfer_ns = 0;  // the last two of collectives that were matched over ranks
  double host_wait_ns = 0, stream_wait_ns = 0;       // idle because of its host; although work was launched long before
  double comm_wait_ns = 0;  // the part of exposed_comm_ns that is waiting for other ranks and has a finding of its own
};

// The rank that the others wait for in collectives.
struct LateRank {
  int32_t rank = 0;
  bool by_computing = false;  // it is late because it computes longer
  bool much = false;          // the others wait for it for a good part of the time
  double waiting_ns = 0;      // of each of the others in collectives, on average
  double share = 0;  // what the others save if none waits for it; where no replay says it, their exposed waiting
};

// The rank that computes longer, and its differences from the others.
struct SlowRank {
  bool compared = false;    // others run kernels of the same names and shapes
  double longer = 0;        // by which share of their time these kernels take longer
  bool by_kernels = false;  // that explains most of its longer computing; otherwise it has more or larger kernels
  double mhz = 0, others_mhz = 0;  // clocks of the devices while they computed, where that of this one is lower
  // Share of the ranks' windows that a replay saves where its kernels take as long as on the others; negative where no
  // replay says it.
  double saved = -1;
};

// Collectives that wait more than they transfer, in a mean step.
struct CollectiveWaits {
  double share = 0;                  // waiting of the collectives' time
  double weight = 0;                 // exposed waiting of the step
  double mean_ns = 0;                // exposed waiting of a rank; with min_rank, of each of the others
  std::optional<int32_t> min_rank;   // waits far less than the others, so they wait for it
  double min_ns = 0, others_ns = 0;  // waiting of min_rank, and of the median of the others
  double late_weight = 0;            // with min_rank: what LateRank::share is
  // Set where min_rank is late because it computes longer: its time in a step, and that of the others.
  double computing_ns = 0, others_computing_ns = 0;
};

struct ProfileFacts {
  std::vector<RankFacts> ranks;   // ranks with device work
  RankFacts whole;                // their sum
  double outside_ns = 0;          // recorded before the first and after the last device work
  double recorded_ns = 0;         // device time recorded, including what lies before the first and after the last work
  double unknown_ns = 0;          // of it, what passed between launches whose work was lost and the work recorded next
  bool launches_unknown = false;  // no device work is linked to a call, so the reason of a gap is unknown
  double comm_overlap_ns = 0;
  bool comm_on_compute_stream = false;  // most exposed communication runs on the stream that computes most
  // Profiler steps. Their lengths are the devices' (device_ns of profiler-steps), the host's only where no device
  // worked.
  size_t step_count = 0;
  bool device_steps = false;
  double median_step_ns = 0, max_step_ns = 0;
  int64_t max_step = 0;
  std::vector<int32_t> max_step_ranks;  // on which the longest step is slow; the first is the one where it is longest
  size_t max_step_of = 0;               // ranks that have this step
  // The rank for which the others wait longer than usual in that step, by most of its extra time; that, on average.
  std::optional<int32_t> max_step_late;
  double max_step_wait_ns = 0;
  size_t slow_steps = 0;
  double pageable_ns = 0;
  std::string pageable_name;
  // The rank that causes most waiting, where collectives could be matched over ranks.
  bool stragglers_known = false;
  int32_t straggler = 0;
  double caused_wait_ns = 0;  // summed over the other ranks
  int64_t came_last = 0, collectives = 0;
  // The results of late_rank.h, with prices by late_rank_price.h.
  std::optional<LateRank> late;
  std::optional<int32_t> slow_rank;  // computes longer than the others
  SlowRank slow;                     // of slow_rank
  std::optional<CollectiveWaits> waits;
  bool lateness_priced = false;  // shares of `late`, or of min_rank of `waits`, are what a replay saves
  double comm_wait_ns = 0;       // sum of the ranks' comm_wait_ns
  double whole_graphs_ns = 0;    // part of whole.compute_ns: graphs that were recorded without their kernels
  double full_queue_share = 0;
  int32_t full_queue_rank = 0;
  // The window that shares refer to: the longest rank's span of device work; without device work, the host's steps;
  // without steps, all slices.
  double window_ns = 0;
  // True when the sums above were replaced by those of the ranks' accounts (rank_losses.h).
  bool accounted = false;
  std::string_view recorder;        // "torch", "nsys", "rocpd", "xplane": whose options advice may name; "": another
  bool only_communication = false;  // nothing else was recorded: its time is all the time, and nothing tells idle
  bool npu = false;                 // Ascend devices, where some remedies have other names
  bool launches_block = false;      // ASCEND_LAUNCH_BLOCKING was set: the host waits for the device after every launch
  bool logs_much = false;           // ASCEND_GLOBAL_LOG_LEVEL was below 3, at which errors alone are written
  bool fixed_segments = false;      // PYTORCH_NPU_ALLOC_CONF was recorded, without expandable_segments:True
  // Kinds of operators of Ascend whose input shapes differ between two steps that follow each other, and the one with
  // most time; −1: unknown.
  int64_t changing_kinds = -1;
  std::string changing_most;
  // Optimisations that are in use already and need no advice.
  bool graphs = false, compiled = false, fused_optimizer = false, loader_processes = false;
  // The mean step, all of them; with accounts that of the rank with the longest window, whose pace is the run's (the
  // whole window where the profile has no steps). All sentences and prices for a step "on average" use this one.
  double step_ns = 0;
};

// `account` is of the ranks with device work; without it, times are those of whole recordings.
ProfileFacts profile_facts(const Trace& trace, const ProfileSums& sums, const ProfileAccount& account);

// Returns "12 ms per step" for a sum over the steps of a rank; without several steps, the sum.
Text time_per_step(const ProfileFacts& facts, double sum_ns);

// The name of the sentence on loading data faster: other advice for a DataLoader that has worker processes.
const char* loader_advice(const ProfileFacts& facts);

// Returns "CUDA graphs", or the equivalent of the devices.
Text device_graphs(const ProfileFacts& facts);

inline constexpr double kSlowStepRatio = 1.3;

}  // namespace stageline
