// What one file holds, in the order of the file: rows of slices and lists of everything rarer.
//
// A file is parsed in chunks, possibly several at once. Each parser has its own dictionaries; a chunk's rows
// carry that parser's ids until `FileRows::append` maps them, chunk by chunk in file order, to the file's. So
// ids and results do not depend on who parsed what.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "base/text_interner.h"
#include "model/trace.h"
#include "readers/common/rows/event.h"

namespace stageline::kineto {

struct Row {
  int64_t start_ns = 0, dur_ns = 0;
  int64_t offset = 0;  // decompressed position of the event
  uint32_t name = 0, file_index = 0, correlation = kNoCorrelation, external_id = kNoCorrelation, thread = 0;
  uint16_t stream = 0;
  uint16_t category : 15 = 0, joined : 1 = 0;
};

struct Flow {
  uint64_t id_hash = 0;  // of id and category: flows of one arrow share it
  int64_t time_ns = 0;
  uint32_t thread = 0;
  bool is_start = false, is_forward_backward = false;
};

struct PythonRow {
  uint32_t slice = 0;  // a row
  int64_t id = -1, parent = -1, module = -1;
};

// B, E, b and e: they find their partner when the chunks come together.
struct HalfEvent {
  Row row;
  char phase = '\0';
  uint32_t async_key = 0;  // a name: category, id and name of b and e
};

struct CounterPoint {
  uint32_t series = 0;  // a name
  int64_t time_ns = 0;
  double value = 0;
};

struct ThreadName {
  uint32_t thread = 0, name = 0;
};

struct Dictionaries {
  TextInterner names, categories, threads;  // threads: pid, line end, tid
  std::vector<int64_t> streams = {-1};
  std::unordered_map<int64_t, uint16_t> stream_ids;
};

// One chunk, in one parser's ids. `slice` in facts is a row of this chunk; `file_index` counts from its start.
struct ChunkRows {
  std::vector<Row> rows;
  std::vector<CopyFact> copies;
  std::vector<SyncFact> syncs;
  std::vector<CollectiveFact> collectives;
  std::vector<OperatorFact> operators;
  std::vector<InputFact> inputs;
  std::vector<KernelFact> kernels;
  std::vector<StackFact> stacks;
  std::vector<PythonRow> python;
  std::vector<MemoryRecord> memory;  // lane: a thread
  std::vector<Mark> marks;           // lane: a thread
  std::vector<Flow> flows;
  std::vector<HalfEvent> halves;
  std::vector<CounterPoint> counters;
  std::vector<ThreadName> thread_names;
  std::vector<SliceLink> links;  // between rows
  Diagnostics diagnostics;
  int64_t event_count = 0;
  bool fractional_time = false;
};

// Turns events into rows of one chunk after another.
class RowBuilder {
 public:
  // `format` stands before the names of diagnostics.
  explicit RowBuilder(std::string path, std::string_view format = "kineto") : path_(std::move(path)), format_(format) {}
  // `offset`: decompressed position of the event. Its place in the array is counted here.
  void add(const Event& event, int64_t offset);
  void skip_entry() { ++chunk_.event_count; }  // an entry of the array that could not be used
  void lose(std::string_view name, std::string_view message, int64_t offset);
  void warn(std::string_view name, std::string_view message, int64_t offset);
  ChunkRows take();
  const Dictionaries& dictionaries() const { return dictionaries_; }

  // For sources whose events are no JSON: a row in ids of the dictionaries, and what its event says beside it (facts,
  // correlation, stream, as of add()). file_index is counted here. UINT32_MAX: there are too many.
  uint32_t add_row(Row row);
  uint32_t add_row(Row row, const Event& event);
  void add_mark(Mark mark);
  void reserve(size_t rows) { chunk_.rows.reserve(rows); }
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
  void add_counter(const Event& event);

  std::string path_;
  std::string format_;
  Dictionaries dictionaries_;
  ChunkRows chunk_;
  TextInterner number_texts_;   // of figures that repeat: parsed once each
  std::vector<float> numbers_;  // by id of number_texts_
  std::string last_key_;
  uint32_t last_thread_ = UINT32_MAX;
  std::string_view last_category_;
  uint16_t last_category_id_ = 0;
  int64_t last_stream_ = -1;
  uint16_t last_stream_id_ = 0;
};

// The whole file, in its own ids.
struct FileRows {
  std::string path;
  Dictionaries dictionaries;
  std::vector<std::vector<Row>> blocks;  // in file order
  size_t row_count = 0;
  ChunkRows rest;  // everything but rows; `slice` is a row of the file
  std::vector<CounterSeries> counters;
  std::vector<MetaField> metadata;

  void append(ChunkRows chunk, const Dictionaries& from, size_t parser);
  void forget_parsers() { maps_.clear(); }  // the next append may come from others
  // Ends open B and b events as losses.
  void finish();

 private:
  struct Maps {
    std::vector<uint32_t> names, categories, threads;
    std::vector<uint16_t> streams;
  };
  void join_halves(const std::vector<HalfEvent>& halves);

  std::vector<Maps> maps_;                                     // by parser
  std::unordered_map<uint32_t, std::vector<Row>> open_;        // B by thread
  std::unordered_map<uint32_t, std::vector<Row>> open_async_;  // b by key
  std::unordered_map<uint32_t, size_t> counter_ids_;
};

}  // namespace stageline::kineto
