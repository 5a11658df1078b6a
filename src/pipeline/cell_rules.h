// Rules that read pipeline work from names: "PP:2F0" → forward of micro-batch 0 on stage 2.
//
//   set torch-runtime
//   annotation  F    PP:{stage}F{mb}
//   annotation  F+B  PP:({stage}F{mb};{stage}B{mb})OVERLAP_F_B
//   frame       F    *torch/distributed/pipelining/stage.py({}): forward_one_chunk
//
// A pattern is literal text with {stage}, {chunk}, {mb}, {step} (a whole number), {} (any number), * (any text) and
// (a|b) written {a|b}. There is no backtracking beyond the last *, so matching costs at most
// pattern × name, and names are looked at once each, however many slices have them.
// The language and the shipped rules: docs/model/cell-rules.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/kind.h"

namespace stageline {

enum class RuleWhere : uint8_t { kAnnotation, kFrame, kOperator };

// Besides cells, a rule can say what a slice proves.
enum class RuleRole : uint8_t {
  kCell,      // its slice is a piece of work of `kinds`
  kStep,      // its slice is one step
  kPipeline,  // its slice is one step, and shows that there is a pipeline
};

struct RuleHalf {  // numbers are kUnknown (−1) where the name does not say them
  CellKind kind = CellKind::kOther;
  int32_t stage = -1, chunk = -1, micro_batch = -1;
};

struct RuleMatch {
  uint32_t rule = 0;
  RuleRole role = RuleRole::kCell;
  int32_t step = -1;
  uint8_t half_count = 1;
  RuleHalf halves[2];  // two for an overlapped forward and backward
};

struct RulePatternPiece;
struct CellRule {
  uint32_t set = 0;
  RuleWhere where = RuleWhere::kAnnotation;
  RuleRole role = RuleRole::kCell;
  uint8_t half_count = 1;
  CellKind kinds[2] = {CellKind::kOther, CellKind::kOther};
  std::string pattern;  // as written
  std::vector<RulePatternPiece> pieces;
};

struct RuleSet {
  std::string name;
  bool from_user = false;
  bool needs_stages = false;  // its names are in use outside of pipelines too
  bool pieces = false;        // one piece of work has several slices: they are not numbered
  bool always = false;        // goes with every other set (optimizer steps)
};

class CellRules {
 public:
  CellRules();
  CellRules(CellRules&&) noexcept;
  CellRules& operator=(CellRules&&) noexcept;
  ~CellRules();

  // Adds the rules of a text; sets of one text keep their order and come before those that are there already.
  // Errors: kBadInput with file and line, what was found and what to write.
  Status add(std::string_view text, const std::string& file, bool from_user);

  const std::vector<RuleSet>& sets() const { return sets_; }  // by priority
  const std::vector<CellRule>& rules() const { return rules_; }

  // The first rule of the set that fits; nullopt. Names longer than kLongestRuleName fit nothing.
  std::optional<RuleMatch> match(uint32_t set, RuleWhere where, std::string_view name) const;

 private:
  std::vector<RuleSet> sets_;
  std::vector<CellRule> rules_;  // by set
};

inline constexpr size_t kLongestRuleName = 4096;
inline constexpr size_t kMaxRules = 4096;
inline constexpr size_t kLongestRulePattern = 512;

// The rules that come with Stageline, as text and parsed.
std::string_view shipped_cell_rules_text();
CellRules shipped_cell_rules();

}  // namespace stageline
