#include "base/diagnostics.h"

namespace stageline {

std::string_view severity_name(Severity severity) {
  static constexpr auto kTexts = texts_by<Severity::kLoss>({"info", "warning", "loss"});
  return kTexts[severity];
}

std::string Problem::full_name() const {
  std::string full = reader.empty() ? std::string(name) : std::string(reader).append(name.substr(name.find('.')));
  if (!about.empty()) full.append(".").append(about);
  return full;
}

void Diagnostics::add(const Problem& problem, const Args& args, const Where& where, int64_t count) {
  if (count <= 0) return;
  std::string name = problem.full_name();
  if (!count_again(name, where, count))
    items_.push_back({std::move(name), problem.severity, stageline::words(problem.words, args), count, where});
}

void Diagnostics::add(const Diagnostic& reported) {
  if (reported.count > 0 && !count_again(reported.name, reported.first, reported.count)) items_.push_back(reported);
}

bool Diagnostics::count_again(std::string_view name, const Where& where, int64_t count) {
  // A loss has one entry for each file that it affected. When thousands of files have the same loss, only the first
  // kMaxFiles get entries of their own.
  constexpr int64_t kMaxFiles = 1000;
  int64_t files = 0;
  auto it = std::ranges::find_if(items_, [&](const Diagnostic& d) {
    if (d.name != name) return false;
    return d.severity != Severity::kLoss || d.first.file == where.file || ++files >= kMaxFiles;
  });
  if (it == items_.end()) return false;
  it->count += count;
  const bool same_file = it->first.file == where.file;
  const bool earlier = (where.line > 0 && where.line < it->first.line) ||
                       (where.line == it->first.line && where.byte >= 0 && where.byte < it->first.byte);
  if (same_file && earlier) it->first = where;
  return true;
}

void Diagnostics::merge(const Diagnostics& other) {
  for (const Diagnostic& d : other.items_) add(d);
}

int64_t Diagnostics::count(std::string_view name) const {
  return sum_over<int64_t>(items_, [&](const Diagnostic& d) { return d.name == name ? d.count : 0; });
}

int64_t Diagnostics::flaw_count() const {
  return std::ranges::count_if(items_, [](const Diagnostic& d) { return d.severity != Severity::kInfo; });
}

}  // namespace stageline
