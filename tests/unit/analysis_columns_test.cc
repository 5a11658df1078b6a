// An analysis declares its columns before it runs, and its answer has them: with the same types, units and help.
#include <doctest/doctest.h>

#include <set>

#include "analyses/analysis.h"
#include "engine/engine.h"
#include "model/pipeline_words.h"
#include "unit/source_dir.h"

using namespace stageline;

namespace {

// Runs of every kind that analyses need.
const char* const kInputs[] = {
    "readers/paddle-log/input",      "readers/op-table/input",          "readers/kineto/input",
    "readers/kineto-modules/input",  "readers/kineto-pipeline/input",   "readers/ascend/input",
    "readers/ascend-helper/input",   "readers/flight-recorder/input",   "readers/xplane/input",
    "readers/memory-snapshot/input", "readers/recording-kernels/input", "files/execution_trace"};

std::string text_of(const ColumnSpec& column) {
  return column.name + ", " + column.title + ", " + std::string(column_type_name(column.type)) + ": " + column.help;
}

}  // namespace

TEST_CASE("analyses: an answer has the columns that were declared before it ran") {
  std::set<std::string> compared, differ;
  for (const char* const input : kInputs) {
    const Result<Trace> trace = open_trace({source_dir() + "/tests/golden/" + input}, {});
    REQUIRE(trace);
    for (const Analysis* analysis : analyses()) {
      if (!suits(*analysis, *trace)) continue;
      AnalysisInput asked;
      asked.trace = &*trace;
      const Result<AnalysisResult> result = analysis->run(asked);
      if (!result) continue;
      for (const Table& table : result->tables) {
        CAPTURE(input);
        CAPTURE(analysis->name);
        CAPTURE(table.name());
        const auto declared = std::find_if(analysis->tables().begin(), analysis->tables().end(),
                                           [&](const TableSpec* one) { return one->name == table.name(); });
        REQUIRE(declared != analysis->tables().end());
        std::vector<std::string> expected, found;
        for (const ColumnSpec& column : in_words_of(*trace, **declared).columns) expected.push_back(text_of(column));
        for (const ColumnSpec& column : table.columns()) found.push_back(text_of(column));
        compared.insert(analysis->name + "/" + table.name());
        if ((*declared)->grows) {
          for (const std::string& column : expected)
            CHECK(std::find(found.begin(), found.end(), column) != found.end());
          if (found.size() > expected.size()) differ.insert(analysis->name);
        } else {
          CHECK(found == expected);
        }
      }
    }
  }
  CHECK(compared.size() > 110);
  CHECK(differ == std::set<std::string>{"operators"});  // memory was recorded in one of them
}

TEST_CASE("analyses: every declaration of a table can be read, and every analysis has one") {
  CHECK(flaws_of_tables() == std::vector<std::string>());
  for (const Analysis* analysis : analyses()) CHECK(!analysis->tables().empty());
}

TEST_CASE("analyses: the columns of a table have distinct names, and titles") {
  for (const Analysis* analysis : analyses())
    for (const TableSpec* table : analysis->tables()) {
      CAPTURE(analysis->name);
      CAPTURE(table->name);
      std::set<std::string> names;
      for (const ColumnSpec& column : table->columns) {
        CHECK(!column.title.empty());
        CHECK(names.insert(column.name).second);
      }
      CHECK(names.size() > 1);
    }
}
