// The first sentence about a profile, and its span as a bar.
#pragma once

#include "diagnosis/causes/findings.h"
#include "diagnosis/profile/profile_facts.h"
#include "diagnosis/profile/rank_losses.h"
#include "model/trace.h"

namespace stageline {

// Shares are of `f.whole.span_ns`; without ranks that have device work there is no bar. What a cause is to blame for is
// put before it by profile_findings().
Headline profile_headline(const ProfileFacts& f, const Trace& trace, const ProfileAccount& account);

// A headline over several runs at once is about none of them, and one over part of a file is about that part: it says
// so.
void warn_of_runs(const Trace& trace, Headline& headline);

}  // namespace stageline
