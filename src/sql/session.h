// A connection to a run: one SQL text in, the rows of its last statement out.
//
//   RunData (shared by all who ask) ◀── Session: an SQLite database without a file, whose tables are the run
//                                         ask("CREATE TEMP VIEW …; SELECT …", limits, sink)
//
// Nothing can be changed, and nothing outside the run is reached: an authorizer lets SELECT, functions of a list and
// temporary tables and views pass, and nothing else. Limits stop what takes too long, too much or too deep; Ctrl-C and
// timeouts are looked for every 10 000 steps of SQLite (an analysis that a query asks for runs to its end).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

// A value of a row: NULL, a whole number, a real, a text. Texts live until the next row.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string_view>;

struct ResultColumn {
  std::string name;
  std::string unit;  // by the ending of its name: "ns", "bytes", ""
};

class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void begin(const std::vector<ResultColumn>& columns) = 0;
  // False: enough.
  virtual bool row(const std::vector<SqlValue>& values) = 0;
};

struct Limits {
  int64_t most_rows = INT64_MAX;           // rows handed out; Outcome says whether there were more
  std::chrono::milliseconds timeout{};     // 0: none
  int64_t most_memory = int64_t{1} << 30;  // of SQLite, over what it had: sorters, texts that grow
  const std::atomic<bool>* cancelled = nullptr;
  const Progress* progress = nullptr;  // cancelled too where this is
};

struct Outcome {
  int64_t rows = 0;
  bool truncated = false;  // there were more than Limits::most_rows
  bool is_query = false;   // the last statement has rows to give, be it none
};

// Values of ?, ?2, :name in a text; by place where the name is empty.
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
  // when it was cancelled; those of the tables it asks.
  Result<Outcome> ask(std::string_view text, const Limits& limits, RowSink& sink,
                      const std::vector<Parameter>& parameters = {});

  // The tables in the order of their listing.
  const std::vector<std::shared_ptr<const TableSource>>& tables() const { return sources_; }
  // The columns of one; runs an analysis for its own. Errors: kUsage with the nearest name, those of the analysis.
  Result<std::vector<SqlColumn>> columns(std::string_view table) const;
  // Its queries left something behind: another one may not go on with it.
  bool is_spent() const { return stopped_.spent; }

 private:
  struct Watch;
  explicit Session(std::shared_ptr<const RunData> data) : data_(std::move(data)) {}
  Status start();
  Error error_at(const std::string& statement, size_t offset_in_text, std::string_view text) const;
  std::string hint_for(std::string_view message, std::string_view text) const;

  std::shared_ptr<const RunData> data_;
  std::vector<std::shared_ptr<const TableSource>> sources_;
  Stopped stopped_;
  sqlite3* db_ = nullptr;
};

// Connections to one run for whoever asks often: a connection costs as much as a hundred small queries. One that is
// spent is not lent again. Any thread.
class SessionPool {
 public:
  explicit SessionPool(std::shared_ptr<const RunData> data) : data_(std::move(data)) {}
  // Gives itself back when it goes. It must not outlive the pool.
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
  static constexpr size_t kMostIdle = 4;
  std::shared_ptr<const RunData> data_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

std::string unit_of(std::string_view column);

// Statements of a text, parted at semicolons outside quotes and comments; blank ones are left out.
std::vector<std::string_view> statements_of(std::string_view text);

}  // namespace stageline::sql
