#include "readers/op_json/timeline_file.h"

#include "base/error_words.h"
#include "base/json_events.h"
#include "readers/common/op_names.h"
#include "readers/op_json/problems.h"

namespace stageline::op_json {
namespace {

constexpr int kMicroseconds = 3;  // Chrome's ts and dur are in µs; as a power of ten of nanoseconds
constexpr uint32_t kPlaceArgs = kArgStage | kArgChunk | kArgMicroBatch | kArgSequence | kArgRank | kArgDp;

// The content of a name; looked up once for each distinct name.
struct NameFacts {
  std::optional<CellKind> kind;
  int32_t micro_batch = kUnknown, chunk = kUnknown;
};

NameFacts facts_of(std::string_view name) {
  if (const auto label = parse_cell_label(name)) return {label->kind, label->micro_batch, label->chunk};
  return {kind_of_op(name), kUnknown, kUnknown};
}

struct OpenEvent {
  StringId name_id;
  std::optional<int64_t> start_ns;
  EventArgs args;
  std::optional<CellKind> kind;
  int64_t offset;
};

class TimelineReader {
 public:
  TimelineReader(const std::string& path, uint32_t file) : path_(path), file_(file) {}

  Result<FileOps> read(Progress* progress) {
    TRY(input, Input::open(path_, progress));
    JsonEvents events(*input, JsonLayout::kTrace);
    for (;;) {
      Result<std::vector<JsonSpan>> spans = events.next();
      if (!spans) {
        lose(problem::op_json_read_stopped, spans.error().where.byte, Args().set("why", error_text(spans.error())));
        break;
      }
      if (spans->empty()) break;
      for (const JsonSpan& span : *spans) take(span);
    }
    if (!events.found_array())
      return make_error(ErrorCode::kBadInput, "no array of trace events in this file",
                        "a Chrome trace is [{…},…] or {\"traceEvents\":[{…},…]}", {path_, 0, events.bytes()});
    out_.diagnostics.add(problem::op_json_damaged_text, {path_, 0, events.first_damage()}, events.damaged());
    if (!events.finished()) lose(problem::op_json_truncated, events.bytes());
    for (const std::vector<OpenEvent>& stack : open_)
      for (const OpenEvent& open : stack) lose_begin(open);
    return std::move(out_);
  }

 private:
  void lose(const Problem& problem, int64_t offset, const Args& args = {}) {
    out_.diagnostics.add(problem, args, {path_, 0, offset});
  }

  void take(const JsonSpan& span) {
    Event event;
    const EventFault fault = parser_.parse(span.text, span.text.size() + kJsonPaddingBytes, event);
    if (fault == EventFault::kNone) return take(event, span.offset);
    if (fault == EventFault::kMalformed) {
      // A lost quote may make neighbours look like one object, so each piece is tried by itself.
      std::vector<JsonSpan> pieces;
      split_json_objects(span.text, span.offset, pieces);
      if (pieces.size() > 1) {
        for (const JsonSpan& piece : pieces) take_piece(piece);
        return;
      }
    }
    refuse(fault, span.offset);
  }
  void take_piece(const JsonSpan& piece) {
    Event event;
    const EventFault fault = parser_.parse(piece.text, piece.text.size() + kJsonPaddingBytes, event);
    if (fault == EventFault::kNone) return take(event, piece.offset);
    refuse(fault, piece.offset);
  }
  void refuse(EventFault fault, int64_t offset) {
    switch (fault) {
      case EventFault::kBadField: return lose(problem::op_json_bad_field, offset);
      case EventFault::kDuplicateKey: return lose(problem::op_json_duplicate_key, offset);
      default: return lose(problem::op_json_bad_event, offset);
    }
  }

  uint32_t thread_of(const Event& event) {
    key_.assign(event.pid);
    key_ += '\n';
    key_ += event.tid;
    if (last_thread_ < out_.threads.size() && key_ == last_key_) return last_thread_;
    const auto [it, added] = thread_ids_.try_emplace(key_, static_cast<uint32_t>(out_.threads.size()));
    if (added) {
      Thread thread;
      thread.pid = event.pid;
      thread.tid = event.tid;
      thread.pid_number = parse_int(event.pid).value_or(kUnknown);
      thread.tid_number = parse_int(event.tid).value_or(kUnknown);
      out_.threads.push_back(std::move(thread));
      open_.emplace_back();
    }
    last_key_ = key_;
    return last_thread_ = it->second;
  }

  const NameFacts& name_facts(StringId id) {
    while (names_.size() <= id) names_.push_back(facts_of(out_.names.text(static_cast<StringId>(names_.size()))));
    return names_[id];
  }

  void take(const Event& event, int64_t offset) {
    const uint32_t index = file_index_++;
    switch (event.phase) {
      case 'X': {
        const auto start = parse_decimal_ns(event.ts, kMicroseconds);
        const auto dur = parse_decimal_ns(event.dur, kMicroseconds);
        bool shrunk = false;
        const auto end = start && dur ? end_of(*start, *dur, &shrunk) : std::nullopt;
        if (!end) return bad_time(event.args.step, offset);
        if (shrunk) out_.diagnostics.add(problem::op_json_negative_duration, {path_, 0, offset});
        add(thread_of(event), name_id(event), *start, *end, event.args, explicit_kind(event.args), event.category,
            index);
        return;
      }
      case 'B': {
        OpenEvent open{name_id(event), parse_decimal_ns(event.ts, kMicroseconds), event.args, explicit_kind(event.args),
                       offset};
        open.args.kind = open.args.name = {};  // these are views into the parser
        open_[thread_of(event)].push_back(open);
        return;
      }
      case 'E': return end(event, offset, index);
      case 'M':
        if (event.name == "thread_name") out_.threads[thread_of(event)].name = event.args.name;
        return;
      default: out_.diagnostics.add(problem::op_json_other_events, {path_});
    }
  }

  void bad_time(int32_t step, int64_t offset) {
    lose_of(step);
    lose(problem::op_json_bad_time, offset);
  }
  void lose_begin(const OpenEvent& open) {
    lose_of(open.args.step);
    lose(problem::op_json_unmatched_begin, open.offset);
  }
  void lose_of(int32_t step) {
    std::vector<int32_t>& steps = out_.lossy_steps;
    if (step != kUnknown && (steps.empty() || steps.back() != step)) steps.push_back(step);
  }
  StringId name_id(const Event& event) { return out_.names.intern(without_duration(event.name)); }
  static std::optional<CellKind> explicit_kind(const EventArgs& args) {
    return args.has(kArgKind) ? kind_of_op(args.kind) : std::nullopt;
  }

  void end(const Event& event, int64_t offset, uint32_t index) {
    const uint32_t thread = thread_of(event);
    std::vector<OpenEvent>& stack = open_[thread];
    // An E without a name closes the innermost B; one with a name closes the innermost B of that name.
    auto at = stack.rbegin();
    if (!event.name.empty()) {
      const StringId wanted = name_id(event);
      // A stack grows without bound only in damaged files, and there a name far down is not a partner.
      constexpr size_t kMaxPartnerDepth = 4096;
      const auto limit = stack.rbegin() + std::min(stack.size(), kMaxPartnerDepth);
      at = std::find_if(stack.rbegin(), limit, [&](const OpenEvent& open) { return open.name_id == wanted; });
      if (at == limit) at = stack.rend();
    }
    if (at == stack.rend()) return lose(problem::op_json_unmatched_end, offset);
    while (&stack.back() != &*at) {
      lose_begin(stack.back());
      stack.pop_back();
    }
    const OpenEvent open = stack.back();
    stack.pop_back();
    const auto end_ns = parse_decimal_ns(event.ts, kMicroseconds);
    if (!open.start_ns || !end_ns || !sane_interval(*open.start_ns, *end_ns))
      return bad_time(open.args.step == kUnknown ? event.args.step : open.args.step, offset);
    // The fields of E complete those of B (MegatronApp writes micro-batch and chunk at the end).
    EventArgs args = open.args;
    const auto merge = [&](int32_t& to, int32_t from) {
      if (to == kUnknown) to = from;
    };
    args.present |= event.args.present;
    merge(args.step, event.args.step);
    merge(args.stage, event.args.stage);
    merge(args.chunk, event.args.chunk);
    merge(args.micro_batch, event.args.micro_batch);
    merge(args.sequence, event.args.sequence);
    merge(args.rank, event.args.rank);
    merge(args.dp, event.args.dp);
    const auto kind = open.kind ? open.kind : explicit_kind(event.args);
    add(thread, open.name_id, *open.start_ns, *end_ns, args, kind, event.category, index);
  }

  void add(uint32_t thread, StringId name, int64_t start_ns, int64_t end_ns, const EventArgs& args,
           std::optional<CellKind> kind, std::string_view category, uint32_t index) {
    const bool placed = args.has_any(kPlaceArgs);
    if (category == "step" && !placed && !kind) {
      out_.diagnostics.add(problem::op_json_step_slices, {path_});
      return;
    }
    if (out_.ops.size() >= kMaxOps) {
      out_.diagnostics.add(problem::op_json_too_many_events, {path_});
      return;
    }
    const NameFacts& facts = name_facts(name);
    Op op{.start_ns = start_ns,
          .end_ns = end_ns,
          .rank = args.rank,
          .dp = args.dp,
          .stage = args.stage,
          .step = args.step,
          .chunk = args.chunk != kUnknown ? args.chunk : facts.chunk,
          .micro_batch = args.micro_batch != kUnknown ? args.micro_batch : facts.micro_batch,
          .sequence = args.sequence,
          .name_id = name,
          .lane = thread,
          .file = file_,
          .file_index = index};
    if (!kind) kind = facts.kind;
    op.kind = kind.value_or(CellKind::kOther);
    op.is_cell = kind.has_value() || (args.has(kArgStep) && placed);
    if (op.is_cell && (placed || args.has_any(kArgKind | kArgStep))) ++out_.pipeline_events;
    out_.threads[thread].straggler_analysis |= is_straggler_analysis(args);
    out_.threads[thread].ndtimeline |= is_ndtimeline(args);
    out_.ops.push_back(op);
  }

  const std::string& path_;
  uint32_t file_;
  FileOps out_;
  EventParser parser_;
  std::unordered_map<std::string, uint32_t> thread_ids_;
  std::string key_, last_key_;
  uint32_t last_thread_ = UINT32_MAX;
  std::vector<std::vector<OpenEvent>> open_;  // for each thread
  std::vector<NameFacts> names_;              // for each name id
  uint32_t file_index_ = 0;
};

}  // namespace

Result<FileOps> read_timeline(const std::string& path, uint32_t file, Progress* progress) {
  return TimelineReader(path, file).read(progress);
}

}  // namespace stageline::op_json
