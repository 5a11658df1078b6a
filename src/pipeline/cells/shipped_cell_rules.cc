// The rules that come with Stageline, in the language of docs/reference/cell-rules.md. The names are explained in
// torch/distributed/pipelining/schedules.py and stage.py (torch 2.13), megatron/core/pipeline_parallel (0.9 to 0.14),
// deepspeed/runtime/pipe/engine.py, the zero-bubble fork of Megatron, DualPipe's published profile.
#include <cassert>

#include "pipeline/cells/cell_rules.h"

namespace stageline {
namespace {

constexpr std::string_view kText = R"rules(# WHERE KIND PATTERN; the first set with work in the trace counts.

# Every multi-stage schedule of torch.distributed.pipelining since 2025.
set torch-runtime
annotation F     PP:{stage}F{mb}
annotation B     PP:{stage}B{mb}
annotation I     PP:{stage}I{mb}
annotation W     PP:{stage}W{mb}
annotation F+B   PP:({stage}F{mb};{stage}B{mb})OVERLAP_F_B
annotation B+F   PP:({stage}B{mb};{stage}F{mb})OVERLAP_F_B
annotation F+I   PP:({stage}F{mb};{stage}I{mb})OVERLAP_F_B
annotation I+F   PP:({stage}I{mb};{stage}F{mb})OVERLAP_F_B
annotation SF    PP:{stage}SEND_F{mb}
annotation RF    PP:{stage}RECV_F{mb}
annotation SB    PP:{stage}SEND_B{mb}
annotation RB    PP:{stage}RECV_B{mb}
annotation C     PP:{stage}{UNSHARD|REDUCE_GRAD}
annotation other PP:{stage}RESHARD

# The zero-bubble fork of Megatron: micro-batch, chunk, position.
set zero-bubble split-b
annotation F     F{mb}.{chunk}.{}
annotation B     B{mb}.{chunk}.{}
annotation W     W{mb}.{chunk}.{}
annotation step  iter_{}_{step}

# DualPipe: a forward and a backward beside each other, and the modules in them by phase.
set dualpipe split-b
annotation F+B       1F1B
annotation part-of-F {attn|mlp}(F)
annotation part-of-B {attn|mlp}(B)
annotation part-of-W {attn|mlp}(W)
annotation C         {dispatch|combine}({F|B|W})

# GPipe of torch.distributed.pipelining: the slices hold the waits for messages too.
set torch-gpipe needs-stages
annotation F         Forward {mb}
annotation B         Backward {mb}
frame      pipeline  *torch/distributed/pipelining/schedules.py({}): step

# 1F1B of torch.distributed.pipelining annotates nothing; its frames say which is which.
set torch-stage split-b
frame pipeline *torch/distributed/pipelining/schedules.py({}): step
frame F        *torch/distributed/pipelining/stage.py({}): forward_one_chunk
frame B        *torch/distributed/pipelining/stage.py({}): backward_one_chunk
frame W        *torch/distributed/pipelining/stage.py({}): backward_weight_one_chunk

set megatron needs-stages
frame pipeline    *megatron/core/pipeline_parallel/schedules.py({}): forward_backward_pipelining_without_interleaving
frame interleaved *megatron/core/pipeline_parallel/schedules.py({}): forward_backward_pipelining_with_interleaving
frame F           *megatron/core/pipeline_parallel/schedules.py({}): forward_step
frame B           *megatron/core/pipeline_parallel/schedules.py({}): backward_step
frame RF          *megatron/core/pipeline_parallel/p2p_communication.py({}): recv_forward
frame SF          *megatron/core/pipeline_parallel/p2p_communication.py({}): send_forward
frame RB          *megatron/core/pipeline_parallel/p2p_communication.py({}): recv_backward
frame SB          *megatron/core/pipeline_parallel/p2p_communication.py({}): send_backward
frame SF+RB       *megatron/core/pipeline_parallel/p2p_communication.py({}): send_forward_recv_backward
frame SB+RF       *megatron/core/pipeline_parallel/p2p_communication.py({}): send_backward_recv_forward
frame SF+RF       *megatron/core/pipeline_parallel/p2p_communication.py({}): send_forward_recv_forward
frame SB+RB       *megatron/core/pipeline_parallel/p2p_communication.py({}): send_backward_recv_backward
frame SF+SB+RF+RB *megatron/core/pipeline_parallel/p2p_communication.py({}): send_forward_backward_recv_forward_backward

set deepspeed
frame pipeline *deepspeed/runtime/pipe/engine.py({}): train_batch
frame F        *deepspeed/runtime/pipe/engine.py({}): _exec_forward_pass
frame B        *deepspeed/runtime/pipe/engine.py({}): _exec_backward_pass
frame SF       *deepspeed/runtime/pipe/engine.py({}): _exec_send_activations
frame RF       *deepspeed/runtime/pipe/engine.py({}): _exec_recv_activations
frame SB       *deepspeed/runtime/pipe/engine.py({}): _exec_send_grads
frame RB       *deepspeed/runtime/pipe/engine.py({}): _exec_recv_grads
frame C        *deepspeed/runtime/pipe/engine.py({}): {_exec_reduce_grads|_exec_reduce_tied_grads}
frame O        *deepspeed/runtime/pipe/engine.py({}): _exec_optimizer_step

# What people call their own record_function, with or without a number.
set forward-step needs-stages split-b
annotation F {forward_step_|forward_step |forward_step:}{mb}
annotation B {backward_step_|backward_step |backward_step:}{mb}
annotation F forward_step
annotation B backward_step
annotation W weight_step

# Megatron and MindSpeed as the vendor's guide marks them with mstx ranges.
set mstx needs-stages
annotation F   forward_step
annotation F   forward_step_{with|no}_model_graph
annotation B   backward_step
annotation B   backward_step_with_model_graph
annotation F+B forward_backward_{overlaping|overlapping}
annotation W   WeightGradStore{.|_}pop

set optimizer always
annotation O Optimizer.step#*
)rules";

}  // namespace

std::string_view shipped_cell_rules_text() { return kText; }

CellRules shipped_cell_rules() {
  CellRules rules;
  [[maybe_unused]] const Status parsed = rules.add(kText, "cell-rules", false);
  assert(parsed);
  return rules;
}

}  // namespace stageline
