// OTLP as protobuf: a request alone, or requests in a row, each after its length.
#include "readers/common/perfetto_head.h"
#include "readers/otlp/problems.h"
#include "readers/otlp/span_file.h"

namespace stageline::otlp {
namespace {

// Field numbers of opentelemetry/proto/trace/v1/trace.proto, common/v1 and resource/v1.
constexpr uint32_t kResourceSpans = 1, kResource = 1, kScopeSpans = 2, kSpans = 2;
constexpr uint32_t kAttributes = 1, kKey = 1, kValue = 2;
constexpr uint32_t kTraceId = 1, kSpanId = 2, kName = 5, kStart = 7, kEnd = 8, kSpanAttributes = 9;

uint64_t low_bits(std::string_view id) {
  uint64_t bits = 0;
  for (const char c : id) bits = bits << 8 | static_cast<unsigned char>(c);
  return bits;
}

// Calls body(key, value as text) for a KeyValue; lists and maps are left out.
template <class Body> void read_attribute(std::string_view pair, Body body) {
  enum : uint32_t { kString = 1, kBool = 2, kInt = 3, kDouble = 4 };
  std::string_view key;
  std::string value;
  for (ProtoScan field(pair); field.next();) {
    if (field.id == kKey && field.is_bytes()) key = field.bytes;
    if (field.id != kValue || !field.is_bytes()) continue;
    for (ProtoScan any(field.bytes); any.next();) {
      if (any.id == kString && any.is_bytes()) value = any.bytes;
      if (any.id == kBool && any.wire == ProtoScan::kVarint) value = any.value != 0 ? "true" : "false";
      if (any.id == kInt && any.wire == ProtoScan::kVarint) value = std::to_string(any.as_signed());
      if (any.id == kDouble && any.wire == ProtoScan::kFixed64) value = json_double(any.as_double());
    }
  }
  body(key, std::string_view(value));
}

class ProtoReader {
 public:
  ProtoReader(std::string_view file, SpanSink& sink) : file_(file), sink_(sink) {}

  void read() {
    const Framing framing = protobuf_framing(file_);
    const char *at = file_.data(), *const end = at + file_.size();
    while (at != end) {
      uint64_t length = end - at;
      if (framing == Framing::kLength32) {
        length = 0;
        for (int i = 0; i < 4 && at != end; ++i) length = length << 8 | static_cast<unsigned char>(*at++);
      } else if (framing == Framing::kVarint && !ProtoScan::read_varint(at, end, length)) {
        length = UINT64_MAX;
      }
      const auto left = static_cast<uint64_t>(end - at);
      if (length > left) cut(at);
      const std::string_view request(at, std::min(length, left));
      each(request, kResourceSpans, [&](std::string_view spans, bool) { resource_spans(spans); });
      at += request.size();
    }
  }

 private:
  void resource_spans(std::string_view message) {
    Resource resource;
    each(message, kResource, [&](std::string_view attributes, bool) {
      each(attributes, kAttributes, [&](std::string_view pair, bool) {
        read_attribute(pair, [&](auto key, auto value) { set_attribute(resource, key, value); });
      });
    });
    sink_.begin_resource(std::move(resource));
    each(message, kScopeSpans, [&](std::string_view scope, bool) {
      each(scope, kSpans, [&](std::string_view span, bool whole) {
        if (whole) read_span(span);
      });
    });
  }

  void read_span(std::string_view message) {
    const auto time = [](uint64_t value) {
      return value <= INT64_MAX ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
    };
    RawSpan raw;
    ProtoScan field(message);
    while (field.next()) {
      if (field.id == kName && field.is_bytes()) raw.name = valid_utf8(field.bytes);
      if (field.id == kStart && field.wire == ProtoScan::kFixed64) raw.start_ns = time(field.value);
      if (field.id == kEnd && field.wire == ProtoScan::kFixed64) raw.end_ns = time(field.value);
      if (field.id == kSpanId && field.is_bytes()) raw.span.id = low_bits(field.bytes);
      if (field.id == kTraceId && field.is_bytes()) raw.span.trace = low_bits(field.bytes);
      if (field.id == kSpanAttributes && field.is_bytes())
        read_attribute(field.bytes, [&](auto key, auto value) { raw.set(key, value); });
    }
    const int64_t offset = message.data() - file_.data();
    if (field.is_damaged()) return sink_.lose(problem::otlp_bad_span, offset);
    sink_.take(std::move(raw), offset);
  }

  // Calls body(bytes, whole) for each field `id` of a message. One that goes beyond the end of its message, because the
  // file was cut, is handed on as far as it goes.
  template <class Body> void each(std::string_view message, uint32_t id, Body body) {
    const char *at = message.data(), *const end = at + message.size();
    while (at != end) {
      ProtoScan scan({at, static_cast<size_t>(end - at)});
      if (scan.next()) {
        at += scan.position();
        if (scan.id == id && scan.is_bytes()) body(scan.bytes, true);
        continue;
      }
      cut(at);
      uint64_t key = 0, length = 0;
      if (ProtoScan::read_varint(at, end, key) && key == (uint64_t{id} << 3 | ProtoScan::kBytes) &&
          ProtoScan::read_varint(at, end, length))
        body(std::string_view(at, end - at), false);
      return;
    }
  }

  void cut(const char* at) {
    if (!cut_) sink_.lose(problem::otlp_damaged_text, at - file_.data());
    cut_ = true;
  }

  std::string_view file_;
  SpanSink& sink_;
  bool cut_ = false;
};

}  // namespace

Framing protobuf_framing(std::string_view head) {
  if (begins_otlp(head)) return Framing::kBare;
  if (head.size() > 4 && begins_otlp(head.substr(4))) return Framing::kLength32;
  const char* at = head.data();
  uint64_t length = 0;
  return ProtoScan::read_varint(at, head.data() + head.size(), length) && begins_otlp(head.substr(at - head.data()))
             ? Framing::kVarint
             : Framing::kNone;
}

void read_protobuf(std::string_view bytes, SpanSink& sink) { ProtoReader(bytes, sink).read(); }

}  // namespace stageline::otlp
