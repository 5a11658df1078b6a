#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/confine.h"
#include "cli/model_flags.h"
#include "cli/open_run.h"
#include "cli/paths.h"
#include "cli/plan_question.h"
#include "cli/problems.h"
#include "readers/reader.h"
#include "server/http/http_server.h"
#include "server/live/live_run.h"
#include "server/page/routes.h"
#include "server/page/run_shelf.h"

namespace stageline {
namespace {

// The first work of a thread of the server: reads the run, and prints notes or the failure.
void read_into(ViewRun& run, const std::vector<std::string>& paths, OpenOptions options, const Terminal& terminal) {
  options.progress = run.progress();
  options.early = [&run, ranks = options.ranks](Trace trace) {
    if (!ranks.empty()) filter_trace(trace, ranks, INT64_MIN, INT64_MAX);
    if (trace.slice_count() > 0) run.set_early(std::move(trace));
  };
  Result<Trace> trace = [&] {
    const ProgressBar bar(terminal, "progress.reading", run.progress());
    return open_trace(paths, options);
  }();
  if (!trace) {
    fail(trace.error());
    return run.set_error(trace.error());
  }
  // For pipeline cells, they were already applied.
  if (trace->slice_filter.first_step != INT64_MIN || trace->slice_filter.last_step != INT64_MAX)
    trace->diagnostics.add(problem::view_all_steps);
  print_notes(terminal, trace->diagnostics, paths[0]);
  run.set_trace(std::move(*trace));
  const int64_t slices = run.timeline()->slice_count();
  note(terminal, terminal.say("view.ready", Args().count("slices", slices)));
}

// Where a followed run is reported to. Errors: kUsage, kUnavailable.
Result<LiveOutlets> live_outlets(const Arguments& arguments, const Terminal& terminal) {
  for (const std::string flag : {"webhook", "webhook-form", "otlp"})
    if (const char* needed = flag == "webhook-form" ? "webhook" : "follow";
        arguments.has(flag) && !arguments.has(needed))
      return make_error(ErrorCode::kUsage, "--" + flag + " needs --" + needed,
                        std::string("add --") + needed + ", or omit --" + flag);
  const std::string hook = arguments.get("webhook"), otlp = arguments.get("otlp");
  LiveOutlets outlets;
  outlets.slack =
      arguments.get("webhook-form", hook.starts_with("https://hooks.slack.com/") ? "slack" : "event") == "slack";
  outlets.chinese = terminal.chinese();
  if (!hook.empty()) TRY_OK(take(Webhook::to(hook, "--webhook"), outlets.webhook));
  // The address of a collector alone, as OTEL_EXPORTER_OTLP_ENDPOINT has it, is that of all its signals.
  const bool whole = otlp.find('/', otlp.find("://") + 3) != std::string::npos;
  if (!otlp.empty()) TRY_OK(take(Webhook::to(whole ? otlp : otlp + "/v1/metrics", "--otlp"), outlets.otlp));
  return outlets;
}

// Opens a recording that is still being made and follows it until it is closed. The folder need not exist yet; then the
// program waits for it.
std::unique_ptr<LiveRun> live_run(const Arguments& arguments, const std::string& title, const OpenOptions& options,
                                  LiveOutlets outlets, const Terminal& terminal) {
  bool waited = false;
  for (const std::string& path : arguments.operands)
    for (std::error_code ec; !std::filesystem::exists(path, ec); usleep(200'000)) {
      if (!waited)
        note(terminal, terminal.chinese() ? words("follow.waiting_for_folder", Args().set("path", path)).zh
                                          : words("follow.waiting_for_folder", Args().set("path", path)).en);
      waited = true;
    }
  return std::make_unique<LiveRun>(title, arguments.operands, options, std::move(outlets));
}

// Returns the paths that must stay readable: those that the user named, and the targets of links in a folder; for a
// recording also its memory file next to it.
std::vector<std::string> readable_paths(const std::vector<std::vector<std::string>>& runs) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  std::set<std::string> folders;
  for (const std::vector<std::string>& paths : runs) {
    const Result<Source> source = scan_source(paths);
    if (!source) continue;  // the error is reported elsewhere
    out.insert(out.end(), source->roots.begin(), source->roots.end());
    for (const SourceFile& file : source->files) {
      std::error_code ec;
      if (fs::is_symlink(file.path, ec)) out.push_back(file.path);
      if (const std::string folder = fs::path(file.path).parent_path().string(); !file.given && !folder.empty())
        if (folders.insert(folder).second) out.push_back(folder);
      if (const size_t at = file.path.rfind(".slrec"); file.given && at != std::string::npos && at > 4)
        out.push_back(file.path.substr(0, at - 4) + ".slhot");  // "NAME.000.slrec"
    }
  }
  return out;
}

// Gives up access that is not needed, before anybody can send a request. Errors: kIo.
Status confine(const Arguments& arguments, const Terminal& terminal, std::vector<std::string> readable,
               Companion& companion) {
  if (arguments.get("confine", "auto") == "off") return {};
  if (const std::string rules = arguments.get("cell-rules"); !rules.empty()) readable.push_back(rules);
  TRY(confined, confine_to(readable, companion, {}, arguments.has("webhook") || arguments.has("otlp")));
  if (*confined == Confined::kNoLandlock) note(terminal, terminal.say("view.no_landlock"));
  return {};
}

// The address has the token in it, and other users see the words of a command. So the browser gets a file that only
// this user can read and that leads to the address.
void open_page(const std::string& url, Companion& companion) {
  const Result<std::string> folder = private_folder(companion);
  if (!folder) return;
  const std::string page =
      "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><meta "
      "http-equiv=\"refresh\" content=\"0;url=" +
      url + "\"><a href=\"" + url + "\">Stageline</a>\n";
  if (write_file(*folder + "/" + kOpenedPage, page)) companion.open_browser();
}

// Prints the address, and opens it in a browser when that is wanted.
void announce(const Arguments& arguments, const Terminal& terminal, const HttpServer& server, Companion& companion) {
  printf("%s\n", server.url().c_str());
  fflush(stdout);
  if (server.is_public()) note(terminal, terminal.say("view.public"));
  if (std::string_view(arguments.command->name) == "view" && !arguments.has("no-open"))
    open_page(server.url(), companion);
}

std::vector<std::string> whole_paths(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  std::error_code error;
  for (const std::string& path : paths)
    if (path != "-") out.push_back(std::filesystem::absolute(path, error).lexically_normal().string());
  return out;
}

// A description comes with the page's question, so a mistake in it is one of the question. Says its place too.
template <class T> Result<T> answer_to_page(Result<T> made) {
  if (made || made.error().code != ErrorCode::kBadInput) return made;
  Error error = made.error();
  error.code = ErrorCode::kUsage;
  if (const std::string where = error.where.text(); !where.empty()) error.what.insert(0, where + ": ");
  return error;
}

// Plans one layout for the page, in a bounded time.
Result<std::string> plan_for_page(const Query& query, const WhatIf* run, const Trace* trace) {
  std::vector<std::string> flags = {"--top=1"};
  if (!query.find("split")) flags.emplace_back("--budget=500ms");
  for (const auto& [name, value] : query.parameters)
    if (name != "model" && name != "times") flags.push_back("--" + dashed(name) + "=" + value);
  const std::string model(query.text("model"));
  if (!model.empty()) flags.emplace_back("model");  // its name in errors
  return answer_to_page(planned_json(flags, {.model = model, .run = run, .trace = trace}));
}

// Reads the flags of what-if that describe the model and its memory.
Result<std::optional<StageBytes>> bytes_for_page(const Query& query, const Trace& ran) {
  std::vector<std::string> flags = {"run"};  // which is read already
  for (const std::string_view name : kBytesParameters)
    if (const std::string* value = query.find(name); value && !value->empty())
      flags.push_back("--" + dashed(name) + "=" + (name == "model" ? "model" : *value));
  TRY(asked, parse_arguments(*find_command("what-if"), flags));
  return answer_to_page(stage_bytes_of(*asked, ran, std::string(query.text("model"))));
}

// Serves a page without a run, on which runs below --root can be opened.
Result<int> run_start_page(const Arguments& arguments, const Terminal& terminal, const OpenOptions& options,
                           const OpenOptions& compared, const ServeOptions& how) {
  for (const char* of_a_run : {"compare", "title", "follow", "webhook", "webhook-form", "otlp"})
    if (arguments.has(of_a_run))
      return make_error(ErrorCode::kUsage, std::string("--") + of_a_run + " goes with a run", "stageline view PATH");
  std::vector<std::string> roots = arguments.all("root");
  if (roots.empty()) roots.emplace_back(".");
  TRY(real, real_folders(roots, "root"));
  Companion companion(*real);
  TRY_OK(confine(arguments, terminal, *real, companion));
  TRY(drops, private_folder(companion));
  // On the heap, because a reading that Ctrl-C leaves behind still writes to it.
  const auto keep = [&companion](const std::string& path, const std::string& before, const std::string& bytes) {
    return companion.write_notes(path, before, bytes);
  };
  auto shelf = std::make_unique<RunShelf>(RunShelf::Options{
      std::move(*real),
      *drops,
      [&options, &terminal, keep, drops = *drops](ViewRun& run, const std::vector<std::string>& paths) {
        // Dropped files are removed when the program ends, and notes next to them would be lost.
        const bool lasts = drops.empty() || !paths[0].starts_with(drops + "/");
        run.set_notes(lasts ? std::make_unique<RunNotes>(notes_path(paths), keep) : std::make_unique<RunNotes>());
        read_into(run, paths, options, terminal);
      },
      [&compared](const std::vector<std::string>& paths) -> RunAnswers::Read {
        return [&compared, paths] { return open_trace(paths, compared); };
      },
      {plan_for_page, bytes_for_page}});
  TRY(server, HttpServer::listen(how, site_of(*shelf)));
  announce(arguments, terminal, **server, companion);
  if ((*server)->serve([] {}) && !shelf->busy()) return kExitGood;
  fflush(nullptr);
  _exit(kExitGood);
}

// Returns an error for a path that does not exist, for a folder that cannot be listed or contains no files, and when
// none of the files can be opened.
Status check_readable(const std::vector<std::string>& paths) {
  TRY(source, scan_source(paths));
  const std::vector<std::string>& barred = source->unreadable;
  if (source->files.empty() && barred.empty())
    return make_error(ErrorCode::kNotFound, "there are no files in this folder", "", {paths[0]});
  if (std::ranges::all_of(source->files,
                          [&](const SourceFile& file) { return std::ranges::find(barred, file.path) != barred.end(); }))
    return make_error(ErrorCode::kIo, "no permission to read this", "", {barred[0]});
  return {};
}

}  // namespace

Result<int> run_view(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  TRY(options, open_options(arguments, "", Clocks::kOneAxisIfKnown));
  TRY(recorded, open_options(arguments, "", Clocks::kCompared));
  TRY(port, arguments.integer("port", -1, 0, 65'535));
  const bool follows = arguments.has("follow");
  TRY(outlets, live_outlets(arguments, *terminal));
  ServeOptions how{.host = arguments.get("host"),
                   .port = static_cast<int32_t>(*port),
                   .token = arguments.get("token", "path") != "none"};
  if (arguments.has("host") && how.host.empty())
    return make_error(ErrorCode::kUsage, "--host is an address of this machine, such as 0.0.0.0 for all");
  if (arguments.operands.empty()) return run_start_page(arguments, *terminal, *options, *recorded, how);
  if (arguments.has("root"))
    return make_error(ErrorCode::kUsage, "--root is for the start page, which opens runs", "omit --root or the run");
  // A missing path is reported here and not on the page.
  TRY_OK(follows ? Status() : check_readable(arguments.operands));
  const std::string other = arguments.get("compare");
  if (arguments.has("compare"))
    if (const Result<Source> source = scan_source({other}); !source) return std::move(source).error();
  const auto title = valid_utf8(arguments.get("title", run_name(arguments.operands)));
  // On the heap, because a reading that Ctrl-C leaves behind still writes to it.
  auto run = std::make_unique<ViewRun>(title, arguments.operands);
  run->set_places(whole_paths(arguments.operands));
  run->set_planner({plan_for_page, bytes_for_page});
  if (!other.empty())
    run->set_other(valid_utf8(run_name({other})), {other},
                   [how_read = *recorded, other] { return open_trace({other}, how_read); });
  std::unique_ptr<LiveRun> live;
  if (follows) {
    live = live_run(arguments, title, *recorded, std::move(*outlets), *terminal);
    run->set_live(live.get());
  }
  std::error_code ec;
  const std::string notes = notes_path(arguments.operands);
  const auto folder = std::filesystem::canonical(std::filesystem::path(notes).parent_path(), ec);
  Companion companion(ec ? std::vector<std::string>() : std::vector<std::string>{folder.string()});
  const auto keep = [&companion](const std::string& path, const std::string& before, const std::string& bytes) {
    return companion.write_notes(path, before, bytes);
  };
  run->set_notes(std::make_unique<RunNotes>(notes, keep));
  std::vector<std::vector<std::string>> runs = {arguments.operands};
  if (!other.empty()) runs.push_back({other});
  TRY_OK(confine(arguments, *terminal, readable_paths(runs), companion));
  TRY(server, HttpServer::listen(how, site_of(*run)));
  announce(arguments, *terminal, **server, companion);
  const auto say = [&](const Text& text) { note(*terminal, text.in(terminal->chinese())); };
  if (follows) say(words("follow.address"));
  const auto work = [&] {
    if (live)
      say(live->follow(say) == Look::State::kSilent ? words("follow.silent")
                                                    : words("follow.over", Args().count("steps", live->step_count())));
    read_into(*run, arguments.operands, *options, *terminal);
  };
  if ((*server)->serve(work) && !run->busy()) return run->failed() ? kExitError : kExitGood;
  fflush(nullptr);
  _exit(kExitGood);  // threads that read or answer cannot be told to stop, and nothing that they do is permanent
}

}  // namespace stageline
