"""Markers for pipelines on Ascend NPUs, so that a chart says F3 and not "something ran".

Copy this file next to the training script, or put its folder on PYTHONPATH. It needs Python 3.8 and nothing else;
without torch_npu every call does nothing. In the training script, before the first step:

    import stageline_mstx as mark
    mark.megatron()                     # or mark.mindspeed_dualpipev(), mark.mindspeed_overlap()
    ...
    with torch_npu.profiler.profile(experimental_config=..., ...) as prof:
        mark.describe(prof, pp_type="1f1b", micro_batches=32, tp=4, pp=8, dp=2)
        for step in ...:
            mark.set_step(step)
            train_step()
            prof.step()

Each marked range carries JSON: name, micro_batch, chunk, stage, step - what is known of them, never a guess. A message holds at most 156
bytes, the profiler's own limit. Functions are wrapped in the module that calls them: mark before anybody imports them by name.
docs/howto/ascend.md has the settings of the profiler.
"""
import functools
import importlib
import inspect
import json
import os
import sys

MOST_BYTES = 156  # of one message, as the profiler takes it

_state = {'step': None, 'stage': None, 'ask_megatron': False}
_made = {}  # id of an output tensor → (micro-batch, chunk) of the forward that made it, until its backward
_MOST_MADE = 1 << 16


def _mstx():
    """torch_npu's mstx, None where there is none. Imports nothing that the program has not imported."""
    torch_npu = sys.modules.get('torch_npu')
    return getattr(getattr(torch_npu, 'npu', None), 'mstx', None)


def set_step(step):
    """The number of the step that starts now."""
    _state['step'] = int(step)


def set_stage(stage):
    """The pipeline stage of this rank; megatron() and mindspeed_dualpipev() ask Megatron for it."""
    _state['stage'] = int(stage)


def message(name, **numbers):
    """The text of a range: numbers that are None are left out, and the least important ones where it would be too long."""
    if _state['stage'] is None and _state['ask_megatron']:
        _megatron_stage()
    fields = {'name': name, **numbers, 'stage': _state['stage'], 'step': _state['step']}
    fields = {key: value for key, value in fields.items() if value is not None}
    for drop in (None, 'step', 'stage', 'backward_chunk', 'backward_micro_batch', 'chunk', 'micro_batch'):
        fields.pop(drop, None)
        text = json.dumps(fields, separators=(',', ':'))
        if len(text.encode()) <= MOST_BYTES:
            return text
    while len(json.dumps({'name': name}, separators=(',', ':'))) > MOST_BYTES:
        name = name[:len(name) * 3 // 4]
    return json.dumps({'name': name}, separators=(',', ':'))


class span:
    """`with span("forward_step", micro_batch=3):` marks a range on the host and, by the current stream, on the device."""

    def __init__(self, name, **numbers):
        self.name, self.numbers, self.id = name, numbers, None

    def __enter__(self):
        mstx = _mstx()
        if mstx is not None:
            stream = sys.modules['torch_npu'].npu.current_stream()
            self.id = mstx.range_start(message(self.name, **self.numbers), stream)
        return self

    def __exit__(self, *_):
        if self.id is not None:
            _mstx().range_end(self.id)
        return False


def wrap(owner, attribute, describe=None, name=None, after=None, skip=None):
    """Replaces owner.attribute (a function, or a class method) by one that marks its calls. False where there is none, or it is wrapped.

    describe(arguments) → numbers (or a name) of the call; arguments: by parameter name. after(result, numbers): what to remember.
    skip(): true for calls that do nothing and get no range."""
    raw = inspect.getattr_static(owner, attribute, None)
    kind = type(raw) if isinstance(raw, (classmethod, staticmethod)) else None
    function = raw.__func__ if kind else raw
    if not callable(function) or hasattr(function, 'stageline_wrapped'):
        return False
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None

    @functools.wraps(function)
    def marked(*args, **kwargs):
        if _mstx() is None or (skip is not None and skip()):
            return function(*args, **kwargs)
        numbers = {}
        if describe is not None and signature is not None:
            try:
                numbers = describe(signature.bind(*args, **kwargs).arguments) or {}
            except TypeError:  # a wrong call: let it fail in its own words
                return function(*args, **kwargs)
        said = numbers.pop('name', name or attribute)
        with span(said, **numbers):
            result = function(*args, **kwargs)
        if after is not None:
            after(result, numbers)
        return result

    marked.stageline_wrapped = function
    setattr(owner, attribute, kind(marked) if kind else marked)
    return True


def _first(value):
    """The tensor that a stage hands on, in any wrapping that Megatron gives it."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _remember(result, numbers):
    output = _first(result)
    if output is not None and numbers.get('micro_batch') is not None:
        if len(_made) >= _MOST_MADE:  # forwards without backwards: evaluation
            _made.clear()
        _made[id(output)] = (numbers['micro_batch'], numbers.get('chunk'))


def _forward(arguments):
    micro_batch, chunk = arguments.get('current_microbatch'), arguments.get('vp_stage')
    return {'micro_batch': micro_batch, 'chunk': chunk}


def _backward(arguments):
    micro_batch, chunk = _made.pop(id(_first(arguments.get('output_tensor'))), (None, None))
    return {'micro_batch': micro_batch, 'chunk': chunk}


def _forward_dualpipev(arguments):
    chunk, number, count = (arguments.get(key) for key in ('model_chunk_id', 'current_microbatch', 'num_microbatches'))
    # The second chunk's micro-batches count on from the first's.
    micro_batch = number - chunk * count if None not in (chunk, number, count) else None
    if micro_batch is not None and micro_batch < 0:
        micro_batch = number
    numbers = {'micro_batch': micro_batch, 'chunk': chunk}
    if arguments.get('extra_block_kwargs') is not None:  # a backward of the other chunk runs within
        numbers['name'] = 'forward_backward_overlaping'
    return numbers


def _megatron_stage():
    """Asked at every mark until it is known: functions are marked before initialize_model_parallel() has made the groups."""
    parallel = sys.modules.get('megatron.core.parallel_state')
    try:
        set_stage(parallel.get_pipeline_model_parallel_rank())
    except Exception:  # not set up yet, or another Megatron: the stage is then in the groups
        pass


def _module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_STORES = ('cache', 'weight_grad_queue', 'funcs_queue')  # where kinds of WeightGradStore keep what waits


def empty(store):
    """Whether a pop of this WeightGradStore finds nothing to do. It looks where pop itself looks: MindSpeed's works off `cache`, whatever
    lies in `weight_grad_queue`, others take from their queue. Unknown kinds of stores are never empty."""
    pop = getattr(store, 'pop', None)
    pop = getattr(pop, '__func__', pop)
    named = getattr(getattr(getattr(pop, 'stageline_wrapped', pop), '__code__', None), 'co_names', ())
    found = False
    for key in [key for key in _STORES if key in named]:
        waiting = getattr(store, key, None)
        for one in waiting if isinstance(waiting, list) and waiting and hasattr(waiting[0], 'qsize') else [waiting]:
            if one is None:
                continue
            found = True
            if (one.qsize() if hasattr(one, 'qsize') else len(one)) > 0:
                return False
    return found


def weight_grad_store(store):
    """Marks WeightGradStore.pop where there is something to pop: an empty range would count as work."""
    return wrap(store, 'pop', name='WeightGradStore.pop', skip=lambda: empty(store))


def megatron():
    """Marks forward_step and backward_step of Megatron-LM's pipeline schedules. Returns how many functions are marked."""
    schedules = _module('megatron.core.pipeline_parallel.schedules')
    if schedules is None:
        return 0
    _state['ask_megatron'] = True
    return wrap(schedules, 'forward_step', _forward, after=_remember) + wrap(schedules, 'backward_step', _backward)


def mindspeed_dualpipev():
    """Marks MindSpeed's DualPipeV: forwards, overlapped pairs, backwards, weight gradients. Returns how many functions are marked.

    Without --moe-fb-overlap its backwards are Megatron's backward_step, which dualpipev_schedules has imported by name."""
    schedules = _module('mindspeed.core.pipeline_parallel.dualpipev.dualpipev_schedules')
    if schedules is None:
        return 0
    _state['ask_megatron'] = True
    count = 0
    for name in ('forward_step_with_model_graph', 'forward_step_no_model_graph'):
        count += wrap(schedules, name, _forward_dualpipev, after=_remember)
    count += wrap(schedules, 'backward_step_with_model_graph', _backward) + wrap(schedules, 'backward_step', _backward)
    store = getattr(schedules, 'WeightGradStore', None)
    return count + (weight_grad_store(store) if store is not None else 0)


def _forward_overlapping(arguments):
    numbers = {'micro_batch': arguments.get('current_microbatch'), 'chunk': _virtual_rank()}
    if arguments.get('extra_block_kwargs') is not None:  # a backward of another micro-batch runs within
        numbers['name'] = 'forward_backward_overlaping'
    return numbers


def _virtual_rank():
    ask = getattr(sys.modules.get('megatron.core.parallel_state'), 'get_virtual_pipeline_model_parallel_rank', None)
    return ask() if ask else None


def mindspeed_overlap():
    """Marks MindSpeed's interleaved pipelines with --moe-fb-overlap, which have steps of their own. Returns how many functions are marked."""
    places = ('transformer.moe.moe_feature', 'pipeline_parallel')  # since 2025, and before
    schedules = next(filter(None, (_module(f'mindspeed.core.{place}.fb_overlap.vpp_schedules') for place in places)), None)
    if schedules is None:
        return 0
    _state['ask_megatron'] = True
    return wrap(schedules, 'forward_step', _forward_overlapping, after=_remember) + wrap(schedules, 'backward_step', _backward)


def describe(prof, pp_type=None, micro_batches=None, tp=None, pp=None, dp=None, cp=None, ep=None):
    """Writes pp_info (which msprof-analyze asks for) and the parallel sizes into the profile of `prof`.

    pp_type: "dualpipev" gives msprof-analyze's numbered chart, for runs without separate weight gradients in the cool-down; leave
    it out otherwise. Stageline needs neither. Returns the keys written."""
    written = {}
    if pp_type is not None and micro_batches is not None:
        written['pp_info'] = {'pp_type': pp_type, 'microbatch_num': int(micro_batches)}
    sizes = {'tensor_model_parallel_size': tp, 'pipeline_model_parallel_size': pp, 'data_parallel_size': dp,
             'context_parallel_size': cp, 'expert_model_parallel_size': ep}
    if any(value is not None for value in sizes.values()):
        written['distributed_args'] = {key: 1 if value is None else int(value) for key, value in sizes.items()}
        if 'RANK' in os.environ:
            written['distributed_args'].update(rank=int(os.environ['RANK']), world_size=int(os.environ.get('WORLD_SIZE', 1)))
    if not hasattr(prof, 'add_metadata_json'):
        return []
    for key, value in written.items():
        prof.add_metadata_json(key, json.dumps(value))  # add_metadata would store a string in a string
    return sorted(written)
