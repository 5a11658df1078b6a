// Diagnostics: the flaws in the data that did not stop the work. Each kind of flaw is one entry with its count (losses
// have one entry for each file) and the place where it was first seen. The list goes with the Trace to every output.
#pragma once

#include "base/words.h"

namespace stageline {

// Problem: one kind of flaw or fact that Stageline reports on its input or its answer, for example a line of a log that
// was cut. Each room has its own in words.json, with the severity and the sentence in both languages. The build makes
// a constant of each in the header problems.h of the room (cmake/chinese.cmake):
//
//     "problem.paddle.bad_number": {"severity": "loss", "en": …, "zh": …}   // readers/paddle_log/words.json
//     #include "readers/paddle_log/problems.h"
//     diagnostics.add(problem::paddle_bad_number, {path});                  // base/diagnostics.h
//
// Names are stable, dotted and lower-case: "paddle.bad_number". A third part names another sentence of the problem:
// "problem.paddle.bad_number.time". They are counted together, and the first that occurs is shown.
enum class Severity : uint8_t {
  kInfo,     // a fact about how the input was read ("stages inferred from warm-up counts")
  kWarning,  // something is odd, but nothing was lost
  kLoss,     // part of the input could not be used
};

std::string_view severity_name(Severity severity);  // "info", "warning", "loss"

struct Problem {
  std::string_view name;         // "paddle.bad_number"
  Severity severity;             // unless as() changes it
  std::string_view words;        // the sentence: "problem.paddle.bad_number"
  std::string_view reader = {};  // stands for the first part of the name, in problems that several readers share
  std::string_view about = {};   // a last part of the name, where each rank or analysis has a problem of its own

  constexpr Problem as(Severity other) const { return {name, other, words, reader, about}; }
  // reader_no_steps.of("op_json") is named "op_json.no_steps".
  constexpr Problem of(std::string_view format) const { return {name, severity, words, format, about}; }
  // analysis_not_possible.on("roofline") is named "analysis.not_possible.roofline".
  constexpr Problem on(std::string_view what) const { return {name, severity, words, reader, what}; }
  std::string full_name() const;
};

struct Diagnostic {
  std::string name;  // the problem's, "paddle.bad_number"
  Severity severity = Severity::kInfo;
  Text message;  // one sentence for the whole kind, not for one occurrence; it says what was kept
  int64_t count = 0;
  Where first;
};

class Diagnostics {
 public:
  // Counts `count` occurrences of a problem. The first call decides severity, message and place. A later call with an
  // earlier place in the same file moves `first` to that place, so the result does not depend on the order in which
  // threads report. The sentence is made once, at the first call.
  void add(const Problem& problem, const Args& args, const Where& where = {}, int64_t count = 1);
  void add(const Problem& problem, const Where& where = {}, int64_t count = 1) { add(problem, Args(), where, count); }
  // Adds occurrences that were reported elsewhere.
  void add(const Diagnostic& reported);

  // Adds all entries of `other`, in its order.
  void merge(const Diagnostics& other);

  const std::vector<Diagnostic>& items() const { return items_; }
  std::vector<Diagnostic>& items() { return items_; }
  bool empty() const { return items_.empty(); }
  // Returns the number of occurrences of one kind; 0 when it was never seen.
  int64_t count(std::string_view name) const;
  // Returns the number of kinds with severity warning or loss.
  int64_t flaw_count() const;

 private:
  // Counts occurrences of a kind that has an entry already; false when it has none.
  bool count_again(std::string_view name, const Where& where, int64_t count);

  std::vector<Diagnostic> items_;
};

}  // namespace stageline
