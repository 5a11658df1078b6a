// Parses mstx messages: nothing breaks the parser, and the same facts in each form of range_message.h come back the
// same.
#include "fuzz.h"
#include "readers/common/range_message.h"

namespace stageline::fuzz {
namespace {

void check_range(const RangeText& range, std::string_view message) {
  FUZZ_CHECK(range.name.size() <= message.size(), std::string(message));
  FUZZ_CHECK(range.members.size() <= kMaxMembers, std::string(message));
  FUZZ_CHECK(range.micro_batch >= -1 && range.chunk >= -1 && range.stage >= -1 && range.step >= -1,
             std::string(message));
}

void check_form(const std::string& message, const std::string& name, int32_t micro_batch, int32_t chunk) {
  const RangeText range = parse_range_message(message);
  FUZZ_CHECK(range.name == name && range.micro_batch == micro_batch && range.chunk == chunk, message);
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(range_message) {
  using namespace stageline;
  using namespace stageline::fuzz;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  check_range(parse_range_message(message), message);

  Bytes input{data, size};
  const auto micro_batch = static_cast<int32_t>(static_cast<uint64_t>(input.number()) >> 33);
  const int32_t chunk = input.byte();
  std::string name = "f";  // no name may look like a key
  for (const char c : input.rest())
    if ((c >= 'a' && c <= 'z') || c == '_' || c == '.') name += c;
  const std::string mb = std::to_string(micro_batch), vp = std::to_string(chunk);
  check_form("{'name': '" + name + "', 'current_microbatch': " + mb + ", 'vp_stage': " + vp + "}", name, micro_batch,
             chunk);
  check_form("{\"name\": \"" + name + "\", \"mb\": " + mb + ", \"chunk\": " + vp + "}", name, micro_batch, chunk);
  check_form("{\\\"name\\\": \\\"" + name + "\\\", \\\"mb\\\": \\\"" + mb + "\\\", \\\"chunk\\\": " + vp + "}", name,
             micro_batch, chunk);
  check_form(name + " mb=" + mb + " chunk=" + vp, name, micro_batch, chunk);
  return 0;
}
