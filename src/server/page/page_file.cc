#include "server/page/page_file.h"

#include "base/gzip_bytes.h"
#include "base/hashes.h"
#include "base/output_file.h"
#include "diagnosis/explain_json.h"
#include "engine/figures/figures.h"
#include "engine/one_clock.h"
#include "engine/problems.h"
#include "exporters/chart/plan_panels.h"
#include "facts/profile_facts.h"
#include "server/http/viewer_bundle.h"
#include "server/page/answer_json.h"
#include "server/page/page_slices.h"
#include "server/page/run_notes.h"
#include "server/pipeline/pipeline_view.h"
#include "server/timeline/slice_window.h"

namespace stageline {
namespace {

// Returns the text with markup escaped and NUL left out. Other bytes stay as they are, so text from outside has to go
// through valid_utf8() first. O(bytes).
std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\0': break;
      default: out += c;
    }
  }
  return out;
}

constexpr size_t kMaxPageNames = size_t{8} << 20;  // most bytes of all names; beyond, long names are cut

// Series are drawn as curves, and are not read row by row.
size_t rows_of_page(const Table& table) {
  const bool is_series =
      table.name().ends_with("-over-time") || table.name() == "memory-curve" || table.name() == "memory-categories";
  return is_series ? kPageSeriesRows : kPageRows;
}

std::string error_json(const Error& error) {
  JsonWriter json;
  const std::string where = error.where.text();
  json.begin_object().field("error", valid_utf8(where.empty() ? error.what : where + ": " + error.what));
  json.field("hint", valid_utf8(error.hint)).end_object();
  return json.take();
}

class PageWriter {
 public:
  PageWriter(OutputFile& file, const PageOptions& options) : file_(file), options_(options) {}

  // `replays`: the page carries WebAssembly and may run it.
  void head(const Findings& findings, bool replays) {
    const bool zh = options_.lang == "zh";
    file_.write("<!doctype html>\n<html lang=\"");
    file_.write(zh ? "zh-CN" : "en");
    if (options_.dark) file_.write("\" data-theme=\"dark");
    file_.write("\" data-command=\"" + html_text(valid_utf8(options_.command)) +
                "\">\n<head>\n<meta charset=\"utf-8\">\n");
    file_.write("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '");
    file_.write(web_report_js_hash());
    file_.write(replays ? "' 'wasm-unsafe-eval'; style-src '" : "'; style-src '");
    file_.write(web_viewer_css_hash());
    file_.write("'; worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'\">\n");
    file_.write("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    file_.write("<meta name=\"color-scheme\" content=\"light dark\">\n");
    file_.write("<meta name=\"generator\" content=\"Stageline " STAGELINE_VERSION "\">\n<title>");
    file_.write(html_text(valid_utf8(options_.title.empty() ? "Stageline" : options_.title + " – Stageline")));
    file_.write("</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>");
    file_.write(web_viewer_css());
    file_.write("</style>\n</head>\n<body>\n<noscript>\n");
    plain_words(findings, zh);
    file_.write("</noscript>\n<div id=\"app\"></div>\n");
  }
  void answer(std::string_view name, std::string_view body) { block("data-answer", name, body); }
  void picture(const ChartPicture& drawn) {
    flush();
    file_.write("<noscript><img width=\"" + std::to_string(drawn.width) + "\" height=\"" +
                std::to_string(drawn.height) + "\" alt=\"\" src=\"data:image/png;base64,");
    file_.write(base64(drawn.png));
    file_.write("\"></noscript>\n");
  }
  void timeline(std::string_view name, std::string_view body) { block("data-timeline", name, body); }
  void what_if(std::string_view model) {
    flush();
    write_block({"data-what-if", "program", base64(web_what_if_gzip())});
    block("data-what-if", "model", model);
  }
  void slices(const PagePiece& piece) {
    const std::string lanes = std::to_string(piece.first_lane) + "-" + std::to_string(piece.last_lane);
    block("data-lanes", lanes, piece.bytes);
  }
  void script() {
    flush();
    file_.write("<script>");
    file_.write(web_report_js());
    file_.write("</script>\n");
  }
  void end() {
    flush();
    file_.write("</body>\n</html>\n");
  }

 private:
  void plain_words(const Findings& findings, bool zh) {
    const auto line = [&](const char* tag, const Text& text) {
      if (text.empty()) return;
      file_.write(std::string("<") + tag + ">" + html_text(valid_utf8(text.in(zh))) + "</" + tag + ">\n");
    };
    line("h1", findings.headline.title);
    line("p", findings.headline.lead);
    for (const Finding& finding : findings.list) {
      line("h2", finding.title);
      line("p", finding.detail);
    }
    line("p", words("page.needs_javascript"));
  }
  // Short blocks are collected, so that several are compressed at a time; a long one is compressed by itself, in
  // pieces.
  void block(const char* attribute, std::string_view name, std::string_view body) {
    if (body.size() > kGzipPiece) {
      flush();
      return write_block({attribute, std::string(name), base64(gzip_bytes(body))});
    }
    waiting_.push_back({attribute, std::string(name), std::string(body)});
    waiting_bytes_ += body.size();
    if (waiting_bytes_ >= kMaxWaiting) flush();
  }
  void flush() {
    parallel_for(waiting_.size(), [&](size_t i) { waiting_[i].text = base64(gzip_bytes(waiting_[i].text)); });
    for (const Block& block : waiting_) write_block(block);
    waiting_.clear();
    waiting_bytes_ = 0;
  }
  struct Block {
    const char* attribute;
    std::string name, text;  // `text`: first the body, then what is written into the page
  };
  void write_block(const Block& block) {
    file_.write("<script type=\"application/octet-stream\" ");
    file_.write(block.attribute);
    file_.write("=\"");
    file_.write(block.name);
    file_.write("\">");
    file_.write(block.text);
    file_.write("</script>\n");
  }

  static constexpr size_t kMaxWaiting = size_t{16} << 20;
  OutputFile& file_;
  std::vector<Block> waiting_;
  size_t waiting_bytes_ = 0;
  const PageOptions& options_;
};

// Writes what compares both runs as recorded, and what the pipeline page draws of the second run below the first.
void write_comparison(PageWriter& page, const Trace& trace, const ComparedRun& other) {
  for (const Analysis* analysis : analyses()) {
    if (analysis->needs != AnalysisNeeds::kTwoRuns) continue;
    const Result<std::string> made = two_runs_json(*analysis, {}, trace, other.trace, rows_of_page);
    page.answer("answer " + analysis->name, made ? *made : error_json(made.error()));
  }
  const Result<std::string> made = compare_json(Run(trace), Run(other.trace));
  page.answer("compare", made ? *made : error_json(made.error()));
  const DrawnRun drawn(std::make_shared<const Run>(other.trace));
  const PipelineView view(*drawn.run(), nullptr, kMaxFileCells);
  if (const Result<std::string> chart = pipeline_answer(view, Query{}); chart) page.answer("pipeline other", *chart);
}

// Answers of every analysis that suits the trace, made of the trace as recorded. Notes and errors go to `diagnostics`,
// as in all_tables().
struct NamedAnswer {
  std::string name, json;
};
std::vector<NamedAnswer> make_answers(const std::shared_ptr<const Run>& run, Diagnostics& diagnostics) {
  std::vector<NamedAnswer> answers;
  NotesOfRun reported;
  for (const Analysis* analysis : analyses()) {
    if (!is_offered(*analysis, run->trace())) continue;
    const Result<std::string> made = noted_analysis_json(*analysis, run, rows_of_page, reported);
    answers.push_back({"answer " + analysis->name, made ? *made : error_json(made.error())});
  }
  diagnostics.merge(reported.failed);
  merge_notes(diagnostics, reported.notes);
  return answers;
}

void write_answers(PageWriter& page, const Trace& trace, const std::vector<NamedAnswer>& answers,
                   const PageOptions& options, const SecondRun* other) {
  page.answer("answers", offers_json(trace, options.paths, other));
  for (const NamedAnswer& answer : answers) page.answer(answer.name, answer.json);
  if (has_clocks(trace)) page.answer("clocks", clocks_json(trace, rows_of_page));
}

void write_worst_ranks(PageWriter& page, const Run& run) {
  if (run.trace().cells.size() == 0) return;
  if (const Result<std::string> made = worst_ranks_json(run)) page.answer("pipeline/ranks", *made);
}

// Draws the run for previews of mails and browsers without scripts. A large run has none, since a page is to open fast.
void write_picture(PageWriter& page, const DrawnRun& drawn, const PageOptions& options) {
  constexpr size_t kMaxCells = 20'000;  // 1 280 cells of 4 ranks take 110 kB already
  constexpr size_t kMaxSlices = 1'000'000, kMaxBytes = 200'000;
  if (drawn.trace().cells.size() > kMaxCells || drawn.trace().slice_count() > kMaxSlices) return;
  const Result<ChartPicture> picture = chart_picture(
      drawn,
      {.lang = options.lang, .dark = options.dark, .title = options.title, .width_px = 960, .ghosts = Ghosts::kOff});
  if (picture && picture->png.size() <= kMaxBytes) page.picture(*picture);
}

void write_calls(PageWriter& page, const Run& run, const Trace* other) {
  if (!has_calls(run.trace())) return;
  std::optional<Run> second;
  if (other) second.emplace(*other);
  const Result<std::string> made = calls_answer(run, second ? &*second : nullptr, kPageCalls);
  if (made) page.answer("calls", *made);
}

// The page's texts on changes, made before it is drawn: for a large run they take more memory than all the rest.
struct PricedPage {
  std::string fixes, model;  // "": there are none
};
PricedPage price_page(const PipelineView& view) {
  PricedPage priced;
  if (Result<std::string> fixes = pipeline_fixes_answer(view, Query{}); fixes) priced.fixes = std::move(*fixes);
  if (!web_what_if_gzip().empty()) priced.model = what_if_model_bytes(view, kMaxFileOperations);
  return priced;
}

int64_t longest_ns(const Timeline& timeline, const PageLanes& lanes) {
  int64_t longest = 0;
  for (const uint32_t l : lanes.lanes) {
    const ViewLane& lane = timeline.lanes()[l];
    for (size_t i = 0; lane.has_slices() && i < lane.count; ++i) longest = std::max(longest, lane.dur(i));
  }
  return longest;
}

void write_timeline(PageWriter& page, const Timeline& timeline, const PageOptions& options, std::string_view run) {
  const PageLanes lanes = lanes_of_page(timeline, options.max_slices);
  const PagePlaces places = places_of_page(timeline, lanes);
  const PageLinks links = links_of_page(timeline, lanes);
  JsonWriter json;
  json.begin_object().key("run").raw(run).key("names").begin_array();
  size_t name_bytes = 0;
  for (const StringId name : places.names) name_bytes += timeline.names().text(name).size();
  for (const StringId name : places.names) {
    const std::string_view text = timeline.names().text(name);
    json.value(name_bytes > kMaxPageNames ? short_name(text) : valid_utf8(text));
  }
  json.end_array().key("places").begin_array();
  for (const PagePlaces::Place& place : places.places) json.value(int64_t{place.name}).value(int64_t{place.kind});
  json.end_array().list("origins", lanes.lanes,
                        [&](const uint32_t l) { return std::to_string(timeline.lanes()[l].zero_ns); });
  json.key("kind_words").begin_array();
  for (uint8_t kind = 0; kind < kViewKindCount; ++kind) {
    const ViewKindInfo& info = view_kind_info(kind);
    json.begin_array().value(info.code).value(info.name.en).value(info.name.zh).end_array();
  }
  json.end_array().field("has_chunks", timeline.chunk_count() > 1).field("links", links.count);
  json.field("longest_ns", longest_ns(timeline, lanes)).end_object();
  page.timeline("head", json.take());
  page.timeline("links", links.bytes);
  page.script();  // it starts while the browser reads on
  write_page_slices(timeline, lanes, places, [&](const PagePiece& piece) { page.slices(piece); });
}

// `draw` takes the run as recorded and returns it as a DrawnRun. `again` returns a run of the same data, with its known
// facts or without any.
template <class Draw, class Again>
Result<WrittenPage> write_page(std::shared_ptr<const Run> run, Diagnostics& notes, const std::string& path,
                               const PageOptions& options, std::unique_ptr<ComparedRun> other, const Draw& draw,
                               const Again& again) {
  TRY(file, OutputFile::create(path));
  PageWriter page(*file, options);
  WrittenPage out;
  std::vector<NamedAnswer> answers;
  {
    answers = make_answers(run, notes);
    const Explanation& explanation = explained_run(*run);
    out.findings = explained_findings(explanation);
    out.lost_share = explanation.lost_share();
    page.head(out.findings, run->trace().cells.size() > 0 && !web_what_if_gzip().empty());
    page.answer("explain", explain_json(explanation, options.paths));
    page.answer("losses", losses_json(*run));
    page.answer("figures", page_figures_json(run));
  }
  const std::string second_title = other ? other->title : std::string();
  if (other) {
    const SecondRun second{other->title, other->paths};
    write_answers(page, run->trace(), answers, options, &second);
    write_calls(page, *run, &other->trace);
    write_comparison(page, run->trace(), *other);
    other.reset();
  } else {
    write_answers(page, run->trace(), answers, options, nullptr);
    write_calls(page, *run, nullptr);
  }
  answers.clear();
  write_worst_ranks(page, *run);
  out.steps = extent_of(run->trace()).step_count;
  const RunNotes beside(notes_path(options.paths));
  const DrawnRun drawn = draw(std::move(run));
  const Trace& trace = drawn.trace();
  PricedPage priced;
  if (trace.cells.size() > 0) priced = price_page(PipelineView(*again(drawn), nullptr, kMaxFileCells));
  const Timeline timeline(trace);
  write_picture(page, drawn, options);
  if (trace.cells.size() > 0) {
    const std::shared_ptr<const Run> known = again(drawn);
    const PipelineView view(*known, &timeline, kMaxFileCells);
    if (const Result<std::string> chart = pipeline_answer(view, Query{}); chart) page.answer("pipeline", *chart);
    if (!priced.fixes.empty()) page.answer("pipeline/fixes", priced.fixes);
    const Theory& theory = view.theory().theory;
    if (options.ghosts != Ghosts::kOff && !theory.known())
      notes.add(problem::theory_none_ghosts.as(options.ghosts == Ghosts::kOn ? Severity::kWarning : Severity::kInfo),
                Args().set("why_not", theory.why_not));
  }
  const PageLanes lanes = lanes_of_page(timeline, options.max_slices);
  const RunState state{notes,
                       1,
                       true,
                       &lanes,
                       options.ghosts != Ghosts::kOff,
                       second_title,
                       !priced.model.empty(),
                       options.command,
                       {},
                       !options.plan.empty()};
  if (!options.plan.empty()) page.answer("plan", options.plan);
  const std::string about = run_json(timeline, options.title, options.paths, state);
  page.answer("run", about);
  page.answer("notes", beside.json(timeline.origin_ns()));
  write_timeline(page, timeline, options, about);
  if (!priced.model.empty()) page.what_if(priced.model);
  page.end();
  TRY_OK(file->commit());
  out.ranks = trace.parts.size();
  out.cells = trace.cells.size();
  out.slices = trace.slice_count();
  return out;
}

}  // namespace

Result<WrittenPage> write_page_file(std::shared_ptr<const Run> run, Diagnostics& notes, const std::string& path,
                                    const PageOptions& options, std::unique_ptr<ComparedRun> other) {
  return write_page(
      std::move(run), notes, path, options, std::move(other),
      [](std::shared_ptr<const Run> recorded) { return DrawnRun(std::move(recorded)); },
      [](const DrawnRun& drawn) { return drawn.run(); });
}

// Facts of a run grow to twice the trace, so those of a large run are released with the part of the page that asked for
// them.
Result<WrittenPage> write_page_file(Trace&& recorded, Diagnostics& notes, const std::string& path,
                                    const PageOptions& options, std::unique_ptr<ComparedRun> other) {
  const bool large = recorded.cells.size() > kMaxPipelineCells;
  return write_page(
      std::make_shared<const Run>(recorded), notes, path, options, std::move(other),
      [&](std::shared_ptr<const Run> run) {
        if (!large && !DrawnRun::changes(recorded)) return DrawnRun(std::move(run));
        run.reset();
        return DrawnRun(std::move(recorded));
      },
      [&](const DrawnRun& drawn) { return large ? std::make_shared<const Run>(drawn.trace()) : drawn.run(); });
}

Status export_run(const std::shared_ptr<const Run>& run, Diagnostics& notes, const std::string& path,
                  std::string_view to, const ExportOptions& options, const std::vector<std::string>& inputs,
                  std::vector<std::string>* written) {
  const Result<const Exporter*> exporter = choose_exporter(to, path);
  if (!exporter || !(*exporter)->is_page) return export_trace(run, notes, path, to, options, written);
  PageOptions page{
      .lang = options.lang, .dark = options.dark, .title = options.title, .paths = inputs, .ghosts = options.ghosts};
  if (options.plan) page.plan = options.plan->json;
  page.command = "stageline view" + shell_words(inputs);
  TRY(made, write_page_file(run, notes, path, page));
  if (written) written->push_back(path);
  return {};
}

}  // namespace stageline
