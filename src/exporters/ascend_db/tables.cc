#include "exporters/ascend_db/tables.h"

#include <cassert>

#include "base/embedded.h"

namespace stageline::ascend_db {
namespace {

// Runs one part of tables.sql.
Status run_part(const SqliteDb& db, const std::string& name) {
  const std::string all = embedded_file("ascend-tables");
  const size_t begin = all.find("\n-- " + name + "\n");
  assert(begin != std::string::npos);
  return db.run(all.substr(begin, all.find("\n\n", begin) - begin));
}

}  // namespace

Status create_tables(const SqliteDb& db, AscendLevel level, bool step_time) {
  TRY_OK(run_part(db, "always"));
  if (step_time) TRY_OK(run_part(db, "steps"));
  if (level != AscendLevel::kNone) TRY_OK(run_part(db, "work"));
  return run_part(db, "enumerations");
}

Status create_analysis_tables(const SqliteDb& db, AscendLevel level) {
  TRY_OK(run_part(db, "step trace"));
  return level == AscendLevel::kLevel1 ? run_part(db, "communication") : Status{};
}

int64_t Strings::operator()(std::string_view text) {
  const auto [at, fresh] = ids_.try_emplace(std::string(text), static_cast<int64_t>(order_.size()));
  if (fresh) order_.push_back(&at->first);
  return at->second;
}

void Strings::write(SqliteInsert& into) const {
  for (size_t i = 0; i < order_.size(); ++i) into.integer(i).text(*order_[i]).next();
}

}  // namespace stageline::ascend_db
