// Slow answers: each is made once, kept within bounds, and blocks no request; and the routes that use them.
#include "server/http/answer_desk.h"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "analyses/analysis.h"
#include "base/json_writer.h"
#include "exporters/table_text.h"
#include "make_trace.h"
#include "pipeline/cells/link_cells.h"
#include "server/page/answer_json.h"
#include "server/page/routes.h"
#include "server/page/view_run.h"

namespace stageline {
namespace {

constexpr auto kLong = std::chrono::milliseconds(60'000);  // until it is done: the test fails only where it never is

// A gate that works wait at.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

std::string text_of(const AnswerDesk::Answer& answer) {
  REQUIRE(answer.done);
  REQUIRE(*answer.done);
  return **answer.done;
}

std::unique_ptr<ViewRun> small_run(RunAnswers::Read other = {}) {
  testing::TraceSpec spec;
  spec.steps = 2;
  auto run = std::make_unique<ViewRun>("small", std::vector<std::string>{"small"});
  Trace trace = testing::make_1f1b_trace(spec);
  link_cells(trace);
  if (other) run->set_other("other", {"other"}, std::move(other));
  run->set_trace(std::move(trace));
  return run;
}

// Asks until the answer is there.
ApiAnswer settled(const ViewRun& run, const std::string& target) {
  for (;;) {
    ApiAnswer answer = api_answer(run, target);
    if (answer.status != 202) return answer;
    CHECK(answer.body.find("\"seconds\":") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("answers: each answer is made once and kept, and so is an error") {
  AnswerDesk desk;
  std::atomic<int> made = 0;
  const auto work = [&]() -> Result<std::string> {
    ++made;
    return std::string("answer");
  };
  CHECK(text_of(desk.ask("key", work, kLong)) == "answer");
  CHECK(text_of(desk.ask("key", work, kLong)) == "answer");
  CHECK(made == 1);
  const AnswerDesk::Answer failed =
      desk.ask("bad", []() -> Result<std::string> { return Error{ErrorCode::kBadInput, "no", {}, "yes"}; }, kLong);
  REQUIRE(failed.done);
  CHECK_FALSE(*failed.done);
  CHECK(failed.done->error().what == "no");
  const AnswerDesk::Answer full = desk.ask("full", []() -> Result<std::string> { throw std::bad_alloc(); }, kLong);
  REQUIRE(full.done);
  CHECK(full.done->error().code == ErrorCode::kLimit);
  CHECK_FALSE(desk.busy());
}

TEST_CASE("answers: a slow answer does not delay others, and the latest question is answered first") {
  AnswerDesk desk;
  Gate gate;
  std::mutex mutex;
  std::string order;
  const auto slow = [&]() -> Result<std::string> {
    gate.pass();
    return std::string("slow");
  };
  const auto quick = [&](const char* name) {
    return [&, name]() -> Result<std::string> {
      const std::lock_guard lock(mutex);
      order += name;
      return std::string(name);
    };
  };
  CHECK_FALSE(desk.ask("slow 1", slow).done);
  CHECK(text_of(desk.ask("beside", quick("-"), kLong)) == "-");  // a second thread
  CHECK_FALSE(desk.ask("slow 2", slow).done);
  CHECK(desk.busy());
  while (!desk.ask("slow 2", slow).begun) std::this_thread::yield();
  for (const char* name : {"a", "b", "c"}) CHECK_FALSE(desk.ask(name, quick(name)).begun);
  CHECK_FALSE(desk.ask("a", quick("a")).done);  // asked again: before the others
  gate.open();
  for (const char* name : {"a", "b", "c"}) CHECK(text_of(desk.ask(name, quick(name), kLong)) == name);
  CHECK(order.starts_with("-a"));
  CHECK(order.find('c') < order.find('b'));
}

TEST_CASE("answers: when too many wait, the oldest is dropped, and made when it is asked for again") {
  AnswerDesk desk;
  Gate gate;
  std::atomic<size_t> made = 0;
  const auto slow = [&]() -> Result<std::string> {
    gate.pass();
    return std::string();
  };
  const auto quick = [&]() -> Result<std::string> {
    ++made;
    return std::string("x");
  };
  for (const char* key : {"slow 1", "slow 2"}) {
    desk.ask(key, slow);
    while (!desk.ask(key, slow).begun) std::this_thread::yield();
  }
  const size_t asked = AnswerDesk::kMaxWaiting + 10;
  for (size_t i = 0; i < asked; ++i) desk.ask("key " + std::to_string(i), quick);
  gate.open();
  for (size_t i = 10; i < asked; ++i) CHECK(text_of(desk.ask("key " + std::to_string(i), quick, kLong)) == "x");
  CHECK(made == AnswerDesk::kMaxWaiting);
  CHECK(text_of(desk.ask("key 0", quick, kLong)) == "x");
}

TEST_CASE("answers: the bytes kept are bounded, and the newest answer stays") {
  AnswerDesk desk;
  std::atomic<int> made = 0;
  const auto large = [&]() -> Result<std::string> {
    ++made;
    return std::string(AnswerDesk::kMaxKeptBytes / 3, 'x');
  };
  for (const char* key : {"a", "b", "c", "d"}) CHECK(desk.ask(key, large, kLong).done);
  CHECK(desk.ask("d", large, kLong).done);
  CHECK(made == 4);
  CHECK(desk.ask("a", large, kLong).done);  // the oldest was forgotten
  CHECK(made == 5);
}

TEST_CASE("answers: each route gives its answer") {
  const auto run = small_run();
  const ApiAnswer list = api_answer(*run, "/api/answers");
  CHECK(list.body.find("\"name\":\"pipeline-summary\"") != std::string::npos);
  CHECK(list.body.find("temporal-breakdown") == std::string::npos);  // no slices
  CHECK(list.body.find("\"other\":null") != std::string::npos);
  const ApiAnswer reported = settled(*run, "/api/explain");
  CHECK(reported.status == 200);
  CHECK(reported.body.find("show no problem") != std::string::npos);
  const ApiAnswer tables = settled(*run, "/api/answer?name=pipeline-summary");
  CHECK(tables.status == 200);
  CHECK(tables.body.find("\"row_count\":") != std::string::npos);
  CHECK(tables.body.find("\"origin_ns\":\"") != std::string::npos);
  for (const char* wrong : {"/api/answer", "/api/answer?name=nothing", "/api/answer?name=temporal-breakdown",
                            "/api/answer?name=trace-diff", "/api/compare", "/api/clocks"})
    CHECK_MESSAGE(api_answer(*run, wrong).status == 404, wrong);
  for (const char* wrong : {"/api/answer?name=pipeline-summary&x=1", "/api/answer?name=stragglers&control=/etc/passwd"})
    CHECK_MESSAGE(api_answer(*run, wrong).status == 400, wrong);
}

TEST_CASE("answers: rows of one table, from a row on") {
  const auto run = small_run();
  const auto of = [&](const char* more) {
    return settled(*run, std::string("/api/answer?name=pipeline-summary") + more);
  };
  const std::string all = of("").body, rest = of("&page_of=steps&from=1").body, none = of("&page_of=steps&from=7").body;
  CHECK(all.find("\"name\":\"ranks\"") != std::string::npos);
  CHECK(rest.find("\"name\":\"ranks\"") == std::string::npos);
  const auto rows = [](const std::string& body) { return body.substr(body.find("\"rows\":")); };
  const auto first_of = [&](const std::string& body) { return rows(body).substr(7, 4); };
  CHECK(first_of(of("&page_of=steps").body) == "[[0,");
  CHECK(first_of(rest) == "[[1,");
  CHECK(first_of(none).starts_with("[]"));
  CHECK(none.find("\"row_count\":2") != std::string::npos);
  for (const char* wrong : {"&page_of=nothing", "&from=1", "&page_of=steps&from=-1", "&page_of=steps&from=x"})
    CHECK_MESSAGE(of(wrong).status == 400, wrong);
}

TEST_CASE("answers: long tables apart are the same JSON, put together") {
  testing::TraceSpec spec;
  spec.steps = 200;
  Trace trace = testing::make_1f1b_trace(spec);
  link_cells(trace);
  const auto run = std::make_shared<const Run>(trace);
  const auto all_rows = [](const Table&) -> size_t { return 100'000; };
  for (const char* name : {"stragglers", "waterfall"}) {
    const Analysis* analysis = find_analysis(name);
    const Result<std::string> whole = analysis_json(*analysis, {}, run, all_rows);
    const Result<std::string> apart = analysis_json(*analysis, {}, run, all_rows, {}, AnswerForm::kApart);
    REQUIRE(whole);
    REQUIRE(apart);
    CHECK(joined_answer(*apart) == *whole);
    CHECK(whole->find("rows_at") == std::string::npos);
    CHECK((apart->find("\"rows_at\":[0,") != std::string::npos) == (std::string_view(name) == "stragglers"));
  }
}

TEST_CASE("answers: the place of rows apart is told, whatever names look like") {
  const std::string hostile = "\"rows_at\":[0,9,1]";
  Table table("t", hostile, {{"name", hostile, ColumnType::kText, ""}});
  for (size_t i = 0; i < kMinRowsApart; ++i) table.add_row({hostile});
  JsonWriter json;
  RowsApart apart;
  append_table_page(json, table, 1000, 0, 0, &apart);
  REQUIRE(apart.places.size() == 1);
  const RowsApart::Place& place = apart.places[0];
  CHECK(json.text().substr(place.key_at, place.key_end - place.key_at) ==
        "\"rows_at\":[0," + std::to_string(apart.text.size()) + "," + std::to_string(kMinRowsApart) + "]");
  CHECK(place.bytes == apart.text.size());
}

TEST_CASE("answers: a second run, and one that cannot be read") {
  const auto run = small_run([]() -> Result<Trace> {
    testing::TraceSpec spec;
    spec.steps = 2;
    Trace trace = testing::make_1f1b_trace(spec);
    link_cells(trace);
    return trace;
  });
  CHECK(api_answer(*run, "/api/answers").body.find("\"other\":{\"title\":\"other\"") != std::string::npos);
  const ApiAnswer same = settled(*run, "/api/compare");
  CHECK(same.status == 200);
  CHECK(same.body.find("\"change_ns\":0") != std::string::npos);
  CHECK(settled(*run, "/api/answer?name=trace-diff").body.find("\"tables\":[]") != std::string::npos);  // no operators
  CHECK(settled(*run, "/api/answer?name=trace-diff&control=x").status == 400);  // paths are not for pages
  const auto broken =
      small_run([]() -> Result<Trace> { return Error{ErrorCode::kIo, "it is gone", {"/somewhere"}, "look for it"}; });
  CHECK(settled(*broken, "/api/pipeline?run=other").status == 404);
  const ApiAnswer answer = settled(*broken, "/api/compare");
  CHECK(answer.status == 200);  // the request was right
  CHECK(answer.body.find("/somewhere: it is gone") != std::string::npos);
}

TEST_CASE("answers: the second run's pipeline is told like the first's") {
  int read = 0;
  const auto run = small_run([&]() -> Result<Trace> {
    ++read;
    testing::TraceSpec spec;
    spec.steps = 3;
    Trace trace = testing::make_1f1b_trace(spec);
    link_cells(trace);
    return trace;
  });
  const ApiAnswer own = settled(*run, "/api/pipeline"), other = settled(*run, "/api/pipeline?run=other");
  REQUIRE(own.status == 200);
  REQUIRE(other.status == 200);
  CHECK(other.type == own.type);
  // Of three steps in place of two.
  CHECK(own.body.find("\"total\":128") != std::string::npos);
  CHECK(other.body.find("\"total\":192") != std::string::npos);
  CHECK(settled(*run, "/api/pipeline/fixes?run=other").status == 200);
  CHECK(settled(*run, "/api/pipeline?run=other").body == other.body);
  const ApiAnswer its = settled(*run, "/api/run?run=other");
  CHECK(its.body.find("\"number\":2") != std::string::npos);  // its third step
  CHECK(settled(*run, "/api/run").body.find("\"number\":2") == std::string::npos);
  const std::string window = "lanes=0&t0=0&t1=100000000&n=64";
  CHECK(settled(*run, "/api/tiles?run=other&" + window).status == 200);
  CHECK(settled(*run, "/api/slice?run=other&lane=0&slice=0").status == 200);
  CHECK(read == 1);
  CHECK(settled(*run, "/api/tiles?run=b&" + window).status == 400);
  CHECK(settled(*small_run(), "/api/run?run=other").status == 404);
  CHECK(settled(*run, "/api/pipeline?run=b").status == 400);
  CHECK(settled(*small_run(), "/api/pipeline?run=other").status == 404);
}

TEST_CASE("answers: a second run whose clocks were measured is read once and drawn") {
  int read = 0;
  const auto run = small_run([&]() -> Result<Trace> {
    ++read;
    testing::TraceSpec spec;
    spec.steps = 2;
    Trace trace = testing::make_1f1b_trace(spec);
    link_cells(trace);
    trace.alignment = AlignState::kMapped;
    return trace;
  });
  REQUIRE(settled(*run, "/api/pipeline?run=other").status == 200);
  REQUIRE(settled(*run, "/api/compare").status == 200);
  CHECK(read == 1);
}

}  // namespace stageline
