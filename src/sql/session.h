// A connection to a run: one SQL text in, the rows of its last statement out.
//
//   RunData (shared by all who ask) ◀── Session: an SQLite database without a file, whose tables are the run
//                                         ask("CREATE TEMP VIEW …; SELECT …", limits, sink)
//
// Nothing can be changed, and nothing outside the run is reached: an authorizer allows only SELECT, functions of a
// list, and temporary tables and views. Limits stop what takes too long, too much memory or nests too deep. Ctrl-C and
// timeouts are checked every 200 steps of SQLite and within the tables' own work.
#pragma once

#include <atomic>
#include <chrono>

#include "base/progress.h"
#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

// A value of a row: NULL, a whole number, a real or a text. Texts are valid until the next row.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string_view>;

struct ResultColumn {
  std::string name;
  std::string unit;  // from the ending of its name: "ns", "bytes", ""
};

class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void begin(const std::vector<ResultColumn>& columns) = 0;
  // Takes a row; false stops the query.
  virtual bool row(const std::vector<SqlValue>& values) = 0;
};

struct Limits {
  int64_t max_rows = INT64_MAX;           // rows that are handed out; Outcome says whether there were more
  std::chrono::milliseconds timeout{};    // 0: none
  int64_t max_memory = int64_t{1} << 30;  // growth of SQLite during the query: for sorting, growing texts
  const std::atomic<bool>* cancelled = nullptr;
  const Progress* progress = nullptr;  // the query is also cancelled when this is
};

struct Outcome {
  int64_t rows = 0;
  bool truncated = false;  // there were more than Limits::max_rows
  bool is_query = false;   // the last statement returns rows, even if there are none
};

// The value of ?, ?2 or :name in a text; one with an empty name is bound by position.
struct Parameter {
  std::string name;  // without the colon
  std::variant<std::monostate, int64_t, double, std::string> value;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(std::shared_ptr<const RunData> data);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Errors: kUsage for SQL that cannot be run, with its place in the text and the nearest name; kLimit; kUnavailable
  // when it was cancelled. The errors of the tables that it reads are returned too.
  Result<Outcome> ask(std::string_view text, const Limits& limits, RowSink& sink,
                      const std::vector<Parameter>& parameters = {});

  // All tables, in the order in which they are listed.
  const std::vector<std::shared_ptr<const TableSource>>& tables() const { return sources_; }
  // The columns of a table; where the run adds columns to an analysis, this runs it. Errors: kUsage with the nearest
  // name, and those of the analysis.
  Result<std::vector<SqlColumn>> columns(std::string_view table) const;
  // Returns true when a query changed this session (temporary tables, a count of fetched arguments), so that no other
  // asker may use it.
  bool is_spent() const { return stopped_.spent; }

 private:
  struct Watch;
  struct Question;
  Error error_of(const Question& q, const std::string& statement, size_t begin, bool rewritten);
  Status run(Question& q, const std::string& statement, size_t begin, bool is_last, bool rewritten);
  explicit Session(std::shared_ptr<const RunData> data) : data_(std::move(data)) {}
  Status start();
  Error error_at(const std::string& statement, size_t offset_in_text, std::string_view text) const;
  std::string hint_for(std::string_view message, std::string_view text) const;

  std::shared_ptr<const RunData> data_;
  std::vector<std::shared_ptr<const TableSource>> sources_;
  Stopped stopped_;
  sqlite3* db_ = nullptr;
};

// Keeps connections to one run for callers who ask often, since making one costs as much as a hundred small queries. A
// spent one is not lent again. Any thread may ask.
class SessionPool {
 public:
  explicit SessionPool(std::shared_ptr<const RunData> data) : data_(std::move(data)) {}
  // A session on loan goes back to the pool in its destructor, so it must not outlive the pool.
  class Lent {
   public:
    Lent(SessionPool* pool, std::unique_ptr<Session> session) : pool_(pool), session_(std::move(session)) {}
    Lent(Lent&&) noexcept = default;
    Lent& operator=(Lent&&) = delete;
    ~Lent();
    Session* operator->() const { return session_.get(); }
    Session& operator*() const { return *session_; }

   private:
    SessionPool* pool_;
    std::unique_ptr<Session> session_;
  };
  Result<Lent> lend();

 private:
  static constexpr size_t kMaxIdle = 4;
  std::shared_ptr<const RunData> data_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

// Returns the unit that the ending of a column's name gives: "ns", "bytes" or "".
std::string unit_of(std::string_view column);

// Returns the statements of a text, split at semicolons outside quotes and comments, without blank ones.
std::vector<std::string_view> statements_of(std::string_view text);

}  // namespace stageline::sql
