// FLOPs of training on given sequences, forwards and backwards, by a model's description. Definitions and sources of
// the formulas: docs/analyses/mfu.md.
#pragma once

#include "plan/model.h"

namespace stageline::plan {

// The number and lengths of sequences; packed ones count apart.
struct SequenceLengths {
  std::map<double, double> count_of;  // by length

  double tokens() const { return sum(1); }
  double squares() const { return sum(2); }
  double sum(int power) const;
  // Pairs of query and key under a causal mask that leaves the last `window` tokens; 0: all.
  double pairs(double window) const;
};

// Stageline's own count: every matrix that a token meets, the router with them, and the pairs that masks leave.
double model_flops(const Model& model, const SequenceLengths& lengths);

struct MatrixParameters {
  double all = 0, active = 0;
};
// Counts elements of all matrices, and of those that one token meets.
MatrixParameters matrix_parameters(const Model& model);

struct FlopsByFormula {
  std::string_view formula;  // "stageline", "megatron", "palm", …
  double flops = 0;          // NaN: the formula is not for this model
};
// Returns the FLOPs of the same run by all formulas, Stageline's first.
std::vector<FlopsByFormula> flops_by_formula(const Model& model, const SequenceLengths& lengths);

}  // namespace stageline::plan
