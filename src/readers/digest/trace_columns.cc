// One list of columns serves both ways: columns() is called with a writer or with a reader, so exactly what was written
// is read. Names of texts are ids of the digest's own list of names, as in a trace.
#include "base/error_words.h"
#include "model/source_limits.h"
#include "readers/digest/columns.h"
#include "readers/digest/digest_file.h"

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

template <class Io> void run_columns(Io& io, Trace& trace) {
  io.value("trace.format", trace.format);
  io.value("trace.writer", trace.writer);
  io.value("trace.description", trace.description);
  io.value("trace.clock", trace.clock);
  io.value("trace.steps_laid_end_to_end", trace.steps_laid_end_to_end);
  io.value("trace.chunks_are_pieces", trace.chunks_are_pieces);
  io.value("trace.messages_are_calls", trace.messages_are_calls);
  io.value("trace.numbers_messages_per_rank", trace.numbers_messages_per_rank);
  io.value("trace.device_family", trace.device_family);
  io.value("trace.pipeline_stages", trace.pipeline_stages);
  rows(io, "categories", trace.categories, member("text", &CategoryInfo::text), member("kind", &CategoryInfo::kind));
}

template <class Io> void part_columns(Io& io, Part& part) {
  io.value("part.rank", part.rank);
  io.value("part.machine", part.machine);
  io.value("part.device", part.device);
  io.value("part.stage", part.stage);
  io.value("part.dp", part.dp);
  io.value("part.machine_name", part.machine_name);
  io.value("part.source", part.source);
  io.value("part.base_time_ns", part.base_time_ns);
  io.value("part.event_count", part.event_count);
  io.value("part.fractional_time", part.fractional_time);
  io.list("part.reader_numbers", part.reader_numbers);
  io.list("part.streams", part.streams);
  rows(io, "lanes", part.lanes, member("name", &Lane::name), member("begin", &Lane::begin), member("end", &Lane::end),
       member("kind", &Lane::kind), member("pid", &Lane::pid), member("tid", &Lane::tid));
}

template <class Io> void slice_columns(Io& io, Slices& s) {
  io.list("slices.start_ns", s.start_ns);
  io.list("slices.dur_ns", s.dur_ns);
  io.list("slices.name", s.name_id);
  io.list("slices.file_index", s.file_index);
  io.list("slices.parent", s.parent);
  io.list("slices.correlation", s.correlation);
  io.list("slices.partner", s.partner);
  io.list("slices.args_offset_low", s.args_offset_low);
  io.list("slices.args_offset_high", s.args_offset_high);
  io.list("slices.stream", s.stream_id);
  io.list("slices.step", s.step);
  io.list("slices.category", s.category_id);
  io.list("slices.kernel_class", s.kernel_class);
}

// The facts that readers found besides slices.
template <class Io> void fact_columns(Io& io, Part& part) {
  rows(io, "files", part.files, member("path", &SourceRef::path), member("first_offset", &SourceRef::first_offset),
       member("first_index", &SourceRef::first_index), member("size_bytes", &SourceRef::size_bytes),
       member("modified_ns", &SourceRef::modified_ns));
  rows(io, "steps", part.steps, member("number", &ProfilerStep::number), member("start_ns", &ProfilerStep::start_ns),
       member("end_ns", &ProfilerStep::end_ns), member("slice", &ProfilerStep::slice));
  using C = CollectiveFact;
  rows(io, "collectives", part.collectives, member("slice", &C::slice), member("name", &C::name),
       member("dtype", &C::dtype), member("group", &C::group), member("group_description", &C::group_description),
       member("group_ranks", &C::group_ranks), member("in_split", &C::in_split), member("out_split", &C::out_split),
       member("in_elements", &C::in_elements), member("out_elements", &C::out_elements),
       member("group_size", &C::group_size), member("peer", &C::peer), member("src_rank", &C::src_rank),
       member("dst_rank", &C::dst_rank), member("seq", &C::seq), member("comms_id", &C::comms_id),
       member("bytes", &C::bytes));
  using R = RangeFact;
  rows(io, "ranges", part.ranges, member("slice", &R::slice), member("message", &R::message),
       member("domain", &R::domain), member("micro_batch", &R::micro_batch), member("chunk", &R::chunk),
       member("stage", &R::stage), member("step", &R::step));
  using T = TransferFact;
  rows(io, "transfers", part.transfers, member("slice", &T::slice), member("op", &T::op), member("task", &T::task),
       member("transport", &T::transport), member("link", &T::link), member("bytes", &T::bytes),
       member("notify", &T::notify), member("plane", &T::plane), member("src_rank", &T::src_rank),
       member("dst_rank", &T::dst_rank));
  rows(io, "metadata", part.metadata, member("key", &MetaField::key), member("json", &MetaField::json));
}

// Sums that a profiler wrote itself.
template <class Io> void summary_columns(Io& io, Part& part) {
  using S = StepSummary;
  rows(io, "step_summaries", part.step_summaries, member("step", &S::step), member("computing_ns", &S::computing_ns),
       member("communication_ns", &S::communication_ns), member("overlapped_ns", &S::overlapped_ns),
       member("communication_not_overlapped_ns", &S::communication_not_overlapped_ns), member("free_ns", &S::free_ns),
       member("stage_ns", &S::stage_ns), member("bubble_ns", &S::bubble_ns),
       member("not_overlapped_without_receive_ns", &S::not_overlapped_without_receive_ns),
       member("preparing_ns", &S::preparing_ns));
  using L = LinkSummary;
  rows(io, "link_summaries", part.link_summaries, member("step", &L::step), member("op", &L::op),
       member("group", &L::group), member("type", &L::type), member("transport", &L::transport),
       member("src_rank", &L::src_rank), member("dst_rank", &L::dst_rank), member("bytes", &L::bytes),
       member("transit_ns", &L::transit_ns));
}

// All columns but names, times of cells, counters and diagnostics, which are flattened before.
template <class Io> void columns(Io& io, Trace& trace) {
  run_columns(io, trace);
  Part& part = trace.parts[0];
  part_columns(io, part);
  slice_columns(io, part.slices);
  fact_columns(io, part);
  summary_columns(io, part);
  Cells& cells = trace.cells;
  io.list("cells.step", cells.step);
  io.list("cells.kind", cells.kind);
  io.list("cells.chunk", cells.chunk);
  io.list("cells.micro_batch", cells.micro_batch);
  io.list("cells.slice", cells.slice);
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

// ---- whether a digest is a trace ---------------------------------------------------------------
// A digest's checksums prove that its bytes are those that were written, but not that its writer was honest. The
// assumptions of the rest of the program about a trace are checked here, as tests/fuzz/trace_invariants.h states them.

constexpr int64_t kMaxReported = int64_t{1} << 50;  // of bytes and elements: sums of thousands fit
constexpr int64_t kMaxCounted = int64_t{1} << 38;   // of events and flaws: so do sums over all ranks

bool sane_time(int64_t ns) { return ns >= -kMaxTimeNs && ns <= kMaxTimeNs; }
template <class Number> bool between(Number value, int64_t low, int64_t high) {
  return static_cast<int64_t>(value) >= low && static_cast<int64_t>(value) <= high;
}
template <class Ids> bool all_below(const Ids& ids, size_t end) {
  return std::ranges::all_of(ids, [&](auto id) { return id < end; });
}
bool all_below_or_none(const std::vector<uint32_t>& rows, size_t end) {
  return std::ranges::all_of(rows, [&](uint32_t row) { return row == UINT32_MAX || row < end; });
}

// No slice is its own ancestor: whoever climbs from parent to parent comes to an end.
bool climbs_end(const std::vector<uint32_t>& parent) {
  enum : uint8_t { kNew, kOnTheWay, kEnds };
  std::vector<uint8_t> state(parent.size(), kNew);
  for (size_t from = 0; from < parent.size(); ++from) {
    size_t at = from;
    for (; at < parent.size() && state[at] == kNew; at = parent[at]) state[at] = kOnTheWay;
    if (at < parent.size() && state[at] == kOnTheWay) return false;
    for (at = from; at < parent.size() && state[at] == kOnTheWay; at = parent[at]) state[at] = kEnds;
  }
  return true;
}

// Lanes lie one after another, each in order of time, or of its file where rows follow each other (Part::add_lane).
bool lanes_are_sound(const Part& part) {
  const Slices& s = part.slices;
  size_t at = 0;
  for (const Lane& lane : part.lanes) {
    if (lane.begin != at || lane.end < lane.begin || lane.end > s.size() || lane.kind > LaneKind::kDeviceStream)
      return false;
    const auto key = [&](size_t i) { return std::tuple(s.start_ns[i], -s.dur_ns[i], s.file_index[i]); };
    for (size_t i = lane.begin + 1; i < lane.end; ++i)
      if (key(i) < key(i - 1) && (s.start_ns[i] < s.end_ns(i - 1) || s.file_index[i] < s.file_index[i - 1]))
        return false;
    at = lane.end;
  }
  return at == s.size();
}

bool slices_are_sound(const Trace& trace) {
  const Part& part = trace.parts[0];
  const Slices& s = part.slices;
  const size_t n = s.size(), facts = s.category_id.empty() ? 0 : n;
  if (s.dur_ns.size() != n || s.name_id.size() != n || s.file_index.size() != n) return false;
  for (const size_t size :
       {s.parent.size(), s.correlation.size(), s.partner.size(), s.args_offset_low.size(), s.args_offset_high.size(),
        s.stream_id.size(), s.step.size(), s.category_id.size(), s.kernel_class.size()})
    if (size != facts) return false;
  for (size_t i = 0; i < n; ++i)
    if (!sane_time(s.start_ns[i]) || !between(s.dur_ns[i], 0, kMaxTimeNs) || !sane_time(s.end_ns(i))) return false;
  for (size_t i = 0; i < facts; ++i)
    if (s.step[i] > part.steps.size() || s.class_of(i) > KernelClass::kOther) return false;
  return all_below(s.name_id, trace.names.size()) && all_below(s.category_id, trace.categories.size()) &&
         all_below(s.stream_id, part.streams.size()) && all_below_or_none(s.parent, n) &&
         all_below_or_none(s.partner, n) && climbs_end(s.parent) && lanes_are_sound(part);
}

// Sparse facts: in the order of slices that are there, with texts that are there.
template <class Fact, class Sound>
bool facts_are_sound(const Trace& trace, const std::vector<Fact>& facts, Sound sound) {
  const size_t n = trace.parts[0].slices.size();
  for (size_t i = 0; i < facts.size(); ++i) {
    Fact fact = facts[i];
    bool good = fact.slice < n && (i == 0 || facts[i - 1].slice <= fact.slice) && sound(fact);
    for (const StringId* id : fact.texts()) good = good && *id < trace.names.size();
    if (!good) return false;
  }
  return true;
}

bool facts_are_sound(const Trace& trace) {
  const Part& part = trace.parts[0];
  const size_t n = part.slices.size();
  const auto slice_or_none = [&](uint32_t slice) { return slice == kNoSliceIndex || slice < n; };
  const auto rank = [](int64_t number) { return between(number, -1, kMaxRankNumber); };
  return facts_are_sound(trace, part.collectives,
                         [&](const CollectiveFact& f) {
                           return between(f.in_elements, -1, kMaxReported) &&
                                  between(f.out_elements, -1, kMaxReported) && between(f.bytes, -1, kMaxReported) &&
                                  between(f.group_size, -1, kMaxRankNumber) && rank(f.peer) && rank(f.src_rank) &&
                                  rank(f.dst_rank);
                         }) &&
         facts_are_sound(trace, part.ranges,
                         [&](const RangeFact& f) {
                           return between(f.micro_batch, -1, INT32_MAX - 1) && between(f.chunk, -1, INT32_MAX - 1) &&
                                  between(f.stage, -1, INT32_MAX - 1) && between(f.step, -1, kMaxStepNumber);
                         }) &&
         facts_are_sound(trace, part.transfers,
                         [&](const TransferFact& f) {
                           return slice_or_none(f.op) && between(f.bytes, -1, kMaxReported) && rank(f.src_rank) &&
                                  rank(f.dst_rank);
                         }) &&
         std::ranges::all_of(part.steps,
                             [&](const ProfilerStep& step) {
                               return slice_or_none(step.slice) && sane_interval(step.start_ns, step.end_ns);
                             }) &&
         std::ranges::is_sorted(part.steps, {}, &ProfilerStep::start_ns);
}

bool cells_are_sound(const Trace& trace) {
  const Cells& cells = trace.cells;
  const size_t count = cells.size();
  if (cells.kind.size() != count || cells.chunk.size() != count || cells.micro_batch.size() != count) return false;
  for (size_t i = 0; i < count; ++i)
    if (cells.kind[i] > CellKind::kOther || !sane_interval(cells.start_ns[i], cells.end_ns[i]) ||
        !between(cells.step[i], kUnknown, kMaxStepNumber) || !between(cells.chunk[i], kUnknown, kMaxChunkNumber) ||
        !between(cells.micro_batch[i], kUnknown, kMaxMicroBatchNumber))
      return false;
  return all_below_or_none(cells.slice, trace.parts[0].slices.size());
}

// Checks the sums of the source's own profiler: durations, and −1 where there is none.
bool sums_are_sound(const Part& part) {
  const auto duration = [](int64_t ns) { return between(ns, -1, kMaxTimeNs); };
  for (const StepSummary& s : part.step_summaries)
    for (const int64_t ns : {s.computing_ns, s.communication_ns, s.overlapped_ns, s.communication_not_overlapped_ns,
                             s.free_ns, s.stage_ns, s.bubble_ns, s.not_overlapped_without_receive_ns, s.preparing_ns})
      if (!duration(ns)) return false;
  return std::ranges::all_of(part.link_summaries, [&](const LinkSummary& link) {
    return duration(link.transit_ns) && std::abs(link.bytes) <= kMaxReported &&
           between(link.src_rank, -1, kMaxRankNumber) && between(link.dst_rank, -1, kMaxRankNumber);
  });
}

bool part_is_sound(const Part& part) {
  for (const int32_t number : {part.machine, part.device, part.stage, part.dp})
    if (!between(number, kUnknown, kMaxRankNumber)) return false;
  if (part.stage != kUnknown && part.dp == kUnknown) return false;  // who knows the one knows the other
  for (const CounterSeries& counter : part.counters) {
    if (!std::ranges::all_of(counter.time_ns, sane_time)) return false;
    if (!std::ranges::all_of(counter.value, [](double x) { return std::isfinite(x); })) return false;
  }
  int64_t before = 0;
  for (const SourceRef& file : part.files) {
    if (file.first_offset < before) return false;
    before = file.first_offset;
  }
  return between(part.rank, 0, kMaxRankNumber) && between(part.event_count, 0, kMaxCounted) &&
         sane_time(part.base_time_ns) && std::ranges::all_of(part.reader_numbers, sane_time);
}

bool is_sound(const Trace& trace) {
  return !trace.format.empty() && trace.clock <= ClockState::kAligned && trace.device_family <= DeviceFamily::kNpu &&
         trace.categories.size() <= kMaxCategories + 1 &&
         std::ranges::all_of(trace.categories,
                             [](const CategoryInfo& category) { return category.kind <= Category::kSpan; }) &&
         part_is_sound(trace.parts[0]) && slices_are_sound(trace) && facts_are_sound(trace) && cells_are_sound(trace) &&
         sums_are_sound(trace.parts[0]);
}

bool is_sound(const Flaw& flaw) {
  return !flaw.name.empty() &&
         flaw.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._") == std::string::npos &&
         !flaw.message.empty() && flaw.severity <= Severity::kLoss && between(flaw.count, 1, kMaxCounted) &&
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
