"""Wraps Megatron-Core's schedules and messages, and MindSpeed's DualPipeV on top of them.

forward_step gets its micro-batch as an argument. backward_step does not; the output tensor of its forward identifies
it, in any order.
"""
import inspect
import sys
import time

from ..record import _core
from . import run

_made = {}  # id of an output tensor → (micro-batch, chunk) of the forward that made it, until its backward
_grads = {}  # id of a gradient that a backward made → (micro-batch, chunk), until it is sent
_MOST_MADE = 1 << 16
_counts = {}  # chunk → forwards of this step, where nothing says the micro-batch
_NOBODY = None, None
_pipeline = {'ranks': [0], 'at': 0}  # global ranks in order of stages, and which of them this one is


def _parallel_state():
    return sys.modules.get('megatron.core.parallel_state')


def _chunk(said):
    if said is None:  # before vp_stage was an argument
        ask = getattr(_parallel_state(), 'get_virtual_pipeline_model_parallel_rank', None)
        said = ask() if ask else None
    return 0 if said is None else said


def _first(value):
    """The tensor that a stage hands on, in any wrapping that Megatron gives it."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if isinstance(value, dict) and value:  # of several modules
        return _first(next(iter(value.values())))
    return value


def _remember(table, tensor, numbers):
    tensor = _first(tensor)
    if tensor is not None:
        if len(table) >= _MOST_MADE:  # forwards without backwards
            table.clear()
        table[id(tensor)] = numbers


_now = {'F': (None, None), 'B': (None, None)}  # micro-batch and chunk of the work that runs


def _forward(number, chunk):
    chunk = _chunk(chunk)
    if number is None:
        number = _counts.get(chunk, 0)
    _counts[chunk] = number + 1
    _now['F'] = number, chunk
    return 'F', number, chunk


def _forward_done(result, *_):
    _remember(_made, result, _now['F'])


def _backward(output):
    number, chunk = _made.pop(id(_first(output)), (None, None))
    _now['B'] = number, _chunk(None) if chunk is None else chunk
    return 'B', *_now['B']


def _backward_done(result, *_):
    _remember(_grads, result, _now['B'])


def _place(arguments):
    parallel = _parallel_state()
    group = parallel.get_pipeline_model_parallel_group()
    ranks = list(sys.modules['torch'].distributed.get_process_group_ranks(group[0] if isinstance(group, list) else group))
    model = arguments.get('model')
    _counts.clear()
    place = run.pipeline_place(ranks)
    _neighbours(ranks, place['stage'])
    return {**place, 'tp': parallel.get_tensor_model_parallel_world_size(), 'vp': len(model) if isinstance(model, list) else 1}


def _trains(arguments):
    _counts.clear()
    return not arguments.get('forward_only', False)


def schedules(module):
    """Of hybrid context parallelism, too: it takes forward_step and backward_step from this module when it runs."""
    run.wrap(module, 'forward_step', 'current_microbatch vp_stage', _forward, _forward_done)
    run.wrap(module, 'backward_step', 'output_tensor', _backward, _backward_done)
    run.wrap(module, 'backward_step_multimodule', 'output_tensor', _backward, _backward_done)
    for name in ('forward_backward_no_pipelining', 'forward_backward_pipelining_with_interleaving',
                 'forward_backward_pipelining_without_interleaving'):
        run.wrap_step(module, name, _place, _trains)


def _combined(forward_model, backward_model, number, chunk, output):
    """overlap_moe_expert_parallel_comm: a forward of one micro-batch and a backward of another in one call, or one of them alone."""
    if backward_model is not None:
        _backward(output)
    if forward_model is None:
        return ('B', *_now['B']) if backward_model is not None else None
    forward = _forward(number, 0 if chunk is None else chunk)
    return forward if backward_model is None else ('F&B', *forward[1:])


def _combined_done(result, forward_model, backward_model, *_):
    """Returns (output, tokens, gradient of the input)."""
    if forward_model is not None:
        _remember(_made, result[0], _now['F'])
    if backward_model is not None:
        _remember(_grads, result[2], _now['B'])


def combined(module):
    run.wrap(module, 'combined_forward_backward_step', 'f_model b_model current_microbatch f_model_chunk_id b_output_tensor', _combined,
             _combined_done)


# name → what it receives, what it sends. A call that does both waits for what it receives: it is that, and the send within it.
_MESSAGES = {'recv_forward': ('RF',), 'recv_backward': ('RB',), 'send_forward': ('SF',), 'send_backward': ('SB',),
             'send_forward_recv_backward': ('RB', 'SF'), 'send_backward_recv_forward': ('RF', 'SB'),
             'send_forward_recv_forward': ('RF', 'SF'), 'send_backward_recv_backward': ('RB', 'SB'),
             'send_forward_backward_recv_forward_backward': ('RF', 'RB', 'SF', 'SB')}
_ends = {}  # kind → [peer, number of its last message]: both ends count alike
_begun = {'at': 0, 'others': []}


def _neighbours(ranks, at):
    _pipeline.update(ranks=ranks, at=at)
    for kind in ('RF', 'RB', 'SF', 'SB'):
        peer = ranks[(at + (1 if kind in ('SF', 'RB') else -1)) % len(ranks)]
        if kind not in _ends or _ends[kind][0] != peer:
            _ends[kind] = [peer, -1]
    if len(ranks) == 2:  # one neighbour on both sides: messages of both kinds are counted together
        _ends['SB'], _ends['RB'] = _ends['SF'], _ends['RF']


def _received(kind, name):
    end = _ends[kind]
    end[1] += 1
    return kind, None, None, None, name, run.state['stage'], end[0], None, end[1]


def _sent(kind, name, tensor):
    end = _ends[kind]
    end[1] += 1
    tensor = _first(tensor)
    number, chunk = _made.get(id(tensor), _NOBODY) if kind == 'SF' else _grads.pop(id(tensor), _NOBODY)
    size = tensor.numel() * tensor.element_size() if hasattr(tensor, 'element_size') else None
    return kind, number, chunk, None, name, run.state['stage'], end[0], size, end[1]


def _message(name, kinds):
    """Ends of the pipeline call these functions, too: nothing is sent or received there, so it does not count as a
    message."""
    one_way = len(kinds) == 1 or name in ('send_forward_recv_backward', 'send_backward_recv_forward')
    receives = kinds[0] if len(kinds) == 1 and kinds[0][0] == 'R' else None
    to_next = kinds[0] in ('RB', 'SF')

    def job_of(output, gradient, from_previous, from_next):
        if one_way:  # with one neighbour, by the function's name
            if _pipeline['at'] == (len(_pipeline['ranks']) - 1 if to_next else 0):
                return None
            if receives:
                return _received(receives, name)
            found = kinds
        else:  # of the interleaved schedule, which says what it wants
            wanted = {'SF': output is not None, 'SB': gradient is not None, 'RF': from_previous, 'RB': from_next}
            found = [kind for kind in kinds if wanted[kind]]
        jobs = [_received(kind, name) if kind[0] == 'R' else _sent(kind, name, output if kind == 'SF' else gradient) for kind in found]
        if len(jobs) > 1:
            _begun['at'], _begun['others'] = time.monotonic_ns(), jobs[1:]
        return jobs[0] if jobs else None

    def done(*_):
        if _begun['others']:
            ago, lane = time.monotonic_ns() - _begun['at'], _core.current_lane()
            for job in _begun['others']:
                _core.past(ago, 0, *job[:3], lane, *job[4:])
            _begun['others'] = []
    return job_of, None if len(kinds) == 1 else done


def messages(module):
    """Functions of the module, and methods of P2PCommunicator where it has one. Times are those of the call on the current stream:
    what the stage waited, not what the wire took."""
    for owner in (module, getattr(module, 'P2PCommunicator', None)):
        for name, kinds in _MESSAGES.items():
            if owner is not None and name in vars(owner):
                run.wrap(owner, name, 'output_tensor|output_tensors input_tensor_grad|input_tensor_grads recv_prev recv_next', *_message(name, kinds))


def _forward_dualpipev(chunk, number, count, overlapped):
    if None not in (chunk, number, count) and number - chunk * count >= 0:
        number -= chunk * count  # the second chunk's micro-batches count on from the first's
    _now['F'] = number, chunk
    # overlapped: a backward of the other chunk runs within.
    return 'F' if overlapped is None else 'F&B', number, chunk


_STORES = ('cache', 'weight_grad_queue', 'funcs_queue')  # where kinds of WeightGradStore keep what waits


def empty(store):
    """Returns true if a pop of a WeightGradStore finds nothing to do. It looks where pop itself looks: MindSpeed's
    works off `cache`, whatever lies
    in `weight_grad_queue`. Unknown kinds of stores are never empty."""
    pop = inspect.getattr_static(store, 'pop', None)
    pop = getattr(pop, '__func__', pop)
    named = getattr(getattr(getattr(pop, 'stageline_wrapped', pop), '__code__', None), 'co_names', ())
    waiting = []
    for key in (key for key in _STORES if key in named):
        one = getattr(store, key, None)
        waiting += one if isinstance(one, list) and one and hasattr(one[0], 'qsize') else [one]
    sizes = [one.qsize() if hasattr(one, 'qsize') else len(one) for one in waiting if one is not None]
    return bool(sizes) and not any(sizes)


def dualpipev(module):
    for name in ('forward_step_with_model_graph', 'forward_step_no_model_graph'):
        run.wrap(module, name, 'model_chunk_id current_microbatch num_microbatches extra_block_kwargs', _forward_dualpipev, _forward_done)
    run.wrap(module, 'backward_step_with_model_graph', 'output_tensor', _backward)
    run.wrap(module, 'backward_step', 'output_tensor', _backward)  # Megatron's, by name: what runs without --moe-fb-overlap
    store = getattr(module, 'WeightGradStore', None)
    if store is not None:
        run.wrap(store, 'pop', '', lambda: None if empty(store) else ('W',))
    run.wrap_step(module, 'forward_backward_pipelining_with_cutinhalf', _place, _trains)


def _forward_overlapping(number, overlapped):
    forward = _forward(number, None)
    return forward if overlapped is None else ('F&B', *forward[1:])


def overlap(module):
    """MindSpeed's interleaved pipelines with --moe-fb-overlap: steps and a schedule of their own."""
    run.wrap(module, 'forward_step', 'current_microbatch extra_block_kwargs', _forward_overlapping, _forward_done)
    run.wrap(module, 'backward_step', 'output_tensor', _backward, _backward_done)
    run.wrap_step(module, 'forward_backward_pipelining_with_interleaving', _place, _trains)
