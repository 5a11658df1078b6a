#include "server/page/routes.h"

#include "server/http/viewer_bundle.h"
#include "server/live/live_run.h"
#include "server/page/run_shelf.h"
#include "server/timeline/answers.h"
#include "server/timeline/selection.h"
#include "server/timeline/slice_window.h"

namespace stageline {
namespace {

// Scripts and styles come only from our own files; the page sets styles through the CSSOM, which needs no exception.
constexpr std::string_view kPageHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>Stageline</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"viewer.css\">\n"
    "<link rel=\"modulepreload\" href=\"chunk.js\">\n";
// Where there is a run, the browser requests it while it still reads the script (web/src/viewer/main.tsx).
constexpr std::string_view kPageRun = "<link rel=\"preload\" href=\"api/run\" as=\"fetch\" crossorigin>\n";
// Without scripts the reader cannot choose a language either, so both are shown.
constexpr std::string_view kPageWithout = "</head>\n<body>\n<div id=\"app\"></div>\n<noscript>";
constexpr std::string_view kPageBody =
    "</noscript>\n<script type=\"module\" src=\"viewer.js\"></script>\n</body>\n</html>\n";

constexpr char kBinary[] = "application/octet-stream";
constexpr char kJson[] = "application/json; charset=utf-8";
constexpr char kApart[] = "application/x-stageline-rows";  // a text type, so that it is compressed on its way

ApiAnswer made_answer(Result<std::string> body, const char* type) {
  if (!body) return refused_answer(body.error());
  return {200, type, std::move(*body), {}};
}

ApiAnswer page(const Asked& asked) {
  if (asked.run && asked.run->live() && !asked.run->settled()) return live_page();
  std::string page(kPageHead);
  if (asked.run && asked.run->served()) page += kPageRun;
  const Text script = words("viewer.needs_javascript");
  page.append(kPageWithout).append(script.en + " " + script.zh).append(kPageBody);
  return {200, "text/html; charset=utf-8", page, {}};
}
constexpr char kScript[] = "text/javascript; charset=utf-8", kStyle[] = "text/css; charset=utf-8";
template <auto kText, auto kHash, const char* kType = kScript>
ApiAnswer asset(const Asked&) {
  return asset_answer(kText(), kType, kHash());
}

// Where no job is followed there is no such path.
ApiAnswer page_of_live(const LiveRun&, const Query&) { return live_page(); }
template <ApiAnswer (*kAnswer)(const LiveRun& live, const Query& query)>
ApiAnswer of_live(const Asked& asked) {
  if (asked.run->live()) return kAnswer(*asked.run->live(), asked.query);
  return error_answer(404, "this server does not follow a running job", "stageline view FOLDER --follow does");
}

ApiAnswer status(const Asked& asked) {
  return {200, kJson, asked.run ? asked.run->status_json() : asked.shelf->status_json(), {}};
}

// Asks the run or, with run=other, the run that it is compared with.
ApiAnswer of_either(const Asked& asked, auto ask) {
  const std::string_view which = asked.query.text("run");
  if (which.empty()) return ask(asked.now->timeline.get(), asked.now->pipeline.get(), asked.now->run_json);
  if (which != "other") return error_answer(400, "run is \"other\", or left out", "");
  if (!asked.now->is_whole) return error_answer(503, "the run is still being read", "/api/status says how far it is");
  const Result<RunAnswers::OtherView> other = asked.run->answers().other_view();
  if (!other) return refused_answer(other.error());
  if (!other->timeline) return {other->wait.status, kJson, other->wait.body, {}};
  return ask(other->timeline, other->pipeline, *other->run_json);
}

ApiAnswer run(const Asked& asked) {
  return of_either(asked, [](const Timeline*, const PipelineView*, const std::string& described) {
    return ApiAnswer{200, kJson, described, {}};
  });
}
ApiAnswer notes(const Asked& asked) {
  const RunNotes* notes = asked.run->notes();
  return {200, kJson, notes ? notes->json(asked.now->timeline->origin_ns()) : RunNotes().json(0), {}};
}
ApiAnswer answers(const Asked& asked) { return {200, kJson, asked.run->answers().list_json(), {}}; }
ApiAnswer plan(const Asked& asked) {
  const Planner& planner = asked.run ? asked.run->planner() : asked.shelf->planner();
  if (!planner.plan) return error_answer(404, "this server plans nothing", "stageline view does");
  if (asked.query.text("times") != "run") return made_answer(planner.plan(asked.query, nullptr, nullptr), kJson);
  const std::shared_ptr<const ServedRun> now = asked.run ? asked.run->served() : nullptr;
  if (!now || !now->pipeline) return error_answer(503, "the run is still being read", "/api/status says how far it is");
  const Result<PricedRun>& priced = now->pipeline->what_if();
  if (!priced) return refused_answer(priced.error());
  return made_answer(planner.plan(asked.query, &priced->model, &now->pipeline->trace()), kJson);
}
ApiAnswer perfetto(const Asked& asked) { return made_answer(asked.run->perfetto_bytes(), kBinary); }

template <Result<std::string> (*kAnswer)(const Timeline& timeline, const Query& query), const char* kType>
ApiAnswer of_timeline(const Asked& asked) {
  return of_either(asked, [&](const Timeline* timeline, const PipelineView*, const std::string&) {
    return made_answer(kAnswer(*timeline, asked.query), kType);
  });
}
ApiAnswer histogram(const Asked& asked) {
  return of_either(asked, [&](const Timeline* timeline, const PipelineView*, const std::string&) -> ApiAnswer {
    Result<HistogramAnswer> made = histogram_answer(*timeline, asked.query);
    if (!made) return refused_answer(made.error());
    return {200, made->is_binary ? kBinary : kJson, std::move(made->body), {}};
  });
}

template <Result<std::string> (*kAnswer)(const PipelineView& view, const Query& query), const char* kType>
ApiAnswer of_pipeline(const Asked& asked) {
  return of_either(asked, [&](const Timeline*, const PipelineView* pipeline, const std::string&) {
    return made_answer(kAnswer(*pipeline, asked.query), kType);
  });
}

// Answers that are made once and kept, on threads of their own.
ApiAnswer kept(Result<RunAnswers::Answer> made) {
  if (!made) return refused_answer(made.error());
  const char* type = made->is_apart ? kApart : made->is_binary ? kBinary : kJson;
  return {made->status, type, std::move(made->body), {}};
}
template <Result<RunAnswers::Answer> (RunAnswers::*kAnswer)()>
ApiAnswer long_answer(const Asked& asked) {
  return kept((asked.run->answers().*kAnswer)());
}
template <Result<RunAnswers::Answer> (RunAnswers::*kAnswer)(const Query& query)>
ApiAnswer long_answer_to(const Asked& asked) {
  return kept((asked.run->answers().*kAnswer)(asked.query));
}

ApiAnswer calls(const Asked& asked) {
  const std::shared_ptr<const Timeline> timeline(asked.now, asked.now->timeline.get());
  return kept(asked.run->answers().calls(asked.query, asked.query.parameters.empty() ? nullptr : timeline));
}

template <auto kAnswer>
ApiAnswer of_shelf(const Asked& asked) {
  auto made = (asked.shelf->*kAnswer)(asked.query);
  if (!made) return stated_answer(made.error());
  if constexpr (requires { made->status; })
    return std::move(*made);
  else
    return {200, kJson, std::move(*made), {}};
}

using enum Needs;
using Answers = RunAnswers;
constexpr Route kRoutes[] = {
    {"/", "", kNothing, page, "the page"},
    {"/viewer.js", "", kNothing, asset<web_viewer_js, web_viewer_js_hash>, "the page's script"},
    {"/chunk.js", "", kNothing, asset<web_chunk_js, web_chunk_js_hash>, "what it shares with the next one"},
    {"/late_pages.js", "", kNothing, asset<web_late_pages_js, web_late_pages_js_hash>, "pages that come when opened"},
    {"/viewer.css", "", kNothing, asset<web_viewer_css, web_viewer_css_hash, kStyle>, "the page's style"},
    {"/api/status", "", kNothing, status, "how far reading is"},
    {"/api/events", "", kRun, nullptr, "the same as server-sent events, five a second, until the state settles"},
    {"/api/run", "run", kSomeRun, run, "ranks, lanes, kinds, steps"},
    {"/api/tiles", "run lanes t0 t1 n", kSomeRun, of_timeline<tiles_answer, kBinary>,
     "how busy each pixel of each row is"},
    {"/api/slices", "run lanes t0 t1 min_ns limit", kSomeRun, of_timeline<slices_answer, kBinary>, "slices one by one"},
    {"/api/slice", "run lane slice", kSomeRun, of_timeline<slice_answer, kJson>, "everything about one slice"},
    {"/api/select", "run lanes t0 t1 limit", kSomeRun, of_timeline<select_answer, kJson>, "an area, by name and kind"},
    {"/api/search", "run q regex where name_ids limit", kSomeRun, of_timeline<search_answer, kJson>,
     "which names match"},
    {"/api/find", "run q regex where name_ids from lane slice dir lanes", kSomeRun, of_timeline<find_answer, kJson>,
     "the next slice that bears one of these names"},
    {"/api/histogram", "run q regex where name_ids kind lanes t0 t1 min max limit", kSomeRun, histogram,
     "how long the slices of a name last"},
    {"/api/flows", "run lanes t0 t1 limit", kSomeRun, of_timeline<flows_answer, kBinary>, "arrows"},
    {"/api/counter", "run lane t0 t1 n", kSomeRun, of_timeline<counter_answer, kBinary>, "a counter, column by column"},
    {"/api/pipeline", "run steps", kWholeRun, of_pipeline<pipeline_answer, kBinary>,
     "the pipeline's cells, theory, and where ranks wait and why"},
    {"/api/pipeline/ranks", "", kWholeRun, long_answer<&Answers::worst_ranks>,
     "which ranks take more than their peers"},
    {"/api/pipeline/fixes", "run model memory seq micro_batch_size tp ep optimizer recompute", kWholeRun,
     of_pipeline<pipeline_fixes_answer, kJson>, "estimated savings of changes"},
    {"/api/pipeline/what-if",
     "run scale schedule chunks group micro_batches latency_ns fix step dp model memory seq micro_batch_size tp ep "
     "optimizer recompute",
     kWholeRun, of_pipeline<pipeline_what_if_answer, kBinary>, "a step as it would run under changes"},
    {"/api/explain", "", kWholeRun, long_answer<&Answers::explain>, "where the time went: the first screen"},
    {"/api/losses", "", kWholeRun, long_answer<&Answers::losses>, "what a step of a profile saves without its losses"},
    {"/api/figures", "", kWholeRun, long_answer<&Answers::figures>, "numbers by name, with their definitions"},
    {"/api/answers", "", kWholeRun, answers, "which analyses this run can be asked"},
    {"/api/answer", "run name page_of from rows *", kWholeRun, long_answer_to<&Answers::analysis>, "one of them"},
    {"/api/calls", "lanes t0 t1", kWholeRun, calls, "calls added up by call path: what the flame graph draws"},
    {"/api/sql", "q rows", kWholeRun, long_answer_to<&Answers::sql>, "the rows of a query"},
    {"/api/notes", "", kWholeRun, notes, "notes next to the run; `PUT` keeps others"},
    {"/api/clocks", "", kWholeRun, long_answer<&Answers::clocks>, "how the ranks' clocks were put on one axis"},
    {"/api/compare", "", kWholeRun, long_answer<&Answers::compare>,
     "what differs between this run and the one of `--compare`"},
    {"/api/perfetto", "", kWholeRun, perfetto, "the run for Perfetto"},
    {"/api/plan",
     "times model layers gpus memory seq micro_batch_size micro_batches tp pp chunks schedule framework recompute split",
     kNothing, plan, "the fastest pipeline that fits the memory"},
    // These are answered for a run that goes on.
    {"/live", "", kRun, of_live<page_of_live>, "the page of a run that goes on"},
    {"/live.js", "", kRun, asset<web_live_js, web_live_js_hash>, "its script"},
    {"/live.css", "", kRun, asset<web_live_css, web_live_css_hash, kStyle>, "its style"},
    {"/api/live", "known after", kRun, of_live<live_state>, "how the run stands"},
    {"/metrics", "", kRun, of_live<live_metrics>, "the same in Prometheus' text format"},
    // These are answered for the start page.
    {"/api/browse", "path", kShelf, of_shelf<&RunShelf::browse>, "a folder's files"},
    {"/api/look", "path", kShelf, of_shelf<&RunShelf::look>, "which format a path is of"},
    {"/api/open", "path drop compare compare_drop", kShelf, of_shelf<&RunShelf::open>, "a run's number"},
    {"/api/trend", "path drop", kShelf, of_shelf<&RunShelf::trend>, "what steps took, run after run"},
    {"/api/drop", "name drop", kShelf, nullptr, "`PUT` takes a file's bytes"},
};

// A request for a route's handler has the parameters that the table lists.
Query known_parameters(Query query, std::string_view names) {
  const std::vector<std::string_view> known = split(names, ' ');
  const auto is_known = [&](std::string_view name) { return std::ranges::find(known, name) != known.end(); };
  if (!is_known("*")) std::erase_if(query.parameters, [&](const auto& one) { return !is_known(one.first); });
  return query;
}

ApiAnswer route_answer(const ViewRun* run, RunShelf* shelf, std::string_view target) {
  const Result<Query> query = parse_target(target);
  if (!query) return error_answer(400, query.error().what, query.error().hint);
  const Route* route = nullptr;
  for (const Route& one : kRoutes)
    if (one.path == query->path && one.answer && (one.needs == kNothing || (one.needs == kShelf) == (shelf != nullptr)))
      route = &one;
  if (!route) return error_answer(404, "there is nothing at this path", "docs/viewer-protocol.md lists the paths");
  const Query known = known_parameters(*query, route->parameters);
  if (route->needs != kSomeRun && route->needs != kWholeRun) return route->answer({known, run, shelf});
  const std::shared_ptr<const ServedRun> now = run->served();
  if (!now || (!now->is_whole && route->needs == kWholeRun))
    return error_answer(503, "the run is still being read", "/api/status says how far it is");
  const auto revision = integer_parameter(*query, "revision", now->revision, 0, INT64_MAX);
  if (!revision) return refused_answer(revision.error());
  if (*revision != now->revision)
    return error_answer(409, "more of the run has been read since", "/api/run has its numbers now");
  return route->answer({known, run, nullptr, now});
}

std::shared_ptr<const HttpPart> part_of(std::shared_ptr<const ViewRun> run) {
  HttpPart part;
  part.answer = [run](std::string_view target) { return api_answer(*run, target); };
  part.take = [run](std::string_view target, std::string_view body) { return api_take(*run, target, body); };
  part.status = [run] { return run->status_json(); };
  part.settled = [run] { return run->settled(); };
  return std::make_shared<const HttpPart>(std::move(part));
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

ApiAnswer api_answer(const ViewRun& run, std::string_view target) { return route_answer(&run, nullptr, target); }
ApiAnswer shelf_answer(RunShelf& shelf, std::string_view target) { return route_answer(nullptr, &shelf, target); }

ApiAnswer api_take(const ViewRun& run, std::string_view target, std::string_view body) {
  const Result<Query> query = parse_target(target);
  if (!query || query->path != "/api/notes") return error_answer(405, "only /api/notes takes a body", "");
  const Timeline* timeline = run.timeline();
  if (!timeline || !run.notes())
    return error_answer(503, "the run is still being read", "/api/status says how far it is");
  if (const Status taken = run.notes()->take(body, timeline->origin_ns()); !taken) return refused_answer(taken.error());
  return {200, kJson, run.notes()->json(timeline->origin_ns()), {}};
}

HttpSite site_of(const ViewRun& run) {
  const auto part = part_of(std::shared_ptr<const ViewRun>(std::shared_ptr<void>(), &run));  // it outlives the server
  return {[part](std::string&) { return part; }, nullptr, RunNotes::kMaxBytes};
}

HttpSite site_of(RunShelf& shelf) {
  HttpPart start;
  start.answer = [&shelf](std::string_view target) { return shelf_answer(shelf, target); };
  const auto page = std::make_shared<const HttpPart>(std::move(start));
  const auto part = [&shelf, page](std::string& target) {
    std::shared_ptr<const ViewRun> run = shelf.take_run(target);
    return run ? part_of(std::move(run)) : page;
  };
  return {part, &shelf.drops(), RunNotes::kMaxBytes};
}

}  // namespace stageline
