#include "base/input.h"
#include "base/json_members.h"
#include "readers/foreign.h"
#include "readers/kineto/read_file.h"

namespace stageline::kineto {
namespace {

constexpr size_t kNone = std::string_view::npos;

// Members that only Kineto writes at the top level.
constexpr std::string_view kOwnMembers[] = {"schemaVersion",        "deviceProperties", "distributedInfo",
                                            "baseTimeNanoseconds",  "cupti_version",    "cuda_driver_version",
                                            "hip_driver_version",   "record_shapes",    "with_stack",
                                            "cuda_runtime_version", "profile_memory",   "hip_runtime_version"};
// Words that only Kineto and Paddle write in events.
constexpr std::string_view kOwnWords[] = {
    "\"External id\"",     "\"external id\"",   "\"Ev Idx\"",      "\"cpu_op\"",     "\"cuda_runtime\"",
    "\"python_function\"", "\"gpu_memcpy\"",    "\"gpu_memset\"",  "\"ac2g\"",       "\"user_annotation\"",
    "\"xpu_runtime\"",     "\"OperatorInner\"", "\"CudaRuntime\"", "\"ProfileStep\""};

bool has_own_members(std::string_view head) {
  for (const JsonMember& member : json_members(head, 64)) {
    if (member.key == "traceEvents") continue;
    for (const std::string_view own : kOwnMembers)
      if (member.key == own) return true;
  }
  return false;
}

}  // namespace

Match sniff_head(std::string_view head) {
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (at == kNone || (head[at] != '[' && head[at] != '{') || is_foreign_json(head)) return Match::kNo;
  head.remove_prefix(at);
  const bool phases = holds(head, "\"ph\""), events = holds(head, "\"traceEvents\"");
  // Members in front of the events are enough, mostly, and are found at once.
  if (head[0] == '{' && (has_own_members(head.substr(0, head.find("\"traceEvents\""))) || has_own_members(head)))
    return Match::kCertain;
  if (!phases) return events ? Match::kMaybe : Match::kNo;
  for (const std::string_view word : kOwnWords)
    if (holds(head, word)) return Match::kCertain;
  return Match::kMaybe;
}

Match sniff_file(const Source& source, size_t file) {
  const std::string_view head = source.head(file);
  const Match first = sniff_head(head);
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool goes_on = head.size() >= size_t{1} << 16;
  // Looks further only into an object that has not come to its events yet, such as one with another tool's settings in
  // front.
  if (first == Match::kCertain || !goes_on || at == kNone || head[at] != '{' || holds(head, "\"traceEvents\"") ||
      is_foreign_json(head) || holds(head, "\"ph\""))
    return first;
  Result<Input> input = Input::open(source.files[file].path, nullptr, Input::Reads::kHead);
  if (!input) return first;
  std::string window;
  size_t read = 0;
  constexpr size_t kOverlap = 64;
  while (read < kMaxPreambleBytes) {
    const size_t kept = std::min(window.size(), kOverlap);
    window.erase(0, window.size() - kept);
    window.resize(kept + (size_t{1} << 18));
    Result<size_t> got = input->read(window.data() + kept, window.size() - kept);
    if (!got || *got == 0) return first;
    window.resize(kept + *got);
    read += *got;
    const size_t events = window.find("\"traceEvents\"");
    if (events == kNone) continue;
    window.erase(0, events);
    while (window.size() < (size_t{1} << 16)) {
      const size_t have = window.size();
      window.resize(have + (size_t{1} << 16));
      Result<size_t> more = input->read(window.data() + have, window.size() - have);
      window.resize(have + (more ? *more : 0));
      if (!more || *more == 0) break;
    }
    return std::max(first, sniff_head("{" + window));
  }
  return first;
}

}  // namespace stageline::kineto
