// A plan in short texts, and the tables of an answer.
#pragma once

#include "cli/plan_answer.h"
#include "model/table.h"

namespace stageline {

// "2×8 7": the layers of each virtual stage, equal neighbours as one item.
std::string layers_text(const plan::Candidate& plan);
// What each virtual stage computes again: "0 2×mlp+attn", "4×8"; "": nothing.
std::string recompute_text(const plan::Candidate& plan);
// "tp 8 · pp 2 · dp 4 · ep 8": symbols of the field, the same in both languages.
std::string degrees_text(const plan::Wish& wish, const plan::Candidate& plan);

// plans, stages of the first, pareto, sensitivity, compare; those without rows are left out.
std::vector<Table> plan_tables(const PlanAnswer& answer);
// Returns the table plan/stages. `layers` are those of each virtual stage; `limit` 0: none.
Table stage_bytes_table(const Schedule& shape, const std::vector<int32_t>& layers,
                        const std::vector<plan::RankPeak>& peaks, double limit);

}  // namespace stageline
