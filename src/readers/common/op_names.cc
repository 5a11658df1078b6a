#include "readers/common/op_names.h"

namespace stageline {
namespace {

constexpr size_t kMaxTypeBytes = 96;

constexpr WordRow<CellKind> kWords[] = {
#include "readers/common/cell_words.def"
};

// Collectives are found within names that have any prefix and suffix: "params-all-gather", "tp-allreduce",
// "grads-reduce-scatter-nonoverlapping".
constexpr std::array<std::string_view, 9> kCollectives = {"all-reduce",    "allreduce",  "reduce-scatter",
                                                          "reducescatter", "all-gather", "allgather",
                                                          "all-to-all",    "alltoall",   "broadcast"};

}  // namespace

std::optional<CellKind> kind_of_op(std::string_view op_type) {
  if (op_type.empty() || op_type.size() > kMaxTypeBytes) return std::nullopt;
  char text[kMaxTypeBytes];
  for (size_t i = 0; i < op_type.size(); ++i) {
    const char c = op_type[i];
    text[i] = c == '_' || c == ' ' ? '-' : to_lower(c);
  }
  const std::string_view word(text, op_type.size());
  if (const auto kind = key_of_word(kWords, word)) return kind;
  for (const std::string_view part : kCollectives)
    if (word.find(part) != std::string_view::npos) return CellKind::kCollective;
  if (word.starts_with("optimizer-")) return CellKind::kOptimizer;
  return std::nullopt;
}

std::optional<CellLabel> parse_cell_label(std::string_view label) {
  const size_t digits = label.find_first_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const auto kind = kind_from_code(label.substr(0, digits));
  if (!kind) return std::nullopt;
  CellLabel out{*kind, 0};
  const char* const end = label.data() + label.size();
  const auto number = [end](const char* from, int32_t& value) {
    return from < end && *from >= '0' && *from <= '9' ? std::from_chars(from, end, value)
                                                      : std::from_chars_result{from, std::errc::invalid_argument};
  };
  auto [at, ec] = number(label.data() + digits, out.micro_batch);
  if (ec != std::errc()) return std::nullopt;
  if (at == end) return out;
  std::string_view rest(at, end - at);
  for (const std::string_view mark : {"_VP", ".c"}) {
    if (!rest.starts_with(mark)) continue;
    const auto [last, bad] = number(rest.data() + mark.size(), out.chunk);
    if (bad == std::errc() && last == end) return out;
  }
  return std::nullopt;
}

std::string_view without_duration(std::string_view name) {
  if (!name.ends_with("s)")) return name;
  const size_t open = name.rfind(" (");
  if (open == std::string_view::npos || open + 2 >= name.size() || name[open + 2] < '0' || name[open + 2] > '9')
    return name;
  return name.substr(0, open);
}

}  // namespace stageline
