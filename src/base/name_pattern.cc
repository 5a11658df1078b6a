#include "base/name_pattern.h"

namespace stageline {
namespace {

constexpr size_t kBegin = 4;

size_t place_of_begin(std::string_view text) {
  uint32_t begin;
  std::memcpy(&begin, text.data(), kBegin);
  return begin * 0x9e3779b1u >> 20;
}

bool contains(std::string_view name, std::string_view wanted) {
  if (wanted.size() > name.size()) return false;
  const size_t last = name.size() - wanted.size();
  for (size_t i = 0; i <= last; ++i) {
    size_t k = 0;
    while (k < wanted.size() && to_lower(name[i + k]) == wanted[k]) ++k;
    if (k == wanted.size()) return true;
  }
  return wanted.empty();
}

constexpr uint32_t kNowhere = UINT32_MAX;

}  // namespace

// Parses by recursive descent:  alternatives := sequence ('|' sequence)*;  sequence := (atom [*+?])*.
class NamePattern::Parser {
 public:
  Parser(std::string_view text, NamePattern& out) : text_(text), out_(out) {}

  Status parse() {
    TRY(whole, alternatives());
    if (at_ < text_.size()) return bad("a ) without its (");
    out_.first_ = whole->first;
    patch(*whole, add({State::Type::kMatch, 0, 0, 0}));
    return {};
  }

 private:
  // A part of the automaton: its first state, and the ends that are not connected yet.
  struct Piece {
    uint32_t first = 0;
    std::vector<std::pair<uint32_t, bool>> ends;  // a state, and whether the end is its `other`
  };

  Error bad(const std::string& what) const {
    return make_error(ErrorCode::kUsage, "the expression is not complete or not known: " + what,
                      "\\ before a sign means itself");
  }
  uint32_t add(State state) {
    out_.states_.push_back(state);
    return static_cast<uint32_t>(out_.states_.size() - 1);
  }
  void patch(const Piece& piece, uint32_t to) {
    for (const auto& [state, other] : piece.ends) (other ? out_.states_[state].other : out_.states_[state].next) = to;
  }
  Piece one(State state) {
    const uint32_t at = add(state);
    return {at, {{at, false}}};
  }
  // Matches the empty text: a split whose two sides lead to the same state.
  Piece nothing() {
    const uint32_t at = add({State::Type::kSplit, 0, kNowhere, kNowhere});
    return {at, {{at, false}}};
  }

  Result<Piece> alternatives() {
    if (++depth_ > 64) return bad("too many ( in each other");
    Result<Piece> left = sequence();
    while (left && at_ < text_.size() && text_[at_] == '|') {
      ++at_;
      Result<Piece> right = sequence();
      if (!right) return right;
      const uint32_t split = add({State::Type::kSplit, 0, left->first, right->first});
      Piece both{split, left->ends};
      both.ends.insert(both.ends.end(), right->ends.begin(), right->ends.end());
      left = std::move(both);
    }
    --depth_;
    return left;
  }

  Result<Piece> sequence() {
    Piece whole = nothing();
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      Result<Piece> next = atom();
      if (!next) return next;
      while (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?'))
        next = repeated(std::move(*next), text_[at_++]);
      patch(whole, next->first);
      whole.ends = std::move(next->ends);
    }
    return whole;
  }

  Piece repeated(Piece piece, char how) {
    const uint32_t split = add({State::Type::kSplit, 0, piece.first, kNowhere});
    if (how == '?') {
      piece.ends.emplace_back(split, true);
      return {split, std::move(piece.ends)};
    }
    patch(piece, split);
    return {how == '*' ? split : piece.first, {{split, true}}};
  }

  Result<Piece> atom() {
    const char c = text_[at_++];
    switch (c) {
      case '(': {
        if (text_.substr(at_).starts_with("?:")) at_ += 2;
        Result<Piece> inner = alternatives();
        if (!inner) return inner;
        if (at_ >= text_.size()) return bad("a ( without its )");
        ++at_;
        return inner;
      }
      case '*':
      case '+':
      case '?': return bad("nothing stands before " + std::string(1, c));
      case '^': return one({State::Type::kStart, 0, kNowhere, 0});
      case '$': return one({State::Type::kEnd, 0, kNowhere, 0});
      case '.': return bytes(ByteSet().set());
      case '[': return set();
      case '\\': {
        if (at_ >= text_.size()) return bad("\\ at the end");
        return bytes(escaped(text_[at_++]));
      }
      default: return bytes(only(c));
    }
  }

  Piece bytes(ByteSet set) {
    // A set with a letter contains both cases of it.
    for (size_t c = 'a'; c <= 'z'; ++c)
      if (set[c] || set[c - 32]) set.set(c).set(c - 32);
    out_.sets_.push_back(set);
    return one({State::Type::kBytes, static_cast<uint32_t>(out_.sets_.size() - 1), kNowhere, 0});
  }
  static ByteSet only(char c) { return ByteSet().set(static_cast<unsigned char>(c)); }
  static ByteSet range(unsigned char from, unsigned char to) {
    ByteSet set;
    for (size_t c = from; c <= to; ++c) set.set(c);
    return set;
  }
  static ByteSet escaped(char c) {
    const ByteSet digits = range('0', '9'), spaces = only(' ') | range('\t', '\r');
    const ByteSet words = digits | range('a', 'z') | range('A', 'Z') | only('_');
    switch (c) {
      case 'd': return digits;
      case 'D': return ~digits;
      case 'w': return words;
      case 'W': return ~words;
      case 's': return spaces;
      case 'S': return ~spaces;
      default: return only(c);
    }
  }

  Result<Piece> set() {
    ByteSet inside;
    const bool negated = at_ < text_.size() && text_[at_] == '^';
    if (negated) ++at_;
    for (bool first = true;; first = false) {
      if (at_ >= text_.size()) return bad("a [ without its ]");
      char c = text_[at_++];
      if (c == ']' && !first) break;
      if (c == '\\') {
        if (at_ >= text_.size()) return bad("\\ at the end");
        inside |= escaped(text_[at_++]);
      } else if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        const auto from = static_cast<unsigned char>(c), to = static_cast<unsigned char>(text_[at_ + 1]);
        if (to < from) return bad("a range from high to low");
        inside |= range(from, to);
        at_ += 2;
      } else {
        inside |= only(c);
      }
    }
    if (!negated) return bytes(inside);
    for (size_t c = 'a'; c <= 'z'; ++c)
      if (inside[c] || inside[c - 32]) inside.set(c).set(c - 32);
    return bytes(~inside);
  }

  std::string_view text_;
  NamePattern& out_;
  size_t at_ = 0;
  int depth_ = 0;
};

NamePattern NamePattern::text(std::string_view what) {
  NamePattern pattern;
  pattern.text_ = to_lower(what);
  return pattern;
}

Result<NamePattern> NamePattern::expression(std::string_view what) {
  if (what.size() > kMaxBytes)
    return make_error(ErrorCode::kUsage, "an expression has at most " + std::to_string(kMaxBytes) + " bytes");
  NamePattern pattern;
  TRY_OK(Parser(what, pattern).parse());
  return pattern;
}

bool NamePattern::matches(std::string_view name) const {
  if (states_.empty()) return contains(name, text_);
  std::vector<uint32_t> now, next, todo;
  std::vector<size_t> seen(states_.size(), SIZE_MAX);  // for each state: the last position at which it was entered
  bool found = false;
  const auto enter = [&](std::vector<uint32_t>& states, uint32_t state, size_t at) {
    todo.assign(1, state);
    while (!todo.empty()) {
      const uint32_t s = todo.back();
      todo.pop_back();
      if (s == kNowhere || seen[s] == at) continue;
      seen[s] = at;
      const State& one = states_[s];
      switch (one.type) {
        case State::Type::kSplit:
          todo.push_back(one.other);
          todo.push_back(one.next);
          break;
        case State::Type::kStart:
          if (at == 0) todo.push_back(one.next);
          break;
        case State::Type::kEnd:
          if (at == name.size()) todo.push_back(one.next);
          break;
        case State::Type::kMatch: found = true; break;
        case State::Type::kBytes: states.push_back(s); break;
      }
    }
  };
  for (size_t at = 0;; ++at) {
    enter(now, first_, at);
    if (found || at == name.size()) return found;
    next.clear();
    for (const uint32_t s : now)
      if (sets_[states_[s].bytes][static_cast<unsigned char>(name[at])]) enter(next, states_[s].next, at + 1);
    if (found) return true;
    std::swap(now, next);
  }
}

AnyOf::AnyOf(std::vector<std::string_view> parts) : parts_(std::move(parts)) {
  for (const std::string_view part : parts_) {
    assert(part.size() >= kBegin);
    begins_.set(place_of_begin(part));
  }
}

bool AnyOf::in(std::string_view name) const {
  for (name = name.substr(0, kTellingBytes); name.size() >= kBegin; name.remove_prefix(1))
    if (begins_[place_of_begin(name)] &&
        std::ranges::any_of(parts_, [&](std::string_view part) { return name.starts_with(part); }))
      return true;
  return false;
}

}  // namespace stageline
