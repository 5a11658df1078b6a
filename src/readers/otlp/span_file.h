// Reads one file of OpenTelemetry's spans (OTLP) into rows, whatever its container: JSON, protobuf, compressed or not.
#pragma once

#include "readers/common/ops.h"

namespace stageline {

class Progress;
}

namespace stageline::otlp {

// The sender of spans. Sizes are 0 where the resource does not give them.
struct Resource {
  int64_t rank = kUnknown;
  int64_t world_size = 0, pipeline_size = 0, data_size = 0, batch_size = 0, micro_batch_size = 0;
  int64_t pid = 0;
  std::string service, instance, host, run;
};

constexpr uint32_t kNoRequest = UINT32_MAX;

struct Span {
  int64_t start_ns = 0, end_ns = 0;
  uint64_t id = 0, trace = 0;  // the low 64 bits; 0 where the span has none
  StringId name_id = 0;
  uint32_t resource = 0;  // index into SpanFile::resources
  uint32_t file_index = 0;
  uint32_t file = 0;
  int32_t iteration = kUnknown;      // megatron.iteration
  int32_t micro_batches = kUnknown;  // num_microbatches
  // The place in a pipeline that a span states (pipeline.kind, …), where it is a cell by itself.
  std::optional<CellKind> kind;
  int32_t step = kUnknown, stage = kUnknown, chunk = kUnknown, own_micro_batch = kUnknown;
  bool truncated = false;         // its end is that of the program, not of the work
  uint32_t request = kNoRequest;  // index into SpanFile::requests
};

struct SpanFile {
  std::vector<Resource> resources;
  std::vector<Span> spans;
  std::vector<ServedRequest> requests;
  StringPool names;
  Diagnostics diagnostics;
};

// Returns true where a file's beginning is OTLP's, as JSON or as protobuf in one of its three framings.
bool looks_like_otlp(std::string_view head);
// Errors: as Input::open, and kLimit for a file of more than 2 GiB.
Result<SpanFile> read_spans(const std::string& path, Progress* progress);

// A span as its file gives it. The number of an attribute is its text.
struct RawSpan {
  std::string name;
  std::optional<int64_t> start_ns, end_ns;
  Span span;
  ServedRequest request;
  bool is_request = false;  // it has a latency

  void set(std::string_view key, std::string_view value);

 private:
  void set_of_request(std::string_view key, std::string_view value);
};

class SpanSink {
 public:
  explicit SpanSink(std::string path) : path_(std::move(path)) {}

  void begin_resource(Resource resource) { out_.resources.push_back(std::move(resource)); }
  void take(RawSpan raw, int64_t offset);
  void lose(const Problem& problem, int64_t offset, const Args& args = {}) {
    out_.diagnostics.add(problem, args, {path_, 0, offset});
  }
  SpanFile finish() { return std::move(out_); }

 private:
  std::string path_;
  SpanFile out_;
};

void set_attribute(Resource& resource, std::string_view key, std::string_view value);

// Requests follow each other without anything between them, or each after its length. That is a varint or, as the
// collector writes it, four bytes with the highest first.
enum class Framing : uint8_t { kNone, kBare, kLength32, kVarint };
Framing protobuf_framing(std::string_view head);

void read_json(std::string_view text, SpanSink& sink);
void read_protobuf(std::string_view bytes, SpanSink& sink);

}  // namespace stageline::otlp

namespace stageline::otlp {

// The spans of a run, whose resources are one run's. Spans are ordered by start.
struct Run {
  std::vector<Resource> resources;
  std::vector<Span> spans;
  std::vector<ServedRequest> requests;  // of the spans, whatever their order
};

// Returns true when spans contain their own stages (pipeline.stage).
bool names_stages(const Run& run);

// Returns an operation for each span of a rank. A forward or backward within a known iteration is a cell; all other
// spans, messages among them, are calls of the host. Returns nothing where there is no cell. Counts what was inferred
// or left out in trace.diagnostics, and adds Trace::lossy_steps.
std::vector<Op> pipeline_ops(const Run& run, Trace& trace);

}  // namespace stageline::otlp
