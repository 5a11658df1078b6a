// Writes the slices of a profiler trace as threads of Perfetto's trace. Slices of one thread must nest, so a slice that
// overlaps another without nesting goes on to a further thread of its lane. Arrows lead from launches to their work.
#include "exporters/perfetto_packets.h"
#include "exporters/track_layout.h"

namespace stageline {
using namespace perfetto;
namespace {

bool has_number(Category c) { return is_launch_call(c) || is_device_work(c) || c == Category::kDeviceSync; }

class SliceWriter : PerfettoPackets {
 public:
  SliceWriter(const Trace& trace, ExportSink& sink, const PerfettoNumbers& taken)
      : PerfettoPackets(sink), trace_(trace), taken_(taken), first_ns_(std::min(taken.first_ns, first_slice_ns(trace))),
        next_tid_(std::max(taken.tid, taken.pid) + trace.parts.size() + 1), slices_before_(taken.flow) {
    sequence_ = taken.sequence;
  }

  void write() {
    if (!taken_.any) write_root(trace_);
    for (size_t p = 0; p < trace_.parts.size(); ++p) {
      const Part& part = trace_.parts[p];
      if (part.slices.size() == 0) continue;
      track_descriptor(kProcessUuid + pid(p), taken_.sibling + p, [&] {
        out_.number(descriptor::kChildOrdering, kExplicit);
        const size_t inner = out_.begin(descriptor::kProcess);
        out_.number(process_field::kPid, pid(p));
        out_.text(process_field::kName, "rank " + std::to_string(part.rank) +
                                            (part.machine_name.empty() ? "" : " · " + valid_utf8(part.machine_name)));
        out_.end(inner);
      });
      find_other_launches(part);
      for (const Lane& lane : part.lanes) write_lane(p, lane);
      slices_before_ += part.slices.size();
    }
    flush();
  }

 private:
  uint64_t pid(size_t p) const { return taken_.pid + p + 1; }

  // A trace that begins before its zero is shifted to begin at zero.
  uint64_t shown_time(int64_t ns) const { return ns - (first_ns_ < 0 ? static_cast<uint64_t>(first_ns_) : 0); }

  // The slices that nest go to one thread, and those that are left over to the next thread.
  void write_lane(size_t p, const Lane& lane) {
    if (lane.begin >= lane.end) return;
    std::vector<uint32_t> left = write_thread(p, lane, 0, lane.end - lane.begin,
                                              [&](size_t k) { return static_cast<uint32_t>(lane.begin + k); });
    for (int row = 1; row < kMaxRowsPerLane && !left.empty(); ++row)
      left = write_thread(p, lane, row, left.size(), [own = left](size_t k) { return own[k]; });
    if (!left.empty())
      describe_thread(p, next_tid_ - 1,
                      valid_utf8(lane.name) + " (" + std::to_string(left.size()) + " more overlap these: not shown)");
  }

  void describe_thread(size_t p, uint64_t tid, const std::string& name) {
    track_descriptor(kThreadUuid + tid, tid, [&] {
      out_.number(descriptor::kParentUuid, kProcessUuid + pid(p));
      out_.number(descriptor::kSiblingMerge, kNone);
      const size_t inner = out_.begin(descriptor::kThread);
      out_.number(process_field::kPid, pid(p));
      out_.number(thread_field::kTid, tid);
      out_.text(thread_field::kName, name);
      out_.end(inner);
    });
  }

  template <class SliceAt>
  std::vector<uint32_t> write_thread(size_t p, const Lane& lane, int row, size_t count, SliceAt slice_at) {
    const Part& part = trace_.parts[p];
    const Slices& s = part.slices;
    const uint64_t tid = next_tid_++;
    describe_thread(p, tid, valid_utf8(lane.name) + (row > 0 ? " (" + std::to_string(row + 1) + ")" : ""));
    names_.clear();
    known_categories_.assign(trace_.categories.size(), false);
    open_sequence(kThreadUuid + tid, shown_time(s.start_ns[slice_at(0)]), first_ns_ > kDatedNs);
    std::vector<uint32_t> left;
    std::vector<int64_t> open;  // ends of the open slices
    for (size_t k = 0; k < count; ++k) {
      const uint32_t i = slice_at(k);
      const int64_t start = s.start_ns[i], end = sum_or_limit(start, std::max<int64_t>(0, s.dur_ns[i]));
      for (; !open.empty() && open.back() <= start; open.pop_back()) end_event(shown_time(open.back()));
      if (!open.empty() && end > open.back()) {
        left.push_back(i);
        continue;
      }
      begin_slice(part, lane, i);
      open.push_back(end);
    }
    for (; !open.empty(); open.pop_back()) end_event(shown_time(open.back()));
    return left;
  }

  void begin_slice(const Part& part, const Lane& lane, uint32_t i) {
    const Slices& s = part.slices;
    const size_t packet = begin_event_packet(shown_time(s.start_ns[i]));
    const uint64_t name = intern_new(s, i);
    const size_t event = out_.begin(packet::kTrackEvent);
    out_.number(track_event::kType, kBegin);
    if (name != 0) out_.number(track_event::kNameIid, name);
    else out_.text(track_event::kName, valid_utf8(trace_.names.text(s.name_id[i])));
    if (!s.category_id.empty()) out_.number(track_event::kCategoryIid, uint64_t{s.category_id[i]} + 1);
    if (!s.partner.empty() && s.partner[i] != kNoSliceIndex) write_arrows(s, lane, i);
    write_facts(part, i);
    out_.end(event);
    out_.end(packet);
  }

  // Writes the slice's name and category where the sequence does not have them yet. Returns the number of the name; 0
  // when the sequence keeps no more names.
  uint64_t intern_new(const Slices& s, uint32_t i) {
    const auto [name, is_new] = names_.size() < kMaxInternedNames || names_.count(s.name_id[i]) > 0
                                    ? names_.try_emplace(s.name_id[i], names_.size() + 1)
                                    : std::pair(names_.end(), false);
    const bool new_category = !s.category_id.empty() && !known_categories_[s.category_id[i]];
    if (is_new || new_category) {
      const size_t interned = out_.begin(packet::kInternedData);
      if (new_category)
        intern(interned::kCategories, uint64_t{s.category_id[i]} + 1,
               valid_utf8(trace_.categories[s.category_id[i]].text));
      if (is_new) intern(interned::kEventNames, name->second, valid_utf8(trace_.names.text(s.name_id[i])));
      out_.end(interned);
    }
    if (new_category) known_categories_[s.category_id[i]] = true;
    return name == names_.end() ? 0 : name->second;
  }

  // An arrow's id is its device end.
  void write_arrows(const Slices& s, const Lane& lane, uint32_t i) {
    const uint32_t other = s.partner[i];
    const bool on_device = lane.kind == LaneKind::kDeviceStream;
    if (s.partner[other] == i || (on_device && is_other_launch(s, i)))
      out_.fixed64(track_event::kFlowId, slices_before_ + (on_device ? i : other) + 1);
    for (auto [work, end] = other_launches_.equal_range(i); work != end; ++work)
      out_.fixed64(track_event::kFlowId, slices_before_ + work->second + 1);
  }

  // All work of a graph has its launch's number, and a launch whose work was lost has one too.
  void write_facts(const Part& part, uint32_t i) {
    const Slices& s = part.slices;
    if (!s.category_id.empty() && !s.correlation.empty() && s.correlation[i] != kNoCorrelation &&
        has_number(trace_.categories[s.category_id[i]].kind))
      number("correlation", s.correlation[i]);
    if (!s.stream_id.empty() && s.stream_id[i] != 0) number("stream", part.streams[s.stream_id[i]]);
    if (const CollectiveFact* fact = part.collectives.empty() ? nullptr : fact_of(part.collectives, i)) annotate(*fact);
    if (const CopyFact* fact = part.copies.empty() ? nullptr : fact_of(part.copies, i)) number("bytes", fact->bytes);
    if (const InputFact* fact = part.inputs.empty() ? nullptr : fact_of(part.inputs, i)) annotate(*fact);
  }

  // A launch call has an arrow only to its last device work: the others have its number. Ranges have none.
  bool is_other_launch(const Slices& s, uint32_t i) const {
    const uint32_t launch = s.partner[i];
    return launch != kNoSliceIndex && s.partner[launch] != i &&
           is_device_work(trace_.categories[s.category_id[i]].kind) &&
           !is_launch_call(trace_.categories[s.category_id[launch]].kind);
  }
  void find_other_launches(const Part& part) {
    other_launches_.clear();
    for (uint32_t i = 0; i < part.slices.partner.size(); ++i)
      if (is_other_launch(part.slices, i)) other_launches_.emplace(part.slices.partner[i], i);
  }

  // Arguments have Kineto's names, so that whoever reads them in Kineto's traces can read them here.
  void number(std::string_view name, int64_t value) {
    if (value < 0) return;
    const size_t start = out_.begin(track_event::kAnnotation);
    out_.text(annotation::kName, name);
    out_.number(annotation::kUint, value);
    out_.end(start);
  }
  void text(std::string_view name, StringId value) {
    if (value == 0) return;
    const size_t start = out_.begin(track_event::kAnnotation);
    out_.text(annotation::kName, name);
    out_.text(annotation::kText, valid_utf8(trace_.names.text(value)));
    out_.end(start);
  }
  void annotate(const CollectiveFact& fact) {
    text("Collective name", fact.name);
    text("dtype", fact.dtype);
    text("Process Group Name", fact.group);
    text("Process Group Description", fact.group_description);
    text("Process Group Ranks", fact.group_ranks);
    text("Comms Id", fact.comms_id);
    number("In msg nelems", fact.in_elements);
    number("Out msg nelems", fact.out_elements);
    if (fact.in_elements <= 0 && fact.out_elements <= 0) number("bytes", fact.bytes);
    number("Group size", fact.group_size);
    number("Rank", fact.peer);
    number("Src Rank", fact.src_rank);
    number("Dst Rank", fact.dst_rank);
    number("Seq", fact.seq);
  }

  void annotate(const InputFact& fact) {
    text("Input Dims", fact.dims);
    text("Input type", fact.types);
    text("Concrete Inputs", fact.concrete);
  }

  const Trace& trace_;
  const PerfettoNumbers& taken_;
  int64_t first_ns_;
  uint64_t next_tid_;       // never a pid: Perfetto would take the thread for the main thread of that process
  uint64_t slices_before_;  // number of slices of the ranks before
  std::unordered_map<StringId, uint64_t> names_;  // → iid, in the current sequence
  std::vector<bool> known_categories_;
  std::multimap<uint32_t, uint32_t>
      other_launches_;  // launch → work that only an arrow ties to it, of the current part
};

}  // namespace

void write_profiler_slices(const Trace& trace, ExportSink& sink, const PerfettoNumbers& taken) {
  SliceWriter(trace, sink, taken).write();
}

bool has_profiler_slices(const Trace& trace) {
  return std::ranges::any_of(trace.parts,
                             [](const Part& part) { return part.event_count > 0 && part.slices.has_facts(); });
}

int64_t first_slice_ns(const Trace& trace) {
  int64_t first = INT64_MAX;
  for (const Part& part : trace.parts)
    for (const Lane& lane : part.lanes)
      if (lane.begin < lane.end) first = std::min(first, part.slices.start_ns[lane.begin]);
  return first;
}

}  // namespace stageline
