#include "pipeline/cells/cell_rules.h"

#include "model/source_limits.h"

namespace stageline {

// A pattern consists of these pieces. A number takes all digits that follow, so every piece but * fits at one place in
// one way only. If there are several *, only the last one is ever moved.
struct RulePatternPiece {
  enum class What : uint8_t { kText, kNumber, kAny, kOneOf };
  enum class Slot : uint8_t { kNone, kStage, kChunk, kMicroBatch, kStep };
  What what = What::kText;
  Slot slot = Slot::kNone;
  uint8_t half = 0;
  std::vector<std::string> texts;  // one text; for kOneOf several
};

namespace {

using Piece = RulePatternPiece;

constexpr std::array<std::pair<std::string_view, Piece::Slot>, 5> kSlots = {{{"", Piece::Slot::kNone},
                                                                             {"stage", Piece::Slot::kStage},
                                                                             {"chunk", Piece::Slot::kChunk},
                                                                             {"mb", Piece::Slot::kMicroBatch},
                                                                             {"step", Piece::Slot::kStep}}};

int64_t max_of(Piece::Slot slot) {
  switch (slot) {
    case Piece::Slot::kStage: return kMaxStageNumber - 1;
    case Piece::Slot::kChunk: return kMaxChunkNumber - 1;
    case Piece::Slot::kMicroBatch: return kMaxMicroBatchNumber - 1;
    case Piece::Slot::kStep: return kMaxStepNumber;
    case Piece::Slot::kNone: break;
  }
  return INT64_MAX;
}

void put_text(std::vector<Piece>& pieces, char c) {
  if (pieces.empty() || pieces.back().what != Piece::What::kText)
    pieces.push_back({Piece::What::kText, Piece::Slot::kNone, 0, {""}});
  pieces.back().texts[0] += c;
}

// Parses a pattern; returns "" or what is wrong with it. The second {stage} (or {mb} …) of a pattern belongs to the
// second half.
std::string parse_pattern(std::string_view text, uint8_t half_count, std::vector<Piece>& pieces) {
  ByEnum<Piece::Slot, uint8_t, kSlots.size()> seen{};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '*') {
      if (pieces.empty() || pieces.back().what != Piece::What::kAny)
        pieces.push_back({Piece::What::kAny, Piece::Slot::kNone, 0, {}});
      continue;
    }
    if (text[i] != '{') {
      put_text(pieces, text[i]);
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '{') {
      put_text(pieces, text[i++]);
      continue;
    }
    const size_t close = text.find('}', i);
    if (close == std::string_view::npos) return "a { that is not closed (write {{ for the character)";
    const std::string_view inside = text.substr(i + 1, close - i - 1);
    i = close;
    if (inside.find('|') != std::string_view::npos) {
      Piece piece{Piece::What::kOneOf, Piece::Slot::kNone, 0, {}};
      for (const std::string_view one : split(inside, '|')) piece.texts.emplace_back(one);
      pieces.push_back(std::move(piece));
      continue;
    }
    const auto slot = std::ranges::find_if(kSlots, [&](const auto& known) { return known.first == inside; });
    if (slot == kSlots.end()) return "{" + std::string(inside) + "}, which is none of {stage} {chunk} {mb} {step} {}";
    uint8_t& times = seen[slot->second];
    if (slot->second != Piece::Slot::kNone && times >= half_count)
      return "{" + std::string(inside) + "} more often than there are kinds";
    if (!pieces.empty() && pieces.back().what == Piece::What::kNumber)
      return "two numbers without anything between them";
    pieces.push_back({Piece::What::kNumber, slot->second, times++, {}});
  }
  // Where an overlapped pair has a number only once, it is the number of both halves.
  return {};
}

struct Reading {  // the numbers read so far
  ByEnum<Piece::Slot, std::array<int64_t, kMaxRuleHalves>, kSlots.size()> number{};
  bool out_of_range = false;
  Reading() {
    for (auto& halves : number) halves.fill(-1);
  }
};

// Matches pieces [first, last) from position `at` on, and sets `at` to where they end. False when they do not match
// there.
bool fit_at(const std::vector<Piece>& pieces, size_t first, size_t last, std::string_view name, size_t& at,
            Reading& reading) {
  for (size_t p = first; p < last; ++p) {
    const Piece& piece = pieces[p];
    if (piece.what == Piece::What::kNumber) {
      size_t end = at;
      int64_t value = 0;
      bool fits = true;
      const int64_t max = max_of(piece.slot);
      for (; end < name.size() && name[end] >= '0' && name[end] <= '9'; ++end) {
        if (piece.slot == Piece::Slot::kNone || !fits) continue;
        value = value * 10 + (name[end] - '0');
        fits = value <= max;
      }
      if (end == at) return false;
      at = end;
      if (piece.slot == Piece::Slot::kNone) continue;
      reading.number[piece.slot][piece.half] = fits ? value : -1;
      reading.out_of_range |= !fits;
      continue;
    }
    const auto begins = [&](const std::string& text) { return name.substr(at).starts_with(text); };
    const auto text = std::ranges::find_if(piece.texts, begins);
    if (text == piece.texts.end()) return false;
    at += text->size();
  }
  return true;
}

bool fit(const std::vector<Piece>& pieces, std::string_view name, Reading& reading) {
  size_t at = 0;
  for (size_t first = 0;;) {
    size_t last = first;
    while (last < pieces.size() && pieces[last].what != Piece::What::kAny) ++last;
    const bool after_any = first > 0;
    const bool to_end = last == pieces.size();
    if (!after_any) {
      if (!fit_at(pieces, first, last, name, at, reading)) return false;
      if (to_end) return at == name.size();
    } else if (first == last && to_end) {
      return true;  // the pattern ends in *
    } else {
      // Takes the first place where the pieces up to the next * match; for the last pieces they must also end the name.
      bool found = false;
      for (size_t from = at; from <= name.size() && !found; ++from) {
        size_t end = from;
        Reading attempt = reading;
        if (!fit_at(pieces, first, last, name, end, attempt) || (to_end && end != name.size())) continue;
        found = true;
        at = end;
        reading = attempt;
      }
      if (!found) return false;
      if (to_end) return true;
    }
    first = last + 1;
  }
}

constexpr std::array<std::pair<std::string_view, RuleWhere>, 3> kWheres = {
    {{"annotation", RuleWhere::kAnnotation}, {"frame", RuleWhere::kFrame}, {"operator", RuleWhere::kOperator}}};
constexpr std::array<std::pair<std::string_view, RuleRole>, 3> kRoles = {
    {{"step", RuleRole::kStep}, {"pipeline", RuleRole::kPipeline}, {"interleaved", RuleRole::kInterleaved}}};

std::string_view next_word(std::string_view& text) {
  text = trim(text);
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text = trim(text.substr(end));
  return word;
}

std::string quoted(std::string_view text) { return "\"" + valid_utf8(text.substr(0, 80)) + "\""; }

// Parses the kinds of a rule; returns "" or what is wrong.
std::string parse_kinds(std::string_view what, CellRule& rule) {
  for (const auto& [word, role] : kRoles)
    if (word == what) {
      rule.role = role;
      return {};
    }
  rule.piece = what.starts_with("part-of-");
  if (rule.piece) what.remove_prefix(8);
  if (what == "F&B") what = "F+B";
  const auto codes = split(what, '+');
  if (codes.size() > kMaxRuleHalves) return quoted(what) + ", which names more than four kinds";
  rule.half_count = static_cast<uint8_t>(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const auto kind = kind_from_code(codes[i]);
    if (!kind || *kind == CellKind::kForwardBackward)
      return quoted(what) +
             ", which is no kind (F, B, I, W, F+B, SF, RF, SB, RB, C, O, other, part-of-F …), step, pipeline or "
             "interleaved";
    rule.kinds[i] = *kind;
  }
  return {};
}

std::string parse_set(std::string_view rest, RuleSet& set) {
  set.name = std::string(next_word(rest));
  if (set.name.empty()) return "a set without a name";
  while (!rest.empty()) {
    const std::string_view word = next_word(rest);
    if (word == "needs-stages") set.needs_stages = true;
    else if (word == "only-ranges") set.only_ranges = true;
    else if (word == "split-b") set.split_b = true;
    else if (word == "always") set.always = true;
    else return quoted(word) + " after the name of a set, where needs-stages, only-ranges, split-b or always may stand";
  }
  return {};
}

std::string parse_rule(std::string_view where, std::string_view rest, CellRule& rule) {
  const auto known = std::ranges::find_if(kWheres, [&](const auto& w) { return w.first == where; });
  if (known == kWheres.end()) return quoted(where) + ", where set, annotation, frame or operator begins a line";
  rule.where = known->second;
  if (std::string wrong = parse_kinds(next_word(rest), rule); !wrong.empty()) return wrong;
  rule.pattern = std::string(rest);
  if (rule.pattern.empty()) return "a rule without a pattern";
  if (rule.pattern.size() > kLongestRulePattern)
    return "a pattern above " + std::to_string(kLongestRulePattern) + " bytes";
  return parse_pattern(rule.pattern, rule.half_count, rule.pieces);
}

}  // namespace

CellRules::CellRules() = default;
CellRules::CellRules(CellRules&&) noexcept = default;
CellRules& CellRules::operator=(CellRules&&) noexcept = default;
CellRules::~CellRules() = default;

Status CellRules::add(std::string_view text, const std::string& file, bool from_user) {
  std::vector<RuleSet> sets;
  std::vector<std::vector<CellRule>> rules;
  int64_t line_number = 0;
  size_t count = rules_.size();
  const auto bad = [&](const std::string& what) {
    return make_error(
        ErrorCode::kBadInput, "found " + what,
        "a line reads WHERE KIND PATTERN, such as: annotation F PP:{stage}F{mb}  (stageline help cell-rules)",
        {file, line_number});
  };
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::string_view line : split(text, '\n')) {
    ++line_number;
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string_view word = next_word(line);
    if (word == "set") {
      RuleSet set;
      set.from_user = from_user;
      if (const std::string wrong = parse_set(line, set); !wrong.empty()) return bad(wrong);
      sets.push_back(std::move(set));
      rules.emplace_back();
      continue;
    }
    CellRule rule;
    if (const std::string wrong = parse_rule(word, line, rule); !wrong.empty()) return bad(wrong);
    if (++count > kMaxRules)
      return make_error(ErrorCode::kLimit, "more than " + std::to_string(kMaxRules) + " rules", "",
                        {file, line_number});
    if (sets.empty()) {
      sets.push_back({.name = file_name(file), .from_user = from_user});
      rules.emplace_back();
    }
    rule.set = static_cast<uint32_t>(sets.size() - 1);
    rules.back().push_back(std::move(rule));
  }
  // New sets go before those that are already there.
  const auto first = static_cast<uint32_t>(sets.size());
  std::vector<CellRule> all;
  for (std::vector<CellRule>& of_set : rules)
    for (CellRule& rule : of_set) all.push_back(std::move(rule));
  for (CellRule& rule : rules_) {
    rule.set += first;
    all.push_back(std::move(rule));
  }
  for (RuleSet& set : sets_) sets.push_back(std::move(set));
  sets_ = std::move(sets);
  rules_ = std::move(all);
  for (RuleSet& set : sets_) set.begin = set.end = 0;
  for (uint32_t r = 0; r < rules_.size(); ++r) {
    RuleSet& set = sets_[rules_[r].set];
    if (set.end == 0) set.begin = r;
    set.end = r + 1;
  }
  return {};
}

std::optional<RuleMatch> CellRules::match(uint32_t set, RuleWhere where, std::string_view name) const {
  if (name.empty() || name.size() > kLongestRuleName) return std::nullopt;
  for (uint32_t r = sets_[set].begin; r < sets_[set].end; ++r) {
    const CellRule& rule = rules_[r];
    if (rule.where != where) continue;
    // Most names already fail at their first or last characters.
    const Piece &head = rule.pieces.front(), &tail = rule.pieces.back();
    if (head.what == Piece::What::kText && !name.starts_with(head.texts[0])) continue;
    if (tail.what == Piece::What::kText && !name.ends_with(tail.texts[0])) continue;
    Reading reading;
    if (!fit(rule.pieces, name, reading)) continue;
    const auto number = [&](Piece::Slot slot, size_t half) { return static_cast<int32_t>(reading.number[slot][half]); };
    RuleMatch match{.rule = r, .step = number(Piece::Slot::kStep, 0), .out_of_range = reading.out_of_range};
    for (size_t h = 0; h < rule.half_count; ++h)
      match.halves[h] = {rule.kinds[h], number(Piece::Slot::kStage, h), number(Piece::Slot::kChunk, h),
                         number(Piece::Slot::kMicroBatch, h)};
    return match;
  }
  return std::nullopt;
}

}  // namespace stageline
