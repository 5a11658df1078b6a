// Frame: shows a table as columns in batches, for Arrow and numpy. Columns that already have the requested form are
// exposed without a copy and keep their owner alive; the others are converted batch by batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "facts/run.h"
#include "model/table.h"
#include "model/trace.h"
#include "profile/slice_select.h"
#include "profile/torch_view.h"
#include "sql/answer.h"
#include "sql/session.h"

namespace stageline::python {

// A run that Python holds. Tables made of it share in it, so it lives as long as the last array that looks into it.
struct OpenRun {
  Trace trace;
  std::shared_ptr<const Run> run;                                           // of `trace`
  std::vector<std::string> paths;                                           // what the user named
  std::vector<std::string> words;                                           // the flags that it was opened with
  std::shared_ptr<sql::SessionPool> sql = nullptr;                          // connections for queries
  std::shared_ptr<TorchRowStore> rows = std::make_shared<TorchRowStore>();  // what questions to it share
};

enum class Form : uint8_t {
  kInt64,    // Arrow "l"
  kFloat64,  // "g"
  kUint32,   // "I"
  kInt32,    // "i"
  kUtf8,     // "u": offsets and bytes
  kCode32,   // "I" into a dictionary of texts
  kCode8,    // "C" into a dictionary of texts
};

struct FrameColumn {
  std::string name, title, type, unit, help;
  Form form;
};

// Texts as Arrow's utf8 array: text i is bytes[offsets[i], offsets[i + 1]).
struct Texts {
  std::vector<int32_t> offsets = {0};
  std::string bytes;
  void add(std::string_view text);
  size_t size() const { return offsets.size() - 1; }
};

struct FrameData {
  const void* values = nullptr;                       // of utf8 the offsets
  const void* bytes = nullptr;                        // of utf8
  std::shared_ptr<const std::vector<uint8_t>> valid;  // a bit a row, set where there is a value; null: everywhere
  int64_t nulls = 0;
  std::shared_ptr<const void> owner;  // of values and bytes
};

class Frame {
 public:
  Frame(std::string name, std::string title) : name_(std::move(name)), title_(std::move(title)) {}
  virtual ~Frame() = default;

  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }
  const std::vector<FrameColumn>& columns() const { return columns_; }
  virtual int64_t row_count() const = 0;
  virtual size_t batch_count() const = 0;
  virtual int64_t batch_rows(size_t batch) const = 0;
  // Returns one column of one batch. Thread-safe. Views cost nothing; others O(rows of the batch).
  virtual FrameData data(size_t batch, size_t column) const = 0;
  // Returns the texts of kCode32 and kCode8 columns; the same for every batch.
  virtual std::shared_ptr<const Texts> dictionary(size_t) const { return nullptr; }
  // The table that this shows, where one stands behind it: for CSV, JSON and text.
  virtual const Table* table() const { return nullptr; }

 protected:
  std::vector<FrameColumn> columns_;

 private:
  std::string name_, title_;
};

// An answer. Numbers are views of the table.
std::shared_ptr<const Frame> table_frame(std::shared_ptr<const Table> table);

// The rows of a query, which own themselves.
std::shared_ptr<const Frame> sql_frame(std::shared_ptr<const sql::AnswerTable> answer);

// Returns the slices of a run, one batch or more for each rank. Start and duration are views if all slices of a rank
// are selected and its clock was not moved. `columns`: empty for all. Errors: kUsage naming an unknown column.
Result<std::shared_ptr<const Frame>> slice_frame(std::shared_ptr<const OpenRun> run, const SliceCondition& where,
                                                 const std::vector<std::string>& columns, int64_t batch_rows);

// One slice by the id that slices have. Errors: kUsage for an id that the run does not have.
Result<std::shared_ptr<const Frame>> one_slice_frame(std::shared_ptr<const OpenRun> run, uint64_t id,
                                                     const std::vector<std::string>& columns);

struct EventRows {
  std::shared_ptr<const Frame> frame;
  bool fractional_times, all_starts, whole_durations;  // they decide the types of HTA's columns
};
// The events of a rank that HTA's tables hold, in the order of the file, with these arguments, or all that occur
// without `names`. Reads the rank's files. Errors: kUsage for a rank that the run does not have, else as
// event_arguments().
Result<EventRows> event_rows(std::shared_ptr<const OpenRun> run, int32_t rank, const std::vector<std::string>& names);

// The pipeline's cells. Errors: as slice_frame().
Result<std::shared_ptr<const Frame>> cell_frame(std::shared_ptr<const OpenRun> run,
                                                const std::vector<std::string>& columns);

}  // namespace stageline::python
