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
// Profilers write SQLite databases too, so an existing file is replaced only when it is a history: a database with
// these two tables and nothing else. SQLite never opens one for writing: it would roll back a journal next to it, which
// may name any file to be removed, and run triggers in it.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/change_points.h"
#include "base/input_files.h"
#include "base/sqlite_db.h"
#include "cli/commands.h"
#include "cli/open_run.h"
#include "diagnosis/explain.h"
#include "engine/mean_step.h"
#include "facts/pipeline_facts.h"

namespace stageline {
namespace {

constexpr const char* kFile = "stageline-history.sqlite";
// Only the newest runs are checked, because the method is quadratic.
constexpr size_t kMaxRuns = 100'000, kMaxChecked = 2'000;
constexpr int kBar = 24;
constexpr uint32_t kHistoryMark = 0x534c6869;  // "SLhi" as SQLite's application_id, for file(1) and people

struct HistoryRun {
  int64_t id = 0, added_s = 0, steps = 0;
  std::string label, path;
  double step_ns = 0;
  std::map<std::string, double> parts;  // ns in each step
};

class HistoryFile {
 public:
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}
  HistoryFile(const HistoryFile&) = delete;
  ~HistoryFile() {
    if (made_) unlink(path_.c_str());
    if (lock_ >= 0) close(lock_);
  }

  // A history may come from anywhere. It is read as every other database: no journal is rolled back, no view is asked
  // (base/sqlite_db.h).
  Result<std::vector<HistoryRun>> read() {
    struct stat facts;
    if (stat(path_.c_str(), &facts) != 0)
      return make_error(ErrorCode::kNotFound, "there is no history", "create one with stageline history add RUN",
                        {path_});
    Diagnostics notes;
    TRY(db, SqliteDb::open_read(path_, notes));
    if (notes.count("sqlite.unmerged_log") > 0)
      return make_error(ErrorCode::kUnavailable, "the log of another program lies next to this history",
                        "open a copy of both files with sqlite3 once, which merges them, and name that copy",
                        {path_ + "-wal"});
    std::vector<HistoryRun> runs;
    std::map<int64_t, size_t> place;
    std::string missing;
    SqliteRows row = rows_of(*db, "runs", {"id", "label", "added_s", "path", "steps", "step_ns"}, &missing);
    while (row.next()) {
      HistoryRun r{.id = row.integer(0),
                   .added_s = row.integer(2),
                   .steps = row.integer(4),
                   .label = std::string(row.text(1)),
                   .path = std::string(row.text(3)),
                   .step_ns = row.real(5)};
      place[r.id] = runs.size();
      runs.push_back(std::move(r));
    }
    if (!row.ok()) return row.status().error();
    SqliteRows part = rows_of(*db, "parts", {"run", "name", "ns"}, &missing);
    while (part.next())
      if (const auto at = place.find(part.integer(0)); at != place.end())
        runs[at->second].parts[std::string(part.text(1))] = part.real(2);
    if (!part.ok()) return part.status().error();
    if (!missing.empty())
      return make_error(ErrorCode::kBadInput, "the history is not one of Stageline: it has no " + missing, "", {path_});
    return runs;
  }

  // Adds all runs or, when one cannot be written, none: a new file is written and takes the name at once. Jobs that
  // end at the same time wait for each other.
  Status add(std::vector<HistoryRun> added) {
    TRY_OK(lock());
    std::vector<HistoryRun> runs;
    struct stat facts;
    if (stat(path_.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return foreign();
    if (facts.st_size > 0) {
      TRY_OK(check_own());
      TRY_OK(take(read(), runs));
    } else if (!input_file_of(path_, facts).empty()) {
      return foreign();
    }
    int64_t next = max_over<int64_t>(runs, [&](const HistoryRun& run) { return run.id + 1; }, 1);
    for (HistoryRun& run : added) {
      run.id = next++;
      runs.push_back(std::move(run));
    }
    TRY(out, OutputFile::create(path_, size_t{1} << 16, OutputFile::Over::kAnInput));
    if (Status s = write(*out, runs); !s) {
      s.error().where = {path_};
      return s;
    }
    TRY_OK(out->commit());
    made_ = false;
    return {};
  }

 private:
  Error foreign() const {
    return make_error(ErrorCode::kUsage, "this is not a history file; it was left unchanged",
                      "choose another name for the history: --db FILE", {path_});
  }
  // Locks the file that has the name now, and makes an empty one if there is none. The lock ends with the descriptor.
  Status lock() {
    constexpr int kTries = 1'000, kBetween_us = 10'000;
    for (int i = 0; i < kTries; ++i, usleep(kBetween_us)) {
      if (lock_ >= 0) close(lock_);
      lock_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
      if (lock_ < 0 && errno == ENOENT) {
        lock_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        made_ = lock_ >= 0;
        struct stat link;
        if (lock_ < 0 && errno == EEXIST && lstat(path_.c_str(), &link) == 0 && !S_ISLNK(link.st_mode)) continue;
      }
      if (lock_ < 0 && (errno == ENOTDIR || errno == EISDIR || errno == EEXIST)) return foreign();
      if (lock_ < 0)
        return make_error(ErrorCode::kIo, std::string("the history cannot be opened: ") + strerror(errno), "", {path_});
      struct stat locked, named;
      if (fstat(lock_, &locked) == 0 && !S_ISREG(locked.st_mode)) return foreign();
      // Some file systems of the network have no locks; there jobs are not kept apart.
      if (flock(lock_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) continue;
      // The job before this one may have put a new file in its place.
      if (stat(path_.c_str(), &named) == 0 && named.st_ino == locked.st_ino && named.st_dev == locked.st_dev) return {};
    }
    return make_error(ErrorCode::kUnavailable, "another job is adding to this history", "try again", {path_});
  }
  // Checks an existing file: a history has these two tables and nothing else.
  Status check_own() const {
    char head[16] = {};
    if (pread(lock_, head, sizeof head, 0) != sizeof head || strcmp(head, "SQLite format 3") != 0) return foreign();
    Diagnostics notes;
    TRY(db, SqliteDb::open_read(path_, notes));
    SqliteRows tables(*db, "SELECT count(*), sum(type = 'table' AND name IN ('runs', 'parts')) FROM sqlite_master");
    return tables.next() && tables.integer(0) == 2 && tables.integer(1) == 2 ? Status() : foreign();
  }
  static Status write(const OutputFile& out, const std::vector<HistoryRun>& runs) {
    TRY(db, SqliteDb::open_new(out));
    TRY_OK(db->run(
        "PRAGMA application_id = " + std::to_string(kHistoryMark) +
        ";BEGIN;CREATE TABLE runs(id INTEGER PRIMARY KEY, label TEXT NOT NULL, added_s INTEGER NOT NULL, path TEXT "
        "NOT NULL, steps INTEGER NOT NULL, step_ns REAL NOT NULL);"
        "CREATE TABLE parts(run INTEGER NOT NULL REFERENCES runs(id), name TEXT NOT NULL, ns REAL NOT NULL)"));
    {
      SqliteInsert row(*db, "runs", 6), part(*db, "parts", 3);
      for (const HistoryRun& r : runs) {
        row.integer(r.id).text(r.label).integer(r.added_s).text(r.path).integer(r.steps).real(r.step_ns).next();
        for (const auto& [name, ns] : r.parts) part.integer(r.id).text(name).real(ns).next();
      }
      TRY_OK(row.status());
      TRY_OK(part.status());
    }
    return db->run("COMMIT");
  }
  std::string path_;
  int lock_ = -1;
  bool made_ = false;  // this object made the empty file
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
  // Parts are shares of the mean over steps without outliers, whatever the mean step holds.
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
  auto series = mapped<double>(runs, &HistoryRun::step_ns);
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
  json.begin_object().objects("runs", runs, [&](const HistoryRun& run) {
    json.field("run", run.id).field("label", run.label).field("path", run.path).field("added_s", run.added_s);
    json.field("steps", run.steps).field("step_ns", run.step_ns).key("parts_ns").begin_object();
    for (const auto& [name, ns] : run.parts) json.field(name, ns);
    json.end_object();
  });
  json.objects("changes", changes, [&](const Change& c) {
    json.field("run", runs[first + c.point.at].id).field("label", runs[first + c.point.at].label);
    json.field("before_ns", c.point.before).field("after_ns", c.point.after);
    json.field("change_share", c.point.after / c.point.before - 1);
    json.field("p", c.point.p).field("part", c.part).field("part_ns", c.part_ns);
  });
  return json.end_object().take();
}

// One row for each run: its step is a place on a line from the fastest to the slowest run.
std::string history_text(const std::vector<HistoryRun>& runs, const std::vector<Change>& changes, size_t first) {
  double min = INFINITY, max = 0;
  for (const HistoryRun& run : runs) min = std::min(min, run.step_ns), max = std::max(max, run.step_ns);
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const double at = max > min ? (runs[i].step_ns - min) / (max - min) : 0;
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
  HistoryFile file(path);
  if (what == "add") {
    std::vector<HistoryRun> measured;  // all runs are measured before the first is stored
    for (const std::string& run : rest) {
      TRY(one, measure(arguments, *terminal, run));
      one->label = arguments.get("label", "");
      one->added_s = time(nullptr);
      measured.push_back(std::move(*one));
    }
    TRY_OK(file.add(measured));
    for (const HistoryRun& run : measured) {
      Args kept;
      kept.set("path", run.path).set("time", human_duration(run.step_ns)).set("file", path);
      note(*terminal, terminal->say("history.kept", kept));
    }
    return kExitGood;
  }
  TRY(runs, file.read());
  // Values that this program did not write are left out.
  std::erase_if(*runs, [](const HistoryRun& run) { return !(run.step_ns > 0) || !std::isfinite(run.step_ns); });
  if (runs->size() > kMaxRuns) runs->resize(kMaxRuns);
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
