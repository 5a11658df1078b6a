#include "readers/otlp/span_file.h"

#include "base/error_words.h"
#include "base/input.h"
#include "base/json_members.h"
#include "readers/common/op_names.h"
#include "readers/otlp/problems.h"

namespace stageline::otlp {
namespace {

constexpr size_t kMaxFileBytes = size_t{2} << 30;
constexpr size_t kWindowBytes = size_t{1} << 20;

// Sizes are divisors later, so only those that can be one are taken.
int64_t size_of(std::string_view value) {
  const auto size = parse_index(value, kMaxRankNumber);
  return size && *size > 0 ? *size : 0;
}

int64_t ns_of_seconds(std::string_view value) {
  constexpr double kMaxSeconds = 1e9;
  const auto seconds = parse_double(value);
  return seconds && *seconds >= 0 && *seconds < kMaxSeconds ? std::llround(*seconds * 1e9) : -1;
}

size_t first_of_text(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n\xef\xbb\xbf"), text.size());
}

}  // namespace

void set_attribute(Resource& resource, std::string_view key, std::string_view value) {
#define RESOURCE(name, member, reading) \
  if (key == name) resource.member = reading;
#include "readers/otlp/attributes.def"
  if (key == "dl.rank" || ((key == "rank" || key == "torch.rank") && resource.rank == kUnknown))
    resource.rank = parse_index(value, kMaxRankNumber).value_or(kUnknown);
  if (key == "process.pid" || key == "vllm.process_id") resource.pid = parse_int(value).value_or(0);
}

void RawSpan::set(std::string_view key, std::string_view value) {
#define SPAN(name, member, reading) \
  if (key == name) span.member = reading;
#include "readers/otlp/attributes.def"
  if (key.starts_with("gen_ai.")) set_of_request(key.substr(7), value);
}

void RawSpan::set_of_request(std::string_view key, std::string_view value) {
  const auto tokens = [&] { return std::max<int64_t>(-1, parse_int(value).value_or(-1)); };
  is_request |= key.starts_with("latency.");
#define REQUEST(name, member, reading) \
  if (key == name) request.member = reading;
#include "readers/otlp/attributes.def"
}

void SpanSink::take(RawSpan raw, int64_t offset) {
  if (raw.name.empty()) return lose(problem::otlp_bad_span, offset);
  if (!raw.start_ns || !raw.end_ns || *raw.start_ns <= 0 || !sane_interval(*raw.start_ns, *raw.end_ns))
    return lose(problem::otlp_bad_time, offset);
  if (out_.spans.size() >= kMaxOps) return lose(problem::otlp_too_many_spans, offset);
  Span& span = raw.span;
  span.start_ns = *raw.start_ns;
  span.end_ns = *raw.end_ns;
  span.name_id = out_.names.intern(raw.name);
  span.resource = static_cast<uint32_t>(out_.resources.size() - 1);
  span.file_index = static_cast<uint32_t>(out_.spans.size());
  if (raw.is_request) {
    span.request = static_cast<uint32_t>(out_.requests.size());
    raw.request.start_ns = span.start_ns;
    raw.request.end_ns = span.end_ns;
    out_.requests.push_back(std::move(raw.request));
  }
  out_.spans.push_back(span);
}

bool looks_like_otlp(std::string_view head) {
  const std::string_view text = head.substr(first_of_text(head));
  if (text.starts_with('{')) {
    const auto first = json_members(text, 1);
    return (!first.empty() && first[0].key == "resourceSpans") ||
           text.find("\n{\"resourceSpans\"") != std::string_view::npos;
  }
  return protobuf_framing(head) != Framing::kNone;
}

Result<SpanFile> read_spans(const std::string& path, Progress* progress) {
  TRY(input, Input::open(path, progress));
  SpanSink sink(path);
  std::string bytes;
  for (size_t filled = 0;;) {
    if (bytes.size() < filled + kWindowBytes) bytes.resize(std::max(filled + kWindowBytes, 2 * bytes.size()));
    const Result<size_t> got = input->read(bytes.data() + filled, bytes.size() - filled);
    if (!got)  // what came before is kept
      sink.lose(problem::otlp_read_stopped, static_cast<int64_t>(filled), Args().set("why", error_text(got.error())));
    filled += got ? *got : 0;
    if (filled > kMaxFileBytes)
      return make_error(ErrorCode::kLimit, "the file has more than 2 GiB", "give its parts", {path});
    if (got && *got > 0) continue;
    bytes.resize(filled);
    break;
  }
  const size_t text = first_of_text(bytes);
  if (text < bytes.size() && bytes[text] == '{') read_json(bytes, sink);
  else read_protobuf(bytes, sink);
  return sink.finish();
}

}  // namespace stageline::otlp
