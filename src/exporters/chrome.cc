// Chrome trace-event JSON, for Perfetto's viewer, chrome://tracing and everything else that reads it.
//
//   {"traceEvents":[
//   {"ph":"M", …}                          names and order of processes and threads
//   {"ph":"X","name":"F3 (8.05 ms)", …}    slices and flow ends, by time over the whole file
//   {"ph":"s", …}
//   {"ph":"f", …}
//   ],"displayTimeUnit":"ms","otherData":{…}}
//
// Readers turn `ts` (microseconds) into a double. At the size of today's epoch, a double has an error of up to a
// quarter of a microsecond. Therefore times are written relative to the trace's own start, with exactly three decimals,
// and otherData holds the start. The treatment of odd input by Perfetto's importer (slices that overlap, arrows that
// point back in time) is described in docs/exporters/chrome.md.
#include "base/json_writer.h"
#include "exporters/export_sink.h"
#include "exporters/exporter.h"
#include "exporters/link_index.h"
#include "exporters/slice_names.h"

namespace stageline {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 16;

constexpr auto kColour = texts_by<CellKind::kOther, const char*>({
#define COLOUR(name) name,
#include "exporters/chrome_colours.def"
});
constexpr const char* kStepColour = "thread_state_unknown";

// Appends nanoseconds as microseconds with three decimals, using integers throughout.
void append_micros(std::string& out, uint64_t ns) {
  append_number(out, ns / 1000);
  const auto rest = static_cast<unsigned>(ns % 1000);
  const char decimals[4] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                            static_cast<char>('0' + rest % 10)};
  out.append(decimals, 4);
}

// The ends of an arrow, each inside its slice. Readers connect an end to the slice that is open at its time, and they
// drop without any message an arrow whose `f` comes before its `s`. So an arrow leaves in the last nanosecond of its
// slice and arrives in the first nanosecond of the other, not on a boundary, where two slices may touch. Where the
// clocks contradict this order, both ends are moved as little as possible.
struct FlowTimes {
  int64_t s_ns, f_ns;
  bool possible;  // false when the successor ended before its predecessor began
};
FlowTimes flow_times(const Cells& cells, const Link& link) {
  const int64_t from = cells.start_ns[link.from_cell], from_end = shown_end_ns(cells, link.from_cell);
  const int64_t to = cells.start_ns[link.to_cell], to_end = shown_end_ns(cells, link.to_cell);
  const int64_t s_ns = std::max(from, from_end - 1);
  const int64_t f_ns = to_end - to >= 2 ? to + 1 : to;
  if (s_ns <= f_ns) return {s_ns, f_ns, true};
  if (from <= f_ns) return {f_ns, f_ns, true};
  return {from, from, from <= std::max(to, to_end - 1)};
}

class ChromeWriter {
 public:
  ChromeWriter(const ExportInput& input, ExportSink& sink)
      : trace_(input.trace), title_(input.options.title), sink_(sink), layout_(lay_out_tracks(input.trace)),
        names_(input.trace, layout_.extent.chunk_count > 1), links_(input.trace, layout_),
        flows_left_out_(links_.left_out()) {}

  void write() {
    line_ += "{\"traceEvents\":[";
    write_metadata();
    write_events();
    write_tail();
    sink_.write(line_);
  }

 private:
  // Appends the line end of the event before, and writes out the collected lines when they are long enough.
  void begin_event() {
    line_ += first_ ? "\n" : ",\n";
    first_ = false;
    if (line_.size() < kPieceBytes) return;
    sink_.write(line_);
    line_.clear();
  }

  void metadata(std::string_view name, uint32_t pid, uint32_t tid, std::string_view key, std::string_view value) {
    begin_event();
    line_ += "{\"ph\":\"M\",\"name\":\"";
    line_ += name;
    line_ += "\",\"pid\":";
    append_number(line_, pid);
    if (tid != 0) {
      line_ += ",\"tid\":";
      append_number(line_, tid);
    }
    line_ += ",\"args\":{\"";
    line_ += key;
    line_ += "\":";
    line_ += value;
    line_ += "}}";
  }
  void name_and_order(std::string_view of, uint32_t pid, uint32_t tid, std::string_view name, size_t order) {
    std::string text;
    append_json_string(text, name);
    metadata(std::string(of) + "_name", pid, tid, "name", text);
    metadata(std::string(of) + "_sort_index", pid, tid, "sort_index", std::to_string(order));
  }

  void write_metadata() {
    size_t order = 0;
    if (!layout_.step_tracks.empty()) name_and_order("process", layout_.step_pid, 0, "steps", order++);
    for (const Process& process : layout_.processes) name_and_order("process", process.pid, 0, process.name, order++);
    order = 0;
    for (const StepTrack& track : layout_.step_tracks)
      name_and_order("thread", layout_.step_pid, track.tid, track.name, order++);
    for (const Track& track : layout_.tracks) name_and_order("thread", track.pid, track.tid, track.name, order++);
  }

  uint64_t rebased(int64_t ns) const { return ns - static_cast<uint64_t>(layout_.extent.start_ns); }

  void ids(uint32_t pid, uint32_t tid) {
    line_ += ",\"pid\":";
    append_number(line_, pid);
    line_ += ",\"tid\":";
    append_number(line_, tid);
  }

  void times(int64_t start_ns, int64_t end_ns) {
    line_ += ",\"ts\":";
    append_micros(line_, rebased(start_ns));
    line_ += ",\"dur\":";
    append_micros(line_, end_ns - static_cast<uint64_t>(start_ns));
  }

  void argument(std::string_view name, int32_t value) {
    if (value == kUnknown) return;
    line_ += ",\"";
    line_ += name;
    line_ += "\":";
    append_number(line_, static_cast<uint32_t>(value));
  }

  void write_cell(uint32_t cell, const Track& track) {
    const Cells& cells = trace_.cells;
    const CellKind kind = cells.kind[cell];
    begin_event();
    line_ += "{\"ph\":\"X\",\"name\":";
    if (names_.has_own_name(cell)) {
      scratch_.clear();
      names_.append(scratch_, cell);
      append_json_string(line_, scratch_);
    } else {  // labels contain nothing that must be escaped
      line_ += '"';
      names_.append(line_, cell);
      line_ += '"';
    }
    line_ += ",\"cat\":\"";
    line_ += kind_name(kind);
    line_ += '"';
    ids(track.pid, track.tid);
    times(cells.start_ns[cell], shown_end_ns(cells, cell));
    line_ += ",\"cname\":\"";
    line_ += kColour[kind];
    const Part& part = trace_.parts[track.part];
    line_ += "\",\"args\":{\"kind\":\"";
    line_ += kind_code(kind);
    line_ += '"';
    argument("step", cells.step[cell]);
    argument("stage", part.stage);
    argument("chunk", cells.chunk[cell]);
    argument("micro_batch", cells.micro_batch[cell]);
    argument("rank", part.rank);
    argument("dp", part.dp);
    line_ += "}}";
  }

  void write_step(const StepSlice& step) {
    begin_event();
    line_ += "{\"ph\":\"X\",\"name\":\"";
    line_ += step_name(step.step, step.end_ns - step.start_ns);
    line_ += "\",\"cat\":\"step\"";
    ids(layout_.step_pid, layout_.step_tracks[step.row].tid);
    times(step.start_ns, step.end_ns);
    line_ += ",\"cname\":\"";
    line_ += kStepColour;
    line_ += "\",\"args\":{\"step\":";
    append_number(line_, static_cast<uint32_t>(step.step));
    line_ += "}}";
  }

  struct FlowEnd {
    int64_t ns;
    bool arrives;
    uint32_t link, track;
    auto order() const { return std::tie(ns, arrives, link); }
    bool operator>(const FlowEnd& other) const { return order() > other.order(); }
  };

  void write_flow_end(const FlowEnd& end) {
    begin_event();
    line_ += end.arrives ? "{\"ph\":\"f\",\"bp\":\"e\"" : "{\"ph\":\"s\"";
    const CellKind kind = trace_.cells.kind[trace_.links[end.link].from_cell];
    line_ += ",\"name\":\"";
    line_ += kind_name(kind);
    line_ += "\",\"cat\":\"pipeline\",\"id\":";
    append_number(line_, end.link + 1);
    ids(layout_.tracks[end.track].pid, layout_.tracks[end.track].tid);
    line_ += ",\"ts\":";
    append_micros(line_, rebased(end.ns));
    line_ += '}';
  }

  // Both ends of an arrow are inside their slices, so each end is queued when its slice is written. The queue holds
  // only the arrows that are open, however long the trace is.
  void queue_flow_ends(uint32_t cell, uint32_t track) {
    for (const uint32_t link : links_.out_of(cell)) {
      const FlowTimes times = flow_times(trace_.cells, trace_.links[link]);
      if (times.possible) flow_ends_.push({times.s_ns, false, link, track});
      else ++flows_left_out_;
    }
    for (const uint32_t link : links_.into(cell)) {
      const FlowTimes times = flow_times(trace_.cells, trace_.links[link]);
      if (times.possible) flow_ends_.push({times.f_ns, true, link, track});
    }
  }
  void write_flow_ends_before(int64_t ns) {
    for (; !flow_ends_.empty() && flow_ends_.top().ns < ns; flow_ends_.pop()) write_flow_end(flow_ends_.top());
  }

  // Each track is in start order. A heap of the tracks' next cells gives the order of the whole file.
  void write_events() {
    struct Head {
      int64_t start_ns;
      uint32_t track;
      size_t at;
      bool operator>(const Head& other) const {
        return std::tie(start_ns, track) > std::tie(other.start_ns, other.track);
      }
    };
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    const auto push = [&](uint32_t track, size_t at) {
      if (at < layout_.tracks[track].end) heads.push({trace_.cells.start_ns[layout_.cells[at]], track, at});
    };
    for (uint32_t t = 0; t < layout_.tracks.size(); ++t) push(t, layout_.tracks[t].begin);
    size_t step = 0;
    while (!heads.empty()) {
      const Head head = heads.top();
      heads.pop();
      write_flow_ends_before(head.start_ns);  // at equal times the slice comes first
      for (; step < layout_.steps.size() && layout_.steps[step].start_ns <= head.start_ns; ++step)
        write_step(layout_.steps[step]);
      const uint32_t cell = layout_.cells[head.at];
      write_cell(cell, layout_.tracks[head.track]);
      queue_flow_ends(cell, head.track);
      push(head.track, head.at + 1);
    }
    for (; !flow_ends_.empty(); flow_ends_.pop()) write_flow_end(flow_ends_.top());
  }

  void write_tail() {
    JsonWriter other;
    other.begin_object().field("stageline", STAGELINE_VERSION);
    if (!title_.empty()) other.field("title", title_);
    other.field("format", trace_.format).field("description", trace_.description);
    other.field("clock", clock_name(trace_.clock));
    // As text, because numbers in JSON are exact only up to 2^53.
    other.field("start_ns", std::to_string(layout_.extent.start_ns));
    other.field("flows_left_out", flows_left_out_);
    other.field("cells_left_out", layout_.cells_left_out).end_object();
    line_ += "\n],\"displayTimeUnit\":\"ms\",\"otherData\":";
    line_ += other.text();
    line_ += "}\n";
  }

  const Trace& trace_;
  const std::string& title_;
  ExportSink& sink_;
  TrackLayout layout_;
  SliceNames names_;
  LinkIndex links_;
  size_t flows_left_out_;
  std::priority_queue<FlowEnd, std::vector<FlowEnd>, std::greater<>> flow_ends_;
  std::string line_, scratch_;
  bool first_ = true;
};

}  // namespace

Status write_chrome(const ExportInput& input, const std::string& path) {
  TRY(sink, ExportSink::create(path));
  ChromeWriter(input, *sink).write();
  return sink->commit();
}

}  // namespace stageline
