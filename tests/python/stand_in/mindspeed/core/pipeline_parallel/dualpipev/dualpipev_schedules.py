import queue
import time

import torch  # noqa: F401

from megatron.core import parallel_state  # noqa: F401


class Tensor:
    pass


class WeightGradStore:
    cache, weight_grad_queue = [], queue.Queue()

    @classmethod
    def pop(cls):
        if cls.weight_grad_queue.qsize():
            time.sleep(0.001)
            cls.weight_grad_queue.get()


def forward_step_no_model_graph(forward_step_func, model_chunk_id, data_iterator, model, num_microbatches, input_tensor,
                                forward_data_store, config, current_microbatch=None):
    time.sleep(0.001)
    return Tensor(), 0


def forward_step_with_model_graph(forward_step_func, model_chunk_id, data_iterator, model, num_microbatches, input_tensor,
                                  forward_data_store, config, current_microbatch=None, extra_block_kwargs=None):
    time.sleep(0.001)
    return Tensor(), 0


def backward_step_with_model_graph(input_tensor, output_tensor, output_tensor_grad, model_type, config, model_graph=None):
    time.sleep(0.001)


def forward_backward_pipelining_with_cutinhalf(*, forward_step_func, data_iterator, model, num_microbatches, forward_only=False):
    n = num_microbatches
    first, _ = forward_step_no_model_graph(None, 0, None, model, n, None, [], None, current_microbatch=0)
    second, _ = forward_step_with_model_graph(None, 1, None, model, n, None, [], None, current_microbatch=n)
    forward_step_with_model_graph(None, 0, None, model, n, None, [], None, current_microbatch=1, extra_block_kwargs={})
    backward_step_with_model_graph(None, second, None, None, None)
    WeightGradStore.pop()
    WeightGradStore.weight_grad_queue.put('weights')
    WeightGradStore.pop()
    backward_step_with_model_graph(None, first, None, None, None)
