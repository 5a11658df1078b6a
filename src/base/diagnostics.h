// Diagnostics: what was wrong with the data and was survived. Each kind of flaw is counted once (losses: once for each
// file), with the place where it was first seen; the list travels with the Trace to every output.
//
// Names are stable, dotted, lower-case: "paddle.truncated_line". Messages say what was kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stageline {

enum class Severity : uint8_t {
  kInfo,     // a fact about how the input was read ("stages inferred from warm-up counts")
  kWarning,  // something is odd, nothing was lost
  kLoss,     // part of the input could not be used
};

std::string_view severity_name(Severity severity);  // "info", "warning", "loss"

struct Diagnostic {
  std::string name;
  Severity severity = Severity::kInfo;
  std::string message;  // one sentence; for the whole kind, not for one occurrence
  int64_t count = 0;
  Where first;
};

class Diagnostics {
 public:
  // Counts `count` occurrences of `name`. The first call fixes severity, message and place; a
  // later call with an earlier place in the same file moves `first` there, so the result does
  // not depend on the order in which threads report.
  void add(std::string_view name, Severity severity, std::string_view message, const Where& where = {},
           int64_t count = 1);

  // Adds everything of `other`, in its order.
  void merge(const Diagnostics& other);

  const std::vector<Diagnostic>& items() const { return items_; }
  std::vector<Diagnostic>& items() { return items_; }
  bool empty() const { return items_.empty(); }
  // Occurrences of one kind; 0 when it was never seen.
  int64_t count(std::string_view name) const;
  // Number of kinds of severity warning or loss.
  int64_t flaw_count() const;

 private:
  std::vector<Diagnostic> items_;
};

}  // namespace stageline
