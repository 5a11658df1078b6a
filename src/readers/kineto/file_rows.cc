#include "readers/kineto/file_rows.h"

#include <algorithm>
#include <charconv>

#include "base/json_events.h"
#include "base/number.h"

namespace stageline::kineto {
namespace {

constexpr uint8_t kManyCategories = kMaxCategories;  // categories past the limit share this id
constexpr size_t kMaxStreams = 65535;

// The model's times: the sum and the difference of any two fit.
bool is_sane(int64_t ns) { return ns >= -4'000'000'000'000'000'000 && ns <= 4'000'000'000'000'000'000; }

uint32_t small_id(int64_t value) {
  return value >= 0 && value < static_cast<int64_t>(kNoCorrelation) ? static_cast<uint32_t>(value) : kNoCorrelation;
}

uint64_t hash_text(std::string_view a, std::string_view b) {
  return std::hash<std::string_view>()(a) * 0x9e3779b97f4a7c15ull ^ std::hash<std::string_view>()(b);
}

bool is_forward_backward(std::string_view cat) { return cat == "fwdbwd" || cat == "fwd_bwd_correlation"; }
// Launch arrows repeat what correlation says.
bool is_launch_flow(std::string_view cat) { return cat == "ac2g" || cat.starts_with("async"); }

}  // namespace

void RowBuilder::lose(std::string_view name, std::string_view message, int64_t offset) {
  rows_.diagnostics.add(name, Severity::kLoss, message, {path_, 0, offset});
}

uint32_t RowBuilder::thread_of(std::string_view pid, std::string_view tid) {
  key_.assign(pid);
  key_ += '\n';
  key_ += tid;
  if (last_thread_ != UINT32_MAX && key_ == last_key_) return last_thread_;
  const auto [it, added] = thread_ids_.try_emplace(key_, static_cast<uint32_t>(rows_.threads.size()));
  if (added) rows_.threads.push_back({std::string(pid), std::string(tid), ""});
  last_key_ = key_;
  return last_thread_ = it->second;
}

uint8_t RowBuilder::category_of_text(std::string_view text) {
  const StringId id = rows_.categories.intern(text);
  return id < kMaxCategories ? static_cast<uint8_t>(id) : kManyCategories;
}

uint16_t RowBuilder::stream_of(int64_t stream) {
  if (stream == -1) return 0;
  const auto [it, added] = stream_ids_.try_emplace(stream, static_cast<uint16_t>(rows_.streams.size()));
  if (added) {
    if (rows_.streams.size() >= kMaxStreams) {
      stream_ids_.erase(it);
      lose("kineto.many_streams", "more than 65534 distinct streams; the rest count as no stream", -1);
      return 0;
    }
    rows_.streams.push_back(stream);
  }
  return it->second;
}

uint32_t RowBuilder::push_row(const OpenEvent& open, int64_t dur_ns, uint32_t thread, bool joined) {
  const auto row = static_cast<uint32_t>(rows_.size());
  rows_.start_ns.push_back(open.start_ns);
  rows_.dur_ns.push_back(dur_ns);
  rows_.offset.push_back(open.offset);
  rows_.name_id.push_back(open.name);
  rows_.file_index.push_back(open.file_index);
  rows_.correlation.push_back(small_id(open.correlation));
  rows_.external_id.push_back(small_id(open.external_id));
  rows_.thread.push_back(thread);
  rows_.stream_id.push_back(stream_of(open.stream));
  rows_.category_id.push_back(open.category);
  rows_.joined.push_back(joined);
  return row;
}

void RowBuilder::add_facts(const Event& event, uint32_t row) {
  if (event.has_copy) rows_.copies.push_back({row, event.bytes, event.bandwidth_gbps});
  if (event.has_sync) rows_.syncs.push_back({row, event.wait_on_stream, event.wait_on_record});
  if (event.sequence_number >= 0)
    rows_.operators.push_back({row, static_cast<int32_t>(event.forward_thread), event.sequence_number});
  if (event.has_python) rows_.python.push_back({row, event.python_id, event.python_parent});
  if (event.has_collective) {
    CollectiveFact fact;
    fact.slice = row;
    fact.name = rows_.names.intern(event.collective);
    fact.dtype = rows_.names.intern(event.dtype);
    fact.group = rows_.names.intern(event.group);
    fact.group_description = rows_.names.intern(event.group_description);
    fact.group_ranks = rows_.names.intern(event.group_ranks);
    fact.in_split = rows_.names.intern(event.in_split);
    fact.out_split = rows_.names.intern(event.out_split);
    fact.comms_id = rows_.names.intern(event.comms_id);
    fact.in_elements = event.in_elements;
    fact.out_elements = event.out_elements;
    fact.group_size = event.group_size;
    fact.peer = event.peer;
    fact.src_rank = event.src_rank;
    fact.dst_rank = event.dst_rank;
    fact.seq = event.seq;
    const int64_t elements = std::max(event.in_elements, event.out_elements);
    int64_t bytes = 0;
    if (const int size = dtype_bytes(event.dtype); size > 0 && !__builtin_mul_overflow(elements, size, &bytes))
      fact.bytes = bytes;
    rows_.collectives.push_back(fact);
  }
}

void RowBuilder::add_slice(const Event& event, int64_t offset) {
  if (!event.has_ts) return lose("kineto.no_time", "a slice without ts was left out", offset);
  int64_t dur = event.dur_ns;
  if (dur < 0) {
    lose("kineto.negative_duration", "a negative duration was taken as 0", offset);
    dur = 0;
  }
  int64_t end = 0;
  if (__builtin_add_overflow(event.ts_ns, dur, &end) || !is_sane(end))
    return lose("kineto.bad_time", "an event beyond all time (126 years from the epoch) was left out", offset);
  const uint32_t row =
      push_row({rows_.names.intern(event.name), category_of_text(event.cat), event.ts_ns, offset,
                static_cast<uint32_t>(rows_.event_count), event.correlation, event.external_id, event.stream},
               dur, thread_of(event.pid, event.tid), false);
  add_facts(event, row);
}

void RowBuilder::add_counter(const Event& event) {
  if (!event.has_ts || event.args.empty()) return;
  // {"name": value, …}: small objects, so a plain walk over "key": number pairs.
  const std::string_view args = event.args;
  size_t at = 1;
  while (at < args.size()) {
    const size_t open = args.find('"', at);
    if (open == std::string_view::npos) break;
    const size_t close = args.find('"', open + 1);
    if (close == std::string_view::npos) break;
    const std::string_view key = args.substr(open + 1, close - open - 1);
    size_t value = args.find_first_not_of(" \t\r\n:", close + 1);
    if (value == std::string_view::npos) break;
    const size_t end = args.find_first_of(",}", value);
    std::string_view text = args.substr(value, end == std::string_view::npos ? end : end - value);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t'))
      text.remove_suffix(1);
    if (const auto number = parse_double(text)) {
      std::string name(event.pid);
      name += ' ';
      name += event.name;
      if (!event.id.empty()) name += " " + std::string(event.id);
      if (!key.empty()) name += " / " + std::string(key);
      const auto [it, added] = counter_ids_.try_emplace(name, rows_.counters.size());
      if (added) rows_.counters.push_back({name, {}, {}});
      rows_.counters[it->second].time_ns.push_back(event.ts_ns);
      rows_.counters[it->second].value.push_back(*number);
    }
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
}

void RowBuilder::add_metadata(const Event& event) {
  if (event.name != "thread_name" || event.args.empty()) return;
  const size_t key = event.args.find("\"name\"");
  const size_t open = key == std::string_view::npos ? key : event.args.find('"', event.args.find(':', key) + 1);
  if (open == std::string_view::npos) return;
  const size_t close = event.args.find('"', open + 1);
  if (close == std::string_view::npos) return;
  rows_.threads[thread_of(event.pid, event.tid)].name = std::string(event.args.substr(open + 1, close - open - 1));
}

void RowBuilder::add(const Event& event, int64_t offset) {
  const auto index = static_cast<uint32_t>(rows_.event_count);
  rows_.fractional_time |= event.fractional_ts;
  if (!is_sane(event.ts_ns)) {
    lose("kineto.bad_time", "an event beyond all time (126 years from the epoch) was left out", offset);
    ++rows_.event_count;
    return;
  }
  switch (event.phase) {
    case 'X': {
      if (event.has_dur) {
        add_slice(event, offset);
      } else {
        lose("kineto.no_duration", "an X event without dur was left out", offset);
      }
      break;
    }
    case 'B':
      if (event.has_ts)
        open_[thread_of(event.pid, event.tid)].push_back({rows_.names.intern(event.name), category_of_text(event.cat),
                                                          event.ts_ns, offset, index, event.correlation,
                                                          event.external_id, event.stream});
      break;
    case 'E': {
      const uint32_t thread = thread_of(event.pid, event.tid);
      std::vector<OpenEvent>& stack = open_[thread];
      if (stack.empty()) {
        lose("kineto.unmatched_end", "an E event without its B event was left out", offset);
      } else {
        push_row(stack.back(), std::max<int64_t>(0, event.ts_ns - stack.back().start_ns), thread, true);
        stack.pop_back();
      }
      break;
    }
    case 'b':
    case 'e': {
      std::string key = std::string(event.cat) + '\n' + std::string(event.id) + '\n' + std::string(event.name);
      std::vector<OpenEvent>& stack = open_async_[key];
      if (event.phase == 'b') {
        stack.push_back({rows_.names.intern(event.name), category_of_text(event.cat), event.ts_ns, offset, index,
                         event.correlation, event.external_id, event.stream});
      } else if (stack.empty()) {
        lose("kineto.unmatched_end", "an e event without its b event was left out", offset);
      } else {
        const uint32_t thread = thread_of(event.pid, "async " + std::string(event.cat));
        push_row(stack.back(), std::max<int64_t>(0, event.ts_ns - stack.back().start_ns), thread, true);
        stack.pop_back();
      }
      break;
    }
    case 'i':
    case 'I':
    case 'n': {
      if (!event.has_ts) break;
      const uint32_t thread = thread_of(event.pid, event.tid);
      if (event.has_memory)
        rows_.memory.push_back({event.ts_ns, event.address, event.bytes, event.total_allocated, event.total_reserved,
                                static_cast<int32_t>(event.device_type), static_cast<int32_t>(event.device_id), thread,
                                index});
      else
        rows_.marks.push_back({event.ts_ns, rows_.names.intern(event.name), thread, index});
      break;
    }
    case 'C': add_counter(event); break;
    case 'M': add_metadata(event); break;
    case 's':
    case 't':
    case 'f':
      if (!is_launch_flow(event.cat))
        rows_.flows.push_back({hash_text(event.cat, event.id), event.ts_ns, thread_of(event.pid, event.tid),
                               event.phase == 's', is_forward_backward(event.cat),
                               event.binding == 'e' || event.phase == 's'});
      break;
    default: break;
  }
  ++rows_.event_count;
}

FileRows RowBuilder::finish() {
  for (const auto& [thread, stack] : open_)
    for (const OpenEvent& open : stack)
      lose("kineto.unmatched_begin", "a B event without its E event was left out", open.offset);
  for (const auto& [key, stack] : open_async_)
    for (const OpenEvent& open : stack)
      lose("kineto.unmatched_begin", "a b event without its e event was left out", open.offset);
  return std::move(rows_);
}

}  // namespace stageline::kineto
