// stageline history: keeps the step time of many runs in one SQLite file, and finds the run from which on it is
// different.
//
//   history add RUN… --label TEXT     explain's mean step and its parts, busy time of the stages ──▶ runs, parts
//   history list                      every run, its step, a mark where the level changes
//   history check                     the changes alone; exit 1 when the last one made steps slower
//
// A run is one value: its mean step without outliers. How small a change can be found depends on how much this value
// differs from run to run (base/change_points.h). With 60 runs that differ by a quarter of a percent, a change of half
// a percent is found; with runs that differ by one percent, it never is.
//
// Profilers write SQLite databases too, and SQLite would add the tables to whatever database has the name. So an
// existing file is written to only when it is a history. A history has the mark kHistoryMark, or these two tables and
// no other (as histories from before there was a mark).
#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/change_points.h"
#include "base/input.h"
#include "base/input_files.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "base/output_file.h"
#include "base/sqlite_db.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/run_common.h"
#include "diagnosis/explain.h"
#include "engine/mean_step.h"
#include "exporters/table_text.h"
#include "facts/pipeline_facts.h"

namespace stageline {
namespace {

constexpr const char* kFile = "stageline-history.sqlite";
// Only the newest runs are checked, because the method is quadratic.
constexpr size_t kMaxRuns = 100'000, kMaxChecked = 2'000;
constexpr int kBar = 24;
constexpr uint32_t kHistoryMark = 0x534c6869;  // "SLhi" as SQLite's application_id
constexpr size_t kMarkAt = 68;                 // its position in the file's header, where it is big-endian

struct HistoryRun {
  int64_t id = 0, added_s = 0, steps = 0;
  std::string label, path;
  double step_ns = 0;
  std::map<std::string, double> parts;  // ns in each step
};

class HistoryFile {
 public:
  ~HistoryFile() { sqlite3_close_v2(db_); }

  Status open(const std::string& path, bool make) {
    path_ = path;
    struct stat facts;
    const bool there = stat(path.c_str(), &facts) == 0;
    if (!make && !there)
      return Error{ErrorCode::kNotFound, "there is no history", {path}, "create one with stageline history add RUN"};
    if (make && (there ? !S_ISREG(facts.st_mode) : errno != ENOENT || path.ends_with('/'))) return foreign();
    // A job that was killed while it added a run leaves a journal: SQLite takes the half-done run back when it may
    // write.
    struct stat journal;
    const bool half_done =
        !make && stat((path + "-journal").c_str(), &journal) == 0 && check_own(path, facts) && marked_;
    const int flags = (make        ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                       : half_done ? SQLITE_OPEN_READWRITE
                                   : SQLITE_OPEN_READONLY) |
                      SQLITE_OPEN_NOMUTEX;
    // A name of SQLite's own (":memory:", "file:…") is a file's name here.
    const std::string name = path.starts_with('/') ? path : "./" + path;
    if (sqlite3_open_v2(name.c_str(), &db_, flags, nullptr) != SQLITE_OK) return failed("cannot be opened");
    sqlite3_busy_timeout(db_, 10'000);  // two jobs may end at once
    if (!make) return {};
    // SQLite reads names more kindly than the system ("FILE/" is FILE), so what it opened is looked at. Nothing is
    // written yet.
    const char* const opened = sqlite3_db_filename(db_, "main");
    if (!opened || stat(opened, &facts) != 0) return foreign();
    TRY_OK(check_own(opened, facts));
    // The mark and the tables appear together, so that two jobs that begin a history at once know each other's file.
    TRY_OK(run("BEGIN IMMEDIATE"));
    if (!marked_) TRY_OK(run(("PRAGMA application_id = " + std::to_string(kHistoryMark)).c_str()));
    return run(
        "CREATE TABLE IF NOT EXISTS runs(id INTEGER PRIMARY KEY, label TEXT NOT NULL, added_s INTEGER NOT NULL, path "
        "TEXT NOT "
        "NULL, steps INTEGER NOT NULL, step_ns REAL NOT NULL);"
        "CREATE TABLE IF NOT EXISTS parts(run INTEGER NOT NULL REFERENCES runs(id), name TEXT NOT NULL, ns REAL NOT "
        "NULL); COMMIT");
  }

  // Adds all runs or, when one cannot be written, none.
  Status add(const std::vector<HistoryRun>& runs) {
    TRY_OK(run("BEGIN IMMEDIATE"));
    for (const HistoryRun& one : runs) TRY_OK(insert(one));
    return run("COMMIT");
  }

  Result<std::vector<HistoryRun>> read() {
    std::vector<HistoryRun> runs;
    std::map<int64_t, size_t> place;
    Statement row = prepare("SELECT id, label, added_s, path, steps, step_ns FROM runs ORDER BY id");
    if (!row) return failed("is not a history of Stageline").error();
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(row.get())) == SQLITE_ROW && runs.size() < kMaxRuns) {
      HistoryRun r;
      r.id = sqlite3_column_int64(row.get(), 0);
      r.label = text(row.get(), 1);
      r.added_s = sqlite3_column_int64(row.get(), 2);
      r.path = text(row.get(), 3);
      r.steps = sqlite3_column_int64(row.get(), 4);
      r.step_ns = sqlite3_column_double(row.get(), 5);
      if (!(r.step_ns > 0) || !std::isfinite(r.step_ns)) continue;  // a value that this program did not write
      place[r.id] = runs.size();
      runs.push_back(std::move(r));
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) return failed("cannot be read").error();
    Statement part = prepare("SELECT run, name, ns FROM parts");
    if (!part) return failed("is not a history of Stageline").error();
    while (sqlite3_step(part.get()) == SQLITE_ROW)
      if (const auto at = place.find(sqlite3_column_int64(part.get(), 0)); at != place.end())
        runs[at->second].parts[text(part.get(), 1)] = sqlite3_column_double(part.get(), 2);
    return runs;
  }

 private:
  Error foreign() const {
    return {ErrorCode::kUsage,
            "this is not a history file; it was left unchanged",
            {path_},
            "choose another name for the history: --db FILE"};
  }
  // Checks an existing file before anything is written to it.
  Status check_own(const std::string& opened, const struct stat& facts) {
    if (!S_ISREG(facts.st_mode)) return foreign();
    if (facts.st_size == 0) return input_file_of(opened, facts).empty() ? Status() : foreign();
    const std::string head = read_head(opened, kMarkAt + 4);
    if (head.size() < kMarkAt + 4 || !head.starts_with("SQLite format 3")) return foreign();
    uint32_t mark = 0;
    for (size_t i = 0; i < 4; ++i) mark = mark << 8 | static_cast<unsigned char>(head[kMarkAt + i]);
    marked_ = mark == kHistoryMark;
    if (marked_) return {};
    Diagnostics notes;
    TRY(db, SqliteDb::open_read(opened, notes));
    SqliteRows tables(*db, "SELECT count(*), sum(name IN ('runs', 'parts')) FROM sqlite_master");
    return tables.next() && tables.integer(0) == 2 && tables.integer(1) == 2 ? Status() : foreign();
  }
  Status insert(const HistoryRun& r) {
    Statement row = prepare("INSERT INTO runs(label, added_s, path, steps, step_ns) VALUES(?,?,?,?,?)");
    if (!row) return failed("is not a history of Stageline");
    sqlite3_bind_text(row.get(), 1, r.label.c_str(), -1, SQLITE_STATIC);
    sqlite3_bind_int64(row.get(), 2, r.added_s);
    sqlite3_bind_text(row.get(), 3, r.path.c_str(), -1, SQLITE_STATIC);
    sqlite3_bind_int64(row.get(), 4, r.steps);
    sqlite3_bind_double(row.get(), 5, r.step_ns);
    if (sqlite3_step(row.get()) != SQLITE_DONE) return failed("cannot be written");
    const int64_t id = sqlite3_last_insert_rowid(db_);
    for (const auto& [name, ns] : r.parts) {
      Statement part = prepare("INSERT INTO parts(run, name, ns) VALUES(?,?,?)");
      if (!part) return failed("is not a history of Stageline");
      sqlite3_bind_int64(part.get(), 1, id);
      sqlite3_bind_text(part.get(), 2, name.c_str(), -1, SQLITE_STATIC);
      sqlite3_bind_double(part.get(), 3, ns);
      if (sqlite3_step(part.get()) != SQLITE_DONE) return failed("cannot be written");
    }
    return {};
  }

  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
  Statement prepare(const char* sql) {
    sqlite3_stmt* made = nullptr;
    sqlite3_prepare_v2(db_, sql, -1, &made, nullptr);
    return Statement(made);
  }
  static std::string text(sqlite3_stmt* row, int column) {
    const auto* found = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return found ? found : "";
  }
  Status run(const char* sql) {
    return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? Status() : failed("cannot be written");
  }
  Status failed(const std::string& what) {
    return Error{ErrorCode::kIo, "the history " + what + ": " + (db_ ? sqlite3_errmsg(db_) : "no memory"), {path_}, ""};
  }
  sqlite3* db_ = nullptr;
  bool marked_ = false;
  std::string path_;
};

std::string folder_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Returns the part of `explain` that a history keeps of the run: its mean step, and the parts of it.
Result<HistoryRun> measure(const Arguments& arguments, const Terminal& terminal, const std::string& path) {
  TRY(trace, open_run(arguments, terminal, {path}, "", Clocks::kCompared));
  print_notes(terminal, trace->diagnostics, path);
  const auto run = std::make_shared<const Run>(*trace);
  const Explanation e = explain(*run, true);
  HistoryRun out;
  out.path = path;
  TRY(step, mean_step_of(e, path));
  out.steps = step->steps;
  out.step_ns = step->ns;
  // Parts are shares of the mean over steps that are no outliers, whatever the mean step holds.
  for (const SpanPart& part : e.parts)
    out.parts[part.label.en] += part.share * (e.parts_of_ns > 0 ? e.parts_of_ns : step->ns);
  if (trace->cells.size() == 0) return out;
  const PipelineSums& sums = sums_of(*run);
  std::map<int32_t, std::pair<double, int64_t>> stages;
  for (const RankSums& rank : sums.ranks) {
    const int32_t stage = trace->parts[rank.part].stage;
    if (stage == kUnknown || sums.is_outlier(rank.step)) continue;
    stages[stage].first += rank.busy_ns;
    ++stages[stage].second;
  }
  if (stages.size() > 1)
    for (const auto& [stage, sum] : stages) out.parts["stage " + std::to_string(stage)] = sum.first / sum.second;
  return out;
}

struct Change {
  ChangePoint point;
  std::string part;  // the part that changed most in the same direction; "" when no parts are stored
  double part_ns = 0;
};

std::vector<Change> changes_of(const std::vector<HistoryRun>& runs) {
  std::vector<double> series;
  for (const HistoryRun& run : runs) series.push_back(run.step_ns);
  const std::vector<ChangePoint> points = change_points(series);
  std::vector<Change> out;
  for (size_t i = 0; i < points.size(); ++i) {
    Change change{points[i], "", 0};
    const size_t first = i == 0 ? 0 : points[i - 1].at, last = i + 1 < points.size() ? points[i + 1].at : runs.size();
    std::map<std::string, std::pair<double, double>> sums;
    for (size_t k = first; k < last; ++k)
      for (const auto& [name, ns] : runs[k].parts)
        (k < points[i].at ? sums[name].first : sums[name].second) +=
            ns / (k < points[i].at ? points[i].at - first : last - points[i].at);
    const double sign = points[i].after > points[i].before ? 1 : -1;
    for (const auto& [name, sum] : sums)
      if (const double more = sign * (sum.second - sum.first); more > sign * change.part_ns) {
        change.part = name;
        change.part_ns = sign * more;
      }
    out.push_back(std::move(change));
  }
  return out;
}

std::string signed_percent(double share) { return (share < 0 ? "−" : "+") + percent(std::abs(share)); }

std::string sentence(const Terminal& terminal, const Change& c, const HistoryRun& at) {
  const double share = c.point.after / c.point.before - 1;
  Args args;
  args.set("run", at.id).set("label", at.label).set("by", percent(std::abs(share)));
  args.set("before", human_duration(c.point.before)).set("after", human_duration(c.point.after));
  args.set("p", std::to_string(c.point.p).substr(0, 5)).set("part", c.part);
  args.set("part_change", (share > 0 ? "+" : "−") + human_duration(std::abs(c.part_ns)));
  return terminal.say(share > 0 ? "history.change.slower" : "history.change", args);
}

std::string history_json(const std::vector<HistoryRun>& runs, const std::vector<Change>& changes, size_t first) {
  JsonWriter json;
  json.begin_object().key("runs").begin_array();
  for (const HistoryRun& run : runs) {
    json.begin_object()
        .field("run", run.id)
        .field("label", run.label)
        .field("path", run.path)
        .field("added_s", run.added_s);
    json.field("steps", run.steps).field("step_ns", run.step_ns).key("parts_ns").begin_object();
    for (const auto& [name, ns] : run.parts) json.field(name, ns);
    json.end_object().end_object();
  }
  json.end_array().key("changes").begin_array();
  for (const Change& c : changes) {
    json.begin_object().field("run", runs[first + c.point.at].id).field("label", runs[first + c.point.at].label);
    json.field("before_ns", c.point.before)
        .field("after_ns", c.point.after)
        .field("change_share", c.point.after / c.point.before - 1);
    json.field("p", c.point.p).field("part", c.part).field("part_ns", c.part_ns).end_object();
  }
  return json.end_array().end_object().take();
}

// One row for each run: its step is a place on a line from the fastest to the slowest run.
std::string history_text(const std::vector<HistoryRun>& runs, const std::vector<Change>& changes, size_t first) {
  double least = INFINITY, most = 0;
  for (const HistoryRun& run : runs) least = std::min(least, run.step_ns), most = std::max(most, run.step_ns);
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const double at = most > least ? (runs[i].step_ns - least) / (most - least) : 0;
    std::string bar(kBar, ' ');
    bar[static_cast<size_t>(at * (kBar - 1))] = '*';
    char row[96];
    const std::string time = human_duration(runs[i].step_ns);
    std::snprintf(row, sizeof row, "%6lld  %12s  |%s|  ", static_cast<long long>(runs[i].id), time.c_str(),
                  bar.c_str());
    out += row + runs[i].label;
    if (next < changes.size() && first + changes[next].point.at == i) {
      out += "  <- " + signed_percent(changes[next].point.after / changes[next].point.before - 1);
      ++next;
    }
    out += "\n";
  }
  return out;
}

}  // namespace

Result<int> run_history(const Arguments& arguments) {
  TRY(terminal, terminal_for(arguments));
  const std::string format = arguments.has("json") ? "json" : arguments.get("format", "text");
  if (format != "text" && format != "json")
    return make_error(ErrorCode::kUsage, "history comes as text or json, not \"" + format + "\"");
  const std::string what = arguments.operands.empty() ? "list" : arguments.operands[0];
  const std::vector<std::string> rest(arguments.operands.begin() + (arguments.operands.empty() ? 0 : 1),
                                      arguments.operands.end());
  if (what != "add" && what != "list" && what != "check")
    return make_error(ErrorCode::kUsage, "history takes add, list or check, not \"" + what + "\"",
                      "stageline history add RUN");
  if ((what == "add") == rest.empty())
    return make_error(ErrorCode::kUsage, what == "add" ? "history add needs a run"
                                                       : "history " + what + " takes no runs: the history has them");
  const std::string path = arguments.get("db", rest.empty() ? kFile : folder_of(rest[0]) + "/" + kFile);
  HistoryFile file;
  if (what == "add") {
    std::vector<HistoryRun> measured;  // all runs are measured before the first is stored
    for (const std::string& run : rest) {
      TRY(one, measure(arguments, *terminal, run));
      one->label = arguments.get("label", "");
      one->added_s = time(nullptr);
      measured.push_back(std::move(*one));
    }
    TRY_OK(file.open(path, true));
    TRY_OK(file.add(measured));
    for (const HistoryRun& run : measured) {
      Args kept;
      kept.set("path", run.path).set("time", human_duration(run.step_ns)).set("file", path);
      note(*terminal, terminal->say("history.kept", kept));
    }
    return kExitGood;
  }
  TRY_OK(file.open(path, false));
  TRY(runs, file.read());
  const size_t first = runs->size() > kMaxChecked ? runs->size() - kMaxChecked : 0;
  const std::vector<Change> changes = changes_of({runs->begin() + first, runs->end()});
  std::string out;
  if (format == "json") {
    out = history_json(*runs, changes, first) + "\n";
  } else {
    if (what == "list") out = history_text(*runs, changes, first);
    for (const Change& change : changes) out += sentence(*terminal, change, (*runs)[first + change.point.at]) + "\n";
    if (changes.empty()) {
      const Args args = Args().count("runs", runs->size()).set("least", grouped(fewest_values()));
      out += terminal->say(runs->size() < fewest_values() ? "history.few" : "history.none", args) + "\n";
    }
    out = terminal_text(out, true);
  }
  TRY(to, OutputFile::create("-"));
  to->write(out);
  TRY_OK(to->commit());
  const bool slower = !changes.empty() && changes.back().point.after > changes.back().point.before;
  return what == "check" && slower ? kExitFinding : kExitGood;
}

}  // namespace stageline
