#include "model/collective_kind.h"

namespace stageline {
namespace {

constexpr auto kSpellings = std::to_array<std::string_view>({
#define SPELLINGS(words) words,
#include "model/collective_spellings.def"
});

int64_t product(int64_t a, int64_t b) {
  int64_t out = 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &out) ? -1 : out;
}

}  // namespace

CollectiveKind collective_kind(std::string_view name) {
  if (const size_t library = name.rfind(':'); library != std::string_view::npos) name = name.substr(library + 1);
  std::string plain = " ";
  for (const char c : name)
    if (c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (plain.starts_with(" hcom")) plain.erase(1, 4);
  plain += ' ';
  const auto holds = [&](std::string_view spellings) { return spellings.find(plain) != std::string_view::npos; };
  const auto found =
      plain.find(' ', 1) == plain.size() - 1 ? std::ranges::find_if(kSpellings, holds) : kSpellings.end();
  return plain.size() > 2 ? static_cast<CollectiveKind>(found - kSpellings.begin()) : CollectiveKind::kUnknown;
}

std::string_view collective_kind_name(CollectiveKind kind) {
  constexpr std::array<std::string_view, 12> kNames = {"all_reduce",  "all_gather", "reduce_scatter", "all_to_all",
                                                       "all_to_allv", "broadcast",  "reduce",         "gather",
                                                       "scatter",     "send_recv",  "barrier",        "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

double bus_factor(CollectiveKind kind, int64_t n) {
  using enum CollectiveKind;
  const double others = n < 2 ? 0 : static_cast<double>(n - 1) / static_cast<double>(n);
  switch (kind) {
    case kAllReduce: return 2 * others;
    case kAllGather:
    case kReduceScatter:
    case kAllToAll:
    case kAllToAllV:
    case kGather:
    case kScatter: return others;
    default: return 1;
  }
}

int64_t message_bytes(CollectiveKind kind, int64_t n, int64_t count_bytes) {
  using enum CollectiveKind;
  switch (kind) {
    case kAllGather:
    case kReduceScatter:
    case kAllToAll:
    case kGather:
    case kScatter: return n < 1 ? -1 : product(count_bytes, n);
    default: return count_bytes;
  }
}

int64_t message_bytes(CollectiveKind kind, int64_t n, int64_t in_elements, int64_t out_elements,
                      int64_t element_bytes) {
  using enum CollectiveKind;
  if (element_bytes <= 0) return -1;
  const int64_t in = product(in_elements, element_bytes), out = product(out_elements, element_bytes);
  switch (kind) {
    case kAllGather: return n < 1 ? out : std::max(out, product(in, n));
    case kReduceScatter: return n < 1 ? in : std::max(in, product(out, n));
    case kGather: return n < 1 ? -1 : product(in, n);
    case kScatter: return n < 1 ? -1 : product(out, n);
    default: return std::max(in, out);
  }
}

}  // namespace stageline
