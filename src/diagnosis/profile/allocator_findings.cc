#include "diagnosis/profile/profile_findings.h"
#include "profile/allocator_replay.h"

namespace stageline {
namespace {

constexpr double kWorthSaying = 0.2;                 // minimum share of the reserved memory that must be free in pieces
constexpr int64_t kWorthBytes = int64_t{256} << 20;  // minimum bytes of it

std::string bytes(int64_t count) { return human_bytes(count); }

Text where(const Trace& trace, const Part& part, int32_t device) {
  Args args;
  args.set("rank", trace.parts.size() > 1 ? std::to_string(part.rank) : "");
  return words("allocator.where", args.set("device", int64_t{device}));
}

// The innermost frame of a stack that is not torch's.
std::string frame_of(std::string_view stack) {
  while (!stack.empty()) {
    const size_t end = stack.find(';');
    const std::string_view frame = stack.substr(0, end);
    if (frame.find("/torch/") == std::string_view::npos && !frame.starts_with("torch/") && !frame.starts_with("??"))
      return std::string(frame);
    if (end == std::string_view::npos) break;
    stack.remove_prefix(end + 1);
  }
  return {};
}

const char* sentence_of(OomReason reason) {
  switch (reason) {
    case OomReason::kFull: return "allocator.oom.full";
    case OomReason::kFragmented: return "allocator.oom.fragmented";
    case OomReason::kSplit: return "allocator.oom.split";
    case OomReason::kElsewhere: return "allocator.oom.elsewhere";
    case OomReason::kUndecided: break;
  }
  return "allocator.oom.unknown";
}

Finding oom_finding(const Trace& trace, const Part& part, const AllocatorOom& oom, int64_t times) {
  Finding f{.id = "memory.oom",
            .value = bytes(oom.wanted_bytes),
            .rank = part.rank,
            .evidence = {"allocator-snapshot", "allocator-ooms"}};
  Args args;
  args.set("where", where(trace, part, oom.device)).set("wanted", bytes(oom.wanted_bytes));
  args.set("allocated", bytes(oom.allocated_bytes)).set("reserved", bytes(oom.reserved_bytes));
  args.set("free", bytes(oom.free_bytes)).set("largest", bytes(oom.largest_free_bytes));
  args.set("left", oom.device_free_bytes < 0 ? std::string() : bytes(oom.device_free_bytes));
  args.set("reason", words(sentence_of(oom.reason), args));
  args.set("frame", frame_of(trace.names.text(part.allocator.events[oom.event].stack)));
  args.set("times", times > 1 ? words("allocator.oom.times", Args().set("times", grouped(times))) : Text());
  say(f, "allocator.oom", args);
  return f;
}

}  // namespace

bool has_allocators(const Trace& trace) {
  return std::ranges::any_of(trace.parts, [](const Part& part) { return !part.allocator.empty(); });
}

Findings allocator_findings(const Run& run) {
  const Trace& trace = run.trace();
  Findings out;
  Headline& h = out.headline;
  int64_t reserved = 0, allocated = 0, peak = -1, devices = 0, unused = 0;
  for (const Part& part : trace.parts) {
    const AllocatorReplay replay = replay_allocator(part.allocator);
    std::set<std::pair<int32_t, OomReason>> reported;
    for (const AllocatorOom& oom : replay.ooms)
      if (reported.insert({oom.device, oom.reason}).second)
        out.list.push_back(
            oom_finding(trace, part, oom, std::ranges::count_if(replay.ooms, [&](const AllocatorOom& other) {
                          return other.device == oom.device && other.reason == oom.reason;
                        })));
    for (const AllocatorSum& sum : replay.sums) {
      ++devices;
      reserved = sum_or_limit(reserved, sum.reserved_bytes);
      allocated = sum_or_limit(allocated, sum.allocated_bytes);
      peak = std::max(peak, sum.peak_bytes);
      unused = sum_or_limit(unused, sum.free_external_bytes - sum.awaiting_bytes - sum.pieces_bytes);
      const int64_t in_pieces = sum.pieces_bytes - sum.largest_piece_bytes;
      if (in_pieces < kWorthBytes || in_pieces < kWorthSaying * sum.reserved_bytes) continue;
      Finding f{.id = "memory.fragmented",
                .value = bytes(in_pieces),
                .rank = part.rank,
                .evidence = {"allocator-snapshot", "allocator-sums"}};
      Args args;
      args.set("where", where(trace, part, sum.device)).set("reserved", bytes(sum.reserved_bytes));
      args.set("free", bytes(sum.pieces_bytes)).set("largest", bytes(sum.largest_piece_bytes));
      say(f, "allocator.fragmented", args);
      out.list.push_back(std::move(f));
    }
  }
  // Weights only keep the order: a snapshot has no times that a fix could save.
  for (size_t i = 0; i < out.list.size(); ++i) out.list[i].weight = 1.0 / (i + 1);
  Args args;
  args.count("snapshots", trace.parts.size()).count("devices", devices);
  args.set("allocated", bytes(allocated)).set("reserved", bytes(reserved)).set("peak", peak >= 0 ? bytes(peak) : "");
  args.set("unused", unused >= kWorthBytes ? bytes(unused) : "");
  h.lead = words("allocator.lead", args);
  h.closing = words("allocator.closing");
  if (out.list.empty()) {
    h.title = words("allocator.title");
    out.list.push_back(nothing_found("allocator.nothing"));
  } else {
    h.title = words("clause", Args().set("clause", out.list.front().title));
  }
  return out;
}

}  // namespace stageline
