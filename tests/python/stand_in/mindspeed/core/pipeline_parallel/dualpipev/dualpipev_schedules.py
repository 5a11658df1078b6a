import queue
import time

import torch  # noqa: F401

from megatron.core import parallel_state  # noqa: F401
from megatron.core.pipeline_parallel.schedules import backward_step


class Tensor:
    pass


class WeightGradStore:
    """As MindSpeed's: pop works off `cache`, pop_single takes it from the queue first."""
    cache, weight_grad_queue, store_grad_cache = [], queue.Queue(), []

    @classmethod
    def put(cls, gradient):
        cls.cache.append(gradient)

    @classmethod
    def flush_chunk_grad(cls):
        cls.weight_grad_queue.put(cls.cache)
        cls.cache = []

    @classmethod
    def pop(cls, overlap_arg=None):
        if len(cls.cache) == 0:
            return
        time.sleep(0.001)
        cls.cache.clear()
        cls.store_grad_cache = None

    @classmethod
    def pop_single(cls):
        if cls.weight_grad_queue.empty():
            return
        cls.cache = cls.weight_grad_queue.get()
        cls.pop()


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
    WeightGradStore.put('weights')
    WeightGradStore.flush_chunk_grad()
    WeightGradStore.pop()  # of an empty cache, whatever lies in the queue: nothing
    WeightGradStore.pop_single()
    backward_step(None, first, None, None, None)  # as without --moe-fb-overlap
