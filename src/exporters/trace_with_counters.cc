// Writes the source trace with counters added: how many operations wait on each stream, and how fast memory is copied.
// Format: docs/exporters/trace-with-counters.md.
#include "base/json_writer.h"
#include "exporters/exporter.h"
#include "exporters/overlay_file.h"
#include "profile/memory_bandwidth.h"
#include "profile/queue_length.h"

namespace stageline {
namespace {

// Writes a pid as the source has it: a number stays a number.
void append_id(std::string& out, const std::string& text) {
  if (parse_int(text)) out += text;
  else append_json_string(out, text);
}

struct Counter {
  std::string_view name, unit;
  int64_t stream = -1;  // −1: the counter belongs to no stream
};

void add_event(std::vector<std::string>& events, const Counter& counter, const std::string& pid, int64_t ts_ns,
               const std::string& value) {
  std::string out = "{\"ph\": \"C\", \"name\": ";
  append_json_string(out, counter.name);
  out += ", \"pid\": ";
  append_id(out, pid);
  if (counter.stream >= 0) out += ", \"id\": " + std::to_string(counter.stream);
  out += ", \"ts\": ";
  out += ns_as_decimal(ts_ns, 3);  // in microseconds on the file's own clock
  out += ", \"args\": {";
  append_json_string(out, counter.unit);
  out += ": " + value + "}}";
  events.push_back(std::move(out));
}

// Adds HTA's events: every point of its two series, on the file's clock with HTA's rounding.
Status add_hta(const TorchRun& run, const TorchRank& rank, std::vector<std::string>& events) {
  const Part& part = *rank.part;
  TRY(queues, hta_queue_points(run, rank));
  for (const QueuePoint& p : *queues)
    add_event(events, {"Queue Length", "Queue Length", p.stream}, part.lanes[p.lane].pid, p.ts_ns + run.zero_ns,
              std::to_string(p.length));
  for (const BandwidthPoint& p : hta_bandwidth_points(run, rank))
    add_event(events, {p.label, "Memcpy BW"}, part.lanes[p.lane].pid, p.ts_ns + run.zero_ns, json_double(p.gbps));
  return {};
}

void add_exact(const TorchRun& run, const TorchRank& rank, std::vector<std::string>& events) {
  const int64_t zero = run.zero_ns - rank.part->base_time_ns;
  std::string device;
  for (const StreamQueue& q : stream_queues(run, rank)) {
    if (device.empty()) device = q.device;
    for (size_t i = 0; i < q.waiting.size(); ++i)
      add_event(events, {"Queue Length", "Queue Length", q.stream}, q.device, q.waiting.time_ns[i] + zero,
                std::to_string(q.waiting.value[i]));
  }
  for (const TorchRow& row : rank.rows)
    if (device.empty() && row.on_device) device = rank.part->lanes[row.lane].pid;
  for (const CopyBandwidth& c : copy_bandwidths(run, rank))
    for (size_t i = 0; i < c.rate.size(); ++i)
      add_event(events, {c.label, "Memcpy BW"}, device, c.rate.time_ns[i] + zero,
                json_double(gigabytes_per_second(c.rate.value[i])));
}

}  // namespace

Status write_trace_with_counters(const ExportInput& input, const std::string& path) {
  // HTA's counters end before the last step.
  Result<TorchRun> run = make_torch_run(input.trace, {input.options.hta, !input.options.hta});
  if (!run) return std::move(run).error();
  const auto held = torch_rank(*run, input.options.part);
  const TorchRank& rank = *held;
  TraceOverlay overlay{.part = input.options.part};
  if (input.options.hta) TRY_OK(add_hta(*run, rank, overlay.new_events));
  else add_exact(*run, rank, overlay.new_events);
  if (overlay.new_events.empty())
    return make_error(
        ErrorCode::kBadInput,
        "nothing to count in rank " + std::to_string(rank.rank) + ": no launched device work and no copies",
        "stageline info says what the trace holds", {rank.part->source});
  return write_overlay_file(input.trace, overlay, path);
}

}  // namespace stageline
