import time

import torch  # noqa: F401

from .. import parallel_state
from . import p2p_communication
from .combined_1f1b import combined_1f1b_schedule_for_no_pipelining


class Tensor:
    def element_size(self):
        return 4

    def numel(self):
        return 256


class Gradient(Tensor):
    pass


def forward_step(forward_step_func, data_iterator, model, num_microbatches, input_tensor, forward_data_store, config, cp_group_size=None,
                 collect_non_loss_data=False, checkpoint_activations_microbatch=None, is_first_microbatch=False, current_microbatch=None,
                 vp_stage=None, is_last_stage=True):
    time.sleep(0.001)
    return [Tensor()], 0


def backward_step(input_tensor, output_tensor, output_tensor_grad, model_type, config):
    time.sleep(0.001)
    return Gradient()


def forward_backward_no_pipelining(*, forward_step_func, data_iterator, model, num_microbatches, forward_only=False, combined=False):
    if combined:
        combined_1f1b_schedule_for_no_pipelining(model, num_microbatches)
        return
    for i in range(num_microbatches):
        output, _ = forward_step(None, None, model, num_microbatches, None, [], None)
        if not forward_only:
            backward_step(None, output, None, None, None)


def forward_backward_pipelining_without_interleaving(*, forward_step_func, data_iterator, model, num_microbatches, forward_only=False):
    size, rank = 4, parallel_state.get_pipeline_model_parallel_rank()
    outputs = []

    def forward(i):
        p2p_communication.recv_forward(None, None)
        outputs.append(forward_step(None, None, model, num_microbatches, None, [], None, current_microbatch=i)[0])

    ahead = min(size - rank - 1, num_microbatches)
    for i in range(ahead):
        forward(i)
    for i in range(ahead, num_microbatches):
        forward(i)
        p2p_communication.send_forward_recv_backward(outputs[-1], None, None)
        if not forward_only:
            backward_step(None, outputs.pop(0), None, None, None)
    while outputs and not forward_only:
        gradient = backward_step(None, outputs.pop(0), None, None, None)
        p2p_communication.P2PCommunicator().send_backward(gradient, rank == 0)


def forward_backward_pipelining_with_interleaving(*, forward_step_func, data_iterator, model, num_microbatches, forward_only=False):
    """Two chunks; the second's rank is said by the older way, parallel_state."""
    outputs = {0: [], 1: []}
    for chunk in range(len(model)):
        parallel_state.set_virtual_pipeline_model_parallel_rank(chunk)
        for i in range(num_microbatches):
            said = {'vp_stage': 0, 'current_microbatch': i} if chunk == 0 else {}
            outputs[chunk].append(forward_step(None, None, model[chunk], num_microbatches, None, [], None, **said)[0])
    for chunk in (1, 0):
        parallel_state.set_virtual_pipeline_model_parallel_rank(chunk)
        for _ in range(num_microbatches):
            backward_step(None, outputs[chunk].pop(0), None, None, None)
    parallel_state.set_virtual_pipeline_model_parallel_rank(None)


def get_forward_backward_func(pipeline=True, virtual=False):
    if not pipeline:
        return forward_backward_no_pipelining
    return forward_backward_pipelining_with_interleaving if virtual else forward_backward_pipelining_without_interleaving
