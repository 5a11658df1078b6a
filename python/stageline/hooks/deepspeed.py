"""DeepSpeed's pipeline engine: it runs a list of instructions, each by a function of PipelineEngine._INSTRUCTION_MAP.

An instruction says the buffer, not the micro-batch: forwards come in order, and a backward is of what its buffer held.
"""
import sys

from . import run

_numbers = {'forwards': 0}  # and buffer → micro-batch

_KINDS = {'_exec_forward_pass': 'F', '_exec_backward_pass': 'B', '_exec_send_activations': 'SF', '_exec_recv_activations': 'RF',
          '_exec_send_grads': 'SB', '_exec_recv_grads': 'RB', '_exec_reduce_grads': 'C', '_exec_reduce_tied_grads': 'C',
          '_exec_load_micro_batch': 'L'}


def _job(kind):
    def job_of(buffer):
        number = None
        if kind == 'F':
            number = _numbers[buffer] = _numbers['forwards']
            _numbers['forwards'] += 1
        elif kind in ('B', 'SF', 'SB', 'RB'):
            number = _numbers.get(buffer)
        elif kind in ('RF', 'L'):  # before the forward that it is for
            number = _numbers['forwards']
        return kind, number, 0
    return job_of


def _place(arguments):
    engine = arguments['self']
    place = {'stage': engine.stage_id, 'pp': engine.num_stages}
    grid = getattr(engine, 'grid', None)
    ranks = getattr(grid, 'pp_group', None)  # global ranks of this pipeline
    if isinstance(ranks, list) and 'torch' in sys.modules:
        place = {**run.pipeline_place(ranks), **place}
    return place


def _trains(arguments):
    _numbers.clear()
    _numbers['forwards'] = 0
    return True


def engine(module):
    pipeline = module.PipelineEngine
    table = pipeline._INSTRUCTION_MAP
    for instruction, function in table.items():
        kind = _KINDS.get(getattr(function, '__name__', ''))
        if kind:
            table[instruction] = run.wrapped(function, f'PipelineEngine.{function.__name__}', 'buffer_id', _job(kind))
    run.wrap_step(pipeline, 'train_batch', _place, _trains)
