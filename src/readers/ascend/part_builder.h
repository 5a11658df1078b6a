// The kinds of rows that an Ascend profile has, for readers/common/part_builder.h.
#pragma once

#include "readers/common/part_builder.h"

namespace stageline::ascend {

#define ROW_KIND(kind, ...) kind,
enum class RowKind : uint8_t {
#include "readers/ascend/row_kinds.def"
};

#define ROW_KIND(kind, text, category, kernels) {text, Category::category, KernelClass::kernels},
inline constexpr RowCategory kKinds[] = {
#include "readers/ascend/row_kinds.def"
};

// Returns the name of the lane with a group's operations, "Communication pp 10.0.0.1%eth0_60000_0_17…": the dimensions
// that the metadata says the group spans, then HCCL's name of the group. Without dimensions it has the name alone.
inline std::string communication_lane(const std::string& dimensions, const std::string& group) {
  return "Communication " + (dimensions.empty() ? "" : dimensions + " ") + group;
}

class PartBuilder : public stageline::PartBuilder {
 public:
  explicit PartBuilder(std::string source) : stageline::PartBuilder(std::move(source), kKinds, "ascend") {}
  uint32_t add(uint32_t lane, RowKind kind, int64_t start_ns, int64_t end_ns, uint32_t name,
               uint32_t correlation = kNoCorrelation) {
    return stageline::PartBuilder::add(lane, static_cast<size_t>(kind), start_ns, end_ns, name, correlation);
  }
};

// The result of reading one rank of an Ascend profile, from a database or from text.
struct RankPart {
  std::optional<Error> error;
  Part part;  // with ids of `names`
  FileNames names;
  Diagnostics notes;
  std::vector<std::string> tables;  // those tables of its database that are read; sorted
};

}  // namespace stageline::ascend
