// What one file holds, in the order of the file: columns of slices that grow event by event, and lists
// of everything rarer. `finish_part` turns the rows of a rank's files into a Part.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "base/string_pool.h"
#include "model/trace.h"
#include "readers/kineto/event.h"

namespace stageline::kineto {

struct Thread {
  std::string pid, tid;  // as events say
  std::string name;      // of thread_name metadata
};

struct Flow {
  uint64_t id_hash = 0;  // of id and category: flows of one arrow share it
  int64_t time_ns = 0;
  uint32_t thread = 0;
  bool is_start = false, is_forward_backward = false, binds_enclosing = false;
};

struct PythonRow {
  uint32_t row = 0;
  int64_t id = -1, parent = -1;
};

struct FileRows {
  StringPool names, categories;
  std::vector<Thread> threads;
  Diagnostics diagnostics;

  // One entry per slice.
  std::vector<int64_t> start_ns, dur_ns, offset;                        // offset: decompressed position of the event
  std::vector<uint32_t> name_id, file_index, correlation, external_id;  // kNoCorrelation where absent
  std::vector<uint32_t> thread;
  std::vector<uint16_t> stream_id;
  std::vector<uint8_t> category_id, joined;

  std::vector<int64_t> streams = {-1};
  // `slice` in these is a row of the columns above.
  std::vector<CopyFact> copies;
  std::vector<SyncFact> syncs;
  std::vector<CollectiveFact> collectives;
  std::vector<OperatorFact> operators;
  std::vector<PythonRow> python;
  std::vector<MemoryRecord> memory;  // lane: a thread
  std::vector<Mark> marks;           // lane: a thread
  std::vector<Flow> flows;
  std::vector<CounterSeries> counters;
  std::vector<MetaField> metadata;
  int64_t event_count = 0;
  bool fractional_time = false;

  size_t size() const { return start_ns.size(); }
};

// Adds events to rows. Ids are interned in the order of the file, so the result does not depend on threads.
class RowBuilder {
 public:
  explicit RowBuilder(const std::string& path) : path_(path) {}
  // `offset`: decompressed position of the event; the event's place in the array is counted here.
  void add(const Event& event, int64_t offset);
  // Counts an array entry that could not be used.
  void skip_entry() { ++rows_.event_count; }
  void lose(std::string_view name, std::string_view message, int64_t offset);
  FileRows& rows() { return rows_; }
  // Ends open B and async events as losses.
  FileRows finish();

 private:
  struct OpenEvent {
    StringId name = 0;
    uint8_t category = 0;
    int64_t start_ns = 0, offset = 0;
    uint32_t file_index = 0;
    int64_t correlation = -1, external_id = -1, stream = -1;
  };
  uint32_t thread_of(std::string_view pid, std::string_view tid);
  uint8_t category_of_text(std::string_view text);
  uint16_t stream_of(int64_t stream);
  void add_slice(const Event& event, int64_t offset);
  uint32_t push_row(const OpenEvent& open, int64_t dur_ns, uint32_t thread, bool joined);
  void add_facts(const Event& event, uint32_t row);
  void add_counter(const Event& event);
  void add_metadata(const Event& event);

  std::string path_;
  FileRows rows_;
  std::unordered_map<std::string, uint32_t> thread_ids_;
  std::unordered_map<int64_t, uint16_t> stream_ids_;
  std::unordered_map<std::string, size_t> counter_ids_;
  std::unordered_map<uint32_t, std::vector<OpenEvent>> open_;           // B … E by thread
  std::unordered_map<std::string, std::vector<OpenEvent>> open_async_;  // b … e by category, id, name
  std::string key_, last_key_;
  uint32_t last_thread_ = UINT32_MAX;
};

}  // namespace stageline::kineto
