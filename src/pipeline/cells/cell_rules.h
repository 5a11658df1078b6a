// Rules that read pipeline work from names: "PP:2F0" → forward of micro-batch 0 on stage 2.
//
//   set torch-runtime
//   annotation  F    PP:{stage}F{mb}
//   annotation  F+B  PP:({stage}F{mb};{stage}B{mb})OVERLAP_F_B
//   frame       F    *torch/distributed/pipelining/stage.py({}): forward_one_chunk
//
// A pattern is literal text with {stage}, {chunk}, {mb}, {step} (whole numbers), {} (any number), {a|b} (one of these
// texts) and * (any text). Only the last * is ever moved, so matching costs at most pattern × name, and a name is
// looked at once, however many slices have it. The language and the shipped rules: docs/reference/cell-rules.md.
#pragma once

#include "model/kind.h"

namespace stageline {

enum class RuleWhere : uint8_t { kAnnotation, kFrame, kOperator };

// The meaning of a slice that a rule matches; most rules find cells.
enum class RuleRole : uint8_t {
  kCell,         // the slice is a piece of work of the rule's `kinds`
  kStep,         // the slice is one step
  kPipeline,     // the slice is one step, and proves that there is a pipeline
  kInterleaved,  // as kPipeline, on ranks with several chunks that the other names do not distinguish
};

inline constexpr size_t kMaxRuleHalves = 4;

struct RuleHalf {  // numbers are kUnknown (−1) where the name does not contain them
  CellKind kind = CellKind::kOther;
  int32_t stage = -1, chunk = -1, micro_batch = -1;
};

struct RuleMatch {
  uint32_t rule = 0;
  int32_t step = -1;
  bool out_of_range = false;        // a number was beyond the limits of model/source_limits.h
  RuleHalf halves[kMaxRuleHalves];  // the first half_count of them are filled
};

struct RulePatternPiece;
struct CellRule {
  uint32_t set = 0;
  RuleWhere where = RuleWhere::kAnnotation;
  RuleRole role = RuleRole::kCell;
  bool piece = false;      // several slices of this rule are one piece of work, so they are not numbered
  uint8_t half_count = 1;  // number of kinds: two for an overlapped forward and backward, more for fused messages
  CellKind kinds[kMaxRuleHalves] = {};
  std::string pattern;  // the pattern as written
  std::vector<RulePatternPiece> pieces;
};

struct RuleSet {
  std::string name;
  bool from_user = false;
  bool needs_stages = false;    // the names of this set are used outside of pipelines too
  bool only_ranges = false;     // read from mstx and NVTX ranges alone, where there is evidence of a pipeline
  bool split_b = false;         // where the set finds W, its B is the input half, I
  bool always = false;          // the set is used together with whichever set is chosen (optimizer steps)
  uint32_t begin = 0, end = 0;  // its rules are CellRules::rules() [begin, end)
};

class CellRules {
 public:
  CellRules();
  CellRules(CellRules&&) noexcept;
  CellRules& operator=(CellRules&&) noexcept;
  ~CellRules();

  // Adds the rules of a text. Sets of one text keep their order and come before those that were added earlier. Errors:
  // kBadInput with file and line, what was found there and what to write instead.
  Status add(std::string_view text, const std::string& file, bool from_user);

  const std::vector<RuleSet>& sets() const { return sets_; }  // in order of priority
  const std::vector<CellRule>& rules() const { return rules_; }

  // Returns the first rule of the set that matches the name; nullopt when none does. Names longer than kLongestRuleName
  // match nothing.
  std::optional<RuleMatch> match(uint32_t set, RuleWhere where, std::string_view name) const;

 private:
  std::vector<RuleSet> sets_;
  std::vector<CellRule> rules_;  // in order of their sets
};

inline constexpr size_t kLongestRuleName = 4096;
inline constexpr size_t kMaxRules = 4096;
inline constexpr size_t kLongestRulePattern = 512;

// The rules that come with Stageline, shipped.rules: as text, and parsed. The names are explained in
// torch/distributed/pipelining/schedules.py and stage.py (torch 2.13), megatron/core/pipeline_parallel (0.9 to 0.14),
// deepspeed/runtime/pipe/engine.py, the zero-bubble fork of Megatron, DualPipe's published profile.
std::string shipped_cell_rules_text();
CellRules shipped_cell_rules();

}  // namespace stageline
