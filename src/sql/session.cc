#include "sql/session.h"

#include <cctype>

#include "base/error_words.h"
#include "base/give_up.h"
#include "base/sqlite_db.h"
#include "sql/functions.h"
#include "sql/run_tables.h"
#include "sql/slice_sums.h"

namespace stageline::sql {
namespace {

constexpr size_t kMaxSqlBytes = 1'000'000;
constexpr int kStepsBetweenLooks = 200;  // one step may make a text of 64 MiB

// Returns the word after `what` in a message: "no such column: durns" → "durns".
std::string word_after(std::string_view message, std::string_view what) {
  const size_t at = message.find(what);
  if (at == std::string_view::npos) return {};
  std::string_view word = message.substr(at + what.size());
  std::string name(trim(word.substr(0, word.find(' '))));
  std::erase(name, '"');  // newer versions of SQLite keep the quotes
  return name;
}

// Suggestions for a wrong name: the nearest known name, else those that share its first letters or contain it.
std::string meant(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  if (!near.empty()) return "did you mean " + near + "?";
  std::string list;
  int count = 0;
  for (const std::string& name : known) {
    const bool alike =
        word.size() >= 3 && (name.find(word) != std::string::npos || name.starts_with(word.substr(0, 3)));
    if (!alike || count >= 6) continue;
    append_item(list, name);
    ++count;
  }
  return list.empty() ? "" : "there are " + list;
}

bool names_word(std::string_view text, std::string_view word) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_letter(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end >= text.size() || !is_letter(text[end]))) return true;
  }
  return false;
}

class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  sqlite3_stmt* get() const { return statement_; }

 private:
  sqlite3_stmt* statement_;
};

SqlValue value_of(sqlite3_stmt* statement, int column, std::string& blob) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL: return std::monostate();
    case SQLITE_INTEGER: return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const unsigned char*>(sqlite3_column_blob(statement, column));
      blob.clear();
      for (int i = 0, size = sqlite3_column_bytes(statement, column); i < size; ++i) append_hex(blob, bytes[i]);
      return std::string_view(blob);
    }
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      if (!text) return std::monostate();  // no memory for it; the next step reports that
      return std::string_view(text, sqlite3_column_bytes(statement, column));
    }
  }
}

}  // namespace

// Decides whether a query stops. It is asked every kStepsBetweenLooks steps of SQLite, and from within the tables'
// work.
struct Session::Watch {
  const Limits& limits;
  std::chrono::steady_clock::time_point until;
  int64_t memory_before = 0;
  enum class Why : uint8_t { kNothing, kCancelled, kTime, kMemory };
  std::atomic<Why> why = Why::kNothing;

  bool stops() {
    if (why != Why::kNothing) return true;
    if ((limits.cancelled && limits.cancelled->load(std::memory_order_relaxed)) ||
        (limits.progress && limits.progress->cancelled()))
      why = Why::kCancelled;
    else if (limits.timeout.count() > 0 && std::chrono::steady_clock::now() >= until) why = Why::kTime;
    else if (sqlite_memory() - memory_before > limits.max_memory) why = Why::kMemory;
    return why != Why::kNothing;
  }
  Error error() const {
    switch (why) {
      case Why::kTime:
        return make_error(ErrorCode::kLimit,
                          "the query took longer than " + std::to_string(limits.timeout.count()) + " ms",
                          "narrow it by rank, step or time, let totals() add up, or allow more with --timeout");
      case Why::kMemory:
        return make_error(ErrorCode::kLimit,
                          "the query needs more memory than " + std::to_string(limits.max_memory >> 20) + " MiB",
                          "narrow it by rank, step or time");
      default: return worded_error(ErrorCode::kUnavailable, "refused.cancelled.query");
    }
  }
};

std::string unit_of(std::string_view column) {
  return column.ends_with("_ns") ? "ns" : column.ends_with("bytes") ? "bytes" : "";
}

std::vector<std::string_view> statements_of(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  bool any = false;  // there is something other than blanks and comments
  const auto end_at = [&](size_t end) {
    if (any) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
    any = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ';') {
      end_at(i);
    } else if (c == '\'' || c == '"' || c == '`' || c == '[') {
      any = true;
      const size_t close = text.find(c == '[' ? ']' : c, i + 1);
      i = close == std::string_view::npos ? text.size() : close;  // a doubled quote reads as two adjacent texts
    } else if (c == '-' && text.substr(i, 2) == "--") {
      const size_t close = text.find('\n', i);
      i = close == std::string_view::npos ? text.size() : close;
    } else if (c == '/' && text.substr(i, 2) == "/*") {
      const size_t close = text.find("*/", i + 2);
      i = close == std::string_view::npos ? text.size() : close + 1;
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      any = true;
    }
  }
  if (begin <= text.size()) end_at(text.size());
  return out;
}

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<const RunData> data) {
  std::unique_ptr<Session> session(new Session(std::move(data)));
  TRY_OK(session->start());
  return session;
}

Session::~Session() { sqlite3_close_v2(db_); }

Status Session::start() {
  const auto failed = [&](const char* doing) {
    return make_error(ErrorCode::kUnavailable,
                      std::string("SQLite cannot ") + doing + ": " + (db_ ? sqlite3_errmsg(db_) : "no memory"));
  };
  if (sqlite3_open_v2(":memory:", &db_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
                      set_up_sqlite()) != SQLITE_OK)
    return failed("open a database in memory");
  // SQLite sorts in memory with a linked list, which is 2.5 to 3 times as slow as its sorted runs in temporary files.
  // These have no name any more while they are open; 32 MiB of them are cached in memory.
  if (sqlite3_exec(db_, "PRAGMA temp_store = file; PRAGMA cache_size = -32768;", nullptr, nullptr, nullptr) !=
      SQLITE_OK)
    return failed("be set up");
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);  // "a b" is always a name, never a text
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
#define LIMIT(what, max) sqlite3_limit(db_, what, max);
#include "sql/sqlite_limits.def"
  if (add_functions(db_) != SQLITE_OK) return failed("take functions");
  sources_ = tables_of(data_);
  for (const auto& source : sources_) TRY_OK(add_table(db_, source, &stopped_));
  for (const auto& source : sums_of_slices(data_)) TRY_OK(add_table(db_, source, &stopped_));
  sqlite3_set_authorizer(db_, authorize, &stopped_);
  return {};
}

Result<std::vector<SqlColumn>> Session::columns(std::string_view table) const {
  std::vector<std::string> names;
  for (const auto& source : sources_) {
    if (sqlite3_stricmp(source->name().c_str(), std::string(table).c_str()) == 0) return source->columns();
    names.push_back(source->name());
  }
  return make_error(ErrorCode::kUsage, "there is no table \"" + std::string(table) + "\"", meant(table, names));
}

std::string Session::hint_for(std::string_view message, std::string_view text) const {
  if (const std::string name = word_after(message, "no such table: "); !name.empty()) {
    auto names = mapped<std::string>(sources_, [&](const auto& source) { return source->name(); });
    const std::string known = meant(name, names);
    return known.empty() ? "SELECT name FROM tables lists them" : known;
  }
  if (std::string name = word_after(message, "no such column: "); !name.empty()) {
    if (const size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
    std::vector<std::string> names;
    std::string asked;  // the last table that the text names
    for (const auto& source : sources_) {
      if (!names_word(text, source->name())) continue;
      asked = source->name();
      if (const auto columns = source->columns())
        for (const SqlColumn& column : *columns) names.push_back(column.name);
    }
    const std::string known = meant(name, names);
    return !known.empty()  ? known
           : asked.empty() ? "SELECT * FROM columns lists them"
                           : "SELECT name, help FROM columns('" + asked + "') lists them";
  }
  if (const std::string name = word_after(message, "no such function: "); !name.empty()) {
    std::vector<std::string> names;
    for (const FunctionHelp& function : function_helps())
      names.emplace_back(std::string_view(function.call).substr(0, std::string_view(function.call).find('(')));
    const std::string known = meant(name, names);
    return known.empty() ? "SQLite's own and those of SELECT name, help FROM tables WHERE kind = 'function'" : known;
  }
  return "";
}

// The last error of SQLite, with its place in the text where that is known.
Error Session::error_at(const std::string& statement, size_t begin, std::string_view text) const {
  const std::string message = sqlite3_errmsg(db_);
  Error error = {ErrorCode::kUsage, message, {}, hint_for(message, text)};
#if SQLITE_VERSION_NUMBER >= 3038000
  if (const int at = sqlite3_error_offset(db_); at >= 0 && static_cast<size_t>(at) <= statement.size()) {
    const size_t place = begin + at;
    const size_t line_begin = text.rfind('\n', place == 0 ? 0 : place - 1) + 1;  // 0 where there is no line before
    const size_t line_end = std::min(text.size(), text.find('\n', place));
    constexpr size_t kMaxShown = 60;  // most letters shown before the place
    const size_t from = place > line_begin + kMaxShown ? place - kMaxShown : line_begin;
    const std::string_view shown = text.substr(from, std::min<size_t>(line_end - from, 2 * kMaxShown));
    error.what += "\n  " + valid_utf8(shown) + "\n  " +
                  std::string(std::max(0, display_width(valid_utf8(text.substr(from, place - from)))), ' ') + "^";
  }
#else
  (void)statement;
  (void)begin;
#endif
  return error;
}

// One question: its limits, what watches over them, and what came out so far.
struct Session::Question {
  std::string_view text;
  const Limits& limits;
  RowSink& sink;
  const std::vector<Parameter>& parameters;
  Watch watch;
  const SqliteMemoryLimit memory;
  const GiveUpScope given_up;
  Outcome outcome = {};

  Question(std::string_view asked, const Limits& l, RowSink& s, const std::vector<Parameter>& p)
      : text(asked), limits(l), sink(s), parameters(p),
        watch{l, std::chrono::steady_clock::now() + l.timeout, sqlite_memory(), Watch::Why::kNothing},
        memory(l.max_memory), given_up([this] { return watch.stops(); }) {}

  void bind(sqlite3_stmt* prepared) const {
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      int place = i + 1;
      if (!parameters[i].name.empty()) {
        place = 0;
        for (const char sign : {':', '@', '$'})
          if (place == 0) place = sqlite3_bind_parameter_index(prepared, (sign + parameters[i].name).c_str());
      }
      if (place == 0 || place > sqlite3_bind_parameter_count(prepared)) continue;
      const auto& value = parameters[i].value;
      if (const auto* number = std::get_if<int64_t>(&value)) sqlite3_bind_int64(prepared, place, *number);
      else if (const auto* real = std::get_if<double>(&value)) sqlite3_bind_double(prepared, place, *real);
      else if (const auto* words = std::get_if<std::string>(&value))
        sqlite3_bind_text64(prepared, place, words->data(), words->size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
  void begin_rows(sqlite3_stmt* prepared) const {
    std::vector<ResultColumn> columns;
    for (int c = 0; c < sqlite3_column_count(prepared); ++c) {
      const char* name = sqlite3_column_name(prepared, c);
      columns.push_back({valid_utf8(name ? name : ""), unit_of(name ? name : "")});
    }
    sink.begin(columns);
  }
};

// `rewritten`: the statement is not in the asker's words, so there is no place in their text to show.
Error Session::error_of(const Question& q, const std::string& statement, size_t begin, bool rewritten) {
  // A question that contains this one may be given up too.
  if (q.watch.why != Watch::Why::kNothing || q.given_up.is_over()) return q.watch.error();
  if (stopped_.problem) return *stopped_.problem;
  if (!stopped_.refused.empty())
    return make_error(ErrorCode::kUsage, stopped_.refused, "a query reads a run and changes nothing");
  const int code = sqlite3_errcode(db_);
  if (code == SQLITE_NOMEM)
    return make_error(ErrorCode::kLimit,
                      "the query needs more memory than " + std::to_string(q.limits.max_memory >> 20) + " MiB",
                      "narrow it by rank, step or time");
  if (code == SQLITE_FULL)
    return make_error(ErrorCode::kLimit, "the query's temporary data would fill the disk",
                      "narrow it by rank, step or time, or name another folder with TMPDIR");
  if (code == SQLITE_CANTOPEN || code == SQLITE_IOERR)
    return make_error(ErrorCode::kIo, std::string("sorting needs a folder for temporary files: ") + sqlite3_errmsg(db_),
                      "TMPDIR names another");
  if (code == SQLITE_TOOBIG) return make_error(ErrorCode::kLimit, "a text of this query is longer than 64 MiB");
  if (rewritten) return make_error(ErrorCode::kUnavailable, sqlite3_errmsg(db_));
  return error_at(statement, begin, q.text);
}

// Runs one statement that stands `begin` bytes into the text; `rewritten`: as aggregate_query() wrote it.
Status Session::run(Question& q, const std::string& statement, size_t begin, bool is_last, bool rewritten) {
  stopped_.problem.reset();
  stopped_.refused.clear();
  stopped_.aggregating = rewritten;
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(db_, statement.data(), static_cast<int>(statement.size()), 0, &prepared, nullptr);
  const Statement owner(prepared);
  if (code != SQLITE_OK) return error_of(q, statement, begin, rewritten);
  if (!prepared) return {};
  q.bind(prepared);
  const int width = sqlite3_column_count(prepared);
  q.outcome.is_query = width > 0;
  std::vector<SqlValue> values(width);
  std::vector<std::string> blobs(width);
  for (bool begun = false;;) {
    const int step = sqlite3_step(prepared);
    if (step != SQLITE_DONE && step != SQLITE_ROW) return error_of(q, statement, begin, rewritten);
    if (is_last && !begun) q.begin_rows(prepared);
    begun = true;
    if (step == SQLITE_DONE) return {};
    if (!is_last) continue;
    if (q.outcome.rows >= q.limits.max_rows) {
      q.outcome.truncated = true;
      return {};
    }
    for (int c = 0; c < width; ++c) values[c] = value_of(prepared, c, blobs[c]);
    ++q.outcome.rows;
    if (!q.sink.row(values)) return {};
    if ((q.outcome.rows & 1023) == 0 && q.watch.stops()) return q.watch.error();
  }
}

Result<Outcome> Session::ask(std::string_view text, const Limits& limits, RowSink& sink,
                             const std::vector<Parameter>& parameters) {
  if (text.size() > kMaxSqlBytes)
    return make_error(ErrorCode::kLimit, "a query of " + std::to_string(text.size()) + " bytes is longer than 1 MB");
  const std::vector<std::string_view> statements = statements_of(text);
  if (statements.empty())
    return make_error(ErrorCode::kUsage, "the query is empty", "SELECT name, help FROM tables says what can be asked");
  Question q(text, limits, sink, parameters);
  sqlite3_progress_handler(
      db_, kStepsBetweenLooks, [](void* at) { return static_cast<Watch*>(at)->stops() ? 1 : 0; }, &q.watch);
  struct Unwatch {
    sqlite3* db;
    ~Unwatch() { sqlite3_progress_handler(db, 0, nullptr, nullptr); }
  } const unwatch = {db_};
  for (const std::string_view& view : statements) {
    const bool is_last = &view == &statements.back();
    const size_t begin = view.data() - text.data();
    // A session that has made its own tables may have one called slices, so its queries are not rewritten.
    const std::string rewritten = stopped_.spent ? std::string() : aggregate_query(view);
    if (!rewritten.empty()) {
      Status s = run(q, rewritten, begin, is_last, true);
      if (s) continue;
      // A query that sums cannot answer runs on the slices. So does a query with an error, so that the message quotes
      // the query.
      if (q.outcome.rows > 0 || q.watch.why != Watch::Why::kNothing) return std::move(s).error();
    }
    TRY_OK(run(q, std::string(view), begin, is_last, false));
  }
  return q.outcome;
}

Result<SessionPool::Lent> SessionPool::lend() {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      Lent lent(this, std::move(idle_.back()));
      idle_.pop_back();
      return lent;
    }
  }
  TRY(made, Session::open(data_));
  return Lent(this, std::move(*made));
}

SessionPool::Lent::~Lent() {
  if (!session_ || session_->is_spent()) return;
  const std::scoped_lock lock(pool_->mutex_);
  if (pool_->idle_.size() < kMaxIdle) pool_->idle_.push_back(std::move(session_));
}

}  // namespace stageline::sql
