"""Traces of training on hosts alone (gloo), as torch's profiler writes them on one machine: DDP and FSDP2, with what single ranks do more.

  write(folder, make(world=4, steps=8, more=lambda rank, step: 10 if rank == 2 else 0))

In each step, a rank computes for `work` ms, and takes more(rank, step) ms more. `how` says where these go: 'computes' (operators before the forward), 'sleeps'
(nothing is recorded before the forward), 'saves' (an operator after the backward, as a checkpoint). `scatter` is the standard deviation of each rank's work, as a share of it.
DDP reduces two buckets during the backward and waits for the last one. FSDP2 gathers `units` units before their work and reduces them after it. There a rank waits
in the node of autograd that called c10d: torch records no operator of that waiting.
Hosts leave a collective one by one, some 0.1 ms apart.
"""
import json
import random


class Rank:
    def __init__(self, rank):
        self.rank, self.now, self.events = rank, 5000.0 + 11 * rank, []

    def x(self, cat, name, start, end, thread=0):
        self.events.append({'ph': 'X', 'cat': cat, 'name': name, 'pid': 300 + self.rank, 'tid': 300 + self.rank + 10 * thread, 'ts': round(start, 3), 'dur': round(end - start, 3)})

    def compute(self, ms, name='aten::mm', pieces=4):
        for _ in range(pieces if ms > 0 else 0):
            self.x('cpu_op', name, self.now, self.now + 1000 * ms / pieces)
            self.now += 1000 * ms / pieces

    def call(self, name):
        self.x('cpu_op', f'c10d::{name}', self.now, self.now + 40)
        self.now += 40
        return self.now - 10


def meet(ranks, begins, transfer, name, thread, chance):
    """A collective that all have begun at `begins`: when each of them leaves it."""
    ends = [max(begins) + 1000 * transfer + chance.uniform(0, 100) for _ in ranks]
    for r, begin, end in zip(ranks, begins, ends):
        r.x('user_annotation', f'gloo:{name}', begin, end, thread)
    return ends


def ddp_step(ranks, works, transfer, chance):
    begins = []
    for r, work in zip(ranks, works):
        r.compute(work * 0.7)
        first = r.call('allreduce_')
        r.compute(work * 0.3)
        begins.append((first, r.call('allreduce_')))
    for bucket in (0, 1):
        ends = meet(ranks, [b[bucket] for b in begins], transfer, 'all_reduce', 1 + bucket, chance)
        for r, end in zip(ranks, ends):
            r.now = max(r.now, end)


def fsdp_step(ranks, works, transfer, units, chance):
    for way, name, node in (('forward', 'all_gather', 'PythonSubclass'), ('backward', 'all_reduce', 'autograd::engine::evaluate_function: ReluBackward0')):
        for unit in range(units):
            starts = [r.now for r in ranks]
            begins = []
            for r, work in zip(ranks, works):
                if way == 'backward':
                    r.compute(work / units / 2)
                begins.append(r.call('_allgather_base_' if way == 'forward' else '_reduce_scatter_base_'))
            for r, start, end, work in zip(ranks, starts, meet(ranks, begins, transfer, name, 1, chance), works):
                r.x('cpu_op', node, start - 5, end + 5)
                r.now = end + 20
                if way == 'forward':
                    r.compute(work / units / 2)


def make(kind='ddp', world=2, steps=8, work=20.0, transfer=8.0, more=lambda rank, step: 0, how='computes', scatter=0.0, units=4, seed=1):
    chance = random.Random(seed)
    ranks = [Rank(r) for r in range(world)]
    for step in range(steps):
        begun = [r.now for r in ranks]
        works = [work * max(0.2, 1 + scatter * chance.gauss(0, 1)) for _ in ranks]
        for r in ranks:
            if how == 'computes':
                r.compute(more(r.rank, step), pieces=20)
            if how == 'sleeps':
                r.now += 1000 * more(r.rank, step)
        if kind == 'ddp':
            ddp_step(ranks, works, transfer, chance)
        else:
            fsdp_step(ranks, works, transfer, units, chance)
        for r, begin in zip(ranks, begun):
            if how == 'saves':
                r.compute(more(r.rank, step), 'aten::normal_', 1)
            r.x('cpu_op', 'Optimizer.step#AdamW.step', r.now + 20, r.now + 1020)
            r.now += 1060
            r.x('user_annotation', f'ProfilerStep#{step + 2}', begin, r.now - 10)
    return [r.events for r in ranks]


def write(folder, ranks):
    folder.mkdir(parents=True, exist_ok=True)
    for rank, events in enumerate(ranks):
        trace = {'schemaVersion': 1, 'deviceProperties': [], 'host_name': 'host', 'distributedInfo': {'backend': 'gloo', 'rank': rank, 'world_size': len(ranks)},
                 'baseTimeNanoseconds': 1790857026000000000, 'traceEvents': events}
        (folder / f'rank{rank}.json').write_text(json.dumps(trace))
    return folder
