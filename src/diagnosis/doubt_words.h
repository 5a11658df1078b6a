// What a run is too short to tell (causes that may be chance, jitter that nothing explains), and what it hides.
#pragma once

#include "base/words.h"
#include "diagnosis/causes/causes.h"
#include "model/finding.h"

namespace stageline {

// A sentence on the largest cause that costs enough but may be chance (CauseList::doubtful); else on how far an
// estimated price may be off; else on jitter of at least 5 % of a step that the account leaves. "" where there is none
// of these.
Text doubt_words(const CauseList& causes);

// The largest cause that holds the step up only after the found causes are gone (CauseList::hidden); "" where there is
// none.
Text hidden_words(const CauseList& causes);

}  // namespace stageline
