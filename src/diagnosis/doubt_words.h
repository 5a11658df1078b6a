// Sentences on causes that a short run cannot separate from noise, on unexplained jitter, and on hidden causes.
#pragma once

#include "base/words.h"
#include "diagnosis/causes/causes.h"

namespace stageline {

// Returns a sentence on the largest cause that costs enough but may be noise (CauseList::doubtful). Otherwise it is on
// the error of an estimated price, or else on jitter of at least 5 % of a step that the breakdown leaves. "" if there
// is none of these.
Text doubt_words(const CauseList& causes);

// The largest cause that holds the step up only after the found causes are gone (CauseList::hidden); "" where there is
// none.
Text hidden_words(const CauseList& causes);

}  // namespace stageline
