// One execution trace of Chakra: the nodes of a rank's graph, those with times as rows of a part.
//
//   varint length, GlobalMetadata   varint length, Node   varint length, Node   …
//
// Source of the fields: mlcommons/chakra schema/protobuf/et_def.proto.
#pragma once

#include "base/progress.h"
#include "readers/common/part_builder.h"

namespace stageline::chakra {

struct TraceFile {
  std::string path;
  Part part;
  FileNames names;
  Diagnostics notes;
  std::string version;  // "0.0.4"; "" where the file does not say
};

// By the first bytes of a file: a message of the trace's own facts and the beginning of a node.
bool looks_like_chakra(std::string_view head);

// Errors: kNotFound, kIo; kBadInput when no node has a time.
Result<TraceFile> read_trace_file(const std::string& path, Progress* progress);

}  // namespace stageline::chakra
