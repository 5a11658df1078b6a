// Diagnostics: the flaws in the data that did not stop the work. Each kind of flaw is one entry with its count (losses
// have one entry for each file) and the place where it was first seen. The list goes with the Trace to every output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "base/result.h"
#include "base/words.h"

namespace stageline {

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
