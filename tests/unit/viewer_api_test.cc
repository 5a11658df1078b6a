// The viewer's routes, names and hosts.
#include <doctest/doctest.h>

#include <cstring>

#include "base/name_pattern.h"
#include "make_trace.h"
#include "pipeline/cells/link_cells.h"
#include "server/http/http_server.h"
#include "server/http/query.h"
#include "server/page/routes.h"
#include "server/page/view_run.h"
#include "server/pipeline/pipeline_view.h"
#include "server/timeline/name_index.h"
#include "server/timeline/timeline_sums.h"

namespace stageline {
namespace {

bool found(const char* expression, const char* name) {
  const Result<NamePattern> pattern = NamePattern::expression(expression);
  REQUIRE_MESSAGE(pattern, expression);
  return pattern->matches(name);
}

std::unique_ptr<ViewRun> small_run() {
  testing::TraceSpec spec;
  spec.steps = 2;
  auto run = std::make_unique<ViewRun>("small", std::vector<std::string>{"small"});
  Trace trace = testing::make_1f1b_trace(spec);
  trace.pipeline_stages = spec.stages;
  link_cells(trace);
  run->set_trace(std::move(trace));
  return run;
}

std::string header_of(const std::string& body) {
  uint32_t length = 0;
  REQUIRE(body.size() >= sizeof length);
  std::memcpy(&length, body.data(), sizeof length);
  REQUIRE(4 + size_t{length} <= body.size());
  return body.substr(4, length);
}

}  // namespace

TEST_CASE("viewer: expressions match as they say") {
  CHECK(found("gemm", "Volta_SGEMM_128"));
  CHECK(found("^nccl.*(AllReduce|Send)$", "ncclDevKernel_AllReduce"));
  CHECK_FALSE(found("^nccl.*(AllReduce|Send)$", "ncclDevKernel_AllReduce_Sum"));
  CHECK(found("a\\d+b", "xa12b"));
  CHECK_FALSE(found("a\\d+b", "ab"));
  CHECK(found("[x-z]_?[^0-9]", "y_q"));
  CHECK_FALSE(found("^[^a]$", "A"));  // either case, in what is left out too
  CHECK(found("(ab)*c|d?e", "ababc"));
  CHECK(found("a\\.b", "a.b"));
  CHECK_FALSE(found("a\\.b", "axb"));
  CHECK(found("", "anything"));
  CHECK(found("[]x]", "]"));
  CHECK(found("(?:ab)+", "zab"));
}

TEST_CASE("viewer: the pipeline's routes tell cells, prices and a step; what cannot be is refused") {
  const std::unique_ptr<ViewRun> run = small_run();
  const ApiAnswer chart = api_answer(*run, "/api/pipeline");
  REQUIRE(chart.status == 200);
  const std::string header = header_of(chart.body);
  CHECK(header.find("\"cells_at\":0") != std::string::npos);
  CHECK(header.find("bubble_schedule") != std::string::npos);
  const ApiAnswer fixes = api_answer(*run, "/api/pipeline/fixes");
  REQUIRE(fixes.status == 200);
  CHECK(fixes.body.find("{\"name\":\"1f1b\",\"chunks\":") != std::string::npos);  // one that can be tried
  const ApiAnswer same = api_answer(*run, "/api/pipeline/what-if?step=0");
  REQUIRE(same.status == 200);
  CHECK(header_of(same.body).find("\"saving_ns\":0,") != std::string::npos);
  CHECK(header_of(same.body).find("\"name\":\"micro_batch\"") != std::string::npos);
  // Without a step there is a price and no cells; so has a step that is not there.
  CHECK(header_of(api_answer(*run, "/api/pipeline/what-if?scale=stage%3D0,by%3D0.5").body).find("\"columns\":[]") !=
        std::string::npos);
  CHECK(api_answer(*run, "/api/pipeline/what-if?step=77").status == 200);
  for (const char* bad :
       {"scale=stage%3D0", "scale=stage%3D99,by%3D2", "schedule=none-such", "micro_batches=x", "micro_batches=70000",
        "latency_ns=-1", "latency_ns=1e400", "chunks=2", "fix=1000000", "fix=", "step=nan"})
    CHECK_MESSAGE(api_answer(*run, std::string("/api/pipeline/what-if?") + bad).status == 400, bad);
  ViewRun empty("none", {"none"});
  CHECK(api_answer(empty, "/api/pipeline").status == 503);
  empty.set_trace(Trace{});
  for (const char* path : {"/api/pipeline", "/api/pipeline/fixes", "/api/pipeline/what-if"})
    CHECK_MESSAGE(api_answer(empty, path).status == 404, path);
}

TEST_CASE("viewer: of the pipeline the steps that are asked for; those that are left out are named") {
  const std::unique_ptr<ViewRun> run = small_run();
  const std::string whole = header_of(api_answer(*run, "/api/pipeline").body);
  CHECK(whole.find("\"leftOut\"") == std::string::npos);
  CHECK(header_of(api_answer(*run, "/api/pipeline?steps=0-1").body) == whole);
  const std::string first = header_of(api_answer(*run, "/api/pipeline?steps=0").body);
  const std::string second = header_of(api_answer(*run, "/api/pipeline?steps=1").body);
  CHECK(first.find("\"steps\":2,\"leftOut\":[1],") != std::string::npos);
  CHECK(second.find("\"steps\":2,\"leftOut\":[0],") != std::string::npos);
  CHECK(header_of(api_answer(*run, "/api/pipeline").body) == whole);
  for (const char* bad : {"steps=", "steps=x", "steps=-1", "steps=1-0", "steps=99999999999", "steps=1.5"})
    CHECK_MESSAGE(api_answer(*run, std::string("/api/pipeline?") + bad).status == 400, bad);
  CHECK(api_answer(*run, "/api/pipeline?steps=0,7").status == 404);
  CHECK(api_answer(*run, "/api/pipeline?steps=0-9999999").status == 413);
}

TEST_CASE("viewer: the table of routes says what is answered, and which parameters are read") {
  const auto run = small_run();
  for (const Route& route : routes()) {
    const ApiAnswer answer = api_answer(*run, route.path);
    // The page's script holds that sentence too, so the status counts as well.
    const bool is_known =
        answer.status != 404 || answer.body.find("there is nothing at this path") == std::string::npos;
    CHECK_MESSAGE(is_known == (route.answer && route.needs != Needs::kShelf), route.path);
  }
  CHECK(api_answer(*run, "/api/slices?limit=x").status == 400);
  CHECK(api_answer(*run, "/api/tiles?n=10&limit=x").status == 200);  // tiles have no limit
}

TEST_CASE("viewer: a page of many ranks begins with fewer cells") {
  for (const int32_t dp : {static_cast<int32_t>(kManyRanks), static_cast<int32_t>(kManyRanks) + 1}) {
    testing::TraceSpec spec;
    spec.steps = 4;
    spec.dp = dp;
    Trace trace = testing::make_1f1b_trace(spec);
    trace.pipeline_stages = spec.stages;
    link_cells(trace);
    const size_t all = trace.cells.size(), step = all / 4;
    const Run run(trace);
    const auto count_of = [&](size_t max, size_t max_of_many) {
      const std::string header = header_of(*PipelineView(run, nullptr, max, max_of_many).payload());
      const size_t at = header.find("\"cells\":{\"count\":");
      REQUIRE(at != std::string::npos);
      return std::stoull(header.substr(at + 17)) / step;
    };
    CHECK(count_of(all, step) == 4);
    CHECK(count_of(3 * step, step) == (dp > static_cast<int32_t>(kManyRanks) ? 1 : 3));
    CHECK(count_of(2 * step, 3 * step) == 2);
    const PipelineView view(run, nullptr, step);
    const Query two{"/api/pipeline", {{"steps", "1,2"}}};
    const Query one{"/api/pipeline", {{"steps", "2"}}};
    CHECK(pipeline_answer(view, two).error().code == ErrorCode::kUsage);
    CHECK(header_of(*pipeline_answer(view, one)).find("\"leftOut\":[0,1,3]") != std::string::npos);
  }
}

TEST_CASE("viewer: broken expressions are refused, long ones run in linear time") {
  for (const char* bad : {"(", ")", "a)", "[", "[a", "*", "+a", "a|*", "\\", "[z-a]", "[\\"})
    CHECK_FALSE(NamePattern::expression(bad));
  CHECK_FALSE(NamePattern::expression(std::string(300, 'a')));
  CHECK_FALSE(NamePattern::expression(std::string(100, '(') + std::string(100, ')')));
  // Exponential for those that try one way after the other.
  std::string expression, name(4000, 'a');
  for (int k = 0; k < 60; ++k) expression += "a?";
  for (int k = 0; k < 60; ++k) expression += "a*";
  CHECK(NamePattern::expression("^(" + expression + ")+$")->matches(name));
  CHECK_FALSE(NamePattern::expression("^(" + expression + ")+b$")->matches(name));
  CHECK_FALSE(NamePattern::expression("((a*)*)*b")->matches(name));
}

TEST_CASE("viewer: texts match whatever their case, and bytes that are no text") {
  CHECK(NamePattern::text("AllReduce").matches("nccl_ALLREDUCE"));
  CHECK_FALSE(NamePattern::text("allgather").matches("nccl_ALLREDUCE"));
  CHECK(NamePattern::text("前向").matches("算子前向传播"));
  CHECK(found(".", "\xff"));
}

TEST_CASE("viewer: targets are taken apart, broken ones refused") {
  const Result<Query> query = parse_target("/api/tiles?lanes=3%2C4&q=a+b%20c&flag&q=last#x");
  REQUIRE(query);
  CHECK(query->path == "/api/tiles");
  CHECK(query->text("lanes") == "3,4");
  CHECK(query->text("q") == "last");
  CHECK(query->find("flag") != nullptr);
  CHECK(query->find("none") == nullptr);
  for (const char* bad : {"", "api", "http://a/b", "/%", "/%2", "/%zz", "/a%00b", "/a?b=%0a", "*"})
    CHECK_FALSE(parse_target(bad));
  std::string many = "/?";
  for (size_t k = 0; k <= kMaxParameters; ++k) many += "a=1&";
  CHECK_FALSE(parse_target(many));
}

TEST_CASE("viewer: hosts of the loopback, and no others") {
  for (const char* good : {"localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]", "[::1]:9"})
    CHECK(is_loopback_host(good));
  for (const char* bad : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil", "127.0.0.2", "[::2]:1",
                          "localhost:8a", "localhost:123456", ":80", "[::1", "127.0.0.1:80:80", "localhost@evil:1"})
    CHECK_FALSE(is_loopback_host(bad));
}

TEST_CASE("viewer: before a run is read only the page and the status answer") {
  ViewRun run("t", {"p"});
  CHECK(api_answer(run, "/").status == 200);
  CHECK(api_answer(run, "/viewer.js").etag.size() > 10);
  CHECK(api_answer(run, "/api/status").body.find("\"reading\"") != std::string::npos);
  CHECK(api_answer(run, "/api/run").status == 503);
  CHECK(api_answer(run, "/api/tiles?n=3").status == 503);
  CHECK(api_answer(run, "/api/nothing").status == 404);
  run.set_error({ErrorCode::kBadInput, "no trace", {"a\x01.json"}, "try"});
  CHECK(api_answer(run, "/api/status").body.find("\"failed\"") != std::string::npos);
}

TEST_CASE("viewer: paths lead to no file") {
  const auto run = small_run();
  for (const char* path : {"/../etc/passwd", "/..%2f..%2fetc/passwd", "/viewer.js/../../x", "//etc/passwd",
                           "/index.html", "/viewer.js%00.html", "/api/", "/api", "/api/run/", "/./", "/proc/self/maps"})
    CHECK(api_answer(*run, path).status >= 400);
}

TEST_CASE("viewer: wrong parameters are refused with words") {
  const auto run = small_run();
  for (const char* target :
       {"/api/tiles", "/api/tiles?n=0", "/api/tiles?n=99999999", "/api/tiles?n=3&lanes=99", "/api/tiles?n=3&lanes=x",
        "/api/tiles?n=3&t0=5&t1=5", "/api/tiles?n=3&t0=nan", "/api/slices?limit=-1", "/api/slice?lane=0",
        "/api/slice?lane=0&slice=9999", "/api/find", "/api/find?q=F&dir=up", "/api/search?q=(&regex=1",
        "/api/histogram?name_ids=99999999", "/api/counter?lane=0&n=5", "/api/select?t1=-1"}) {
    const ApiAnswer answer = api_answer(*run, target);
    CHECK_MESSAGE(answer.status == 400, target);
    CHECK(answer.body.find("\"error\":\"") != std::string::npos);
  }
}

TEST_CASE("viewer: every route answers for a run of cells") {
  const auto run = small_run();
  CHECK(api_answer(*run, "/api/run").body.find("\"rank_index\"") != std::string::npos);
  CHECK(header_of(api_answer(*run, "/api/tiles?n=50").body).find("\"kinds\":[{\"kind\":0") != std::string::npos);
  CHECK(header_of(api_answer(*run, "/api/slices?lanes=0-1").body).find("\"names\":[[") != std::string::npos);
  const std::string slice = api_answer(*run, "/api/slice?lane=1&slice=3").body;
  for (const char* part : {"\"previous\":{", "\"next\":{", "\"type\":\"message\"", "\"label\":\"", "\"self_ns\":"})
    CHECK_MESSAGE(slice.find(part) != std::string::npos, slice);
  CHECK(api_answer(*run, "/api/select").body.find("\"name\":\"F\"") != std::string::npos);
  CHECK(api_answer(*run, "/api/search?q=b").body.find("\"count\":64") != std::string::npos);
  CHECK(api_answer(*run, "/api/histogram?q=F").body.find("\"median_ns\":8050000") != std::string::npos);
  CHECK(header_of(api_answer(*run, "/api/histogram?q=F&min=8000000&max=9000000").body).find("\"count\":64") !=
        std::string::npos);
  CHECK(header_of(api_answer(*run, "/api/flows").body).find("{\"count\":96,\"complete\":true") != std::string::npos);
  CHECK(api_answer(*run, "/api/perfetto").body.size() > 1000);
}

TEST_CASE("viewer: find goes through all that match, forwards and backwards alike") {
  const auto run = small_run();
  const Timeline& timeline = *run->timeline();
  std::vector<uint32_t> lanes;
  for (uint32_t l = 0; l < timeline.lanes().size(); ++l) lanes.push_back(l);
  NameSet names(timeline.names().size());
  for (StringId id = 0; id < names.size(); ++id)
    if (timeline.names().text(id) == "F") names.add(id);
  const NameIndex& index = timeline.occurrences();
  std::vector<std::pair<uint32_t, uint32_t>> forwards, backwards;
  NameIndex::Cursor at;
  for (SlicePlace p = index.next(timeline.lanes(), lanes, names, at); p;
       p = index.next(timeline.lanes(), lanes, names, at)) {
    forwards.emplace_back(p.lane, p.slice);
    at = {timeline.lanes()[p.lane].start(p.slice), p.lane, p.slice};
    REQUIRE(forwards.size() < 1000);
  }
  at = {timeline.span_ns() + 1, -1, -1};
  for (SlicePlace p = index.previous(timeline.lanes(), lanes, names, at); p;
       p = index.previous(timeline.lanes(), lanes, names, at)) {
    backwards.emplace_back(p.lane, p.slice);
    at = {timeline.lanes()[p.lane].start(p.slice), p.lane, p.slice};
    REQUIRE(backwards.size() < 1000);
  }
  std::reverse(backwards.begin(), backwards.end());
  CHECK(forwards.size() == 64);
  CHECK(forwards == backwards);
}

TEST_CASE("viewer: bins of durations follow each other without gaps") {
  for (size_t b = 0; b + 1 < kDurationBins; ++b) {
    CHECK(bin_start_ns(b) < bin_start_ns(b + 1));
    CHECK(duration_bin(bin_start_ns(b)) == b);
    CHECK(duration_bin(bin_start_ns(b + 1) - 1) == b);
  }
  CHECK(duration_bin(kLatestNs) < kDurationBins);
}

namespace {

// Returns one thread of `count` slices, as a reader passes them on before it has finished.
Trace early_trace(size_t count) {
  Trace trace;
  trace.clock = ClockState::kShared;
  trace.categories = {{"", Category::kOther}, {"cpu_op", Category::kCpuOp}};
  Part part;
  part.event_count = 1;
  for (size_t i = 0; i < count; ++i) {
    part.slices.start_ns.push_back(static_cast<int64_t>(i) * 10);
    part.slices.dur_ns.push_back(5);
    part.slices.name_id.push_back(trace.names.intern("op"));
    part.slices.category_id.push_back(1);
    part.slices.kernel_class.push_back(0);
  }
  part.lanes.push_back({"thread 1", 0, count, LaneKind::kHostThread});
  trace.parts.push_back(std::move(part));
  return trace;
}

std::string found_by(const ViewRun& run, const std::string& query) {
  const std::string body = api_answer(run, "/api/find?from=-1&" + query).body;
  const size_t at = body.find("\"lane\":");
  return at == std::string::npos ? body : body.substr(at, body.find(",\"row\"") - at);
}

}  // namespace

TEST_CASE("viewer: what is read so far answers, and says when there is more") {
  ViewRun run("t", {"p"});
  run.set_early(early_trace(10));
  CHECK(run.timeline() == nullptr);
  CHECK(api_answer(run, "/api/status").body.find("\"revision\":1") != std::string::npos);
  CHECK(api_answer(run, "/api/run").body.find("\"revision\":1,\"whole\":false") != std::string::npos);
  for (const char* target : {"/api/tiles?n=9", "/api/slices", "/api/select", "/api/search?q=op", "/api/find?q=op",
                             "/api/histogram?q=op", "/api/flows", "/api/slice?lane=0&slice=3"})
    CHECK_MESSAGE(api_answer(run, target).status == 200, target);
  CHECK(api_answer(run, "/api/slice?lane=0&slice=3").body.find("still being read") != std::string::npos);
  CHECK(api_answer(run, "/api/search?q=op%20step:3").body.find("\"occurrences\":0") != std::string::npos);
  for (const char* target : {"/api/perfetto", "/api/answers", "/api/explain"})
    CHECK_MESSAGE(api_answer(run, target).status == 503, target);
  run.set_early(early_trace(20));
  CHECK(api_answer(run, "/api/tiles?n=9&revision=2").status == 200);
  CHECK(api_answer(run, "/api/tiles?n=9&revision=1").status == 409);
  CHECK(api_answer(run, "/api/run?revision=1").status == 409);
  CHECK(api_answer(run, "/api/tiles?n=9&revision=x").status == 400);
  Trace whole = testing::make_1f1b_trace({});
  run.set_trace(std::move(whole));
  CHECK(api_answer(run, "/api/run").body.find("\"revision\":3,\"whole\":true") != std::string::npos);
  CHECK(api_answer(run, "/api/tiles?n=9&revision=3").status == 200);
  CHECK(run.timeline() != nullptr);
}

TEST_CASE("viewer: words of a search that ask for more than a name") {
  const Result<FacetText> text = split_facets("mb:3  aten::mm kind:b \"step:2\" STEP:-1");
  REQUIRE(text);
  CHECK(text->rest == "aten::mm step:2");
  CHECK(text->written == "mb:3 kind:b STEP:-1");
  CHECK(*text->facets.micro_batch == 3);
  CHECK(*text->facets.step == -1);
  CHECK(text->facets.kinds == uint32_t{1} << static_cast<int>(CellKind::kBackward));
  CHECK(split_facets("two  spaces")->rest == "two  spaces");
  CHECK_FALSE(split_facets("two")->facets.any());
  for (const char* bad : {"mb:", "mb:x", "step:1e3", "kind:", "kind:nothing", "rank:99999999999999999999"})
    CHECK_FALSE(split_facets(bad));
  for (const char* odd : {"\"", "\"\"", ":", "kind", "a:b", "\"mb:3", " "}) CHECK(split_facets(odd));
}

TEST_CASE("viewer: cells are found by micro-batch, kind, step and stage") {
  const auto run = small_run();
  const Trace& trace = run->timeline()->trace();
  const Cells& cells = trace.cells;
  const std::string all = api_answer(*run, "/api/search?q=mb:1%20kind:B%20step:1%20stage:0").body;
  size_t expected = 0;
  for (size_t i = 0; i < cells.size(); ++i)
    expected += cells.micro_batch[i] == 1 && cells.kind[i] == CellKind::kBackward && cells.step[i] == 1 &&
                trace.parts[cells.part[i]].stage == 0;
  REQUIRE(expected > 0);
  CHECK(all.find("\"occurrences\":" + std::to_string(expected) + ",") != std::string::npos);
  CHECK(all.find("\"where\":\"mb:1 kind:B step:1 stage:0\"") != std::string::npos);
  const std::string first = found_by(*run, "q=mb:1%20kind:B%20step:1%20stage:0");
  CHECK(first.find("\"lane\":") == 0);
  CHECK(found_by(*run, "q=B&where=mb:1%20kind:B%20step:1%20stage:0") == first);
  CHECK(found_by(*run, "q=kind:B%20mb:1%20stage:0%20step:1") == first);
  CHECK(found_by(*run, "q=mb:999") == "{\"found\":null}");
  CHECK(api_answer(*run, "/api/find?name_ids=1&where=gemm").status == 400);
  CHECK(api_answer(*run, "/api/histogram?q=kind:B").body.find("\"count\":0") == std::string::npos);
}

}  // namespace stageline
