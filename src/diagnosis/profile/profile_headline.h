// The first sentence about a profile, and its span as a bar.
#pragma once

#include "diagnosis/causes/findings.h"
#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/trace.h"

namespace stageline {

inline constexpr double kMostlyComputing = 0.9;  // share of its devices' time from which a profile is called healthy

// Shares are of `f.whole.span_ns`; without ranks that have device work there is no bar. profile_findings() puts the
// culprit in front of this headline.
Headline profile_headline(const ProfileFacts& f, const Trace& trace, const ProfileAccount& account);

// Sets the sentence that closes the breakdown: the lines of the bar as a sum. Lines that findings with ids in `covered`
// are about are one part of it, and so are all others of less than 1 %.
void close_account(const std::vector<Finding>& list, const std::vector<std::string>& covered, Headline& headline);

// Adds a warning if the trace contains several runs, so that the headline is about none of them. It also warns if the
// trace is only a part of a file.
void warn_of_runs(const Trace& trace, Headline& headline);

}  // namespace stageline
