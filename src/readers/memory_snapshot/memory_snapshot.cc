// Reads snapshots of PyTorch's allocator: docs/formats/memory-snapshot.md.
#include "base/input.h"
#include "base/json_tree.h"
#include "base/json_writer.h"
#include "base/pickle.h"
#include "model/source_limits.h"
#include "readers/common/frames.h"
#include "readers/common/read_files.h"
#include "readers/common/rows/identity.h"
#include "readers/memory_snapshot/problems.h"

namespace stageline::memory_snapshot {
namespace {

// Reads one snapshot of PyTorch's allocator (torch.cuda.memory._dump_snapshot), as a pickle or as JSON.
struct SnapshotFile {
  Part part;  // with ids of `names`
  StringPool names;
  bool is_dated = false;  // events say when they happened; otherwise they are numbered, a microsecond apart
  Diagnostics notes;
};

constexpr size_t kMaxFileBytes = size_t{4} << 30;
constexpr int64_t kMaxBytes = int64_t{1} << 60;  // limit for one block; more is damage
constexpr int64_t kMaxDevices = 4096;

AllocatorAction action_of(std::string_view text) {
#define ACTION(name, action) \
  if (text == name) return AllocatorAction::action;
#include "readers/memory_snapshot/actions.def"
  return AllocatorAction::kOther;
}

uint64_t address_of(Value value) { return value.unsigned_integer().value_or(0); }

int64_t bytes_of_value(Value value) {
  const auto bytes = value.integer();
  return bytes && *bytes >= 0 && *bytes <= kMaxBytes ? *bytes : -1;
}

class SnapshotReader {
 public:
  SnapshotReader(const std::string& path, SnapshotFile& out) : path_(path), out_(out), all_(out.part.allocator) {}

  Status read(Value root) {
    const Value segments = root.is_list() ? root : root["segments"], traces = root["device_traces"];
    if (!segments.is_list() && !traces.is_list())
      return make_error(ErrorCode::kBadInput, "neither segments nor device_traces stand in this snapshot", "", {path_});
    for (size_t i = 0; i < segments.size(); ++i) read_segment(segments.item(i));
    for (size_t d = 0; d < traces.size(); ++d)
      for (size_t i = 0; i < traces.item(d).size(); ++i) read_event(traces.item(d).item(i), d);
    read_settings(root["allocator_settings"]);
    settle_times();
    if (all_.empty()) return input_error("memory_snapshot.empty", {path_});
    if (all_.events.empty()) out_.notes.add(problem::memory_snapshot_no_history, {path_});
    add_annotations(root["external_annotations"]);
    replay();
    return {};
  }

 private:
  StringId text(std::string_view value) { return out_.names.intern(valid_utf8(value)); }

  StringId stack_of(Value frames) {
    if (!frames.is_list() || frames.size() == 0) return 0;
    const auto [at, is_new] = stacks_.try_emplace(frames.node(), 0);
    if (is_new) at->second = out_.names.intern(stack_text(frames));
    return at->second;
  }

  void lose(const Problem& problem) { out_.notes.add(problem, {path_}); }

  void read_segment(Value segment) {
    AllocatorSegment out{.bytes = bytes_of_value(segment["total_size"])};
    if (!segment.is_dict() || segment.is_cut() || out.bytes < 0) return lose(problem::memory_snapshot_bad_entry);
    out.address = address_of(segment["address"]);
    out.allocated = bytes_of_value(segment["allocated_size"]);
    out.active = bytes_of_value(segment["active_size"]);
    out.stream = segment["stream"].integer().value_or(0);
    out.device = static_cast<int32_t>(std::clamp<int64_t>(segment["device"].integer().value_or(0), 0, kMaxDevices));
    out.is_large = segment["segment_type"].text() == "large";
    out.is_expandable = segment["is_expandable"].boolean().value_or(false);
    if (const Value pool = segment["segment_pool_id"]; pool.is_list() && pool.size() == 2)
      out.pool = text("(" + std::to_string(pool.item(0).integer().value_or(0)) + ", " +
                      std::to_string(pool.item(1).integer().value_or(0)) + ")");
    out.stack = stack_of(segment["frames"]);
    out.first_block = static_cast<uint32_t>(all_.blocks.size());
    uint64_t address = out.address;
    const Value blocks = segment["blocks"];
    for (size_t i = 0; i < blocks.size(); ++i) read_block(blocks.item(i), address);
    out.block_count = static_cast<uint32_t>(all_.blocks.size()) - out.first_block;
    all_.segments.push_back(out);
  }

  // The blocks of a segment lie one after another; files of older versions do not say where.
  void read_block(Value block, uint64_t& address) {
    AllocatorBlock out{.bytes = bytes_of_value(block["size"])};
    if (!block.is_dict() || block.is_cut() || out.bytes < 0) return lose(problem::memory_snapshot_bad_entry_block);
    address = block["address"].unsigned_integer().value_or(address);
    out.address = address;
    address += out.bytes;
    const std::string_view state = block["state"].text();
    out.state = state == "active_allocated" ? BlockState::kActive
                : state == "inactive"       ? BlockState::kInactive
                                            : BlockState::kAwaitingFree;
    out.requested = bytes_of_value(block["requested_size"]);
    out.stack = stack_of(block["frames"]);
    // Up to torch 2.0, the last allocation of a block is in its history, with the requested size.
    if (const Value history = block["history"]; history.is_list() && history.size() > 0) {
      const Value last = history.item(0);
      if (out.requested < 0) out.requested = bytes_of_value(last["real_size"]);
      if (out.stack == 0) out.stack = stack_of(last["frames"]);
    }
    if (out.requested < 0 || out.requested > out.bytes) out.requested = out.bytes;
    all_.blocks.push_back(out);
  }

  void read_event(Value event, int64_t device) {
    if (!event.is_dict() || event.is_cut()) return lose(problem::memory_snapshot_bad_entry_event);
    AllocatorEvent out{.bytes = bytes_of_value(event["size"]), .action = action_of(event["action"].text())};
    if (out.bytes < 0 && out.action != AllocatorAction::kSnapshot && out.action != AllocatorAction::kOther)
      return lose(problem::memory_snapshot_bad_entry_event);
    out.bytes = std::max<int64_t>(out.bytes, 0);
    out.address = address_of(event["addr"]);
    out.stream = event["stream"].integer().value_or(0);
    out.device = static_cast<int32_t>(std::clamp<int64_t>(device, 0, kMaxDevices));
    const auto us = event["time_us"].integer();
    out.time_ns = us && *us > 0 && *us <= kMaxTimeNs / 1000 ? *us * 1000 : -1;
    if (out.action == AllocatorAction::kOutOfMemory) out.device_free = bytes_of_value(event["device_free"]);
    out.stack = stack_of(event["frames"]);
    if (const std::string_view category = event["category"].text(); !category.empty()) out.category = text(category);
    all_.events.push_back(out);
  }

  void read_settings(Value settings) {
    JsonWriter json;
    json.begin_object();
    for (size_t i = 0; i < std::min<size_t>(settings.size(), 64); ++i) {
      const Value value = settings.item(i);
      const std::string key = valid_utf8(settings.key(i).text());
      if (key.empty()) continue;
      if (const auto flag = value.boolean()) json.field(key, *flag);
      else if (const auto whole = value.integer()) json.field(key, *whole);
      else if (const std::string_view words = value.text(); !words.empty()) json.field(key, valid_utf8(words));
    }
    json.end_object();
    if (settings.size() > 0) out_.part.metadata.push_back({"allocator_settings", json.take()});
  }

  // If events have no times, they are put a microsecond apart in their order.
  void settle_times() {
    size_t dated = sum_over<size_t>(all_.events, [&](const AllocatorEvent& event) { return event.time_ns > 0; });
    out_.is_dated = dated > 0 && dated == all_.events.size();
    if (out_.is_dated || all_.events.empty()) return;
    int64_t next = 0;
    int32_t device = -1;
    for (AllocatorEvent& event : all_.events) {
      if (event.device != device) next = 0;
      device = event.device;
      event.time_ns = next;
      next += 1000;
    }
    out_.notes.add(problem::memory_snapshot_no_times, {path_});
  }

  // Makes slices of pairs of START and END with the same name and device, from torch.cuda.memory's annotations.
  void add_annotations(Value annotations) {
    Slices lane;
    std::map<std::pair<std::string, int64_t>, int64_t> open;
    for (size_t i = 0; i < annotations.size(); ++i) {
      const Value one = annotations.item(i);
      const auto us = one["time_us"].integer();
      if (!us || *us <= 0 || *us > kMaxTimeNs / 1000) continue;
      const std::pair key(valid_utf8(one["name"].text()), one["device"].integer().value_or(0));
      const std::string_view stage = one["stage"].text();
      if (stage == "START") {
        open[key] = *us;
      } else if (const auto at = open.find(key); stage == "END" && at != open.end()) {
        lane.start_ns.push_back(at->second * 1000);
        lane.dur_ns.push_back(std::max<int64_t>(0, *us - at->second) * 1000);
        lane.name_id.push_back(out_.names.intern(key.first));
        lane.file_index.push_back(static_cast<uint32_t>(lane.file_index.size()));
        open.erase(at);
      }
    }
    out_.part.add_lane("allocator", lane);
  }

  // Computes the memory held after every event, for memory records and counters. The memory before the first event
  // follows from that at the end.
  void replay() {
    std::map<int32_t, int64_t> held, reserved;
    for (const AllocatorSegment& segment : all_.segments) {
      reserved[segment.device] += segment.bytes;
      for (uint32_t b = 0; b < segment.block_count; ++b) {
        const AllocatorBlock& block = all_.blocks[segment.first_block + b];
        if (block.state != BlockState::kInactive) held[segment.device] += block.requested;
      }
    }
    const auto change = [](const AllocatorEvent& event, int64_t& of_held, int64_t& of_reserved) {
      switch (event.action) {
        case AllocatorAction::kAlloc: of_held = event.bytes; break;
        case AllocatorAction::kFreeCompleted: of_held = -event.bytes; break;
        case AllocatorAction::kSegmentAlloc:
        case AllocatorAction::kSegmentMap: of_reserved = event.bytes; break;
        case AllocatorAction::kSegmentFree:
        case AllocatorAction::kSegmentUnmap: of_reserved = -event.bytes; break;
        default: break;
      }
    };
    for (const AllocatorEvent& event : all_.events) {
      int64_t of_held = 0, of_reserved = 0;
      change(event, of_held, of_reserved);
      held[event.device] -= of_held;
      reserved[event.device] -= of_reserved;
    }
    std::map<int32_t, size_t> series;  // device → index of the series held; the next one is that of what is reserved
    for (const AllocatorEvent& event : all_.events) {
      int64_t of_held = 0, of_reserved = 0;
      change(event, of_held, of_reserved);
      int64_t &now = held[event.device], &cached = reserved[event.device];
      now += of_held;
      cached += of_reserved;
      if (event.action == AllocatorAction::kOutOfMemory)
        out_.part.marks.push_back(
            {event.time_ns, text("out of memory"), 0, static_cast<uint32_t>(out_.part.marks.size())});
      if (of_held == 0 && of_reserved == 0) continue;
      const auto [at, is_new] = series.try_emplace(event.device, out_.part.counters.size());
      if (is_new)
        for (const char* what : {" allocated (bytes)", " reserved (bytes)"})
          out_.part.counters.push_back({"GPU " + std::to_string(event.device) + what, {}, {}});
      sample(at->second, event.time_ns, now);
      sample(at->second + 1, event.time_ns, cached);
      if (of_held != 0) add_record(event, of_held, now, cached);
    }
  }

  void sample(size_t series, int64_t time_ns, int64_t value) {
    out_.part.counters[series].time_ns.push_back(time_ns);
    out_.part.counters[series].value.push_back(value);
  }

  void add_record(const AllocatorEvent& event, int64_t bytes, int64_t held, int64_t reserved) {
    MemoryRecord record{.time_ns = event.time_ns,
                        .address = event.address,
                        .bytes = bytes,
                        .total_allocated = std::max<int64_t>(held, 0),
                        .total_reserved = std::max<int64_t>(reserved, 0),
                        .device_type = 1,
                        .device_id = event.device,
                        .file_index = static_cast<uint32_t>(out_.part.memory.size())};
    out_.part.memory.push_back(record);
  }

  const std::string& path_;
  SnapshotFile& out_;
  AllocatorSnapshot& all_;
  std::unordered_map<uint32_t, StringId> stacks_;  // for each node of frames, since events share them
};

// Returns true when these first bytes are a snapshot's.
bool looks_like_snapshot(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (begins_pickle(head)) {
    if (mentions(head, "pg_config") || mentions(head, "torch._utils")) return false;
    return (mentions(head, "segments") && (mentions(head, "device_traces") || mentions(head, "total_size"))) ||
           (mentions(head, "device_traces") && mentions(head, "action")) ||
           (mentions(head, "total_size") && mentions(head, "segment_type") && mentions(head, "blocks"));
  }
  return at != std::string_view::npos && head[at] == '{' && !mentions(head, "\"traceEvents\"") &&
         ((mentions(head, "\"segments\"") && mentions(head, "\"total_size\"")) ||
          (mentions(head, "\"device_traces\"") && mentions(head, "\"action\"")));
}

// Errors: those of Input and parse_pickle; kBadInput when the file holds nothing of an allocator.
Result<SnapshotFile> read_snapshot(const std::string& path, Progress* progress) {
  TRY(bytes, read_all(path, kMaxFileBytes, progress));
  SnapshotFile out;
  out.part.source = path;
  ValueTree tree;
  int64_t broken_at = -1;
  std::string why = "the JSON is damaged";
  if (begins_pickle(*bytes)) {
    TRY(pickle, parse_pickle(std::move(*bytes), path));
    broken_at = pickle->broken_at;
    why = pickle->why_broken;
    tree = std::move(pickle->tree);
  } else {
    TRY(json, parse_json_tree(*bytes, path));
    broken_at = json->broken_at;
    tree = std::move(json->tree);
  }
  if (broken_at >= 0) out.notes.add(problem::memory_snapshot_damaged, Args().set("why", why), {path, 0, broken_at});
  TRY_OK(SnapshotReader(path, out).read(tree.root()));
  return out;
}

std::vector<size_t> snapshots(const Source& source) {
  std::vector<size_t> out;
  for (size_t i = 0; i < source.files.size(); ++i)
    if (looks_like_snapshot(source.head(i))) out.push_back(i);
  return out;
}

// Makes a file's part one of the trace, with the trace's ids of names.
void add_part(SnapshotFile& file, int32_t rank, Trace& trace) {
  std::vector<StringId> id;
  for (StringId k = 0; k < file.names.size(); ++k) id.push_back(trace.names.intern(file.names.text(k)));
  Part& part = file.part;
  part.rank = rank;
  for (StringId& name : part.slices.name_id) name = id[name];
  for (Mark& mark : part.marks) mark.name = id[mark.name];
  for (AllocatorEvent& event : part.allocator.events)
    event.stack = id[event.stack], event.category = id[event.category];
  for (AllocatorSegment& segment : part.allocator.segments)
    segment.pool = id[segment.pool], segment.stack = id[segment.stack];
  for (AllocatorBlock& block : part.allocator.blocks) block.stack = id[block.stack];
  part.event_count = std::max<size_t>(1, part.allocator.events.size());
  trace.parts.push_back(std::move(part));
}

}  // namespace

Match sniff(const Source& source) { return snapshots(source).empty() ? Match::kNo : Match::kCertain; }

Result<Trace> read(const Source& source, const ReadOptions& options) {
  Trace trace;
  trace.format = "memory-snapshot";
  trace.writer = "PyTorch's allocator";
  trace.categories.push_back({"", Category::kOther});
  std::vector<size_t> chosen = snapshots(source);
  // With --reader memory-snapshot it is tried in any case.
  if (chosen.empty() && source.files.size() == 1) chosen.push_back(0);
  for (size_t i = 0; i < source.files.size(); ++i)
    if (source.files[i].given && std::ranges::find(chosen, i) == chosen.end())
      trace.diagnostics.add(problem::memory_snapshot_unusable_file_foreign, {source.files[i].path});
  expect_bytes(source, chosen, options.progress);
  std::vector<SnapshotFile> files;
  std::vector<rows::FileFacts> facts;
  const auto path_of = [&](size_t k) -> const std::string& { return source.files[chosen[k]].path; };
  const auto first_error = read_files(
      chosen.size(), [&](size_t k) { return read_snapshot(path_of(k), options.progress); },
      [&](size_t k, SnapshotFile file) {
        files.push_back(std::move(file));
        facts.push_back({path_of(k), rows::identify({}, path_of(k)), 0, 0});
        trace.diagnostics.merge(files.back().notes);
      },
      [&](size_t k, const Error& error) {
        trace.diagnostics.add(problem::memory_snapshot_unusable_file, Args().set("why", error_text(error)),
                              {path_of(k)});
      });
  if (files.empty()) return nothing_read(first_error, source, "memory_snapshot.nothing");
  const std::vector<int32_t> ranks = rows::assign_ranks(facts, trace.diagnostics, "memory_snapshot");
  std::vector<size_t> order(files.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  sort_stably(order, {}, [&](size_t a) { return ranks[a]; });
  std::set<int32_t> taken;
  bool dated = true;
  for (const size_t i : order) {
    if (taken.insert(ranks[i]).second) {
      dated &= files[i].is_dated;
      add_part(files[i], ranks[i], trace);
    } else {
      trace.diagnostics.add(problem::memory_snapshot_repeated_rank, {files[i].part.source});
    }
  }
  trace.clock = trace.parts.size() == 1 ? ClockState::kShared : dated ? ClockState::kUnaligned : ClockState::kPerRank;
  trace.description = counted(trace.parts.size(), "snapshot", "snapshots") + " of an allocator";
  return trace;
}

}  // namespace stageline::memory_snapshot
