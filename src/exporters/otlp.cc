// OTLP: spans of OpenTelemetry as JSON, a request a line (docs/exporters/otlp.md). Each step of a rank is a trace: a
// span of the step, in it one of each cell. Names are Megatron's where it has one; the pipeline.* attributes say the
// place of a cell.
#include <cstdio>

#include "base/json_writer.h"
#include "base/output_file.h"
#include "exporters/exporter.h"

namespace stageline {
namespace {

std::string hexadecimal(uint64_t number) {
  std::array<char, 17> digits;
  snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return digits.data();
}

std::string span_name(CellKind kind) {
  switch (kind) {
    case CellKind::kForward: return "megatron.microbatch.forward";
    case CellKind::kBackward: return "megatron.microbatch.backward";
    case CellKind::kSendForward: return "megatron.p2p.send_forward";
    case CellKind::kRecvForward: return "megatron.p2p.recv_forward";
    case CellKind::kSendBackward: return "megatron.p2p.send_backward";
    case CellKind::kRecvBackward: return "megatron.p2p.recv_backward";
    case CellKind::kOptimizer: return "megatron.train.iteration.optimizer";
    default: return "pipeline." + std::string(kind_name(kind));
  }
}

class OtlpWriter {
 public:
  explicit OtlpWriter(const Trace& trace) : trace_(trace), extent_(extent_of(trace)) {
    int64_t first_ns = min_over<int64_t>(trace.cells.start_ns);
    if (first_ns <= 0) shift_ns_ = 1'000'000'000 - first_ns;  // spans have times after 1970
    for (const Part& part : trace.parts) ranks_ = std::max<int64_t>(ranks_, part.rank + 1);
  }

  // Writes the cells [begin, end) of one step and rank.
  std::string line(size_t begin, size_t end) {
    const Cells& cells = trace_.cells;
    const Part& part = trace_.parts[cells.part[begin]];
    json_ = JsonWriter();  // each line is a document
    json_.begin_object().key("resourceSpans").begin_array().begin_object().key("resource").begin_object();
    json_.key("attributes").begin_array();
    attribute("service.name", std::string("stageline"));
    attribute("service.instance.id", "rank" + std::to_string(part.rank));
    attribute("dl.rank", part.rank);
    attribute("dl.world_size", ranks_);
    if (extent_.stage_count > 0) attribute("dl.pipeline_parallel.size", extent_.stage_count);
    if (!part.machine_name.empty()) attribute("host.name", part.machine_name);
    json_.end_array().end_object().key("scopeSpans").begin_array().begin_object();
    json_.key("scope").begin_object().field("name", "stageline").end_object().key("spans").begin_array();
    const int64_t step = cells.step[begin];
    const std::string trace_id =
        hexadecimal(static_cast<uint64_t>(step) + 2) + hexadecimal(static_cast<uint64_t>(part.rank) + 1);
    const std::string parent = hexadecimal(++spans_);
    int64_t last_ns = cells.end_ns[begin];
    for (size_t i = begin; i < end; ++i) last_ns = std::max(last_ns, cells.end_ns[i]);
    if (step != kUnknown) {
      span(trace_id, parent, "", "megatron.train.iteration", cells.start_ns[begin], last_ns);
      attribute("megatron.iteration", step);
      json_.end_array().end_object();
    }
    for (size_t i = begin; i < end; ++i) {
      span(trace_id, hexadecimal(++spans_), step == kUnknown ? "" : parent, span_name(cells.kind[i]), cells.start_ns[i],
           cells.end_ns[i]);
      attribute("pipeline.kind", std::string(kind_code(cells.kind[i])));
      if (step != kUnknown) attribute("pipeline.step", step);
      if (part.stage != kUnknown) attribute("pipeline.stage", part.stage);
      if (cells.chunk[i] != kUnknown) attribute("pipeline.chunk", cells.chunk[i]);
      if (cells.micro_batch[i] != kUnknown) attribute("pipeline.micro_batch", cells.micro_batch[i]);
      json_.end_array().end_object();
    }
    json_.end_array().end_object().end_array().end_object().end_array().end_object();
    return json_.take() + "\n";
  }

 private:
  // Begins a span, up to its attributes.
  void span(const std::string& trace_id, const std::string& id, const std::string& parent, const std::string& name,
            int64_t start_ns, int64_t end_ns) {
    json_.begin_object().field("traceId", trace_id).field("spanId", id);
    if (!parent.empty()) json_.field("parentSpanId", parent);
    json_.field("name", name).field("kind", 1);
    json_.field("startTimeUnixNano", std::to_string(start_ns + shift_ns_));
    json_.field("endTimeUnixNano", std::to_string(end_ns + shift_ns_));
    json_.key("attributes").begin_array();
  }
  void attribute(std::string_view key, const std::string& text) {
    json_.begin_object().field("key", key).key("value").begin_object().field("stringValue", text);
    json_.end_object().end_object();
  }
  void attribute(std::string_view key, int64_t number) {
    json_.begin_object().field("key", key).key("value").begin_object().field("intValue", std::to_string(number));
    json_.end_object().end_object();
  }

  const Trace& trace_;
  const Extent extent_;
  JsonWriter json_;
  int64_t shift_ns_ = 0, ranks_ = 0;
  uint64_t spans_ = 0;
};

}  // namespace

Status write_otlp(const ExportInput& input, const std::string& path) {
  TRY(out, OutputFile::create(path));
  const Cells& cells = input.trace.cells;
  OtlpWriter writer(input.trace);
  for (size_t begin = 0, end = 0; begin < cells.size(); begin = end) {
    while (end < cells.size() && cells.step[end] == cells.step[begin] && cells.part[end] == cells.part[begin]) ++end;
    out->write(writer.line(begin, end));
  }
  return out->commit();
}

}  // namespace stageline
