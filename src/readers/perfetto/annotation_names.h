// Names of arguments that Stageline knows, by Kineto's, our own and other writers' words.
#pragma once

#include <cstdint>
#include <string_view>

#include "readers/common/rows/arg_keys.h"

namespace stageline::pftrace {

// clang-format off
enum class OwnKey : uint8_t {
  kNone, kKind, kStep, kStage, kChunk, kMicroBatch, kRank, kDp, kDuration, kOperation, kSyncKind
};
// clang-format on

// The meaning of an annotation's name.
struct AnnotationName {
  rows::ArgKey key = rows::ArgKey::kNone;
  OwnKey own = OwnKey::kNone;
};
AnnotationName annotation_name(std::string_view name);

}  // namespace stageline::pftrace
