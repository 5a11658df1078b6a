"""torch.distributed.pipelining: a stage's chunks, the schedules' steps, the optimizer.

torch's own annotations ("Forward 3") stand around receive, compute and send together, and Schedule1F1B has none. The stage's methods
are the work alone: forward_one_chunk, backward_one_chunk (whole, or the inputs' half), backward_weight_one_chunk.
"""
import sys

from . import run


def _chunk(stage):
    """Which of this rank's stages it is, in order of their indices: loops and V both."""
    places = getattr(stage, 'stage_index_to_group_rank', None) or {}
    own = sorted(index for index, rank in places.items() if rank == stage.group_rank)
    return own.index(stage.stage_index) if stage.stage_index in own else stage.stage_index // stage.group_size


def _job(kind, number):
    def job_of(arguments):
        stage = arguments['self']
        return run.job(kind(arguments) if callable(kind) else kind, arguments[number], _chunk(stage), run.device_lane())
    return job_of


def stages(module):
    base = module._PipelineStageBase
    for owner in {base, *(c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base))}:
        for name, kind, number in (('forward_one_chunk', 'F', 'fwd_chunk_id'),
                                   ('backward_one_chunk', lambda a: 'B' if a.get('full_backward', True) else 'I', 'bwd_chunk_id'),
                                   ('backward_weight_one_chunk', 'W', 'bwd_chunk_id')):
            if name in vars(owner):
                run.wrap(owner, name, _job(kind, number))


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


_open = {}  # id of an optimizer → its range


def _before(optimizer, args, kwargs):
    if run.started():
        _open[id(optimizer)] = run.job('O', None, None, run.device_lane()).begin()


def _after(optimizer, args, kwargs):
    job = _open.pop(id(optimizer), None)
    if job is not None:
        job.end()


def optimizers(module):
    module.register_optimizer_step_pre_hook(_before)
    module.register_optimizer_step_post_hook(_after)
