// One list of columns serves both ways: columns() is called with a writer or with a reader, so exactly what was written
// is read. Names of texts are ids of the digest's own list of names, as in a trace.
#include "base/error_words.h"
#include "readers/digest/columns.h"
#include "readers/digest/digest_file.h"
#include "readers/digest/sound_trace.h"

namespace stageline::digest {
namespace {

// Holds a row of Diagnostics or of counters, flattened.
struct Flaw {
  std::string name, message, message_zh, file;
  Severity severity = Severity::kInfo;
  int64_t count = 0, line = 0, byte = 0;
};
struct Series {
  std::string name;
  int64_t count = 0;
};

// All columns but names, times of cells, counters and diagnostics, which are flattened before.
template <class Io> void columns(Io& io, Trace& trace) {
  Part& part = trace.parts[0];
#define VALUE(column, member) io.value(column, member);
#define LIST(column, member) io.list(column, member);
#define TABLE(prefix, list) rows(io, prefix, list
#define FIELD(type, field) , member(#field, &type::field)
#define END_TABLE );
#include "readers/digest/trace_columns.def"
}

template <class Io> void flaw_columns(Io& io, std::vector<Flaw>& flaws) {
  rows(io, "diagnostics", flaws, member("name", &Flaw::name), member("message", &Flaw::message),
       member("file", &Flaw::file), member("severity", &Flaw::severity), member("count", &Flaw::count),
       member("line", &Flaw::line), member("byte", &Flaw::byte));
  std::vector<std::string> chinese;  // digests made without it show the English
  if constexpr (!Io::kReads)
    for (const Flaw& flaw : flaws) chinese.push_back(flaw.message_zh);
  io.list("diagnostics.message_zh", chinese);
  if constexpr (Io::kReads)
    for (size_t i = 0; i < std::min(chinese.size(), flaws.size()); ++i) flaws[i].message_zh = std::move(chinese[i]);
}

// A cell's timestamp is stored as its difference from its slice's, which is mostly 0. This returns the slice's.
int64_t of_slice(const std::vector<int64_t>& column, uint32_t slice) {
  return slice < column.size() ? column[slice] : 0;
}
int64_t minus(int64_t a, int64_t b) { return a - static_cast<uint64_t>(b); }
int64_t plus(int64_t a, int64_t b) { return a + static_cast<uint64_t>(b); }

bool is_sound(const Flaw& flaw) {
  return !flaw.name.empty() &&
         flaw.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._") == std::string::npos &&
         !flaw.message.empty() && flaw.severity <= Severity::kLoss && flaw.count >= 1 && flaw.count <= kMaxCounted &&
         flaw.line >= 0 && flaw.byte >= -1;
}

}  // namespace

std::string pack_trace(const Trace& trace) {
  ColumnWriter io;
  columns(io, const_cast<Trace&>(trace));  // a writer changes nothing
  std::vector<std::string> names;
  for (uint32_t id = 0; id < trace.names.size(); ++id) names.emplace_back(trace.names.text(id));
  io.list("names", names);
  const Slices& s = trace.parts[0].slices;
  const Cells& cells = trace.cells;
  std::vector<int64_t> starts(cells.size()), durations(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    starts[i] = minus(cells.start_ns[i], of_slice(s.start_ns, cells.slice[i]));
    durations[i] = minus(cells.dur_ns(i), of_slice(s.dur_ns, cells.slice[i]));
  }
  io.list("cells.start_after_slice_ns", starts);
  io.list("cells.longer_than_slice_ns", durations);
  std::vector<Series> series;
  std::vector<int64_t> times;
  std::vector<double> values;
  for (const CounterSeries& one : trace.parts[0].counters) {
    series.push_back({one.name, std::ssize(one.time_ns)});
    times.insert(times.end(), one.time_ns.begin(), one.time_ns.end());
    values.insert(values.end(), one.value.begin(), one.value.end());
  }
  rows(io, "counters", series, member("name", &Series::name), member("count", &Series::count));
  io.list("counters.time_ns", times);
  io.list("counters.value", values);
  std::vector<Flaw> flaws;
  for (const Diagnostic& d : trace.diagnostics.items())
    flaws.push_back(
        {d.name, d.message.en, d.message.zh, d.first.file, d.severity, d.count, d.first.line, d.first.byte});
  flaw_columns(io, flaws);
  return io.take();
}

Result<Trace> unpack_trace(std::string_view body, const std::string& path, MemoryLeft& memory) {
  const Error unsound = worded_error(ErrorCode::kBadInput, "digest.columns", {}, {path});
  ColumnReader io(body);
  if (!memory.take(io.memory_bytes())) return no_room(path, io.memory_bytes());
  Trace trace;
  trace.parts.resize(1);
  columns(io, trace);
  Part& part = trace.parts[0];
  if (part.streams.empty()) part.streams = {-1};
  std::vector<std::string> names;
  io.list("names", names);
  for (const std::string& name : names) trace.names.intern(name);
  if (names.empty() ? false : trace.names.size() != names.size()) return unsound;
  std::vector<int64_t> starts, durations;
  io.list("cells.start_after_slice_ns", starts);
  io.list("cells.longer_than_slice_ns", durations);
  Cells& cells = trace.cells;
  const size_t count = cells.step.size();
  if (starts.size() != count || durations.size() != count || cells.slice.size() != count) return unsound;
  cells.part.assign(count, 0);
  cells.start_ns.resize(count);
  cells.end_ns.resize(count);
  for (size_t i = 0; i < count; ++i) {
    cells.start_ns[i] = plus(starts[i], of_slice(part.slices.start_ns, cells.slice[i]));
    cells.end_ns[i] = plus(cells.start_ns[i], plus(durations[i], of_slice(part.slices.dur_ns, cells.slice[i])));
  }
  std::vector<Series> series;
  std::vector<int64_t> times;
  std::vector<double> values;
  rows(io, "counters", series, member("name", &Series::name), member("count", &Series::count));
  io.list("counters.time_ns", times);
  io.list("counters.value", values);
  if (times.size() != values.size()) return unsound;
  size_t at = 0;
  for (const Series& one : series) {
    const size_t size = one.count;
    if (one.count < 0 || size > times.size() - at) return unsound;
    const std::ptrdiff_t from = at, to = at + size;
    part.counters.push_back(
        {one.name, {times.begin() + from, times.begin() + to}, {values.begin() + from, values.begin() + to}});
    at += size;
  }
  std::vector<Flaw> flaws;
  flaw_columns(io, flaws);
  if (!io.good() || !is_sound(trace)) return unsound;
  // Paths of a digest are words: nothing is opened by them, so no digest chooses what a viewer shows of this machine.
  for (SourceRef& file : part.files) file.size_bytes = -1;
  for (const Flaw& flaw : flaws) {
    if (!is_sound(flaw)) return unsound;
    trace.diagnostics.add(
        {flaw.name, flaw.severity, {flaw.message, flaw.message_zh}, flaw.count, {flaw.file, flaw.line, flaw.byte}});
  }
  return trace;
}

}  // namespace stageline::digest
