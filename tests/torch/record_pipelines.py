#!/usr/bin/env python3
"""Records real pipeline runs of torch.distributed.pipelining: four processes, gloo, CPU, a tiny model, eight micro-batches.

  record_pipelines.py OUT [--only CASE,CASE]      run with a Python that has torch

  OUT/CASE/rank<r>.json.gz   the trace of each rank: ProfilerStep#1 and, mostly, #2
  OUT/CASE/truth.json.gz     {schedule, torch, stages, micro_batches, stages_of_rank, order: the schedule object's own pipeline
                             order per rank ("2F0", "1B3"), executed: per rank and step [action, start_ns, end_ns] as the calls of the
                             stage object began and ended, on the clock of the traces}

A step ends with a barrier, as a training loop that logs its loss would have it.
"""
import argparse
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

RANKS, MICRO_BATCHES, SIZE = 4, 8, 48
# case: schedule class, stages per rank, placement of stages on ranks, options of the profiler (steps: 2), replicas: 1.
CASES = {
    'gpipe': ('ScheduleGPipe', 1, 'loop', {}),
    '1f1b': ('Schedule1F1B', 1, 'loop', {}),
    '1f1b-shapes': ('Schedule1F1B', 1, 'loop', {'record_shapes': True}),
    '1f1b-stacks': ('Schedule1F1B', 1, 'loop', {'with_stack': True, 'steps': 1}),
    '1f1b-two-replicas': ('Schedule1F1B', 1, 'loop', {'replicas': 2}),
    'interleaved-shapes': ('ScheduleInterleaved1F1B', 2, 'loop', {'record_shapes': True, 'steps': 1}),
    'zbv-shapes': ('ScheduleZBVZeroBubble', 2, 'v', {'record_shapes': True, 'steps': 1}),
    'interleaved': ('ScheduleInterleaved1F1B', 2, 'loop', {'steps': 1}),
    'looped-bfs': ('ScheduleLoopedBFS', 2, 'loop', {'steps': 1}),
    'interleaved-zb': ('ScheduleInterleavedZeroBubble', 2, 'loop', {'steps': 1}),
    'zbv': ('ScheduleZBVZeroBubble', 2, 'v', {'steps': 1}),
    'dualpipe-v': ('ScheduleDualPipeV', 2, 'v', {'steps': 1}),
}


def stages_of(rank, chunks, style, pp):
    """The stages of a rank of the job; ranks of one replica follow each other."""
    at = rank % pp
    return [at + i * pp for i in range(chunks)] if style == 'loop' else [at, 2 * pp - 1 - at]


def timed(stage, name, kind, log):
    """The stage's own call, with its beginning and end written down."""
    inner = getattr(stage, name)

    def call(mb_index, *arguments, **options):
        start = time.time_ns()
        result = inner(mb_index, *arguments, **options)
        what = kind if isinstance(kind, str) else kind[bool(options.get('full_backward', True))]
        log.append([f'{stage.stage_index}{what}{mb_index}', start, time.time_ns()])
        return result
    setattr(stage, name, call)


def worker(case, rank, scratch):
    import torch
    import torch.distributed as dist
    from torch.distributed import pipelining
    from torch.distributed.device_mesh import init_device_mesh
    from torch.profiler import ProfilerActivity, profile, schedule
    kind, chunks, style, options = CASES[case]
    options = dict(options)
    steps, pp = options.pop('steps', 2), RANKS // options.pop('replicas', 1)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group('gloo', store=dist.FileStore(str(scratch / 'store'), RANKS), rank=rank, world_size=RANKS)
    group = init_device_mesh('cpu', (RANKS // pp, pp), mesh_dim_names=('dp', 'pp')).get_group('pp')
    log, stages = [], []
    for index in stages_of(rank, chunks, style, pp):
        layers = torch.nn.Sequential(torch.nn.Linear(SIZE, SIZE), torch.nn.ReLU())
        stage = pipelining.PipelineStage(layers, index, pp * chunks, torch.device('cpu'), group=group)
        timed(stage, 'forward_one_chunk', 'F', log)
        timed(stage, 'backward_one_chunk', ('I', 'B'), log)
        timed(stage, 'backward_weight_one_chunk', 'W', log)
        stages.append(stage)
    plan = getattr(pipelining, kind, None) or getattr(pipelining.schedules, kind)
    plan = plan(stages if chunks > 1 else stages[0], MICRO_BATCHES, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.SGD([p for s in stages for p in s.submod.parameters()], lr=1e-3)
    x, target = torch.randn(MICRO_BATCHES * 4, SIZE), torch.randn(MICRO_BATCHES * 4, SIZE)
    first, last = any(s.is_first for s in stages), any(s.is_last for s in stages)

    def step():
        log.clear()
        plan.step(*([x] if first else []), **({'target': target, 'losses': []} if last else {}))
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        return list(log)

    step()  # the first finds the shapes, on the way of the pipeline itself
    executed = []
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=steps, repeat=1), **options) as prof:
        for i in range(1 + steps):
            done = step()
            if i > 0:
                executed.append(done)
            prof.step()
    os.chdir(scratch)
    prof.export_chrome_trace(f'rank{rank}.json')
    order = plan._get_pipeline_order() if chunks == 1 else plan.pipeline_order
    truth = {'schedule': kind, 'torch': torch.__version__, 'stages': pp * chunks, 'micro_batches': MICRO_BATCHES,
             'stages_of_rank': [stages_of(r, chunks, style, pp) for r in range(RANKS)],
             'order': [[str(a) for a in order[r % pp] if a is not None and 'REDUCE' not in str(a)] for r in range(RANKS)],
             'executed': executed}
    (scratch / f'truth{rank}.json').write_text(json.dumps(truth))
    dist.destroy_process_group()


def record(case, out):
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        (scratch / 'record_pipelines.py').write_text(pathlib.Path(__file__).read_text())
        # Paths in stacks say nothing about this machine: the program runs as a copy in its working folder.
        ranks = [subprocess.Popen([sys.executable, 'record_pipelines.py', '.', '--worker', case, str(rank)], cwd=scratch,
                                  env={**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': '', 'GLOO_SOCKET_IFNAME': 'lo'})
                 for rank in range(RANKS)]
        try:
            codes = [process.wait(timeout=240) for process in ranks]
        except subprocess.TimeoutExpired:
            codes = ['late']
        for process in ranks:
            if process.poll() is None:
                process.kill()
        if any(codes):
            print(f'{case}: the processes ended with {codes}')
            return 1
        target = out / case
        target.mkdir(parents=True, exist_ok=True)
        truths = [json.loads((scratch / f'truth{rank}.json').read_text()) for rank in range(RANKS)]
        truth = {**truths[0], 'executed': [t['executed'] for t in truths]}
        (target / 'truth.json.gz').write_bytes(gzip.compress(json.dumps(truth).encode(), 9, mtime=0))
        size = 0
        for rank in range(RANKS):
            text = re.sub(r'"host_name": "[^"]*"', '"host_name": "host"', (scratch / f'rank{rank}.json').read_text())
            packed = gzip.compress(text.encode(), 9, mtime=0)
            (target / f'rank{rank}.json.gz').write_bytes(packed)
            size += len(packed)
        print(f'{case}: {size} B, {sum(map(len, truth["order"]))} actions', flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--only', default='')
    parser.add_argument('--worker', nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker[0], int(options.worker[1]), pathlib.Path.cwd())
        return 0
    return max(record(case, options.out) for case in [n for n in options.only.split(',') if n] or CASES)


if __name__ == '__main__':
    sys.exit(main())
