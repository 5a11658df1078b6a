// busy(): how long the devices of a rank worked, concurrent work counted once.
#include <algorithm>

#include "base/number.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "sql/run_tables.h"

namespace stageline::sql {
namespace {

// The work that is asked about: of a class ("": all), within [from, to).
struct Window {
  std::optional<int64_t> from, to;
  std::string class_name;
};

bool is_class(std::string_view name) {
  constexpr KernelClass kClasses[] = {KernelClass::kComputation, KernelClass::kCommunication, KernelClass::kMemory,
                                      KernelClass::kOther};
  return std::any_of(std::begin(kClasses), std::end(kClasses),
                     [&](KernelClass c) { return kernel_class_name(c) == name; });
}

void add_busy(const RunData& data, size_t p, const Window& window, Table& table) {
  const Part& part = data.trace().parts[p];
  const Slices& s = part.slices;
  std::vector<Interval> work;
  int64_t first = INT64_MAX, last = INT64_MIN;  // of any work of the rank
  for (const uint32_t i : data.device_rows(p)) {
    int64_t start = data.time_ns(p, s.start_ns[i]), end = sum_or_limit(start, s.dur_ns[i]);
    first = std::min(first, start);
    last = std::max(last, end);
    if (!window.class_name.empty() && kernel_class_name(s.class_of(i)) != window.class_name) continue;
    if (window.from) start = std::max(start, *window.from);
    if (window.to) end = std::min(end, *window.to);
    if (start <= end && (!window.to || start < *window.to) && (!window.from || end > *window.from))
      work.push_back({start, end});
  }
  const int64_t count = std::ssize(work), covered = length_of(union_of(std::move(work)));
  const bool nothing = first > last && (!window.from || !window.to);
  const int64_t span =
      nothing ? 0 : std::max<int64_t>(0, between_ns(window.from.value_or(first), window.to.value_or(last)));
  table.add_row({int64_t{part.rank}, window.class_name, count, covered, span, share_of(covered, span)});
}

RunData::Made busy(const RunData& data, const std::vector<Argument>& arguments) {
  static constexpr const char* kWhat[] = {"the rank", "the start", "the end"};
  TRY(numbers, whole_numbers("busy", kWhat, arguments));
  const Window window{(*numbers)[1], (*numbers)[2], argument_text(arguments[3])};
  if (!window.class_name.empty() && !is_class(window.class_name))
    return make_error(ErrorCode::kUsage, "busy(): there is no class \"" + window.class_name + "\"",
                      "COMPUTATION, COMMUNICATION, MEMORY, OTHER");
  TRY(parts, parts_of_rank(data, "busy", (*numbers)[0]));
  Table table(declared_table("sql/busy"));
  for (const size_t p : *parts) add_busy(data, p, window, table);
  return table_rows(std::move(table));
}

}  // namespace

std::shared_ptr<const TableSource> busy_function(const std::shared_ptr<const RunData>& data) {
  return table_function(data, "busy", busy);
}

}  // namespace stageline::sql
