// The problems that pipeline/cells reports; base/problem.h.
#pragma once

#include "base/problem.h"

namespace stageline::problem {

PROBLEM(cells, bad_number, kLoss);
PROBLEM(cells, chunk_unknown, kWarning);
PROBLEM(cells, clipped, kInfo);
PROBLEM(cells, dw_detached, kInfo);
PROBLEM(cells, empty_pop, kWarning);
PROBLEM(cells, from_annotations, kInfo);
PROBLEM(cells, from_kernels, kInfo);
PROBLEM(cells, from_ranges, kInfo);
PROBLEM(cells, impossible_times, kLoss);
PROBLEM(cells, inferred, kInfo);
PROBLEM(cells, inferred_flow, kInfo);
PROBLEM(cells, inferred_unknown, kWarning);
PROBLEM(cells, inferred_work, kInfo);
PROBLEM(cells, kernel_border, kInfo);
PROBLEM(cells, kernels_numbered, kInfo);
PROBLEM(cells, kernels_overlap, kWarning);
PROBLEM(cells, kernels_unproven, kWarning);
PROBLEM_CASE(cells, kernels_unproven, acausal, kWarning);
PROBLEM(cells, layout_contradicted, kWarning);
PROBLEM_CASE(cells, layout_contradicted, torch, kWarning);
PROBLEM(cells, lost_marks, kLoss);
PROBLEM(cells, nested, kInfo);
PROBLEM_CASE(cells, nested, slice, kInfo);
PROBLEM(cells, no_backward, kWarning);
PROBLEM(cells, no_device, kLoss);
PROBLEM_CASE(cells, no_device, none, kLoss);
PROBLEM(cells, no_flow, kInfo);
PROBLEM(cells, no_gradients, kInfo);
PROBLEM(cells, no_kernels, kLoss);
PROBLEM(cells, no_operators, kInfo);
PROBLEM(cells, no_pipeline, kInfo);
PROBLEM(cells, none, kWarning);
PROBLEM(cells, numbered, kInfo);
PROBLEM(cells, off_schedule, kWarning);
PROBLEM(cells, outside_steps, kWarning);
PROBLEM(cells, ranks_missing, kWarning);
PROBLEM(cells, ranks_without_kernels, kWarning);
PROBLEM(cells, rules_unused, kWarning);
PROBLEM(cells, schedule, kInfo);
PROBLEM(cells, several_schedules, kWarning);
PROBLEM(cells, small_runs, kInfo);
PROBLEM(cells, stages, kInfo);
PROBLEM_CASE(cells, stages, ranges, kInfo);
PROBLEM_CASE(cells, stages, torch, kWarning);
PROBLEM_CASE(cells, steps, none, kInfo);
PROBLEM_CASE(cells, steps, optimizer, kInfo);
PROBLEM_CASE(cells, steps, ranges, kInfo);
PROBLEM_CASE(cells, steps, repeats, kInfo);
PROBLEM(cells, steps_missing, kWarning);
PROBLEM(cells, times, kInfo);
PROBLEM(cells, unknown_messages, kInfo);
PROBLEM_CASE(cells, unknown_messages, kernels, kInfo);
PROBLEM(cells, unlabelled, kWarning);
PROBLEM(cells, unproven, kWarning);
PROBLEM(layout, inferred, kInfo);
PROBLEM(layout, stages_ignored, kWarning);
PROBLEM_CASE(layout, stages_ignored, product, kWarning);

}  // namespace stageline::problem
