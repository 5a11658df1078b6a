// What a run is too short to tell: causes that may be chance, and jitter that nothing explains. And what it hides.
#pragma once

#include "base/words.h"
#include "diagnosis/causes/causes.h"
#include "model/finding.h"

namespace stageline {

// The largest of the causes that cost enough and may be chance (CauseList::doubtful); else how far an estimated price
// may be off; else jitter of 5 % of a step or more that the account leaves. A sentence; "" where nothing is left open.
Text doubt_words(const CauseList& causes);

// What holds the step up once the causes that were found are gone (CauseList::hidden), the largest; "" where nothing.
Text hidden_words(const CauseList& causes);

}  // namespace stageline
