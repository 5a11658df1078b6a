#include "base/diagnostics.h"

#include <algorithm>

namespace stageline {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kLoss: return "loss";
  }
  return "info";
}

void Diagnostics::add(std::string_view name, Severity severity, std::string_view message, const Where& where,
                      int64_t count) {
  if (count <= 0) return;
  // A loss has one entry for each file that it affected. When thousands of files have the same loss, only the first
  // kMaxFiles get entries of their own.
  constexpr int64_t kMaxFiles = 1000;
  int64_t files = 0;
  auto it = std::find_if(items_.begin(), items_.end(), [&](const Diagnostic& d) {
    if (d.name != name) return false;
    return d.severity != Severity::kLoss || d.first.file == where.file || ++files >= kMaxFiles;
  });
  if (it == items_.end()) {
    items_.push_back({std::string(name), severity, std::string(message), count, where});
    return;
  }
  it->count += count;
  const bool same_file = it->first.file == where.file;
  const bool earlier = (where.line > 0 && where.line < it->first.line) ||
                       (where.line == it->first.line && where.byte >= 0 && where.byte < it->first.byte);
  if (same_file && earlier) it->first = where;
}

void Diagnostics::merge(const Diagnostics& other) {
  for (const Diagnostic& d : other.items_) add(d.name, d.severity, d.message, d.first, d.count);
}

int64_t Diagnostics::count(std::string_view name) const {
  int64_t sum = 0;
  for (const Diagnostic& d : items_)
    if (d.name == name) sum += d.count;
  return sum;
}

int64_t Diagnostics::flaw_count() const {
  return std::count_if(items_.begin(), items_.end(), [](const Diagnostic& d) { return d.severity != Severity::kInfo; });
}

}  // namespace stageline
