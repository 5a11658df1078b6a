"""Traces of torch's Schedule1F1B on hosts alone (gloo), as the profiler writes them, with one planted fault.

  ranks, step_us = make(fault='send:1,40', frames=True)    →  [events of rank 0, …], the length of the mean step

Faults, each RANK,MS:  sleep  before every forward, after its receive has ended      gc    before forward 4 of every second step
                       send   before the send of forward 4, in every step            data  in the rank's DataLoader, before every step
                       link   about as long, each fifth message that the rank sends forward
With `wake`, a seventh of all receives, by chance, end up to that number of ms late, as where threads wait for processors. With `noise`, every twentieth cell of all ranks (or that share of them), by chance, starts 1 to 3 ms late, as on a busy machine. `frames` adds Python frames (with_stack=True), with the
line of the program that makes the fault. `shapes` adds the pass that finds them before the first step. c10d::send and c10d::recv_ return at once; gloo:recv lasts until the message is there.
"""
import json
import random

STAGE, SCHEDULES = 'torch/distributed/pipelining/stage.py', 'torch/distributed/pipelining/schedules.py'
LATENCY, CALL, BETWEEN = 300.0, 30.0, 60.0  # µs: of a message, of a call of c10d, between two things that a host does
CULPRITS = {'gc': ('<built-in function collect>', 'train.py(92): forward'), 'send': ('<built-in function sleep>', 'train.py(100): get_fwd_send_ops'),
            'sleep': ('<built-in function sleep>', 'train.py(84): forward')}


def order(rank, stages, micro_batches):
    warm = min(micro_batches, stages - rank - 1)
    middle = [cell for k in range(micro_batches - warm) for cell in (('F', warm + k), ('B', k))]
    return [('F', k) for k in range(warm)] + middle + [('B', k) for k in range(micro_batches - warm, micro_batches)]


class Rank:
    def __init__(self, rank, stages, frames):
        self.rank, self.stages, self.frames, self.now, self.sequence = rank, stages, frames, 1e6 + 37 * rank, 100
        self.events, self.made, self.waiting = [], {}, None

    def x(self, cat, name, start, end, **args):
        event = {'ph': 'X', 'cat': cat, 'name': name, 'pid': 100 + self.rank, 'tid': 100 + self.rank, 'ts': round(start, 3), 'dur': round(end - start, 3)}
        self.events.append(event | ({'args': args} if args else {}))

    def frame(self, name, start, end):
        if self.frames:
            self.x('python_function', name, start, end)

    def pause(self, kind, ms):
        call, frame = CULPRITS[kind]
        begin, self.now = self.now, self.now + ms * 1000
        self.frame(frame, begin, self.now)
        self.frame(call, begin + 1, self.now - 1)

    def call(self, name, peer, dims=(16, 128)):
        self.x('cpu_op', f'c10d::{name}', self.now, self.now + CALL, **{'Sequence number': self.sequence, 'Fwd thread id': 0,
               'Input Dims': [[list(dims)], [], [], []], 'Input type': ['TensorList', '', 'Scalar', 'Scalar'], 'Concrete Inputs': ['', '', str(peer), '0']})
        self.now += CALL
        return self.now - 5

    def compute(self, kind, number, ms):
        begin, last = self.now, self.now + ms * 1000
        if kind == 'F':
            self.made[number] = self.sequence
            self.x('cpu_op', 'aten::linear', begin + 40, begin + 140, **{'Sequence number': self.sequence, 'Fwd thread id': 0})
            self.x('cpu_op', 'job::work', begin + 160, last, **{'Sequence number': self.sequence + 1, 'Fwd thread id': 0})
            self.sequence += 2
        else:
            engine = 'autograd::engine::evaluate_function: '
            self.x('cpu_op', engine + 'WorkBackward', begin + 40, last - 200, **{'Sequence number': self.made[number] + 1, 'Fwd thread id': 1})
            self.x('cpu_op', engine + 'AddmmBackward0', last - 180, last, **{'Sequence number': self.made[number], 'Fwd thread id': 1})
        self.now = last + 20
        self.frame(f'{STAGE}(8{60 if kind == "F" else 90}): {"forward" if kind == "F" else "backward"}_one_chunk', begin, self.now)


def shape_pass(ranks):
    """Before its first step torch runs one forward and backward through all stages; objects of two messages say the shapes."""
    for kind, way in (('F', ranks), ('B', ranks[::-1])):
        arrived = 0.0
        for place, r in enumerate(way):
            r.now = max(r.now, arrived)
            for bytes_ in (1, 161) if place else ():
                posted = r.call('recv_', way[place - 1].rank, [bytes_])
                r.x('user_annotation', 'gloo:recv', posted, r.now + 20)
                r.now += 20
            r.now += BETWEEN
            if kind == 'F' or place + 1 < len(way):  # nothing needs the gradient of the first stage's input
                r.compute(kind, -1, 4.0)
            for bytes_ in (1, 161) if place + 1 < len(way) else ():
                posted = r.call('send', way[place + 1].rank, [bytes_])
                r.x('user_annotation', 'gloo:send', posted, r.now)
            arrived = r.now


def make(stages=4, micro_batches=8, steps=8, fault='', frames=False, noise=False, forward=4.0, backward=8.0, seed=1, shapes=False, wake=0.0):
    what, _, rest = fault.partition(':')
    where, size = (int(rest.split(',')[0]), float(rest.split(',')[1])) if rest else (-1, 0.0)
    chance = random.Random(seed)
    ranks = [Rank(r, stages, frames) for r in range(stages)]
    lengths = []
    for step in range(steps):
        arrives, at, begun = {}, [0] * stages, [r.now for r in ranks]
        for r in ranks:
            loading = size if what == 'data' and where == r.rank else 0.1
            r.x('user_annotation', 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__', r.now + 5, r.now + loading * 1000)
            r.now += loading * 1000 + 20
        if shapes and step == 0:
            shape_pass(ranks)
        started = [r.now for r in ranks]
        orders = [order(r, stages, micro_batches) for r in range(stages)]
        while any(at[r] < 2 * micro_batches for r in range(stages)):
            for r in ranks:
                if at[r.rank] == 2 * micro_batches:
                    continue
                kind, number = orders[r.rank][at[r.rank]]
                peer = r.rank + (-1 if kind == 'F' else 1)
                receives = 0 <= peer < stages
                if receives and r.waiting is None:  # posted as soon as the rank comes to it
                    r.waiting = r.call('recv_', peer)
                if receives and (kind, peer, number) not in arrives:
                    continue
                if receives:
                    end = max(r.now, arrives[kind, peer, number])
                    if wake and chance.random() < 0.15:
                        end += chance.uniform(200, 1000 * wake)
                    r.x('user_annotation', 'gloo:recv', r.waiting, end)
                    r.now, r.waiting = end, None
                r.now += BETWEEN
                if noise and chance.random() < (0.05 if noise is True else noise):
                    r.now += chance.uniform(1000, 3000)
                if where == r.rank and kind == 'F' and (what == 'sleep' or (what == 'gc' and number == 4 and step % 2 == 1)):
                    r.pause(what, size)
                r.compute(kind, number, forward if kind == 'F' else backward)
                to = r.rank + (1 if kind == 'F' else -1)
                if 0 <= to < stages:
                    if (what, where, kind, number) == ('send', r.rank, 'F', 4):
                        r.pause(what, size)
                    r.x('cpu_op', 'aten::detach', r.now, r.now + 6)
                    r.now += 20
                    posted = r.call('send', to)
                    late = chance.uniform(600, 1400) * size if (what, where, kind) == ('link', r.rank, 'F') and chance.random() < 0.2 else 0.0
                    arrives[kind, r.rank, number] = posted + LATENCY + late
                    r.x('user_annotation', 'gloo:send', posted, posted + LATENCY + late)
                at[r.rank] += 1
        for r in ranks:
            r.frame(f'{SCHEDULES}(740): step', started[r.rank], r.now)
            r.x('user_annotation', 'Optimizer.step#AdamW.step', r.now + 10, r.now + 510)
            r.now += 600
        end = max(r.now for r in ranks)
        lengths.append(end - min(begun))
        for r in ranks:
            r.x('user_annotation', f'ProfilerStep#{step + 2}', begun[r.rank], end - 10)
            r.now = end + 10 * r.rank
    return [r.events for r in ranks], sum(lengths) / steps


def write(folder, ranks):
    folder.mkdir(parents=True, exist_ok=True)
    world = len(ranks)
    for rank, events in enumerate(ranks):
        group = {'pg_name': '0', 'pg_desc': 'default_pg', 'backend_config': 'cpu:gloo', 'pg_size': world, 'ranks': list(range(world))}
        head = [{'ph': 'M', 'name': 'thread_name', 'ts': 0, 'pid': 100 + rank, 'tid': 100 + rank, 'args': {'name': f'thread {100 + rank} (python3)'}}]
        trace = {'schemaVersion': 1, 'deviceProperties': [], 'record_shapes': 1, 'host_name': 'host', 'displayTimeUnit': 'ms',
                 'distributedInfo': {'backend': 'gloo', 'rank': rank, 'world_size': world, 'pg_count': 1, 'pg_config': [group]},
                 'baseTimeNanoseconds': 1790857026000000000, 'traceEvents': head + events}
        (folder / f'rank{rank}.json').write_text(json.dumps(trace))
