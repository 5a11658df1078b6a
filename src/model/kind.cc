#include "model/kind.h"

namespace stageline {
namespace {

struct KindFacts {
  std::string_view code, name;
  KindGroup group;
};

constexpr ByEnum<CellKind, KindFacts, kCellKindCount> kFacts = {{{
#define KIND(code, name, group) {code, name, KindGroup::group},
#include "model/kinds.def"
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
