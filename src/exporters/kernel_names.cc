#include <cctype>

#include "exporters/table_words.h"

namespace stageline {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string text_without(std::string_view text, std::string_view what) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t next = text.find(what, at);
    out += text.substr(at, next == std::string_view::npos ? next : next - at);
    at = next == std::string_view::npos ? text.size() : next + what.size();
  }
  return out;
}

// Returns the template argument that identifies the work of a generic kernel: the functor, else the first long word.
// When a word has arguments of its own (UnaryFunctor<…>), it wraps another word, which is then searched.
std::string_view telling_word(std::string_view inside) {
  constexpr std::array<std::string_view, 6> kEnds = {"Functor", "functor", "Op", "Ops", "_kernel_cuda", "_kernel_impl"};
  constexpr std::array<std::string_view, 5> kWrappers = {"Functor", "UnaryFunctor", "BinaryFunctor", "AUnaryFunctor",
                                                         "BUnaryFunctor"};
  constexpr size_t kLongWord = 15;
  std::string_view first_long;
  for (size_t at = 0; at < inside.size();) {
    if (!is_word(inside[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < inside.size() && is_word(inside[end])) ++end;
    const std::string_view word = inside.substr(at, end - at);
    const bool opens = end < inside.size() && inside[end] == '<';
    const bool wraps = opens && (word == "ReduceOp" || std::ranges::find(kWrappers, word) != kWrappers.end());
    if (!wraps && std::ranges::any_of(kEnds, [&](std::string_view e) { return word.ends_with(e); })) return word;
    if (first_long.empty() && word.size() >= kLongWord && std::isdigit(static_cast<unsigned char>(word[0])) == 0)
      first_long = word;
    at = end;
  }
  return first_long;
}

bool is_generic(std::string_view name) {
  constexpr std::array<std::string_view, 4> kSigns = {"elementwise", "reduce", "multi_tensor", "foreach"};
  return name.ends_with("Kernel") || name.ends_with("Kernel2") ||
         std::ranges::any_of(kSigns, [&](std::string_view sign) { return name.find(sign) != std::string_view::npos; });
}

}  // namespace

std::string kernel_label(std::string_view name) {
  std::string text = text_without(name, "(anonymous namespace)::");
  if (text.starts_with("void ")) text.erase(0, 5);
  const size_t opens = text.find_first_of("<(");
  if (opens == std::string::npos || text.starts_with("Memcpy") || text.starts_with("Memset")) return text;
  std::string out;
  int depth = 0;
  for (const char c : text)
    if (c == '<' || c == '(') ++depth;
    else if (c == '>' || c == ')') depth = std::max(0, depth - 1);
    else if (depth == 0) out += c;
  if (out.starts_with("at::native::")) out.erase(0, 12);
  while (out.starts_with("::")) out.erase(0, 2);  // left over from an unnamed namespace
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (out.empty()) return text;
  if (!is_generic(out)) return out;
  const std::string_view inner = telling_word(std::string_view(text).substr(opens));
  return inner.empty() ? out : out + " · " + std::string(inner);
}

}  // namespace stageline
