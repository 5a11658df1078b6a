// What reading one rank of an Ascend profile gives, whatever it was read from.
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
  std::vector<std::string> tables;  // that its database has, of those that are read; sorted
};

}  // namespace stageline::ascend
