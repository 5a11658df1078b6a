#include "model/kind.h"

namespace stageline {
namespace {

struct KindFacts {
  std::string_view code, name;
  KindGroup group;
};

constexpr ByEnum<CellKind, KindFacts, kCellKindCount> kFacts = {{{
    {"F", "forward", KindGroup::kForward},
    {"B", "backward", KindGroup::kBackward},
    {"I", "input grad", KindGroup::kBackward},
    {"W", "weight grad", KindGroup::kWeight},
    {"F&B", "forward and backward", KindGroup::kForward},
    {"SF", "send forward", KindGroup::kMessage},
    {"RF", "receive forward", KindGroup::kMessage},
    {"SB", "send backward", KindGroup::kMessage},
    {"RB", "receive backward", KindGroup::kMessage},
    {"C", "collective", KindGroup::kCollective},
    {"O", "optimizer", KindGroup::kOptimizer},
    {"other", "other", KindGroup::kOther},
}}};

const KindFacts& facts(CellKind kind) { return kFacts[kind]; }

}  // namespace

std::string_view kind_code(CellKind kind) { return facts(kind).code; }
std::string_view kind_name(CellKind kind) { return facts(kind).name; }
KindGroup kind_group(CellKind kind) { return facts(kind).group; }

std::optional<CellKind> kind_from_code(std::string_view code) {
  for (size_t i = 0; i < kFacts.size(); ++i)
    if (kFacts[i].code == code) return static_cast<CellKind>(i);
  return std::nullopt;
}

int kind_lane(CellKind kind) {
  switch (kind_group(kind)) {
    case KindGroup::kMessage: return 1;
    case KindGroup::kCollective: return 2;
    case KindGroup::kOther: return 3;
    default: return 0;
  }
}

std::string_view lane_name(int lane) {
  constexpr std::string_view names[kLaneCount] = {"compute", "messages", "collectives", "other"};
  return names[lane];
}

}  // namespace stageline
