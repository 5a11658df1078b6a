#include <doctest/doctest.h>
#include <simdjson.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/csv.h"
#include "base/text.h"
#include "exporters/exporter.h"
#include "exporters/table_text.h"

using namespace stageline;

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

Table sample() {
  Table table("balance", "stage balance",
              {{"stage", "stage", ColumnType::kInteger, "Pipeline stage."},
               {"span_ns", "span", ColumnType::kDuration, "How long."},
               {"bubble_share", "bubble", ColumnType::kShare, "Share of waiting."},
               {"ratio", "to median", ColumnType::kRatio, "Over the median stage."},
               {"note", "note", ColumnType::kText, "Free text."}});
  table.add_row({int64_t{0}, int64_t{66'800'000}, 0.364, 1.0, std::string("plain")});
  table.add_row({int64_t{10}, kNullInteger, kNan, 1.634, std::string("a, \"b\"\nc")});
  table.add_row({kNullInteger, int64_t{-1}, 0.0, kNan, std::string("慢 \x1b[31mstage")});
  return table;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct TempFolder {
  std::filesystem::path path;
  TempFolder() {
    path = std::filesystem::temp_directory_path() / ("stageline-tables-" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
  size_t count() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {})); }
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Fixture {
  Trace trace;
  std::vector<Table> tables;
  Headline headline;
  std::vector<Finding> findings;
  Fixture() {
    trace.format = "test";
    trace.parts.resize(1);
    trace.cells.add({0, 0, CellKind::kForward, 0, 0, 0, 10, kNoSlice});
    trace.diagnostics.add({"test.flaw", Severity::kLoss, {"kept the rest", ""}, 1, {"a.log", 0, 7}});
    Table cells("cells", "cells", {{"dur_ns", "duration", ColumnType::kDuration, "x"}});
    for (int64_t i = 0; i < 10'000; ++i) cells.add_row({i});
    tables = {cells, sample()};
    headline.title.en = "Half of it is waiting.";
    findings.push_back({"stage.slow", 0.185, "2.08×", "of the median", "", "Move </script> layers", "", "", ""});
  }
  ExportInput input() const { return {trace, trace.diagnostics, tables, headline, findings, {}}; }
};

}  // namespace

TEST_CASE("text tables align by what the eye sees") {
  const std::vector<std::string> lines = lines_of(format_table_text(sample(), 0, false));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "stage  span ms  bubble %  to median ×  note");
  CHECK(lines[1] == "    0   66.800      36.4         1.00  plain");
  CHECK(lines[2] == "   10        –         –         1.63  a, \"b\" c");
  CHECK(lines[3] == "    –    0.000       0.0            –  慢  [31mstage");  // no escape reaches a terminal
  const std::string coloured = format_table_text(sample(), 0, true);
  CHECK(coloured.starts_with("\x1b[2mstage"));
  CHECK(coloured.find("\x1b[0m\n    0") != std::string::npos);
}

TEST_CASE("wide CJK text keeps the columns straight") {
  Table table("t", "t", {{"a", "名称", ColumnType::kText, ""}, {"b", "b", ColumnType::kInteger, ""}});
  table.add_row({std::string("前向"), int64_t{1}});
  table.add_row({std::string("abcdef"), int64_t{20}});
  for (const std::string& line : lines_of(format_table_text(table, 0, false))) CHECK(display_width(line) == 10);
}

TEST_CASE("a long last column wraps within the width and loses nothing") {
  Table table("t", "t", {{"n", "n", ColumnType::kInteger, ""}, {"m", "message", ColumnType::kText, ""}});
  std::string long_text;
  for (int i = 0; i < 40; ++i) long_text += (i ? " word" : "word") + std::to_string(i);
  table.add_row({int64_t{1}, long_text});
  table.add_row({int64_t{2}, std::string(200, 'x')});
  const std::vector<std::string> lines = lines_of(format_table_text(table, 40, false));
  std::string joined;
  for (const std::string& line : lines) {
    CHECK(display_width(line) <= 40);
    joined += line.substr(std::min<size_t>(3, line.size())) + " ";
  }
  for (int i = 0; i < 40; ++i) CHECK(joined.find("word" + std::to_string(i)) != std::string::npos);
  CHECK(std::count(joined.begin(), joined.end(), 'x') == 200);
}

TEST_CASE("text tables for people have short names, units, times from the first one, and the word \"none\"") {
  Table table("t", "things",
              {{"name", "name", ColumnType::kText, ""},
               {"at_ns", "at", ColumnType::kTime, ""},
               {"size_bytes", "size", ColumnType::kInteger, ""}});
  CHECK(format_table_text(table, 0, false) == "things: none\n");
  const std::string kernel = "void at::native::elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)";
  table.add_row({kernel, int64_t{1'795'292'442'839'375'000}, int64_t{12'300'000}});
  table.add_row({std::string(300, 'a') + std::string(300, 'b'), int64_t{1'795'292'442'841'375'000}, kNullInteger});
  const std::vector<std::string> lines = lines_of(format_table_text(table, 0, false));
  REQUIRE(lines.size() == 4);
  CHECK(lines[1].starts_with("elementwise_kernel"));
  CHECK(lines[1].find("0.000") != std::string::npos);
  CHECK(lines[1].find("12.3\u202fMB") != std::string::npos);
  CHECK(lines[2].find("a…b") != std::string::npos);
  CHECK(lines[2].find("2.000") != std::string::npos);
  CHECK(display_width(lines[2]) < 90);
  CHECK(lines[3].find("1795292442839.375 ms") != std::string::npos);
  const std::string wide = format_table_text(table, 0, false, SIZE_MAX, true);
  CHECK(wide.find(kernel) != std::string::npos);
  CHECK(wide.find(std::string(300, 'a')) != std::string::npos);
}

TEST_CASE("kernels that would read the same keep their whole names") {
  Table table("t", "t", {{"name", "name", ColumnType::kText, ""}, {"n", "n", ColumnType::kInteger, ""}});
  for (const char* type : {"float, float, float, float", "double, double, double, double"})
    table.add_row({"void my_namespace::softmax<" + std::string(type) + ">(int)", int64_t{1}});
  CHECK(format_table_text(table, 200, false).find("softmax<float") != std::string::npos);
}

TEST_CASE("CSV comes back as it was written") {
  const Table table = sample();
  const std::string csv = format_table_csv(table);
  std::string_view rest = csv;
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t lines = 0;
  REQUIRE(next_csv_record(rest, fields, storage, &lines));
  REQUIRE(fields.size() == 5);
  CHECK(fields[1] == "span_ns");
  for (size_t r = 0; r < table.row_count(); ++r) {
    REQUIRE(next_csv_record(rest, fields, storage, &lines));
    for (size_t c = 0; c < fields.size(); ++c) CHECK(fields[c] == table.raw_text(r, c));
  }
  CHECK_FALSE(next_csv_record(rest, fields, storage, &lines));
}

TEST_CASE("a hundred thousand rows print at once") {
  Table table("t", "t", {{"a_ns", "a", ColumnType::kTime, ""}, {"b", "b", ColumnType::kText, ""}});
  for (int64_t i = 0; i < 100'000; ++i) table.add_row({i * 1'000'003, std::string("forward")});
  const std::string text = format_table_text(table, 80, false);
  CHECK(std::count(text.begin(), text.end(), '\n') == 100'001);
  CHECK(format_table_csv(table).size() > 100'000 * 10);
}

TEST_CASE("the JSON exporter writes one whole object") {
  const TempFolder folder;
  const Fixture fixture;
  const std::string path = folder.file("all.json");
  const Status status = find_exporter("json")->write(fixture.input(), path);
  REQUIRE_MESSAGE(status, (status ? "" : status.error().text()));
  simdjson::dom::parser parser;
  simdjson::dom::element doc;
  REQUIRE(parser.load(path).get(doc) == simdjson::SUCCESS);
  CHECK(std::string_view(doc["meta"]["format"]) == "test");
  CHECK(int64_t(doc["meta"]["ranks"]) == 1);
  CHECK(std::string_view(doc["findings"].at(0)["title_en"]) == "Move </script> layers");
  CHECK(int64_t(doc["diagnostics"].at(0)["first"]["byte"]) == 7);
  CHECK(doc["diagnostics"].at(0)["first"]["line"].is_null());
  CHECK(doc["tables"].at(0)["rows"].get_array().value().size() == 10'000);
  const simdjson::dom::element balance = doc["tables"].at(1);
  CHECK(std::string_view(balance["columns"].at(1)["unit"]) == "ns");
  CHECK(std::string_view(balance["columns"].at(2)["type"]) == "share");
  CHECK(int64_t(balance["rows"].at(0)["span_ns"]) == 66'800'000);
  CHECK(balance["rows"].at(1)["bubble_share"].is_null());
}

TEST_CASE("the CSV exporter writes the cells") {
  const TempFolder folder;
  const Fixture fixture;
  REQUIRE(find_exporter("csv")->write(fixture.input(), folder.file("cells.csv")));
  const std::string text = contents(folder.file("cells.csv"));
  CHECK(text == format_table_csv(fixture.tables[0]));
  Fixture without;
  without.tables.clear();
  const Status status = find_exporter("csv")->write(without.input(), folder.file("none.csv"));
  CHECK_FALSE(status);
  CHECK(folder.count() == 1);
}

TEST_CASE("the SQLite exporter documents its columns and keeps nulls") {
  const TempFolder folder;
  Fixture fixture;
  fixture.tables.push_back(Table("Columns", "a name that is taken",
                                 {{"a", "a", ColumnType::kInteger, ""}, {"A", "A", ColumnType::kInteger, ""}}));
  const std::string path = folder.file("run.db");
  const Status status = find_exporter("sqlite")->write(fixture.input(), path);
  REQUIRE_MESSAGE(status, (status ? "" : status.error().text()));
  CHECK(folder.count() == 1);  // no journal, no partial file
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  const auto number = [&](const char* sql) {
    sqlite3_stmt* statement = nullptr;
    REQUIRE_MESSAGE(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr) == SQLITE_OK, sqlite3_errmsg(db));
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    const int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
  };
  CHECK(number("SELECT count(*) FROM cells") == 10'000);
  CHECK(number("SELECT sum(dur_ns) FROM cells") == 49'995'000);
  CHECK(number("SELECT count(*) FROM balance WHERE bubble_share IS NULL") == 1);
  CHECK(number("SELECT count(*) FROM balance WHERE typeof(span_ns) = 'integer'") == 2);
  CHECK(number("SELECT count(*) FROM columns WHERE table_name = 'balance'") == 5);
  CHECK(number("SELECT count(*) FROM columns WHERE unit = 'ns'") == 2);
  CHECK(number("SELECT count(*) FROM \"Columns_2\"") == 0);
  CHECK(number("SELECT count FROM diagnostics WHERE name = 'test.flaw' AND line IS NULL AND byte = 7") == 1);
  CHECK(number("SELECT count(*) FROM findings WHERE id = 'stage.slow'") == 1);
  CHECK(number("SELECT value FROM meta WHERE key = 'ranks'") == 1);
  CHECK(number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") == 1);
  sqlite3_close(db);
}

TEST_CASE("table exporters say where they cannot write") {
  const Fixture fixture;
  for (const char* name : {"csv", "json", "sqlite"}) {
    const Status status = find_exporter(name)->write(fixture.input(), "/nonexistent-folder/out");
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kIo);
  }
  const Status pipe = find_exporter("sqlite")->write(fixture.input(), "/dev/null");
  REQUIRE_FALSE(pipe);
  CHECK(pipe.error().code == ErrorCode::kUsage);
}

TEST_CASE("tables: times since 1970 count from the run's first start, in every table of it") {
  constexpr int64_t kRun = 1'700'000'000'000'000'000;
  Table table("late", "Late", {{"start_ns", "start", ColumnType::kTime, ""}});
  table.add_row({kRun + 6'000'000});
  table.add_row({kRun - 2'000'000});
  const std::string text = format_table_text(table, 0, false, SIZE_MAX, false, kRun);
  CHECK(text.find("6.000") != std::string::npos);
  CHECK(text.find("-2.000") != std::string::npos);
  CHECK(text.find("the start of the run") != std::string::npos);
  CHECK(format_table_text(table, 0, false).find("8.000") != std::string::npos);  // without one: the first here
}

TEST_CASE("tables: a page cuts a text of over 16 KiB at a character; JSON has it whole, in pieces of a document") {
  Table table("names", "Names", {{"name", "name", ColumnType::kText, ""}});
  std::string name = "ab";
  while (name.size() < 100'000) name += "\u6162";
  table.add_row({name});
  table.add_row({std::string("short")});
  JsonWriter page, whole, pieces;
  append_table_page(page, table, 10, 0);
  CHECK(page.text().find(name.substr(0, 16'382) + "\u2026\"") != std::string::npos);
  CHECK(page.text().find("[\"short\"]") != std::string::npos);
  append_table_json(whole, table);
  CHECK(whole.text().find(name) != std::string::npos);
  std::string joined;
  size_t count = 0;
  const auto keep = [&](std::string_view text) { joined += text; };
  append_table_json(pieces, table, [&](JsonWriter& json) { json.hand_over(keep), ++count; });
  pieces.hand_over(keep);
  CHECK(count == 1);
  CHECK(joined == whole.text());
  CHECK(pieces.text().empty());
}

TEST_CASE("tables: rows that are made later are those of a table that has them, block by block and one by one") {
  const std::vector<ColumnSpec> columns = {{"n", "n", ColumnType::kInteger, ""},
                                           {"name", "name", ColumnType::kText, ""}};
  const size_t rows = 2 * kBlockRows + 17;
  size_t max = 0;
  const auto make = [&max](size_t first, size_t count, Table& out) {
    max = std::max(max, count);
    for (size_t n = first; n < first + count; ++n) out.add_row({static_cast<int64_t>(n), "row " + std::to_string(n)});
  };
  Table now("rows", "Rows", columns);
  make(0, rows, now);
  max = 0;
  const Table later = Table::later(Table("rows", "Rows", columns), rows, make);
  CHECK(later.row_count() == rows);
  CHECK(format_table_csv(later) == format_table_csv(now));
  CHECK(max <= kBlockRows);
  CHECK(format_table_text(later, 0, false, 5) == format_table_text(now, 0, false, 5));
  JsonWriter json, same;
  append_table_page(json, later, 100, 0, kBlockRows - 3);
  append_table_page(same, now, 100, 0, kBlockRows - 3);
  CHECK(json.text() == same.text());
  CHECK(max <= kBlockRows);
  CHECK(later.text(rows - 1, 1) == "row " + std::to_string(rows - 1));  // makes it whole
  const Table copy = later;
  CHECK(copy.integer(kBlockRows, 0) == static_cast<int64_t>(kBlockRows));
  CHECK(Table::later(Table("none", "None", columns), 0, make).row_count() == 0);
}
