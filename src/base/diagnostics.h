// Diagnostics: the flaws in the data that did not stop the work. Each kind of flaw is one entry with its count (losses
// have one entry for each file) and the place where it was first seen. The list goes with the Trace to every output.
//
// Names are stable, dotted and lower-case: "paddle.truncated_line". A message reports which part of the input was kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

enum class Severity : uint8_t {
  kInfo,     // a fact about how the input was read ("stages inferred from warm-up counts")
  kWarning,  // something is odd, but nothing was lost
  kLoss,     // part of the input could not be used
};

std::string_view severity_name(Severity severity);  // "info", "warning", "loss"

struct Diagnostic {
  std::string name;
  Severity severity = Severity::kInfo;
  std::string message;  // one sentence for the whole kind, not for one occurrence
  int64_t count = 0;
  Where first;
};

class Diagnostics {
 public:
  // Counts `count` occurrences of `name`. The first call decides severity, message and place. A later call with an
  // earlier place in the same file moves `first` to that place, so the result does not depend on the order in which
  // threads report.
  void add(std::string_view name, Severity severity, std::string_view message, const Where& where = {},
           int64_t count = 1);

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
  std::vector<Diagnostic> items_;
};

}  // namespace stageline
