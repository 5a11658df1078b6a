"""Megatron-Core's schedules and messages, and MindSpeed's DualPipeV on top of them.

forward_step is told its micro-batch; backward_step is not, and is known by the output tensor of its forward, whatever the order.
"""
import sys

from . import run

_made = {}  # id of an output tensor → (micro-batch, chunk) of the forward that made it, until its backward
_MOST_MADE = 1 << 16
_counts = {}  # chunk → forwards of this step, where nothing says the micro-batch


def _parallel_state():
    return sys.modules.get('megatron.core.parallel_state')


def _chunk(arguments):
    said = arguments.get('vp_stage')
    if said is None:  # before vp_stage was an argument
        ask = getattr(_parallel_state(), 'get_virtual_pipeline_model_parallel_rank', None)
        said = ask() if ask else None
    return 0 if said is None else said


def _first(value):
    """The tensor that a stage hands on, in any wrapping that Megatron gives it."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _remember(result, numbers):
    output = _first(result)
    if output is not None:
        if len(_made) >= _MOST_MADE:  # forwards without backwards
            _made.clear()
        _made[id(output)] = numbers


def _forward(arguments):
    chunk = _chunk(arguments)
    number = arguments.get('current_microbatch')
    if number is None:
        number = _counts.get(chunk, 0)
    _counts[chunk] = number + 1
    arguments['stageline'] = (number, chunk)
    return run.job('F', number, chunk, run.device_lane())


def _forward_done(arguments, result):
    _remember(result, arguments['stageline'])


def _backward(arguments):
    number, chunk = _made.pop(id(_first(arguments.get('output_tensor'))), (None, None))
    return run.job('B', number, _chunk(arguments) if chunk is None else chunk, run.device_lane())


def _place(arguments):
    parallel = _parallel_state()
    group = parallel.get_pipeline_model_parallel_group()
    ranks = sys.modules['torch'].distributed.get_process_group_ranks(group[0] if isinstance(group, list) else group)
    model = arguments.get('model')
    _counts.clear()
    return {**run.pipeline_place(list(ranks)), 'tp': parallel.get_tensor_model_parallel_world_size(),
            'vp': len(model) if isinstance(model, list) else 1}


def _trains(arguments):
    _counts.clear()
    return not arguments.get('forward_only', False)


def schedules(module):
    run.wrap(module, 'forward_step', _forward, _forward_done)
    run.wrap(module, 'backward_step', _backward)
    for name in ('forward_backward_no_pipelining', 'forward_backward_pipelining_with_interleaving',
                 'forward_backward_pipelining_without_interleaving'):
        run.wrap_step(module, name, _place, _trains)


# Combined calls wait for what they receive: they are that.
_MESSAGES = {'recv_forward': 'RF', 'recv_backward': 'RB', 'send_forward': 'SF', 'send_backward': 'SB', 'send_forward_recv_backward': 'RB',
             'send_backward_recv_forward': 'RF', 'send_forward_recv_forward': 'RF', 'send_backward_recv_backward': 'RB'}


def messages(module):
    """Functions of the module, and methods of P2PCommunicator where it has one. Times are those of the call on the current stream:
    what the stage waited, not what the wire took."""
    for owner in (module, getattr(module, 'P2PCommunicator', None)):
        for name, kind in _MESSAGES.items():
            if owner is not None and name in vars(owner):
                run.wrap(owner, name, lambda _, kind=kind, name=name: run.job(kind, None, None, run.device_lane(), name=name))


def _forward_dualpipev(arguments):
    chunk, number, count = (arguments.get(key) for key in ('model_chunk_id', 'current_microbatch', 'num_microbatches'))
    if None not in (chunk, number, count) and number - chunk * count >= 0:
        number -= chunk * count  # the second chunk's micro-batches count on from the first's
    arguments['stageline'] = (number, chunk)
    overlapped = arguments.get('extra_block_kwargs') is not None  # a backward of the other chunk runs within
    return run.job('F&B' if overlapped else 'F', number, chunk, run.device_lane())


def empty(store):
    """Whether a WeightGradStore has nothing waiting: a pop then does nothing. Unknown kinds of stores are never empty."""
    waiting = getattr(store, 'weight_grad_queue', None)
    waiting = waiting if isinstance(waiting, list) else [waiting]
    return all(hasattr(one, 'qsize') for one in waiting) and not any(one.qsize() for one in waiting)


def dualpipev(module):
    for name in ('forward_step_with_model_graph', 'forward_step_no_model_graph'):
        run.wrap(module, name, _forward_dualpipev, _forward_done)
    run.wrap(module, 'backward_step_with_model_graph', _backward)
    store = getattr(module, 'WeightGradStore', None)
    if store is not None:
        run.wrap(store, 'pop', lambda _: None if empty(store) else run.job('W', None, None, run.device_lane()))
    run.wrap_step(module, 'forward_backward_pipelining_with_cutinhalf', _place, _trains)
