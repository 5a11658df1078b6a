// The texts in STRING_IDS of one database, read only when a row names them. A 20 GB file may hold more text than fits
// into memory, and a pipeline needs little of it.
#pragma once

#include <cstdint>
#include <memory>

#include "base/sqlite_db.h"
#include "readers/ascend/part_builder.h"
#include "readers/common/number_map.h"

namespace stageline::ascend {

class DbTexts {
 public:
  DbTexts(const SqliteDb& db, PartBuilder& builder);
  DbTexts(const DbTexts&) = delete;

  // Returns the builder's id of the STRING_IDS row `id`; 0 for NULL. A missing row gives the text "#<id>" and is
  // counted.
  uint32_t of(const SqliteRows& rows, int column);
  uint32_t of(int64_t id);
  bool has(int64_t id);

 private:
  uint32_t find(int64_t id);  // kNone when there is no such row
  uint32_t look_up(int64_t id);
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  PartBuilder& builder_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  NumberMap known_;
};

}  // namespace stageline::ascend
