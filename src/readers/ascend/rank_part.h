// The result of reading one rank of an Ascend profile, from a database or from text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/ascend/part_builder.h"

namespace stageline::ascend {

struct RankPart {
  std::optional<Error> error;
  Part part;  // with ids of `names`
  FileNames names;
  Diagnostics notes;
  std::vector<std::string> tables;  // those tables of its database that are read; sorted
};

}  // namespace stageline::ascend
