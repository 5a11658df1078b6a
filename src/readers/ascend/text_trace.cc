#include "readers/ascend/text_trace.h"

#include <simdjson.h>

#include "base/json_events.h"
#include "base/json_token.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {
namespace {

namespace od = simdjson::ondemand;
constexpr int kMicroseconds = 3;

std::string_view unquoted(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') token = token.substr(1, token.size() - 2);
  return trim(token);
}

// Returns the text of a time without blanks, which may be written as "\t" within the quotes.
std::string_view time_text(std::string_view token) {
  std::string_view text = unquoted(token);
  while (text.ends_with("\\t")) text = trim(text.substr(0, text.size() - 2));
  return text;
}

// One event as in the file; texts are valid as long as the event.
struct Event {
  char phase = '\0';
  std::string_view name, cat, pid, tid, id, ts, dur;
  // Members of args.
  std::string_view arg_name, task_type, stream, connection, size, src, dst, transport, link, notify, dtype, count;
  std::string_view sequence, forward_thread, dims, types, stack;
};

struct Key {
  std::string_view text;
  std::string_view Event::* field;
};
constexpr Key kFields[] = {{"name", &Event::name}, {"cat", &Event::cat}, {"pid", &Event::pid}, {"tid", &Event::tid},
                           {"id", &Event::id},     {"ts", &Event::ts},   {"dur", &Event::dur}};
#define ARG(key, member) {key, &Event::member},
constexpr Key kArgs[] = {
#include "readers/ascend/event_args.def"
};

class Parser {
 public:
  bool parse(std::string_view text, Event& event) {
    event = {};
    od::document document;
    od::object object;
    if (parser_.iterate(text, text.size() + kJsonPaddingBytes).get(document) || document.get_object().get(object))
      return false;
    for (auto field : object) {
      std::string_view key;
      od::value value;
      if (field.unescaped_key().get(key) || field.value().get(value)) return false;
      if (key == "ph") {
        const std::string_view phase = unquoted(raw_token(value, text));
        event.phase = phase.empty() ? '\0' : phase[0];
      } else if (key == "args") {
        od::object args;
        if (value.get_object().get(args)) continue;  // the args are null
        for (auto arg : args) {
          std::string_view arg_key;
          od::value arg_value;
          if (arg.unescaped_key().get(arg_key) || arg.value().get(arg_value)) return false;
          if (!take(arg_key, arg_value, text, kArgs, event)) return false;
        }
      } else if (!take(key, value, text, kFields, event)) {
        return false;
      }
    }
    return true;
  }

 private:
  template <size_t N>
  static bool take(std::string_view key, od::value& value, std::string_view json, const Key (&keys)[N], Event& event) {
    for (const Key& known : keys) {
      if (key != known.text) continue;
      od::json_type type;
      if (value.type().get(type)) return false;
      // A text with half a surrogate pair is kept as written.
      if (type != od::json_type::string || value.get_string().get(event.*known.field))
        event.*known.field = type == od::json_type::null ? std::string_view() : unquoted(raw_token(value, json));
      return true;
    }
    return true;
  }

  od::parser parser_;
};

enum class FlowKind : uint8_t { kLaunch, kOwner, kBackward };
struct FlowEnd {
  FlowKind kind;
  bool start;
  uint32_t thread;
  int64_t time_ns;
  uint32_t id;  // id in texts
};

using Place = std::pair<uint32_t, int64_t>;  // (thread, start of a row)
struct PlaceHash {
  size_t operator()(const Place& place) const {
    return static_cast<size_t>(place.second * 0x9e3779b97f4a7c15ull) ^ place.first;
  }
};

int64_t whole_number(std::string_view text) {
  text = trim(text);
  int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

int32_t rank_number(std::string_view text) {
  const int64_t rank = whole_number(text);
  return rank >= 0 && rank < INT32_MAX ? static_cast<int32_t>(rank) : -1;
}

class TraceReader {
 public:
  TraceReader(const std::string& path, Diagnostics& diagnostics) : path_(path), diagnostics_(diagnostics) {}

  void take(const JsonSpan& span) {
    ++out_.events;
    Event event;
    if (!parser_.parse(span.text, event)) return lose(span.offset);
    if (event.phase == 'X') return slice(event, span.offset);
    if (event.phase == 'M') return name(event);
    if (event.phase == 's' || event.phase == 'f' || event.phase == 't') flow(event, span.offset);
  }

  void cut(int64_t offset) { diagnostics_.add(problem::ascend_trace_cut, {path_, 0, offset}); }

  Result<TextTrace> finish() {
    if (out_.events == 0)
      return make_error(ErrorCode::kBadInput, "no events in it", "a trace_view.json is an array of trace events",
                        {path_});
    decide_kinds();
    drop_sums();
    join_flows();
    return std::move(out_);
  }

 private:
  void lose(int64_t offset) { diagnostics_.add(problem::ascend_trace_event, {path_, 0, offset}); }

  uint32_t thread_of(std::string_view pid, std::string_view tid) {
    key_.assign(pid).append("\n").append(tid);
    const uint32_t id = keys_.intern(key_) - 1;  // 0 is the interner's empty text
    if (id == out_.threads.size()) out_.threads.push_back({std::string(pid), std::string(tid), "", "", {}});
    return id;
  }

  void slice(const Event& event, int64_t offset) {
    const auto start = parse_decimal_ns(time_text(event.ts), kMicroseconds);
    const auto dur = parse_decimal_ns(time_text(event.dur), kMicroseconds);
    int64_t end = 0;
    if (!start || !dur || *dur < 0 || __builtin_add_overflow(*start, *dur, &end) || out_.rows.size() >= kNoTraceRow)
      return lose(offset);
    TraceRow row;
    row.start_ns = *start;
    row.dur_ns = *dur;
    row.name = out_.texts.intern(event.name);
    row.category = out_.texts.intern(event.cat);
    row.task_type = out_.texts.intern(event.task_type);
    row.thread = thread_of(event.pid, event.tid);
    row.stream = whole_number(event.stream);
    row.connection = whole_number(event.connection);
    row.bytes = whole_number(event.size);
    const auto index = static_cast<uint32_t>(out_.rows.size());
    if (!event.transport.empty() || !event.src.empty()) {
      out_.transfers.push_back({index, rank_number(event.src), rank_number(event.dst), row.bytes,
                                whole_number(event.notify), out_.texts.intern(event.transport),
                                out_.texts.intern(event.link)});
    }
    if (!event.dtype.empty() || !event.count.empty())
      out_.operations.push_back({index, out_.texts.intern(event.dtype), whole_number(event.count)});
    if (!event.sequence.empty() || !event.dims.empty() || !event.stack.empty())
      out_.operators.push_back({index, whole_number(event.sequence), whole_number(event.forward_thread),
                                out_.texts.intern(event.dims), out_.texts.intern(event.types),
                                out_.texts.intern(event.stack)});
    out_.rows.push_back(row);
  }

  void name(const Event& event) {
    if (event.name == "process_name") processes_[std::string(event.pid)] = std::string(event.arg_name);
    if (event.name == "thread_name") out_.threads[thread_of(event.pid, event.tid)].name = std::string(event.arg_name);
  }

  void flow(const Event& event, int64_t offset) {
    FlowKind kind = FlowKind::kLaunch;
    if (event.cat == "async_npu") kind = FlowKind::kOwner;
    else if (event.cat == "fwdbwd") kind = FlowKind::kBackward;
    else if (event.cat != "HostToDevice") return;
    const auto time = parse_decimal_ns(time_text(event.ts), kMicroseconds);
    if (!time) return lose(offset);
    flows_.push_back({kind, event.phase == 's', thread_of(event.pid, event.tid), *time, out_.texts.intern(event.id)});
  }

  void decide_kinds() {
    for (TraceThread& thread : out_.threads) {
      const auto process = processes_.find(thread.pid);
      if (process != processes_.end()) thread.process = process->second;
      const std::string& of = thread.process;
      if (of == "Python") thread.kind = ThreadKind::kPython;
      else if (of == "CANN") thread.kind = ThreadKind::kCann;
      else if (of == "Ascend Hardware") thread.kind = ThreadKind::kStream;
      else if (of == "Communication" || of == "HCCL")
        thread.kind = thread.name.starts_with("Plane") ? ThreadKind::kPlane : ThreadKind::kOperations;
      else if (of == "Overlap Analysis") thread.kind = ThreadKind::kSums;
    }
  }

  // Drops the rows of sums; facts follow their rows to the new places.
  void drop_sums() {
    std::vector<uint32_t> now(out_.rows.size(), kNoTraceRow);
    size_t kept = 0;
    for (size_t r = 0; r < out_.rows.size(); ++r) {
      if (out_.threads[out_.rows[r].thread].kind == ThreadKind::kSums) continue;
      now[r] = static_cast<uint32_t>(kept);
      out_.rows[kept++] = out_.rows[r];
    }
    out_.rows.resize(kept);
    const auto move = [&](auto& facts) {
      for (auto& fact : facts) fact.row = now[fact.row];
      std::erase_if(facts, [](const auto& fact) { return fact.row == kNoTraceRow; });
    };
    move(out_.transfers);
    move(out_.operations);
    move(out_.operators);
  }

  // An end of a flow belongs to the row that starts there, else to the innermost row around it.
  void join_flows() {
    if (flows_.empty()) return;
    std::unordered_map<Place, uint32_t, PlaceHash> row_at;  // when several rows have the place, the innermost
    const auto place = [](uint32_t thread, int64_t time_ns) { return Place{thread, time_ns}; };
    for (const FlowEnd& end : flows_) row_at[place(end.thread, end.time_ns)] = kNoTraceRow;
    for (uint32_t r = 0; r < out_.rows.size(); ++r) {
      const auto it = row_at.find(place(out_.rows[r].thread, out_.rows[r].start_ns));
      if (it == row_at.end()) continue;
      if (it->second == kNoTraceRow || out_.rows[r].dur_ns <= out_.rows[it->second].dur_ns) it->second = r;
    }
    find_enclosing(row_at);
    std::map<std::pair<FlowKind, uint32_t>, uint32_t> from;
    for (const FlowEnd& end : flows_)
      if (end.start) from[{end.kind, end.id}] = row_at[place(end.thread, end.time_ns)];
    int64_t lost = 0;
    for (const FlowEnd& end : flows_) {
      if (end.start) continue;
      const auto start = from.find({end.kind, end.id});
      const uint32_t to = row_at[place(end.thread, end.time_ns)];
      if (start == from.end() || start->second == kNoTraceRow || to == kNoTraceRow || to == start->second) {
        ++lost;
        continue;
      }
      switch (end.kind) {
        case FlowKind::kLaunch: out_.rows[to].launch = start->second; break;
        case FlowKind::kOwner: out_.rows[to].owner = start->second; break;
        case FlowKind::kBackward: out_.forward_backward.emplace_back(start->second, to); break;
      }
    }
    diagnostics_.add(problem::ascend_trace_flow, {path_}, lost);
  }

  template <class RowAt> void find_enclosing(RowAt& row_at) {
    std::map<uint32_t, std::vector<uint32_t>> rows_of;  // of threads with ends where no row starts, by start
    for (const auto& [place, row] : row_at)
      if (row == kNoTraceRow) rows_of[place.first];
    for (uint32_t r = 0; !rows_of.empty() && r < out_.rows.size(); ++r)
      if (const auto at = rows_of.find(out_.rows[r].thread); at != rows_of.end()) at->second.push_back(r);
    for (auto& [thread, rows] : rows_of)
      sort_stably(rows, [&](uint32_t a, uint32_t b) {
        const TraceRow &one = out_.rows[a], &other = out_.rows[b];
        return one.start_ns != other.start_ns ? one.start_ns < other.start_ns : one.dur_ns > other.dur_ns;
      });
    for (auto& [place, row] : row_at) {
      if (row != kNoTraceRow) continue;
      constexpr int kMaxCallDepth = 64;  // calls of CANN nest a few deep
      const std::vector<uint32_t>& rows = rows_of[place.first];
      auto at = std::upper_bound(rows.begin(), rows.end(), place.second,
                                 [&](int64_t time, uint32_t r) { return time < out_.rows[r].start_ns; });
      for (int tries = 0; at != rows.begin() && tries < kMaxCallDepth && row == kNoTraceRow; ++tries)
        if (const TraceRow& around = out_.rows[*--at]; around.start_ns + around.dur_ns >= place.second) row = *at;
    }
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  Parser parser_;
  TextTrace out_;
  TextInterner keys_;
  std::string key_;
  std::map<std::string, std::string> processes_;
  std::vector<FlowEnd> flows_;
};

}  // namespace

Result<TextTrace> read_trace_view(const std::string& path, Diagnostics& diagnostics, Progress* progress) {
  TRY(input, Input::open(path, progress));
  JsonEvents events(*input, JsonLayout::kTrace);
  TraceReader reader(path, diagnostics);
  bool damaged = false;
  for (;;) {
    const Result<std::vector<JsonSpan>> spans = events.next();
    if (!spans) {
      damaged = true;
      break;
    }
    if (spans->empty()) break;
    for (const JsonSpan& span : *spans) reader.take(span);
  }
  if (damaged || !events.finished() || events.damaged() > 0)
    reader.cut(events.damaged() > 0 ? events.first_damage() : events.bytes());
  return reader.finish();
}

}  // namespace stageline::ascend
