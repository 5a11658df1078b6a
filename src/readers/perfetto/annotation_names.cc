#include "readers/perfetto/annotation_names.h"

#include <utility>

namespace stageline::pftrace {
namespace {

using rows::ArgKey;

constexpr std::pair<std::string_view, OwnKey> kOwnKeys[] = {{"kind", OwnKey::kKind},
                                                            {"step", OwnKey::kStep},
                                                            {"stage", OwnKey::kStage},
                                                            {"chunk", OwnKey::kChunk},
                                                            {"micro_batch", OwnKey::kMicroBatch},
                                                            {"rank", OwnKey::kRank},
                                                            {"dp", OwnKey::kDp},
                                                            {"dur_ns", OwnKey::kDuration},
                                                            {"operation", OwnKey::kOperation},
                                                            {"cuda_sync_kind", OwnKey::kSyncKind}};
// Names of other writers for what Kineto has a name for: torch's device events, rocprofv3.
constexpr std::pair<std::string_view, ArgKey> kOtherNames[] = {{"stream id", ArgKey::kStream},
                                                               {"stream_id", ArgKey::kStream},
                                                               {"corr_id", ArgKey::kCorrelation},
                                                               {"copy_bytes", ArgKey::kBytes},
                                                               {"registers_per_thread", ArgKey::kRegisters},
                                                               {"shared_mem_dynamic", ArgKey::kSharedMemory}};

}  // namespace

AnnotationName annotation_name(std::string_view name) {
  AnnotationName out{.key = rows::arg_key(name)};
  for (const auto& [text, key] : kOtherNames)
    if (name == text) out.key = key;
  for (const auto& [text, own] : kOwnKeys)
    if (name == text) out.own = own;
  return out;
}

}  // namespace stageline::pftrace
