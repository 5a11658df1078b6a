// Rules that read pipeline work from names: "PP:2F0" → forward of micro-batch 0 on stage 2.
//
//   set torch-runtime
//   annotation  F    PP:{stage}F{mb}
//   annotation  F+B  PP:({stage}F{mb};{stage}B{mb})OVERLAP_F_B
//   frame       F    *torch/distributed/pipelining/stage.py({}): forward_one_chunk
//
// A pattern is literal text with {stage}, {chunk}, {mb}, {step} (whole numbers), {} (any number), {a|b} (one of these
// texts) and * (any text). Only the last * is ever moved, so matching costs at most pattern × name, and a name is
// looked at once, however many slices have it. The language and the shipped rules: docs/howto/cell-rules.md.
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
  kCell,         // its slice is a piece of work of `kinds`
  kStep,         // its slice is one step
  kPipeline,     // its slice is one step, and shows that there is a pipeline
  kInterleaved,  // the same, of a rank with several chunks that the other names do not tell apart
};

inline constexpr size_t kMaxRuleHalves = 4;

struct RuleHalf {  // numbers are kUnknown (−1) where the name does not say them
  CellKind kind = CellKind::kOther;
  int32_t stage = -1, chunk = -1, micro_batch = -1;
};

struct RuleMatch {
  uint32_t rule = 0;
  int32_t step = -1;
  bool out_of_range = false;        // a number beyond the limits of model/ops.h
  RuleHalf halves[kMaxRuleHalves];  // as many as the rule's half_count
};

struct RulePatternPiece;
struct CellRule {
  uint32_t set = 0;
  RuleWhere where = RuleWhere::kAnnotation;
  RuleRole role = RuleRole::kCell;
  bool piece = false;      // one piece of work has several slices of this rule: they are not numbered
  uint8_t half_count = 1;  // kinds: two for an overlapped forward and backward, more for fused messages
  CellKind kinds[kMaxRuleHalves] = {};
  std::string pattern;  // as written
  std::vector<RulePatternPiece> pieces;
};

struct RuleSet {
  std::string name;
  bool from_user = false;
  bool needs_stages = false;    // its names are in use outside of pipelines too
  bool split_b = false;         // where there is W, B is its input half I
  bool always = false;          // goes with every other set (optimizer steps)
  uint32_t begin = 0, end = 0;  // its rules
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
