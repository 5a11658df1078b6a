// Answers the questions of the viewer's pages besides the timeline: where the time went, analyses, clocks, and a second
// run to compare with. docs/viewer-protocol.md is the contract. The numbers are those that `stageline explain`,
// `analyze`, `align` and `diff` print for the same input.
#pragma once

#include <atomic>

#include "engine/one_clock.h"
#include "facts/run.h"
#include "server/http/answer_desk.h"
#include "server/http/query.h"

namespace stageline {

class PipelineView;
class Timeline;
namespace sql {
class SessionPool;
}

class RunAnswers {
 public:
  using Read = std::function<Result<Trace>()>;

  // Tables are made of the run as recorded, and queries of the run as drawn on one clock. The traces of both must
  // outlive this.
  RunAnswers(std::shared_ptr<const Run> recorded, std::shared_ptr<const Run> drawn, std::vector<std::string> paths);
  // Sets the run to compare with; call it before the first question.
  void set_other(std::string title, std::vector<std::string> paths, Read read);
  ~RunAnswers();

  // {answers: [{name, summary, in_report, tables, options}], paths, other: {title, paths} or null}. O(analyses).
  const std::string& list_json() const { return list_json_; }

  struct Answer {
    // 202: being made, with {state: "waiting"|"running", seconds}; a body of {error, hint}: this run has no such
    // answer.
    int status = 200;
    std::string body;
    bool is_apart = false;   // AnswerForm::kApart, not JSON
    bool is_binary = false;  // columns (wire.h), not JSON
  };
  // Errors of the request: kUsage, kNotFound, kUnavailable.
  Result<Answer> explain();
  Result<Answer> losses();
  Result<Answer> figures();
  Result<Answer> clocks();
  Result<Answer> compare();
  Result<Answer> worst_ranks();
  Result<Answer> analysis(const Query& query);
  // Calls by call path, of the second run too where there is one; with the drawn run's timeline only those of the lanes
  // and the window that the query names. Errors: also kUnavailable for a run without calls.
  Result<Answer> calls(const Query& query = {}, std::shared_ptr<const Timeline> timeline = nullptr);
  // The answer to the SQL text q about the run on the axis that the timeline draws, with at most `rows` (1 to
  // kMaxSqlRows) rows.
  static constexpr int64_t kMaxSqlRows = 10'000;
  Result<Answer> sql(const Query& query);
  // The second run, drawn next to the first. Errors: kUnavailable where there is none, and those of reading it.
  struct OtherView {
    // They live as long as this; nullptr: the run is still being read, and `wait` says for how long.
    const PipelineView* pipeline = nullptr;
    const Timeline* timeline = nullptr;
    const std::string* run_json = nullptr;
    Answer wait;
  };
  Result<OtherView> other_view();
  bool busy() const { return desk_.busy(); }

 private:
  struct Other;
  Result<std::shared_ptr<const Run>> other_run();
  Status draw_other();
  Result<Answer> ask(const std::string& key, AnswerDesk::Work work, bool is_apart = false);
  void write_list();

  std::shared_ptr<const Run> recorded_, drawn_;
  std::vector<std::string> paths_;
  std::unique_ptr<Other> other_;
  std::string list_json_;
  std::atomic<bool> ending_{false};  // true: queries are to be given up
  std::mutex sql_mutex_;
  std::shared_ptr<sql::SessionPool> sql_sessions_;
  AnswerDesk desk_;  // declared last: its threads end before what they use is destroyed
};

}  // namespace stageline
