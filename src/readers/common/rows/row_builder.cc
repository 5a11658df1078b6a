// Makes rows of a chunk from events.
#include "readers/common/number_map.h"
#include "readers/common/rows/file_rows.h"
#include "readers/common/rows/problems.h"

namespace stageline::rows {
namespace {

constexpr uint16_t kManyCategories = 0x7fff;  // limit for one chunk parser; the file allows far fewer
constexpr size_t kMaxStreams = 65535;

// The limits of the model: the sum and the difference of any two times fit.
bool is_sane(int64_t ns) { return ns >= -4'000'000'000'000'000'000 && ns <= 4'000'000'000'000'000'000; }

bool is_forward_backward(std::string_view cat) { return cat == "fwdbwd" || cat == "fwd_bwd_correlation"; }
// Returns true for arrows from launches to their work.
bool is_launch_flow(std::string_view cat) {
  return cat == "ac2g" || cat.starts_with("async_") || cat == "DataFlow" || cat == "api_op";
}

// Returns true for Cuspy's arrows between nodes of a graph, which have these numbers. The others of their category come
// from launches.
bool is_node_edge(const Event& event) {
  return event.id.size() >= 13 && event.cat == "ac2g" && parse_int(event.id).value_or(0) >= int64_t{1} << 40;
}

// Returns the device of Paddle's "Place(gpu:0)" as c10 numbers it: type and number. Places without a number are the
// host's.
std::pair<int64_t, int64_t> device_of(std::string_view place) {
  constexpr int64_t kCuda = 1, kOther = 20;
  const size_t colon = place.find(':');
  if (colon == std::string_view::npos) return {0, -1};
  const std::string_view number = place.substr(colon + 1, place.find(')') - colon - 1);
  return {place.starts_with("Place(gpu:") ? kCuda : kOther, parse_int(number).value_or(-1)};
}

// Returns Kineto's name of a copy: "Memcpy HtoD (Pinned -> Device)".
std::string copy_name(const Event& event) {
  const auto capital = [](std::string_view text) {
    std::string out(text);
    if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
    return out;
  };
  return "Memcpy " + std::string(event.copy_kind) + " (" + capital(event.copy_source) + " -> " +
         capital(event.copy_target) + ")";
}

}  // namespace

void RowBuilder::lose(const Problem& problem, int64_t offset) { chunk_.diagnostics.add(problem, {path_, 0, offset}); }

uint32_t RowBuilder::thread_of(std::string_view pid, std::string_view tid) {
  if (last_thread_ != UINT32_MAX && last_key_.size() == pid.size() + tid.size() + 1 && last_key_.starts_with(pid) &&
      last_key_.ends_with(tid) && last_key_[pid.size()] == '\n')
    return last_thread_;
  last_key_.assign(pid);
  last_key_ += '\n';
  last_key_ += tid;
  return last_thread_ = dictionaries_.threads.intern(last_key_);
}

uint16_t RowBuilder::category_of(std::string_view text) {
  // Texts from the shape tree do not move, so an equal address means an equal text.
  if (text.data() == last_category_.data() && text.size() == last_category_.size() && !text.empty())
    return last_category_id_;
  const uint32_t id = dictionaries_.categories.intern(text);
  last_category_ = dictionaries_.categories.text(id).data() == text.data() ? text : std::string_view();
  last_category_id_ = id < kManyCategories ? static_cast<uint16_t>(id) : kManyCategories;
  return last_category_id_;
}

uint16_t RowBuilder::stream_of(int64_t stream) {
  if (stream == -1) return 0;
  if (stream == last_stream_) return last_stream_id_;
  const auto [it, added] =
      dictionaries_.stream_ids.try_emplace(stream, static_cast<uint16_t>(dictionaries_.streams.size()));
  if (added) {
    if (dictionaries_.streams.size() >= kMaxStreams) {
      dictionaries_.stream_ids.erase(it);
      lose(problem::reader_many_streams.of(format_), -1);
      return 0;
    }
    dictionaries_.streams.push_back(stream);
  }
  last_stream_ = stream;
  return last_stream_id_ = it->second;
}

Row RowBuilder::row_of(const Event& event, int64_t offset) {
  Row row;
  row.start_ns = event.ts_ns;
  row.dur_ns = event.dur_ns;
  if (event.begin_ns >= 0 && event.length_ns >= 0 && event.begin_ns / 1000 == event.ts_ns / 1000) {
    row.start_ns = event.begin_ns;
    row.dur_ns = event.length_ns;
  }
  row.offset = offset;
  const bool bare_copy = !event.copy_kind.empty() && event.name == "Memcpy";
  row.name = dictionaries_.names.intern(bare_copy ? copy_name(event) : event.name);
  row.file_index = static_cast<uint32_t>(chunk_.event_count);
  row.correlation = fold_number(event.correlation);
  row.external_id = fold_number(event.external_id);
  row.thread = thread_of(event.pid, event.tid);
  row.stream = stream_of(event.original_stream >= 0 ? event.original_stream : event.stream);
  row.category = category_of(event.cat) & kManyCategories;
  return row;
}

// Parses a number and remembers it: among a million kernels there are a few dozen occupancies.
float RowBuilder::number_of(std::string_view text) {
  if (text.empty()) return -1;
  const uint32_t id = number_texts_.intern(text);
  while (numbers_.size() <= id) {
    const auto value = parse_double(number_texts_.text(static_cast<uint32_t>(numbers_.size())));
    const bool good = value && *value >= 0 && *value < 1e9;  // "inf" occurs in place of blocks per SM
    numbers_.push_back(good ? static_cast<float>(*value) : -1.0f);
  }
  return numbers_[id];
}

void RowBuilder::add_operator_facts(const Event& event, uint32_t row) {
  TextInterner& names = dictionaries_.names;
  const auto small = [](int64_t value) { return value >= 0 && value <= INT32_MAX ? static_cast<int32_t>(value) : -1; };
  if (event.has_inputs) {
    // FLOPs of convolutions depend on stride, padding and so on, those of attention on its mask, the bytes of scaled
    // products on their output's type; sends and receives name their peer in these values.
    const auto holds = [&](std::string_view part) { return event.name.find(part) != std::string_view::npos; };
    const bool needs_values = holds("conv") || holds("att") || holds("scaled_mm") || event.name == "c10d::send" ||
                              event.name == "c10d::recv_";
    chunk_.inputs.push_back({row, names.intern(event.input_dims), names.intern(event.input_types),
                             needs_values ? names.intern(event.concrete_inputs) : 0});
  }
  if (event.has_stack)
    chunk_.stacks.push_back({row, names.intern(event.call_stack), names.intern(event.module_hierarchy)});
  if (event.has_launch_shape && stageline::category_of(event.cat) == Category::kKernel)
    chunk_.kernels.push_back({row, number_of(event.blocks_per_sm), number_of(event.warps_per_sm),
                              number_of(event.occupancy), small(event.registers), small(event.shared_bytes),
                              names.intern(event.grid), names.intern(event.block)});
}

void RowBuilder::add_facts(const Event& event, uint32_t row) {
  if (event.has_copy && !event.has_collective) chunk_.copies.push_back({row, event.bytes, event.bandwidth_gbps});
  if (event.has_sync) chunk_.syncs.push_back({row, event.wait_on_stream, event.wait_on_record});
  if (event.sequence_number >= 0)
    chunk_.operators.push_back({row, static_cast<int32_t>(event.forward_thread), event.sequence_number});
  if (event.has_python) chunk_.python.push_back({row, event.python_id, event.python_parent, event.python_module});
  // Node 0 of graph 0 is none: newer versions of Kineto write both with all work.
  if ((event.graph_node > 0 || (event.graph_node == 0 && event.graph > 0)) &&
      is_device_work(stageline::category_of(event.cat))) {
    const bool whole = event.graph_node >> 32 != 0 || event.graph < 0 || event.graph > INT32_MAX;
    chunk_.graph_work.push_back({row, dictionaries_.names.intern(event.node_name),
                                 whole ? event.graph_node : event.graph << 32 | event.graph_node});
  }
  if (event.has_inputs || event.has_launch_shape || event.has_stack) add_operator_facts(event, row);
  if (!event.has_collective) return;
  TextInterner& names = dictionaries_.names;
  CollectiveFact fact;
  fact.slice = row;
  fact.name = names.intern(event.collective);
  fact.dtype = names.intern(event.dtype);
  fact.group = names.intern(event.group);
  fact.group_description = names.intern(event.group_description);
  fact.group_ranks = names.intern(event.group_ranks);
  fact.in_split = names.intern(event.in_split);
  fact.out_split = names.intern(event.out_split);
  fact.comms_id = names.intern(event.comms_id);
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
  else if (elements <= 0) fact.bytes = event.bytes;  // our own export of a source that counts bytes
  chunk_.collectives.push_back(fact);
}

void RowBuilder::add_slice(const Event& event, int64_t offset) {
  if (!event.has_ts) return lose(problem::kineto_no_time, offset);
  if (!event.has_dur) return lose(problem::kineto_no_duration, offset);
  Row row = row_of(event, offset);
  if (row.dur_ns < 0) {
    lose(problem::kineto_negative_duration, offset);
    row.dur_ns = 0;
  }
  int64_t end = 0;
  if (__builtin_add_overflow(row.start_ns, row.dur_ns, &end) || !is_sane(end))
    return lose(problem::kineto_bad_time, offset);
  chunk_.rows.push_back(row);
  const auto number = static_cast<uint32_t>(chunk_.rows.size() - 1);
  add_facts(event, number);
  if (row.correlation == kNoCorrelation && !needs_arrows_) {
    const Category category = stageline::category_of(event.cat);
    needs_arrows_ = is_launch_call(category) || is_device_work(category) || !event.has_cat;
  }
  if (event.exact_start_ns >= 0) chunk_.exact_starts.push_back({number, event.exact_start_ns});
  if (event.step_number < 0 || event.has_cat) return;
  row.name = dictionaries_.names.intern("ProfilerStep#" + std::to_string(event.step_number));  // JAX's and TensorFlow's
  row.category = category_of("user_annotation") & kManyCategories;
  chunk_.rows.push_back(row);
}

void RowBuilder::add_instant(const Event& event) {
  if (!event.has_ts) return;
  const uint32_t thread = thread_of(event.pid, event.tid);
  const auto index = static_cast<uint32_t>(chunk_.event_count);
  const auto small = [](int64_t value) {  // cut to 32 bits, 2^40 would be the CPU
    return value >= INT32_MIN && value <= INT32_MAX ? static_cast<int32_t>(value) : -1;
  };
  // Paddle also reports what its allocator reserves, and the sum of that with each allocation.
  if (event.has_memory && event.cat.starts_with("Reserved")) return;
  const auto [type, number] =
      event.place.empty() ? std::pair(event.device_type, event.device_id) : device_of(event.place);
  if (event.has_memory && event.name != "[OutOfMemory]")  // [OutOfMemory] is about memory that was not allocated
    chunk_.memory.push_back({event.ts_ns, static_cast<uint64_t>(event.address), event.bytes, event.total_allocated,
                             event.total_reserved, small(type), small(number), thread, index});
  else chunk_.marks.push_back({event.ts_ns, dictionaries_.names.intern(event.name), thread, index});
}

// Parses {"name": value, …}. Such objects are small, so it simply walks over "key": number pairs.
void RowBuilder::add_counter(const Event& event) {
  if (!event.has_ts || event.args.empty()) return;
  const std::string_view args = event.args;
  size_t at = 1;
  while (at < args.size()) {
    const size_t open = args.find('"', at);
    const size_t close = open == std::string_view::npos ? open : args.find('"', open + 1);
    const size_t value = close == std::string_view::npos ? close : args.find_first_not_of(" \t\r\n:", close + 1);
    if (value == std::string_view::npos) return;
    const size_t end = args.find_first_of(",}", value);
    if (const auto number = parse_double(trim(args.substr(value, end == std::string_view::npos ? end : end - value)))) {
      const std::string_view key = args.substr(open + 1, close - open - 1);
      std::string name(event.pid);
      name += ' ';
      name += event.name;
      if (!event.id.empty()) name += " " + std::string(event.id);
      if (!key.empty()) name += " / " + std::string(key);
      chunk_.counters.push_back({dictionaries_.names.intern(name), event.ts_ns, *number});
    }
    if (end == std::string_view::npos) return;
    at = end + 1;
  }
}

void RowBuilder::add(const Event& event, int64_t offset) {
  std::string pid;
  const Event* one = &event;
  std::optional<Event> labelled;
  if (event.rank >= 0) {
    pid = "[" + std::to_string(event.rank) + "] ";
    pid += event.raw_pid >= 0 ? std::to_string(event.raw_pid) : std::string(event.pid);
    labelled = event;
    labelled->pid = pid;
    one = &*labelled;
  }
  if (one->pid.starts_with('[') || !chunk_.owners.empty()) {
    if (one->pid != owned_pid_) {  // events of a process come together
      owned_pid_ = one->pid;
      owner_ = dictionaries_.names.intern(merge_label(owned_pid_));
    }
    if (owner_ != 0 || !chunk_.owners.empty()) {
      chunk_.owners.resize(static_cast<size_t>(chunk_.event_count));
      chunk_.owners.push_back(owner_);
    }
  }
  block_ended_ = event.name == "Record Window End";
  add_event(*one, offset);
}

void RowBuilder::add_event(const Event& event, int64_t offset) {
  chunk_.fractional_time |= event.fractional_ts;
  if (!is_sane(event.ts_ns)) {
    lose(problem::kineto_bad_time, offset);
    ++chunk_.event_count;
    return;
  }
  switch (event.phase) {
    case 'X':
      // torch's Python exporter gives memory records a length, up to the end of the capture.
      event.cat == "cpu_instant_event" ? add_instant(event) : add_slice(event, offset);
      break;
    case 'b':
    case 'e':
    case 'B':
    case 'E': event.has_ts ? add_half(event, offset) : lose(problem::kineto_no_time, offset); break;
    case 'i':
    case 'I':
    case 'n': add_instant(event); break;
    case 'C': add_counter(event); break;
    case 'M': add_given_name(event); break;
    case 's':
    case 't':
    case 'f':
      if (event.has_ts)
        (is_launch_flow(event.cat) && !is_node_edge(event) ? chunk_.launch_flows : chunk_.flows)
            // rocprof cuts the time to a microsecond, within which the slice begins.
            .push_back({quick_hash(event.id) * 31 + quick_hash(event.cat),
                        event.ts_ns + (event.cat == "DataFlow" && !event.fractional_ts ? 999 : 0),
                        thread_of(event.pid, event.tid), event.phase == 's', is_forward_backward(event.cat)});
      break;
    default: break;
  }
  ++chunk_.event_count;
}

// Adds the begin or the end of a slice; the two are joined when the whole file is read.
void RowBuilder::add_half(const Event& event, int64_t offset) {
  HalfEvent half;
  half.phase = event.phase;
  if (event.phase == 'b' || event.phase == 'e') {
    Event async = event;
    const std::string track = "async " + std::string(event.cat);
    async.tid = track;
    half.row = row_of(async, offset);
    half.async_key = dictionaries_.names.intern(std::string(event.cat) + '\n' + std::string(event.id) + '\n' +
                                                std::string(event.name));
  } else {
    half.row = row_of(event, offset);
  }
  chunk_.halves.push_back(half);
}

// Adds the name that a thread or a process was given.
void RowBuilder::add_given_name(const Event& event) {
  if ((event.name != "thread_name" && event.name != "process_name") || event.args.empty()) return;
  const size_t key = event.args.find("\"name\"");
  const size_t open = key == std::string_view::npos ? key : event.args.find('"', event.args.find(':', key) + 1);
  const size_t close = open == std::string_view::npos ? open : event.args.find('"', open + 1);
  if (close == std::string_view::npos) return;
  const uint32_t name = dictionaries_.names.intern(trim(event.args.substr(open + 1, close - open - 1)));
  if (event.name == "thread_name") chunk_.thread_names.push_back({thread_of(event.pid, event.tid), name});
  else chunk_.process_names.push_back({dictionaries_.names.intern(event.pid), name});
}

uint32_t RowBuilder::add_row(Row row) {
  if (chunk_.rows.size() >= UINT32_MAX - 1) return UINT32_MAX;
  row.file_index = static_cast<uint32_t>(chunk_.event_count++);
  chunk_.rows.push_back(row);
  return static_cast<uint32_t>(chunk_.rows.size() - 1);
}

uint32_t RowBuilder::add_row(Row row, const Event& event) {
  const uint32_t number = add_row(row);
  if (number != UINT32_MAX) describe(number, event);
  return number;
}

void RowBuilder::describe(uint32_t row, const Event& event) {
  Row& own = chunk_.rows[row];
  own.correlation = fold_number(event.correlation);
  own.external_id = fold_number(event.external_id);
  own.stream = stream_of(event.stream);
  add_facts(event, row);
}

void RowBuilder::add_mark(Mark mark) {
  mark.file_index = static_cast<uint32_t>(chunk_.event_count++);
  chunk_.marks.push_back(mark);
}

ChunkRows RowBuilder::take() {
  if (!needs_arrows_) std::vector<Flow>().swap(chunk_.launch_flows);
  needs_arrows_ = block_ended_ = false;
  ChunkRows out = std::move(chunk_);
  chunk_ = ChunkRows();
  chunk_.rows.reserve(out.rows.size() + out.rows.size() / 8);
  return out;
}

}  // namespace stageline::rows
