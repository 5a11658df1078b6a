// The content of one file, in the order of the file: rows of slices, and lists of everything rarer.
//
// A file is parsed in chunks, several of them perhaps at once. Each parser has its own dictionaries, and the rows of a
// chunk have that parser's ids until FileRows::append() maps them to the file's, chunk after chunk in file order. So
// ids and results do not depend on which parser parsed what.
#pragma once

#include "base/text_interner.h"
#include "model/trace.h"
#include "readers/common/rows/arg_keys.h"

namespace stageline::rows {

inline constexpr uint32_t kNoThread = 0;  // threads are numbered from 1; a row without one makes no slice
struct Row {
  int64_t start_ns = 0, dur_ns = 0;
  int64_t offset = 0;  // decompressed position of the event
  uint32_t name = 0, file_index = 0, correlation = kNoCorrelation, external_id = kNoCorrelation, thread = 0;
  uint16_t stream = 0;
  uint16_t category : 15 = 0, joined : 1 = 0;
};

struct Flow {
  uint64_t id_hash = 0;  // hash of id and category; the flow events of one arrow share it
  int64_t time_ns = 0;
  uint32_t thread = 0;
  bool is_start = false, is_forward_backward = false;
};

struct ExactStart {  // of an event that also says its time in ns, counted from the writer's own zero (Paddle)
  uint32_t slice = 0;
  int64_t ns = 0;
};

// The name of a process, as texts among the names.
struct ProcessName {
  uint32_t pid = 0, name = 0;
};

struct PythonRow {
  uint32_t slice = 0;  // index of a row
  int64_t id = -1, parent = -1, module = -1;
};

// An event of phase B, E, b or e; it finds its other part when the file is whole.
struct HalfEvent {
  Row row;
  char phase = '\0';
  uint32_t async_key = 0;  // id of a name: category, id and name of b and e
};

// Device work that is a node of a graph.
struct GraphWork {
  uint32_t slice = 0, name = 0;  // index of a row; its mark, an id of a name, or 0
  int64_t node = -1;             // its number, with that of the graph in the high 32 bits
};

struct CounterPoint {
  uint32_t series = 0;  // id of a name
  int64_t time_ns = 0;
  double value = 0;
};

struct ThreadName {
  uint32_t thread = 0, name = 0;
};

struct Dictionaries {
  TextInterner names, categories, threads;  // the text of a thread is pid, line end, tid
  std::vector<int64_t> streams = {-1};
  std::unordered_map<int64_t, uint16_t> stream_ids;
};

// Holds the rows of one chunk, with one parser's ids. `slice` in facts is a row of this chunk; `file_index` counts from
// its start.
struct ChunkRows : SliceFacts {
  std::vector<Row> rows;
  std::vector<PythonRow> python;
  std::vector<MemoryRecord> memory;  // lane is a thread
  std::vector<Mark> marks;           // lane is a thread
  std::vector<Flow> flows;
  // Arrows from launches to their work. They are kept only from chunks with launches or work without a correlation,
  // since they repeat correlations.
  std::vector<Flow> launch_flows;
  std::vector<ExactStart> exact_starts;
  std::vector<GraphWork> graph_work;
  std::vector<ProcessName> process_names;
  std::vector<HalfEvent> halves;
  std::vector<CounterPoint> counters;
  std::vector<ThreadName> thread_names;
  std::vector<SliceLink> links;  // between rows
  Diagnostics diagnostics;
  // Of merged files: for each event the id of the name of its part ("[TP00-PP01]", "[3]"); empty otherwise.
  std::vector<uint32_t> owners;
  int64_t event_count = 0;
  bool fractional_time = false;
};

// Returns "[TP00-PP01]" of a process "[TP00-PP01] 4711", as SGLang's merged files name them; "" of any other process.
inline std::string_view merge_label(std::string_view pid) {
  if (!pid.starts_with('[')) return {};
  const size_t close = pid.find("] "), digit = pid.find_first_of("0123456789", 1);
  const bool known = digit == 1 || (digit == 3 && pid[1] >= 'A' && pid[1] <= 'Z') || pid.starts_with("[Unknown] ");
  return close == std::string_view::npos || !known ? std::string_view() : pid.substr(0, close + 1);
}

// Makes rows of events, for one chunk after another.
class RowBuilder {
 public:
  // `format` is the prefix of diagnostics' names.
  explicit RowBuilder(std::string path, std::string_view format = "kineto") : path_(std::move(path)), format_(format) {}
  // Adds an event. `offset` is its decompressed position; its place in the array is counted here.
  void add(const Event& event, int64_t offset);
  void skip_entry() { ++chunk_.event_count; }  // skips an entry of the array that could not be used
  void lose(const Problem& problem, int64_t offset);
  ChunkRows take();
  bool block_ended() const { return block_ended_; }  // the last event ends a recording: "Record Window End"
  const Dictionaries& dictionaries() const { return dictionaries_; }

  // Adds a row with ids of the dictionaries, for sources whose events are not JSON. `event` optionally adds its further
  // data (facts, correlation and stream), as in add(). file_index is counted here. Returns UINT32_MAX when there are
  // too many rows.
  uint32_t add_row(Row row);
  uint32_t add_row(Row row, const Event& event);
  // Adds a row that is nothing but these values. They are written to the row's own place, one by one.
  uint32_t add_row(int64_t start_ns, int64_t dur_ns, int64_t offset, uint32_t name, uint32_t thread,
                   uint16_t category) {
    if (chunk_.rows.size() >= UINT32_MAX - 1) return UINT32_MAX;
    const auto file_index = static_cast<uint32_t>(chunk_.event_count++);
    chunk_.rows.emplace_back(start_ns, dur_ns, offset, name, file_index, kNoCorrelation, kNoCorrelation, thread,
                             uint16_t{0}, category, uint16_t{0});
    return static_cast<uint32_t>(chunk_.rows.size() - 1);
  }
  // Processes an event as add_row() does, for an existing row.
  void describe(uint32_t row, const Event& event);
  void add_mark(Mark mark);
  // Makes room for as many rows, and for facts of half of them. Unused room is never touched.
  void reserve(size_t rows) {
    chunk_.rows.reserve(rows);
    chunk_.copies.reserve(rows / 2);
    chunk_.operators.reserve(rows / 2);
    chunk_.inputs.reserve(rows / 2);
    chunk_.kernels.reserve(rows / 2);
  }
  std::vector<Row>& rows() { return chunk_.rows; }  // of the chunk so far
  Dictionaries& dictionaries() { return dictionaries_; }
  uint16_t stream_of(int64_t stream);
  uint32_t event_count() const { return static_cast<uint32_t>(chunk_.event_count); }
  uint32_t row_count() const { return static_cast<uint32_t>(chunk_.rows.size()); }

 private:
  uint32_t thread_of(std::string_view pid, std::string_view tid);
  uint16_t category_of(std::string_view text);
  Row row_of(const Event& event, int64_t offset);
  void add_slice(const Event& event, int64_t offset);
  void add_facts(const Event& event, uint32_t row);
  void add_operator_facts(const Event& event, uint32_t row);
  float number_of(std::string_view text);
  void add_instant(const Event& event);
  void add_half(const Event& event, int64_t offset);
  void add_given_name(const Event& event);
  void add_event(const Event& event, int64_t offset);
  void add_counter(const Event& event);

  std::string path_;
  std::string format_;
  Dictionaries dictionaries_;
  ChunkRows chunk_;
  TextInterner number_texts_;   // texts of numbers that repeat, so that each is parsed once
  std::vector<float> numbers_;  // for each id of number_texts_
  std::string last_key_;
  uint32_t last_thread_ = UINT32_MAX;
  std::string_view last_category_;
  uint16_t last_category_id_ = 0;
  int64_t last_stream_ = -1;
  uint16_t last_stream_id_ = 0;
  std::string owned_pid_;  // of the last event that an owner was looked up for
  uint32_t owner_ = 0;
  bool block_ended_ = false;
  bool needs_arrows_ = false;  // the chunk has a launch or device work without a correlation
};

// The whole file, with the file's own ids.
struct FileRows {
  std::string path;
  Dictionaries dictionaries;
  std::vector<std::vector<Row>> blocks;  // in file order
  size_t row_count = 0;
  ChunkRows rest;  // everything but rows; `slice` in facts is a row of the file
  std::vector<CounterSeries> counters;
  std::vector<MetaField> metadata;

  void append(ChunkRows chunk, const Dictionaries& from, size_t parser);
  void forget_parsers() { maps_.clear(); }  // to be called when the next append() comes from other parsers
  // Joins B and E, b and e events, once all are here; those without their other end are counted as losses.
  void finish();

 private:
  struct Maps {
    std::vector<uint32_t> names, categories, threads;
    std::vector<uint16_t> streams;
  };
  // Extends a map by the streams that are new since the last chunk of this parser.
  void map_streams(std::vector<uint16_t>& map, const Dictionaries& from);
  void append_counters(const std::vector<CounterPoint>& points, const std::vector<uint32_t>& names);
  void join_halves();

  std::vector<Maps> maps_;  // one for each parser
  std::unordered_map<uint32_t, size_t> counter_ids_;
};

// Calls body(row) for each row of a FileRows, which may be const.
template <class Rows, class Body> void each_row(Rows& file, Body&& body) {
  for (auto& block : file.blocks)
    for (auto& row : block) body(row);
}

// Chrome traces of other profilers than Kineto, in Kineto's words.

// Returns true for what paddle.profiler wrote (export_chrome_tracing).
bool is_paddle(const std::vector<MetaField>& metadata);

// Gives rows the names, categories, threads and times that Kineto would:
//
//   Paddle    "matmul dygraph[0.300 ms]" → "matmul dygraph"; ProfileStep#3 → ProfilerStep#3; CudaRuntime →
//   cuda_runtime;
//             "19492(Python)" and "19492(C++)" are one thread; times to the nanosecond
//   JAX, TensorFlow, rocprof, rpd: no categories; processes named "/device:GPU:0", "GPU0" or "COPY" are devices, calls
//             with a correlation are launches, "$file.py:3 f" is a frame
//
// To be called once all rows of a file are there, before build_part().
void translate(FileRows& rows);

// Returns true when every time plus `base_ns` stays within the limits of the model.
bool times_fit(const FileRows& rows, int64_t base_ns);

// Sets the longest durations to 0 where all durations together exceed what the model's sums hold.
void fit_durations(FileRows& rows);

// True when two files hold the same events, because one is a copy of the other (trace.json and trace.json.gz).
bool same_rows(const FileRows& a, const FileRows& b);

// Appends the rows of a later file, whose times count from `base_shift_ns` after those of `to`. Offsets, event numbers,
// correlations, external ids, Python ids and flows of `from` are shifted past those of `to`, so that equal numbers in
// both files link nothing. Returns the position of from's first byte on the joint axis.
int64_t append_rows(FileRows& to, FileRows from, int64_t base_shift_ns);

// Appends later rows of the same recording: equal numbers link them.
void continue_rows(FileRows& to, FileRows from, int64_t base_shift_ns = 0);

// Splits a file that holds several ranks, so that it is read as the files that it was merged of.
struct RankRows {
  FileRows rows;
  std::optional<int32_t> rank;  // that the merged file gives; a file of one rank says it elsewhere (identify())
  bool is_merged = false;       // one of several ranks of the file
};

// `blocks` are the recordings of a file, one after another. In each of them, the first of these that is there names the
// ranks:
//
//   labels      processes "[TP02-PP01] 4711" (SGLang) and args.rank of every event (TraceFuse; RowBuilder::add makes
//               labels of them). Rank = PP × TP size + TP; where these repeat, in the order of DP
//   names       processes named "RANK 3 - CPU", "…global_rank_3…"; others join the process that launches their work
//   launches    processes whose calls launch work on devices of their own, by arrows of rpd2tracing; without a rank
//
// Otherwise a block is one rank, and blocks without a rank are numbered by the caller. Processes and threads get their
// own names back, and ids of each rank link only its own events. One process with several devices is one rank.
// Errors: kBadInput when several ranks are there that nothing separates.
Result<std::vector<RankRows>> split_ranks(std::vector<FileRows> blocks);

}  // namespace stageline::rows
