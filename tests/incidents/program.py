"""Runs a training program on torch.distributed.pipelining, or on DDP, with planted faults. It forks its ranks and is
unaware of being recorded.

  program.py SETUP OUT [--profile]     SETUP: JSON, see SETUP below; `faults` is a list of rules
      OUT/steps<rank>.json        when each step began, by the program's own clock, and when the last one ended
      OUT/rank<rank>.json.gz      with --profile: torch's trace of the steps after WARM_UP, and no recording

The compute of a device is a sleep, in the module's forward and in its backward, together with a small real product of
matrices. The cores stay free, so the pipeline is measured and not the load of the machine. A rule describes an action
and its place, from step 0 on, which is the first after WARM_UP:

  {"do": "work", "times": 1.5}              the work of a cell is so many times as long; "ms": longer by so much; "grow": by so much more each step
  {"do": "before", "ms": 20}                the host stands still before it calls a cell
  {"do": "collect"}                         before a cell Python collects its garbage, of which there is much
  {"do": "message", "peer": 2, "ms": 10}    what this rank sends to that peer sets off so much later; one does not hold the next one up
  {"do": "data" | "optimizer" | "between" | "reduce", "ms": 40}     a row of the dataset, the optimizer, the end of a step, the reduction take longer

The place is "rank", "ranks", "kind" (F, B), "chunk", "micro_batch"; the time is "step", "steps", "from", "every". A
missing key matches all.
"""
import argparse
import functools
import gc
import json
import multiprocessing
import os
import pathlib
import queue
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed import pipelining

SETUP = {'ranks': 4, 'schedule': 'Schedule1F1B', 'chunks': 1, 'replicas': 1, 'micro_batches': 8, 'steps': 20, 'forward_ms': 4.0, 'backward_ms': 8.0,
         'optimizer_ms': 2.0, 'lengths': [], 'faults': []}
WARM_UP, SIZE, ROWS = 2, 64, 4
now = {'step': 0, 'kind': 'F', 'micro_batch': 0, 'chunk': 0, 'rank': 0}


def rules(setup, do):
    """The rules of this kind that hold here and now."""
    step = now['step'] - WARM_UP
    for rule in setup['faults']:
        if rule['do'] != do or not (now['rank'] == rule['rank'] if 'rank' in rule else now['rank'] in rule.get('ranks', [now['rank']])):
            continue
        if 'step' in rule and step != rule['step'] or 'steps' in rule and step not in rule['steps'] or step < rule.get('from', 0):
            continue
        if 'every' in rule and (step + 1) % rule['every']:
            continue
        if do in ('work', 'before', 'collect', 'message') and any(rule.get(key, now[key]) != now[key] for key in ('kind', 'micro_batch', 'chunk')):
            continue
        yield rule


def stand_still(setup, do):
    for rule in rules(setup, do):
        time.sleep(rule['ms'] / 1e3)


def work(setup, plain_ms):
    """Sleeps as long as the cell's work lasts."""
    ms = plain_ms
    if setup['lengths']:
        ms *= setup['lengths'][(now['step'] * 5 + now['micro_batch']) % len(setup['lengths'])]
    for rule in rules(setup, 'work'):
        ms = ms * (rule.get('times', 1) + rule.get('grow', 0) * max(0, now['step'] - WARM_UP)) + rule.get('ms', 0)
    time.sleep(ms / 1e3)


class Hold(torch.autograd.Function):
    """Its forward and its backward take what a layer's would."""

    @staticmethod
    def forward(ctx, x, setup):
        ctx.setup = setup
        work(setup, setup['forward_ms'])
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        work(ctx.setup, ctx.setup['backward_ms'])
        return gradient.clone(), None


class Layers(torch.nn.Module):
    def __init__(self, setup):
        super().__init__()
        self.setup = setup
        self.linear = torch.nn.Linear(SIZE, SIZE)

    def forward(self, x):
        return Hold.apply(torch.relu(self.linear(x)), self.setup)


def called(stage, name, kind, chunk, setup):
    """The stage's call, which knows where it is, and what the host does before it."""
    inner = getattr(stage, name)

    def call(number, *arguments, **options):
        now.update(kind=kind, micro_batch=number, chunk=chunk)
        stand_still(setup, 'before')
        if any(rules(setup, 'collect')):
            garbage = [[i] for i in range(60_000)]
            gc.collect()
            del garbage
        return inner(number, *arguments, **options)
    setattr(stage, name, call)


class Later:
    """The messages on a slow wire: the sender is done at once, as with a socket whose buffer has room; a thread
    delivers each message when its time has come."""

    def __init__(self, isend):
        self.isend, self.waiting = isend, queue.SimpleQueue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            due, tensor, where = self.waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self.isend(tensor, **where).wait()

    def send(self, tensor, ms, where):
        self.waiting.put((time.monotonic() + ms / 1e3, tensor.clone(), where))
        return self

    def wait(self, *_):
        return True

    def is_completed(self):
        return True


def slow_messages(setup):
    plain = dist.isend
    peers = {rule['peer'] for rule in setup['faults'] if rule['do'] == 'message' and rule['rank'] == now['rank']}
    wires = {peer: Later(plain) for peer in peers}

    @functools.wraps(plain)
    def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
        peer = dst if group_dst is None else dist.get_global_rank(group, group_dst)
        if peer not in wires:
            return plain(tensor, dst, group, tag, group_dst)
        late = sum(rule['ms'] for rule in rules(setup, 'message') if rule['peer'] == peer)
        return wires[peer].send(tensor, late, {'dst': dst, 'group': group, 'tag': tag, 'group_dst': group_dst})
    if peers:  # under every name that it has: what a P2POp may be is compared with it
        dist.isend = dist.distributed_c10d.isend = isend


class Batches(torch.utils.data.Dataset):
    def __init__(self, setup):
        self.setup = setup

    def __len__(self):
        return WARM_UP + self.setup['steps'] + 1

    def __getitem__(self, index):
        stand_still(self.setup, 'data')
        return torch.full((self.setup['micro_batches'] * ROWS, SIZE), index / 100.0)


def pipeline(setup):
    """(what runs a step's forwards and backwards with a batch, its parameters, whether it wants batches)"""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    replicas, chunks = setup['replicas'], setup['chunks']
    pp = ranks // replicas
    groups = [dist.new_group(list(range(first, first + pp))) for first in range(0, ranks, pp)]
    across = [dist.new_group(list(range(first, ranks, pp))) for first in range(pp)]
    stages = []
    for chunk, index in enumerate(rank % pp + pp * i for i in range(chunks)):
        stage = pipelining.PipelineStage(Layers(setup), index, pp * chunks, torch.device('cpu'), group=groups[rank // pp])
        called(stage, 'forward_one_chunk', 'F', chunk, setup)
        called(stage, 'backward_one_chunk', 'B', chunk, setup)
        stages.append(stage)
    slow_messages(setup)
    plan = getattr(pipelining, setup['schedule'])(stages if chunks > 1 else stages[0], setup['micro_batches'], loss_fn=torch.nn.functional.mse_loss)
    parameters = [p for s in stages for p in s.submod.parameters()]
    first, last = any(s.is_first for s in stages), any(s.is_last for s in stages)

    def step(batch):
        plan.step(*([batch] if first else []), **({'target': batch, 'losses': []} if last else {}))
        if replicas > 1:
            stand_still(setup, 'reduce')
            for parameter in parameters:
                dist.all_reduce(parameter.grad, group=across[rank % pp])
    return step, parameters, first or last


def plain(setup):
    """Does the same without a pipeline, with DDP."""
    model = torch.nn.parallel.DistributedDataParallel(Layers(setup))

    def step(batch):
        now.update(kind='F', micro_batch=0, chunk=0)
        stand_still(setup, 'before')
        loss = torch.nn.functional.mse_loss(model(batch), batch)
        now.update(kind='B')
        stand_still(setup, 'before')
        loss.backward()
    return step, list(model.parameters()), True


def train(setup, out, profiler):
    now['rank'] = dist.get_rank()
    torch.manual_seed(now['rank'])
    forward_and_backward, parameters, wants_batches = pipeline(setup) if setup['schedule'] else plain(setup)
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    optimizer.register_step_pre_hook(lambda *_: time.sleep(setup['optimizer_ms'] / 1e3) or stand_still(setup, 'optimizer'))
    batches = iter(torch.utils.data.DataLoader(Batches(setup), batch_size=None, shuffle=False))
    began = []
    for step in range(WARM_UP + setup['steps'] + 1):
        now['step'] = step
        began.append(time.monotonic_ns())
        forward_and_backward(next(batches) if wants_batches else None)
        optimizer.step()
        optimizer.zero_grad()
        stand_still(setup, 'between')
        if profiler:
            profiler.step()
    (out / f'steps{now["rank"]}.json').write_text(json.dumps(began[WARM_UP:]))


def run_rank(rank, setup, out, profiled):
    ranks = setup['ranks']
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank))
    dist.init_process_group('gloo', store=dist.FileStore(str(out / 'store'), ranks), rank=rank, world_size=ranks)
    if profiled:
        from torch.profiler import ProfilerActivity, profile, schedule
        with profile(activities=[ProfilerActivity.CPU], with_stack=setup['schedule'] == 'Schedule1F1B',
                     schedule=schedule(wait=WARM_UP - 1, warmup=1, active=setup['steps'], repeat=1)) as profiler:
            train(setup, out, profiler)
        profiler.export_chrome_trace(str(out / f'rank{rank}.json.gz'))
    else:
        train(setup, out, None)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('setup', type=json.loads)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--profile', action='store_true')
    options = parser.parse_args()
    torch.set_num_threads(1)
    setup = {**SETUP, **options.setup}
    (options.out / 'store').unlink(missing_ok=True)
    ranks = [multiprocessing.get_context('fork').Process(target=run_rank, args=(rank, setup, options.out, options.profile))
             for rank in range(setup['ranks'])]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(any(process.exitcode for process in ranks))


if __name__ == '__main__':
    main()
