#include <doctest/doctest.h>

#include "cli/sql_prompt.h"
#include "sql/answer.h"
#include "sql/session.h"

using namespace stageline;

namespace {

std::vector<std::string> words_that_start(const std::string& beginning) {
  std::vector<std::string> found;
  for (const char* word : {"slices", "slice_id", "steps"})
    if (std::string_view(word).starts_with(beginning)) found.emplace_back(word);
  return found;
}

LineEditor::Event type(LineEditor& editor, std::string_view keys) {
  LineEditor::Event last = LineEditor::Event::kNone;
  for (const char key : keys) last = editor.key(static_cast<unsigned char>(key));
  return last;
}

}  // namespace

TEST_CASE("sql: statements are split at semicolons outside texts, names and comments") {
  using V = std::vector<std::string_view>;
  CHECK(sql::statements_of("SELECT 1; SELECT 2") == V{"SELECT 1", " SELECT 2"});
  CHECK(sql::statements_of("SELECT ';''', \"a;b\", [c;d]; -- no;\n/* ; */") == V{"SELECT ';''', \"a;b\", [c;d]"});
  CHECK(sql::statements_of(" ;; \n").empty());
  CHECK(sql::statements_of("SELECT 'open;").size() == 1);
  CHECK(sql::statements_of("SELECT 1 /* open ;").size() == 1);
}

TEST_CASE("sql: a column is as wide as its widest value") {
  sql::AnswerTable answer;
  answer.begin({{"a", ""}, {"b_ns", "ns"}, {"c", ""}});
  answer.row({int64_t{1}, std::monostate(), int64_t{7}});
  answer.row({2.5, int64_t{3}, std::string_view("x")});
  answer.row({std::monostate(), int64_t{4}, 0.25});
  REQUIRE(answer.row_count() == 3);
  CHECK(answer.columns()[0].type == sql::SqlType::kReal);
  CHECK(answer.columns()[0].reals == std::vector<double>{1, 2.5, 0});
  CHECK(answer.columns()[0].nulls == 1);
  CHECK(answer.columns()[1].integers == std::vector<int64_t>{0, 3, 4});
  CHECK(answer.columns()[2].text(0) == "7");
  CHECK(answer.columns()[2].text(1) == "x");
  CHECK(answer.columns()[2].text(2) == "0.25");
  CHECK(sql::answer_text(answer, 0, false) == "  a  b_ns  c\n  1     –  7\n2.5     3  x\n  –     4  0.25\n");
}

TEST_CASE("sql: long texts are cut in the middle, letters stay whole") {
  sql::AnswerTable answer;
  answer.begin({{"name", ""}});
  answer.row({std::string_view("前向传播的一个很长很长的名字")});
  const std::string text = sql::answer_text(answer, 12, false);
  CHECK(text.find("…") != std::string::npos);
  CHECK(text.find("\xef\xbf\xbd") == std::string::npos);
  CHECK(text.substr(text.find('\n') + 1).starts_with("前"));
}

TEST_CASE("sql: the prompt edits a line") {
  LineEditor editor(words_that_start);
  type(editor, "SELECT 12");
  type(editor, "\x1b[D\x7f");  // left, backspace
  CHECK(editor.text() == "SELECT 2");
  type(editor, "\x01\x1b[3~s\x05;");  // home, delete, end
  CHECK(editor.text() == "sELECT 2;");
  CHECK(type(editor, "\r") == LineEditor::Event::kLine);
  CHECK(editor.take() == "sELECT 2;");
}

TEST_CASE("sql: the prompt completes words, recalls lines and erases words and letters") {
  LineEditor editor(words_that_start);
  type(editor, "SELECT 2;\r");
  editor.take();
  type(editor, "FROM sl\t");
  CHECK(editor.text() == "FROM slice");
  CHECK(editor.offers() == std::vector<std::string>{"slices", "slice_id"});
  type(editor, "\x1b[A");
  CHECK(editor.text() == "SELECT 2;");
  type(editor, "\x1b[B");
  CHECK(editor.text() == "FROM slice");
  type(editor, "\x17");
  CHECK(editor.text() == "FROM ");
  type(editor, "\x15");
  type(editor, "前向\x7f");
  CHECK(editor.text() == "前");
  CHECK(type(editor, "\x03") == LineEditor::Event::kInterrupt);
  CHECK(editor.text().empty());
  CHECK(type(editor, "\x04") == LineEditor::Event::kEnd);
}
