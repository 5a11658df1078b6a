"""Profiles of one or more ranks with one planted fault each, and the same run without it.

  python3 tests/gen/profile_faults.py -o DIR [NAME…]      writes DIR/NAME/rank*.json and prints what the fault costs

A Rank is a host thread that launches kernels in order and a device whose streams run them in order of launch. A fault
acts at a place of the step (before it, in the middle of a layer, at its end). Its cost is measured: the share of the
wall time that is gone when the same script runs without it.
"""
import argparse
import contextlib
import json
import os

GEMM, COPY = 'ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn', 'Memcpy HtoD (Pageable -> Device)'
REDUCE = 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)'
STEPS, LAYERS, KERNEL_US = 5, 12, 400.0


class Rank:
    """Times in µs; `t` is the host's clock, `free` the end of the last work of each stream."""

    def __init__(self, number, fault):
        self.number, self.fault = number, fault
        self.events, self.t, self.free, self.correlation, self.step, self.scale = [], 100.0, {7: 0.0}, 1, 0, 1.0

    def add(self, cat, name, pid, tid, start, end, **args):
        self.events.append({'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid, 'ts': round(start, 3), 'dur': round(end - start, 3), 'args': args})

    @contextlib.contextmanager
    def within(self, cat, name, before=0.0, after=0.0):
        start = self.t
        self.t += before
        yield
        self.t += after
        self.add(cat, name, 100, 100, start, self.t)

    def frame(self, name, lasts=0.0):
        return self.within('python_function', name, lasts, 1.0)

    def op(self, name, host=6.0):
        return self.within('cpu_op', name, host * 0.7, host * 0.3)

    def call(self, name, lasts, until=0.0, cat='cuda_runtime', **args):
        start = self.t
        self.t = max(self.t + lasts, until)
        self.add(cat, name, 100, 100, start, self.t, **args)
        return start

    def work(self, name, lasts, cat='kernel', stream=7, api='cudaLaunchKernel', call=4.0, after=0.0, until=None, **args):
        self.correlation += 1
        own = self.correlation
        begun = self.call(api, call, correlation=own)
        start = max(begun + 4 if call < 100 else self.t - 2, self.free.get(stream, 0) + 1, after)
        end = start + lasts if until is None else max(until, start + lasts)
        self.free[stream] = end
        self.add(cat, name, 0, stream, start, end, device=0, stream=stream, correlation=own, **args)
        return start, end

    def drain(self, name='cudaDeviceSynchronize'):
        self.call(name, 3.0, max(self.free.values()) + 3)

    def layer(self, backward):
        with self.op('aten::mm'):
            self.work(GEMM, (2 if backward else 1) * KERNEL_US * self.scale)

    def at(self, place):
        if self.fault:
            self.fault(place, self)

    def run(self):
        """One step a turn; ranks of a job meet between them in a reduction."""
        for self.step in range(STEPS):
            begun = self.t
            with self.within('user_annotation', 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__', 200.0):
                pass
            self.at('begin')
            with self.frame('model.py(10): forward'):
                for _ in range(LAYERS):
                    self.at('layer')
                    self.layer(False)
            self.at('middle')
            for _ in range(LAYERS):
                self.layer(True)
            self.at('end')
            yield max(self.free[7], self.t)
            self.drain('cudaStreamSynchronize')
            self.add('user_annotation', 'ProfilerStep#%d' % self.step, 100, 100, begun, self.t)
            self.t += 10


def play(fault, ranks=1, kind=Rank):
    made = [kind(r, fault) for r in range(ranks)]
    runs = [rank.run() for rank in made]
    while True:
        ready = [next(run, None) for run in runs]
        if ready[0] is None:
            return made
        if ranks == 1:
            continue
        end = max(ready) + 300.0  # the last one decides when the reduction ends on all
        for rank in made:
            with rank.op('c10d::allreduce_'):
                rank.work(REDUCE, 0, stream=20, after=rank.free[7], until=end, **{'Collective name': 'allreduce', 'Group size': ranks, 'In msg nelems': 1 << 20,
                          'Out msg nelems': 1 << 20, 'dtype': 'BFloat16', 'Process Group Name': '0', 'Process Group Ranks': str(list(range(ranks))), 'Seq': rank.step})


def wall(ranks):
    return max(max(rank.t, max(rank.free.values())) for rank in ranks)


def write(ranks, folder):
    os.makedirs(folder, exist_ok=True)
    for rank in ranks:
        with open(os.path.join(folder, 'rank%d.json' % rank.number), 'w') as out:
            json.dump({'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA A100-SXM4-80GB', 'totalGlobalMem': 1 << 36, 'numSms': 108}],
                       'distributedInfo': {'backend': 'nccl', 'rank': rank.number, 'world_size': len(ranks)}, 'baseTimeNanoseconds': 1700000000000000000,
                       'traceEvents': sorted(rank.events, key=lambda e: (e['ts'], -e['dur']))}, out)


# ---- faults: (place, rank) ---------------------------------------------------------------------------------------------

def held_launch(place, rank):
    if place == 'middle' and rank.step == 3:
        with rank.op('aten::mm'):
            rank.work(GEMM, 10, call=90e3)


def module_load(place, rank):
    if place == 'begin' and rank.step == 1:
        with rank.op('aten::conv2d'):
            rank.call('cuModuleLoadData', 60e3, cat='cuda_driver')


def sleeping(place, rank):
    if place == 'end':
        rank.drain()
        with rank.frame('train.py(88): report'):
            with rank.frame('<built-in function sleep>', 9000.0):
                pass


def save(place, rank):
    if place == 'end' and rank.step == 2:
        rank.drain()
        with rank.frame('train.py(120): save_checkpoint'):
            with rank.frame('torch/serialization.py(900): save', 70e3):
                pass


def allocate(place, rank):
    if place == 'middle':
        rank.drain('cudaFree')
        with rank.op('aten::empty'):
            rank.call('cudaMalloc', 6000.0)


def collect(place, rank):
    if place == 'middle' and rank.step in (1, 4):
        rank.drain()
        with rank.frame('<built-in function collect>', 40e3):
            pass


def barrier(place, rank):
    if place == 'end':
        rank.drain()
        with rank.frame('torch/distributed/distributed_c10d.py(3900): barrier'):
            with rank.op('gloo:barrier', 8000.0):
                pass


def input_wait(place, rank):
    if place == 'begin':
        with rank.within('user_annotation', 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__', 12e3):
            pass


def pageable(place, rank):
    if place == 'begin':
        with rank.frame('scheduler.py(31): load_weights'), rank.op('aten::copy_'):
            _, end = rank.work(COPY, 7000.0, cat='gpu_memcpy', api='hipMemcpyWithStream', bytes=1 << 26)
            rank.events[-2]['dur'] = round(end + 3 - rank.events[-2]['ts'], 3)
            rank.t = end + 3


def waits_often(place, rank):
    if place == 'layer':
        with rank.frame('model.py(30): check'), rank.op('aten::item'):
            rank.drain('cudaStreamSynchronize')
        with rank.frame('model.py(34): choose', 120.0):
            pass


def many_small(place, rank):
    if place == 'end':
        with rank.within('user_annotation', 'Optimizer.step#SGD.step'):
            rank.drain()
            for _ in range(700):
                with rank.op('aten::add_'):
                    rank.work('void at::native::vectorized_elementwise_kernel<4>', 2.0)


def unnamed(place, rank):
    if place == 'end':
        rank.drain()
        rank.t += 9000.0
        with rank.within('user_annotation', 'Optimizer.step#SGD.step'), rank.op('aten::_foreach_add_'):
            rank.work(GEMM, 100.0)


def late_rank(place, rank):
    if place == 'begin' and rank.number == 1:
        with rank.frame('data.py(7): decode', 10e3):
            pass


def slow_rank(place, rank):
    if rank.number == 2:
        rank.scale = 1.3


# name → fault, ranks, ids that may come first, words that the finding must contain.
CASES = {
    'healthy': (None, 1, (), ()),
    'healthy-ranks': (None, 3, (), ()),
    'held-launch': (held_launch, 1, ('host.blocked',), ('cudaLaunchKernel', 'aten::mm')),
    'module-load': (module_load, 1, ('host.blocked',), ('cuModuleLoadData', 'aten::conv2d')),
    'sleeping': (sleeping, 1, ('host.busy',), ('train.py(88): report', 'sleep')),
    'checkpoint': (save, 1, ('host.busy',), ('save_checkpoint', 'step 2')),
    'allocator': (allocate, 1, ('host.allocator',), ('cudaMalloc', 'aten::empty')),
    'collector': (collect, 1, ('host.collector',), ('collect',)),
    'barrier': (barrier, 1, ('host.collective',), ('gloo:barrier',)),
    'input': (input_wait, 1, ('input.loading',), ('DataLoader',)),
    'pageable': (pageable, 1, ('copies.pageable',), ('hipMemcpyWithStream', 'aten::copy_', 'scheduler.py(31): load_weights')),
    'waits': (waits_often, 1, ('host.sync', 'host.busy'), ('cudaStreamSynchronize', 'model.py(30): check')),
    'small': (many_small, 1, ('launch.bound',), ('Optimizer.step#SGD.step',)),
    'unnamed': (unnamed, 1, ('device.idle',), ('unrecorded host work', 'The next work is cudaLaunchKernel in aten::_foreach_add_ in Optimizer.step#SGD.step')),
    'late-rank': (late_rank, 3, ('rank.late',), ('Rank 1', 'data.py(7): decode')),
    'slow-rank': (slow_rank, 4, ('rank.slow',), ('Rank 2', 'was last in 5 of 5 collectives')),
}


def make(name, folder):
    """Writes a case and returns the share of its wall time that the fault costs."""
    fault, ranks = CASES[name][:2]
    bad = play(fault, ranks)
    write(bad, folder)
    return 1 - wall(play(None, ranks)) / wall(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', '--out', required=True)
    parser.add_argument('names', nargs='*')
    options = parser.parse_args()
    for name in options.names or CASES:
        print('%-16s %5.1f %%' % (name, 100 * make(name, os.path.join(options.out, name))))


if __name__ == '__main__':
    main()
