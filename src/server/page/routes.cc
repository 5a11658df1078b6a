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
template <auto kText, auto kHash, const char* kType = kScript> ApiAnswer asset(const Asked&) {
  return asset_answer(kText(), kType, kHash());
}

// Where no job is followed there is no such path.
ApiAnswer page_of_live(const LiveRun&, const Query&) { return live_page(); }
template <ApiAnswer (*kAnswer)(const LiveRun& live, const Query& query)> ApiAnswer of_live(const Asked& asked) {
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
template <Result<RunAnswers::Answer> (RunAnswers::*kAnswer)()> ApiAnswer long_answer(const Asked& asked) {
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

template <auto kAnswer> ApiAnswer of_shelf(const Asked& asked) {
  auto made = (asked.shelf->*kAnswer)(asked.query);
  if (!made) return stated_answer(made.error());
  if constexpr (requires { made->status; }) return std::move(*made);
  else return {200, kJson, std::move(*made), {}};
}

using enum Needs;
using Answers = RunAnswers;
constexpr Route kRoutes[] = {
#define ROUTE(...) {__VA_ARGS__},
#include "server/page/routes.def"
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
