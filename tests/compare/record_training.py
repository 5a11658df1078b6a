"""A training program on torch.distributed.pipelining, for torchrun: what record.py records. Knows nothing of recording, except with --marked.

  record_training.py CASE OUT [--marked]     OUT/truth<rank>.json: per step [action, start_ns, end_ns] of the stage objects' calls

--marked: the program marks its jobs itself, with stageline.record.
"""
import argparse
import json
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.distributed import pipelining

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'torch'))
from record_pipelines import CASES, MICRO_BATCHES, stages_of, timed  # noqa: E402

STEPS, SIZE = 3, 192


def marked(stage, name, kind, chunk):
    from stageline import record
    inner = getattr(stage, name)

    def call(mb_index, *arguments, **options):
        what = kind if isinstance(kind, str) else kind[bool(options.get('full_backward', True))]
        with record.job(what, micro_batch=mb_index, chunk=chunk):
            return inner(mb_index, *arguments, **options)
    setattr(stage, name, call)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('case')
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--marked', action='store_true')
    options = parser.parse_args()
    kind, chunks, style, more = CASES[options.case]
    dist.init_process_group('gloo')
    rank, ranks = dist.get_rank(), dist.get_world_size()
    pp = ranks // more.get('replicas', 1)
    torch.manual_seed(rank)
    groups = [dist.new_group(list(range(first, first + pp))) for first in range(0, ranks, pp)]
    if options.marked:
        from stageline import record
        record.init(stage=rank % pp, dp_rank=rank // pp, pp=pp)
    log, stages = [], []
    for chunk, index in enumerate(stages_of(rank, chunks, style, pp)):
        layers = torch.nn.Sequential(torch.nn.Linear(SIZE, SIZE), torch.nn.ReLU(), torch.nn.Linear(SIZE, SIZE))
        stage = pipelining.PipelineStage(layers, index, pp * chunks, torch.device('cpu'), group=groups[rank // pp])
        for name, what in (('forward_one_chunk', 'F'), ('backward_one_chunk', ('I', 'B')), ('backward_weight_one_chunk', 'W')):
            if options.marked:
                marked(stage, name, what, chunk)
            timed(stage, name, what, log)
        stages.append(stage)
    plan = getattr(pipelining, kind, None) or getattr(pipelining.schedules, kind)
    plan = plan(stages if chunks > 1 else stages[0], MICRO_BATCHES, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.SGD([p for s in stages for p in s.submod.parameters()], lr=1e-3)
    x, target = torch.randn(MICRO_BATCHES * 8, SIZE), torch.randn(MICRO_BATCHES * 8, SIZE)
    first, last = any(s.is_first for s in stages), any(s.is_last for s in stages)
    executed = []
    for step in range(STEPS):
        if options.marked:
            record.step(step)
        log.clear()
        plan.step(*([x] if first else []), **({'target': target, 'losses': []} if last else {}))
        optimizer.step()
        optimizer.zero_grad()
        executed.append(list(log))
    dist.barrier()
    (options.out / f'truth{rank}.json').write_text(json.dumps(executed))
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
