// The name of a place in a sentence, made in one place from the data.
#pragma once

#include "base/words.h"
#include "model/place.h"

namespace stageline {

// "stage 1", "stage 1 chunk 2", "rank 5", "replica 3", "from stage 1 to stage 2 of replica 3"; "" for places of other
// kinds. With `pipelines`, replicas are called pipelines: with context parallelism a replica has several.
Text place_text(const Place& place, bool pipelines = false);

}  // namespace stageline
