"""torch.distributed.pipelining: a stage's chunks, its messages, the schedules' steps, the optimizer.

torch's own annotations ("Forward 3") stand around receive, compute and send together, and Schedule1F1B has none. The stage's methods
are the work alone: forward_one_chunk, backward_one_chunk (whole, or the inputs' half), backward_weight_one_chunk.

A message is identified by the operations that a stage makes for a chunk's forward or backward (get_fwd_recv_ops and
similar functions). The schedule may issue them alone, or receives and sends in one batch.

    get_fwd_send_ops(3) ──▶ [P2POp]      of the forward of micro-batch 3: noted on the operation
    _batch_p2p(ops)     ──▶ [Work]       sends are ranges of this call; which work receives what is kept
    _wait_batch_p2p(work)                receives are ranges of this wait: what the stage waited, whoever moves the bytes
"""
import sys
import time
import weakref

from ..record import _core
from . import run, torch_training


def _chunk(stage):
    """Returns the position of a stage among this rank's stages, in order of their indices: loops and V both. It is
    computed once."""
    try:
        return stage._stageline_chunk
    except AttributeError:
        places = getattr(stage, 'stage_index_to_group_rank', None) or {}
        own = sorted(index for index, rank in places.items() if rank == stage.group_rank)
        found = own.index(stage.stage_index) if stage.stage_index in own else stage.stage_index // stage.group_size
        stage._stageline_chunk = found
        return found


def _forward(stage, number):
    return 'F', number, _chunk(stage)


def _backward(stage, number, full):
    return 'B' if full is None or full else 'I', number, _chunk(stage)


def _weights(stage, number):
    return 'W', number, _chunk(stage)


def stages(module):
    base = module._PipelineStageBase
    for owner in {base, *(c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base))}:
        for name, wanted, job_of in (('forward_one_chunk', 'self fwd_chunk_id', _forward),
                                     ('backward_one_chunk', 'self bwd_chunk_id full_backward', _backward),
                                     ('backward_weight_one_chunk', 'self bwd_chunk_id', _weights)):
            if name in vars(owner):
                run.wrap(owner, name, wanted, job_of)
        for name, kind in (('get_fwd_recv_ops', 'RF'), ('get_bwd_recv_ops', 'RB'), ('get_fwd_send_ops', 'SF'), ('get_bwd_send_ops', 'SB')):
            if name in vars(owner):
                _note_operations(owner, name, kind)


def _note_operations(owner, name, kind):
    function = vars(owner)[name]
    if hasattr(function, 'stageline_wrapped'):
        return

    def marked(self, number, *args, **kwargs):
        operations = function(self, number, *args, **kwargs)
        if run.in_training():
            try:
                for operation in operations:
                    operation._stageline = kind, number, _chunk(self)
            except Exception as error:
                run.complain(f'messages of {name}', error)
        return operations

    marked.__name__, marked.__qualname__, marked.__doc__ = function.__name__, function.__qualname__, function.__doc__
    marked.stageline_wrapped = function
    setattr(owner, name, marked)


_waited = weakref.WeakKeyDictionary()  # a work → [job of each receive], until it is waited for; the program alone keeps the work, and with it its tensors
_counts = {}  # (peer, whether it sends) → messages so far: both ends count alike


def _message(operation):
    """The job of one operation, its number counted."""
    kind, number, chunk = getattr(operation, '_stageline', (None, None, None))
    tensor, peer = operation.tensor, operation.peer
    key = peer, operation.op.__name__ == 'isend'
    _counts[key] = sequence = _counts.get(key, -1) + 1
    kind = kind or ('SF' if key[1] else 'RF')
    return kind, number, chunk, _core.current_lane(), None, run.state['stage'], peer, tensor.numel() * tensor.element_size(), sequence


def _past(begin, job):
    _core.past(time.monotonic_ns() - begin, 0, *job)


def _batch(function):
    def marked(p2p_ops, *args, **kwargs):
        if not run.in_training() or not p2p_ops:
            return function(p2p_ops, *args, **kwargs)
        begin = time.monotonic_ns()
        work = function(p2p_ops, *args, **kwargs)
        try:
            jobs = [_message(operation) for operation in p2p_ops]
            for job in jobs:
                if job[0] in ('SF', 'SB'):
                    _past(begin, job)
            if isinstance(work, list) and work:
                each = len(work) == len(jobs)
                for place, one in enumerate(work):
                    of = jobs[place:place + 1] if each else jobs if place == len(work) - 1 else []
                    _waited[one] = [job for job in of if job[0] in ('RF', 'RB')]
        except Exception as error:
            run.complain('messages of torch.distributed.pipelining', error)
        return work
    return marked


def _wait(function):
    def marked(work, *args, **kwargs):
        if not run.in_training() or not work:
            return function(work, *args, **kwargs)
        begin = time.monotonic_ns()
        result = function(work, *args, **kwargs)
        try:
            jobs = [job for one in work for job in _waited.pop(one, [])]
            for job in jobs:
                _past(begin, job)
            if not jobs:  # sends: what they took from the stage beyond the call that began them
                _past(begin, (None, None, None, None, 'wait for sends'))
        except Exception as error:
            run.complain('messages of torch.distributed.pipelining', error)
        return result
    return marked


def _place(arguments):
    schedule = arguments['self']
    stages_here = getattr(schedule, '_stages', None) or [schedule._stage]
    stage = stages_here[0]
    distributed = sys.modules['torch'].distributed
    ranks = distributed.get_process_group_ranks(stage.group if stage.group is not None else distributed.group.WORLD)
    return {**run.pipeline_place(list(ranks)), 'vp': len(stages_here)}


def schedules(module):
    for owner in [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, module._PipelineSchedule)]:
        run.wrap_step(owner, 'step', _place, lambda arguments: getattr(arguments['self'], '_has_backward', True))
    # Schedules before torch 2.9 wait for each work themselves: their receives are not recorded.
    for name, around in (('_batch_p2p', _batch), ('_wait_batch_p2p', _wait)):
        function = getattr(module, name, None)
        if function is not None and not hasattr(function, 'stageline_wrapped') and hasattr(module, '_wait_batch_p2p'):
            marked = around(function)
            marked.stageline_wrapped = function
            setattr(module, name, marked)


_open = {}  # id of an optimizer → its range


def _before(optimizer, args, kwargs):
    if run.started():
        _open[id(optimizer)] = run.job('O').begin()


def _after(optimizer, args, kwargs):
    job = _open.pop(id(optimizer), None)
    if job is not None:
        job.end()
    torch_training.step_is_over()


def optimizers(module):
    module.register_optimizer_step_pre_hook(_before)
    module.register_optimizer_step_post_hook(_after)
