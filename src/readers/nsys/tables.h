// The tables of an export as all of its readers see them: rows, texts by number, processes, stamps.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/sqlite_db.h"
#include "readers/common/number_map.h"
#include "readers/nsys/parts.h"
#include "readers/nsys/process.h"

namespace stageline::nsys {

inline constexpr int64_t kNone32 = 4294967295;  // "no number" in 32-bit columns

class Tables {
 public:
  // Reads StringIds.
  Tables(const SqliteDb& database, Report& into);

  const SqliteDb& db;
  Report& report;
  std::map<int64_t, std::unique_ptr<Process>> processes;       // by vm and pid
  std::unordered_map<int64_t, std::string_view> thread_names;  // by globalTid

  // Calls use(rows) for every row; columns as in rows_of(). False where the table or a column is missing.
  template <class Use>
  bool scan(std::string_view table, std::initializer_list<std::string_view> columns, Use use) {
    std::string missing;
    SqliteRows rows = rows_of(db, table, columns, &missing);
    while (rows.next()) use(rows);
    note_end(table, rows, missing);
    return missing.empty();
  }

  // Null where there are too many processes.
  Process* process(int64_t global) {
    const int64_t id = process_of(global);
    return last_ && last_->process == id ? last_ : find_process(id);
  }
  // A text of StringIds, "" without one, and in a process' own texts.
  std::string_view raw_text(int64_t id) const {
    const uint32_t at = text_of_id_.get(id);
    return at == NumberMap::kNone ? std::string_view() : std::string_view(texts_[at]);
  }
  uint32_t text(Process& p, int64_t id) {
    const uint32_t known = p.texts.get(id);
    return known != NumberMap::kNone ? known : p.texts.put(id, p.out.text(raw_text(id)));
  }

  static uint32_t correlation(const SqliteRows& rows, int column) {
    const int64_t value = rows.integer_or(column, kNone32);
    return value >= 0 && value < kNone32 ? static_cast<uint32_t>(value) : kNoCorrelation;
  }
  // Returns −1 for values that are not times.
  int64_t time(const SqliteRows& rows, int column) {
    const int type = rows.type(column);
    if (type == SQLITE_NULL || type == SQLITE_BLOB) return -1;
    const int64_t value = rows.integer(column);
    if (value > kEpochTimes) report.is_normalized = true;
    return value;
  }

  Process::Thread& thread(Process& p, int64_t global_tid) const {
    return p.thread(global_tid, [&] {
      const auto name = thread_names.find(global_tid);
      return name == thread_names.end() ? std::string_view() : name->second;
    });
  }
  uint32_t host_row(Process& p, gpu_rows::Kind kind, int64_t global_tid, int64_t start, int64_t end, uint32_t name,
                    uint32_t number = kNoCorrelation);

 private:
  static constexpr int64_t kEpochTimes = 100'000'000'000'000'000;  // timestamps above are of --ts-normalize
  void note_end(std::string_view table, const SqliteRows& rows, const std::string& missing);
  Process* find_process(int64_t id);
  void make_room(Process& p) const;

  std::vector<std::string> texts_;
  NumberMap text_of_id_;
  Process* last_ = nullptr;
};

// NVTX_EVENTS: marks, pushes, ranges, and what NCCL says of its calls there.
void read_ranges(Tables& tables);

}  // namespace stageline::nsys
