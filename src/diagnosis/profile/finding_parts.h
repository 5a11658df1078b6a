// Parts of profile_findings. Conditions and thresholds are in docs/analyses/findings.md.
#pragma once

#include "diagnosis/causes/findings.h"
#include "diagnosis/profile/job_replay.h"
#include "diagnosis/profile/profile_facts.h"

namespace stageline {

// Adds input.loading, tensor_cores.unused, memory.full and data_parallel.one_process.
void add_step_findings(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                       std::vector<Finding>& out);

// Adds host.compile: how much of the recording a compiler works, the union of its ranges on all threads of a rank.
void add_compilation(const Trace& trace, const ProfileFacts& facts, std::vector<Finding>& out);

// For a run without device work: the host's steps as parts that add up, with its longest operator in the lead.
void add_host_parts(const Trace& trace, const ProfileSums& sums, Headline& headline);

// Findings about the losses of a profile's devices, from the breakdown of its ranks. They name the cause of idle time,
// exposed communication and copies, and the saving of a step without each.

// Adds experts.uneven, priced by a replay in which the ranks of a group get equally many tokens, in the place of
// rank.slow and rank.late where these are about it.
void add_uneven_experts(const Trace& trace, const ProfileFacts& facts, JobOnce& job, std::vector<Finding>& list);

// Adds host.blocked, host.allocator, host.collector, host.collective, host.busy, host.sync, input.loading,
// launch.bound, device.idle and comm.contention.
void add_loss_findings(const ProfileFacts& facts, const ProfileAccount& account, JobOnce& job,
                       std::vector<Finding>& out);

// True for the finding about idle time that is about this loss.
bool is_about(const Finding& finding, const RankLoss& loss);

// Findings that are about the same loss become one: the one that says why.
//
//   copies.pageable ◀── memory.exposed    of the same copies
//   its cause       ◀── step.outlier      a long step of which the cause is known
//   rank.late       ◀── host.…            what the host of the late rank does meanwhile
//   comm.slow_link  ◀── rank.late, comm.waiting   what follows from slow transfers

// Names the largest collective or copy of comm.exposed, memory.exposed and copies.pageable, and prices the last by what
// of it is exposed.
void name_largest(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& list);

// Removes the findings that others take in.
void absorb(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& list);

// The first sentence about a profile, and its span as a bar.

inline constexpr double kMostlyComputing = 0.9;  // share of its devices' time from which a profile is called healthy

// Shares are of `f.whole.span_ns`; without ranks that have device work there is no bar. profile_findings() puts the
// culprit in front of this headline.
Headline profile_headline(const ProfileFacts& f, const Trace& trace, const ProfileAccount& account);

// The shares of the bar's parts as they are printed, so that they add up to 100 %.
std::vector<std::string> printed_shares(const Headline& headline);

// Sets the sentence that closes the breakdown: the lines of the bar as a sum, with their names and numbers. Lines
// of less than 1 % are one part of it.
void close_account(const std::vector<Finding>& list, Headline& headline);

// Adds a warning if the trace contains several runs, so that the headline is about none of them. It also warns if the
// trace is only a part of a file.
void warn_of_runs(const Trace& trace, Headline& headline);

}  // namespace stageline
