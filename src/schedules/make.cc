#include "schedules/make.h"

#include <string>

#include "base/text.h"

namespace stageline {

Result<Schedule> make_schedule(std::string_view name, const ScheduleSizes& sizes) {
  const ScheduleDef* def = find_schedule(name);
  if (!def) {
    std::vector<std::string> names;
    std::string list;
    for (const ScheduleDef* known : schedules()) {
      names.emplace_back(known->name);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    const std::string near = nearest(dashed(name), names);
    return Error{ErrorCode::kUsage,
                 "no schedule \"" + std::string(name) + "\"",
                 {},
                 near.empty() ? "the schedules are " + list : "did you mean \"" + near + "\"?"};
  }
  const auto limit = [](const char* what, int32_t value, int32_t most) {
    return Error{ErrorCode::kUsage,
                 std::string(what) + " must be 1 to " + std::to_string(most) + ", not " + std::to_string(value),
                 {},
                 ""};
  };
  if (sizes.stages < 1 || sizes.stages > 4096) return limit("--stages", sizes.stages, 4096);
  if (sizes.micro_batches < 1 || sizes.micro_batches > 65536)
    return limit("--micro-batches", sizes.micro_batches, 65536);
  if (sizes.chunks < 1 || sizes.chunks > 64) return limit("--chunks", sizes.chunks, 64);
  if (sizes.chunks > 1 && !def->chunked)
    return Error{
        ErrorCode::kUsage,
        std::string(def->name) + " has one chunk a rank; --chunks " + std::to_string(sizes.chunks) + " does not apply",
        {},
        "leave --chunks out, or use vpp"};
  if (int64_t{sizes.stages} * sizes.micro_batches * sizes.chunks > (int64_t{1} << 23))
    return Error{ErrorCode::kLimit, "the schedule would have more than 2^24 cells", {}, "ask for fewer micro-batches"};
  return def->make(sizes);
}

}  // namespace stageline
