"""Paddle's dynamic pipelines (fleet.meta_parallel): the steps that every schedule of it is made of.

Its own hooks (register_global_pipeline_parallel_hook) say step numbers that count forwards and backwards of all chunks together. Within a
chunk both run in order of micro-batches, so they are counted here. Static pipelines log what Stageline reads as it is (docs/formats/paddle-log.md).
"""
import sys

from .. import record
from . import run

_counts = {}  # (kind, chunk) → how many ran in this step


def _lane():
    paddle = sys.modules.get('paddle')
    try:
        if paddle.device.is_compiled_with_cuda() and paddle.device.get_device().startswith('gpu'):
            return record.lane(paddle.device.current_stream())
    except (AttributeError, TypeError):  # another Paddle: the thread's times
        pass
    return 0


def _job(kind):
    def job_of(engine, chunk):
        if chunk is None:
            chunk = getattr(engine, '_virtual_pp_rank', None) or 0
        number = _counts.get((kind, chunk), 0)
        _counts[kind, chunk] = number + 1
        return kind, number, chunk, _lane()
    return job_of


def _place(arguments):
    engine = arguments['self']
    place = {'stage': engine.stage_id, 'pp': engine.num_stages, 'vp': getattr(engine, '_virtual_pp_world_size', None) or 1}
    ranks = getattr(getattr(engine, 'pp_group', None), 'ranks', None)
    if ranks and engine.global_rank in ranks:
        place = {**run.pipeline_place(list(ranks), engine.global_rank), **place}
    return {**place, 'rank': engine.global_rank}


def _trains(arguments):
    _counts.clear()
    return not arguments.get('forward_only', False)


def pipeline(module):
    base = module.PipelineParallel
    for owner in [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base)]:
        for name, kind in (('_forward_step', 'F'), ('_backward_step', 'B')):
            if name in vars(owner):
                run.wrap(owner, name, 'self chunk_id', _job(kind))
        for name in ('train_batch', 'forward_backward_pipeline'):
            run.wrap_step(owner, name, _place, _trains)
