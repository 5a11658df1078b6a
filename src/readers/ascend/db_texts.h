// STRING_IDS of one database, as far as rows name them: a 20 GB file may hold more text than fits, of which a pipeline
// needs little.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/sqlite_db.h"
#include "readers/ascend/part_builder.h"
#include "readers/common/number_map.h"

namespace stageline::ascend {

class DbTexts {
 public:
  DbTexts(const SqliteDb& db, PartBuilder& builder);
  DbTexts(const DbTexts&) = delete;

  // The builder's id of STRING_IDS row `id`; 0 for NULL. A row that is missing reads "#<id>", and is counted.
  uint32_t of(const SqliteRows& rows, int column);
  uint32_t of(int64_t id);
  bool has(int64_t id);

 private:
  uint32_t find(int64_t id);  // kNone without the row
  uint32_t look_up(int64_t id);
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  PartBuilder& builder_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  NumberMap known_;
};

}  // namespace stageline::ascend
