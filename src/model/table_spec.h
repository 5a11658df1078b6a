// The declaration of a table: its name, title and columns. words.json of the room that fills it has it:
//
//     "tables": {"links": {"slow-links": {          // the analysis or command, the table
//       "title": "Links that are slow, and what they cost",
//       "summary": "what is slow in most steps and worth 1 % of a step",
//       "columns": [["saving_share", "saving", "share", "Of the mean step, …"], …]}}}
//     Table table(declared_table("links/slow-links"));
//
// A column is [name, title, type, help]. A text instead of a column stands for all columns of that name in
// "column_sets", which any words.json may have. A table that looks different under an option or as another tool's has a
// further entry with a variant: "slow-links/hta". "grows": the run may add columns, depending on what was recorded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

enum class ColumnType : uint8_t {
  kInteger,  // counts and ids
  kReal,     // plain numbers
  kText,
  kDuration,  // int64 nanoseconds
  kTime,      // int64 nanoseconds since the trace's own zero or the Unix epoch
  kShare,     // fraction of 1, shown as percent
  kRatio,     // shown as "1.63×"
};

// Returns the type as words.json and machine formats name it: "duration".
std::string_view column_type_name(ColumnType type);

struct ColumnSpec {
  std::string name;   // machine name, unit last
  std::string title;  // for people, without unit: "span bubble"
  ColumnType type;
  std::string help;  // one sentence: how the value is defined, and its source
};

struct TableSpec {
  std::string name;     // "slow-links"
  std::string title;    // for people
  std::string summary;  // one line, of tables of analyses and of SQL
  std::vector<ColumnSpec> columns;
  bool grows = false;
  std::vector<ColumnSpec> options = {};  // the arguments of a function of SQL, declared as columns are
};

// Returns the table with this id, "links/slow-links", and variant. Asserts that there is one.
const TableSpec& declared_table(std::string_view id, std::string_view variant = {});

// Returns the tables of an analysis, without variants, in the order of words.json.
const std::vector<const TableSpec*>& declared_tables(std::string_view owner);

// Returns what is wrong with the declarations: a type or a set of columns that does not exist, a table that is declared
// twice. For a test.
const std::vector<std::string>& flaws_of_tables();

}  // namespace stageline
