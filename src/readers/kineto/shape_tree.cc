#include "readers/kineto/shape_tree.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stageline::kineto {
namespace {

// Some traces have a shape for every kwarg; the rest is left to the general parser.
constexpr size_t kMaxNodes = 20'000;
constexpr size_t kMaxChildren = 64;  // children are tried one after another
constexpr size_t kMaxSkippedBytes = 1 << 20;
constexpr size_t kPadding = 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Both texts have kPadding readable bytes after them.
bool same_bytes(const char* a, const char* b, size_t size) {
#if defined(__SSE2__)
  size_t i = 0;
  for (; i + 16 <= size; i += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i));
    const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i));
    if (_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) != 0xffff) return false;
  }
  if (i == size) return true;
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i));
  const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i));
  const uint32_t differ = ~_mm_movemask_epi8(_mm_cmpeq_epi8(x, y));
  return (differ & ((1u << (size - i)) - 1)) == 0;
#else
  return std::memcmp(a, b, size) == 0;
#endif
}

// Returns the closing quote of a text whose first byte is at p; nullptr when a backslash, a control character or `end`
// comes first, since those need the general parser.
const char* closing_quote(const char* p, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
  for (; p < end; p += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i odd = _mm_or_si128(_mm_cmpeq_epi8(x, backslash), _mm_cmpeq_epi8(_mm_min_epu8(x, control), x));
    const uint32_t quotes = _mm_movemask_epi8(_mm_cmpeq_epi8(x, quote));
    const uint32_t odds = _mm_movemask_epi8(odd);
    if ((quotes | odds) == 0) continue;
    const int first = __builtin_ctz(quotes | odds);
    if ((odds >> first & 1u) != 0 || p + first >= end) return nullptr;
    return p + first;
  }
  return nullptr;
#else
  for (; p < end; ++p) {
    if (*p == '"') return p;
    if (*p == '\\' || static_cast<unsigned char>(*p) < 0x20) return nullptr;
  }
  return nullptr;
#endif
}

// Returns the place after the bracket that closes the array or object at p; nullptr when it is not plain.
const char* after_nested(const char* p, const char* end) {
  if (*p != '[' && *p != '{') return nullptr;
  int depth = 0;
  const char* const limit = end - p > static_cast<std::ptrdiff_t>(kMaxSkippedBytes) ? p + kMaxSkippedBytes : end;
#if defined(__SSE2__)
  while (p < limit) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    // '[' 0x5b and '{' 0x7b differ only in bit 5, and so do ']' 0x5d and '}' 0x7d.
    const __m128i folded = _mm_or_si128(x, _mm_set1_epi8(0x20));
    const uint32_t opens = _mm_movemask_epi8(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')));
    const uint32_t closes = _mm_movemask_epi8(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}')));
    const uint32_t quotes = _mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')));
    uint32_t marks = opens | closes | quotes;
    bool jumped = false;
    while (marks != 0) {
      const int at = __builtin_ctz(marks);
      const uint32_t bit = 1u << at;
      marks &= marks - 1;
      if ((quotes & bit) != 0) {
        const char* const close = closing_quote(p + at + 1, limit);
        if (!close) return nullptr;
        const auto skip = close - p;
        if (skip >= 16) {
          p = close + 1;
          jumped = true;
          break;
        }
        marks &= ~((2u << skip) - 1);
      } else if ((opens & bit) != 0) {
        ++depth;
      } else if (--depth == 0) {
        return p + at + 1 <= limit ? p + at + 1 : nullptr;
      }
    }
    if (!jumped) p += 16;
  }
  return nullptr;
#else
  while (p < limit) {
    const char c = *p;
    if (c == '"') {
      p = closing_quote(p + 1, limit);
      if (!p) return nullptr;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && --depth == 0) {
      return p + 1;
    }
    ++p;
  }
  return nullptr;
#endif
}

const char* after_scalar(const char* p) {
  while (is_digit(*p) || (*p >= 'a' && *p <= 'z') || *p == '.' || *p == '-' || *p == '+' || *p == 'E') ++p;
  return p;
}

// Parses at most 18 digits, so that nothing can overflow.
const char* parse_whole(const char* p, int64_t& out) {
  const bool negative = *p == '-';
  p += negative;
  const char* const first = p;
  uint64_t value = 0;
  for (; is_digit(*p); ++p) value = value * 10 + (*p - '0');
  if (p == first || p - first > 18) return nullptr;
  if (*p == '.' || *p == 'e' || *p == 'E') return nullptr;
  out = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  return p;
}

// Returns true for metadata and counters, whose args have keys of their own.
bool keeps_args_text(char phase) { return phase == 'M' || phase == 'C'; }

// Parses decimal microseconds at p into exact ns: digits, at most one point, at most three decimals. Returns the end of
// the number; nullptr for anything else (longer fractions, exponents, texts).
const char* parse_us(const char* p, int64_t& ns, bool& fractional) {
  const bool negative = *p == '-';
  p += negative;
  const char* first = p;
  uint64_t value = 0;
  for (; is_digit(*p); ++p) value = value * 10 + (*p - '0');
  if (p == first || p - first > 16) return nullptr;  // × 1000 fits into 64 bits
  fractional = *p == '.';
  int decimals = 0;
  if (fractional) {
    first = ++p;
    for (; is_digit(*p) && p - first < 4; ++p) value = value * 10 + (*p - '0');
    decimals = static_cast<int>(p - first);
    if (decimals == 0 || decimals > 3) return nullptr;
  }
  if (*p == 'e' || *p == 'E') return nullptr;
  static constexpr std::array<uint64_t, 4> kScale = {1000, 100, 10, 1};
  value *= kScale[decimals];
  if (value > static_cast<uint64_t>(INT64_MAX)) return nullptr;
  ns = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  return p;
}

}  // namespace

ShapeTree::ShapeTree() { nodes_.emplace_back(); }

const char* ShapeTree::act(const Node& node, const char* p, const char* end, rows::Event& event) {
  const char* close = nullptr;
  std::string_view text;
  switch (node.action) {
    case Action::kTs: event.has_ts = true; return parse_us(p, event.ts_ns, event.fractional_ts);
    case Action::kDur: {
      bool ignored = false;
      event.has_dur = true;
      return parse_us(p, event.dur_ns, ignored);
    }
    case Action::kInteger: {
      int64_t value = 0;
      close = parse_whole(p, value);
      if (close) rows::set_number(node.key, value, event);
      return close;
    }
    case Action::kSkipScalar: close = after_scalar(p); return close > p ? close : nullptr;
    case Action::kSkipText: return closing_quote(p, end);
    case Action::kSkipNested: return after_nested(p, end);
    case Action::kArgsText:
      close = after_nested(p, end);
      if (close) event.args = {p, static_cast<size_t>(close - p)};
      return close;
    case Action::kArgArray:
      if (*p != '[') return nullptr;
      close = after_nested(p, end);
      if (close) rows::set_arg(node.key, {p, static_cast<size_t>(close - p)}, event);
      return close;
    case Action::kEnd: return p;
    default: break;
  }
  if (node.quoted) {
    close = closing_quote(p, end);
    if (!close) return nullptr;
  } else {
    close = after_scalar(p);
    if (close == p) return nullptr;
  }
  text = {p, static_cast<size_t>(close - p)};
  switch (node.action) {
    case Action::kName: event.name = text; break;
    case Action::kPid: event.pid = text; break;
    case Action::kTid: event.tid = text; break;
    case Action::kId: event.id = text; break;
    case Action::kBinding: event.binding = text.empty() ? '\0' : text[0]; break;
    default: rows::set_arg(node.key, text == "null" && !node.quoted ? std::string_view() : text, event); break;
  }
  return close;
}

const char* ShapeTree::match(const char* p, const char* end, rows::Event& event) {
  event = rows::Event();
  uint32_t at = 0;
  for (;;) {
    Node& node = nodes_[at];
    const auto count = static_cast<uint32_t>(node.children.size());
    uint32_t found = UINT32_MAX;
    const char* next = nullptr;
    for (uint32_t k = 0, which = node.hot; k < count; ++k, which = which + 1 == count ? 0 : which + 1) {
      const Node& child = nodes_[node.children[which]];
      if (p + child.literal_size > end || !same_bytes(p, &literals_[child.literal], child.literal_size)) continue;
      next = act(child, p + child.literal_size, end, event);
      if (!next || next > end) continue;
      found = which;
      break;
    }
    if (found == UINT32_MAX) return nullptr;
    node.hot = found;
    const Node& taken = nodes_[node.children[found]];
    if (taken.phase != '\0') event.phase = taken.phase;
    if (taken.category >= 0) event.has_cat = true, event.cat = *categories_[taken.category];
    if (taken.action == Action::kEnd) {
      if (!event.has_ts) event.fractional_ts = true;
      return next;
    }
    p = next;
    at = node.children[found];
  }
}

struct ShapeTree::Step {
  Action action = Action::kEnd;
  rows::ArgKey key = rows::ArgKey::kNone;
  bool quoted = false;
};

uint32_t ShapeTree::child_for(uint32_t parent, std::string_view literal, const Step& step) {
  for (const uint32_t c : nodes_[parent].children) {
    const Node& node = nodes_[c];
    if (node.action == step.action && node.key == step.key && node.quoted == step.quoted &&
        std::string_view(literals_).substr(node.literal, node.literal_size) == literal)
      return c;
  }
  if (nodes_.size() >= kMaxNodes || nodes_[parent].children.size() >= kMaxChildren) return 0;
  Node node;
  if (literals_.size() >= kPadding) literals_.resize(literals_.size() - kPadding);
  node.literal = static_cast<uint32_t>(literals_.size());
  node.literal_size = static_cast<uint32_t>(literal.size());
  literals_ += literal;
  literals_.append(kPadding, '\0');
  node.action = step.action;
  node.key = step.key;
  node.quoted = step.quoted;
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(std::move(node));
  nodes_[parent].children.push_back(id);
  return id;
}

// Cuts an event at its values. It reads members one by one.
class ShapeTree::Cutter {
 public:
  struct Cut {
    size_t literal_end;  // where the value begins (after its opening quote)
    size_t value_end;
    Step step;
  };

  explicit Cutter(std::string_view text) : text_(text) {}

  // Returns false where the event has a shape that is not learnt.
  bool cut() {
    if (text_.empty() || text_[0] != '{') return false;
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) return false;
      if (text_[at_] == ',') {
        ++at_;
      } else if (text_[at_] == '}') {
        ++at_;
        if (!in_args_) return phase != '\0' && at_ == text_.size() && !cuts.empty();
        in_args_ = false;
      } else if (!member()) {
        return false;
      }
    }
  }

  std::vector<Cut> cuts;
  char phase = '\0';
  std::string_view category;
  bool has_category = false;
  size_t phase_cut = 0, category_cut = 0;  // the cuts whose literals contain phase and category

 private:
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  bool member() {
    if (text_[at_] != '"') return false;
    const char* key_end = closing_quote(text_.data() + at_ + 1, text_.data() + text_.size());
    if (!key_end) return false;
    const std::string_view key(text_.data() + at_ + 1, (key_end - text_.data()) - at_ - 1);
    at_ = static_cast<size_t>(key_end - text_.data()) + 1;
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != ':') return false;
    ++at_;
    skip_blanks();
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    if (!in_args_ && key == "args" && c == '{' && !keeps_args_text(phase)) {
      if (phase == '\0') return false;  // the kind of event, which decides about its args, comes later
      in_args_ = true;
      ++at_;
      return true;
    }
    Cut cut{at_, 0, {}};
    if (!find_value(cut)) return false;
    const std::string_view value = text_.substr(cut.literal_end, cut.value_end - cut.literal_end);
    if (!in_args_ && (key == "ph" || key == "cat")) return c == '"' && kind(key, value);
    if (in_args_) argument(key, c, value, cut.step);
    else if (!field(key, c, value, cut.step)) return false;
    cuts.push_back(cut);
    return true;
  }

  // Finds the end of the value that begins at at_, and moves behind it.
  bool find_value(Cut& cut) {
    const char c = text_[at_], *const begin = text_.data() + at_, *const end = text_.data() + text_.size();
    const char* value_end = nullptr;
    cut.step.quoted = c == '"';
    if (c == '"') {
      ++cut.literal_end;
      value_end = closing_quote(begin + 1, end);
      cut.step.action = Action::kSkipText;
    } else if (c == '[' || c == '{') {
      value_end = after_nested(begin, end);
      cut.step.action = Action::kSkipNested;
    } else {
      value_end = after_scalar(begin);
      cut.step.action = Action::kSkipScalar;
    }
    if (!value_end || value_end > end) return false;
    cut.value_end = value_end - text_.data();
    if (cut.value_end == cut.literal_end && c != '"') return false;
    at_ = cut.value_end + (c == '"' ? 1 : 0);
    return true;
  }

  // "ph" or "cat", whose value becomes part of the next literal.
  bool kind(std::string_view key, std::string_view value) {
    if (key == "ph") {
      phase = value.empty() ? '\0' : value[0];
      phase_cut = cuts.size();
    } else {
      category = value;
      has_category = true;
      category_cut = cuts.size();
    }
    return true;
  }

  bool field(std::string_view key, char c, std::string_view value, Step& step) const {
    if (key == "args" && c == '{') {
      step.action = Action::kArgsText;
      return true;
    }
    if (key == "args" && c == '[') return false;  // the shape would accept objects too, and skip them
    const std::array<std::pair<std::string_view, Action>, 7> known = {{{"ts", Action::kTs},
                                                                       {"dur", Action::kDur},
                                                                       {"name", Action::kName},
                                                                       {"pid", Action::kPid},
                                                                       {"tid", Action::kTid},
                                                                       {"id", Action::kId},
                                                                       {"bp", Action::kBinding}}};
    for (const auto& [name, action] : known) {
      if (key != name) continue;
      if (c == '[' || c == '{' || (!step.quoted && value == "null")) return false;
      if ((action == Action::kTs || action == Action::kDur) && step.quoted) return false;
      step.action = action;
    }
    return key != "id2";
  }

  void argument(std::string_view key, char c, std::string_view value, Step& step) const {
    const rows::ArgKey arg = rows::arg_key(key);
    if (c == '[' && rows::arg_field(arg).array) {
      step.key = arg;
      step.action = Action::kArgArray;
    } else if (arg != rows::ArgKey::kNone && c != '[' && c != '{') {
      int64_t ignored = 0;
      step.key = arg;
      const bool whole = !step.quoted && rows::arg_field(arg).number &&
                         parse_whole(value.data(), ignored) == value.data() + value.size();
      step.action = whole ? Action::kInteger : Action::kArgText;
    }
  }

  std::string_view text_;
  size_t at_ = 1;
  bool in_args_ = false;
};

void ShapeTree::learn(std::string_view text) {
  Cutter event(text);
  if (!event.cut()) return;
  uint32_t node = 0;
  size_t begin = 0;
  for (size_t k = 0; k <= event.cuts.size(); ++k) {
    const bool last = k == event.cuts.size();
    const size_t end = last ? text.size() : event.cuts[k].literal_end;
    node = child_for(node, text.substr(begin, end - begin), last ? Step{} : event.cuts[k].step);
    if (node == 0) return;
    if (k == event.phase_cut) nodes_[node].phase = event.phase;
    if (event.has_category && k == event.category_cut && nodes_[node].category < 0) {
      size_t known = 0;
      while (known < categories_.size() && *categories_[known] != event.category) ++known;
      if (known == categories_.size()) categories_.push_back(std::make_unique<std::string>(event.category));
      nodes_[node].category = static_cast<int32_t>(known);
    }
    if (!last) begin = event.cuts[k].value_end;
  }
}

}  // namespace stageline::kineto
