#!/usr/bin/env python3
"""A torch trace of two ranks that share experts: grouped products with their input shapes, forward and backward, and an all-reduce of the
group "mesh_ep" under the computing. The first rank's experts get three times the tokens of the second's.

    python3 tests/gen/experts.py -o DIR
"""
import argparse
import json
import pathlib

TOKENS = [1536, 512]  # of the experts of each rank, in each forward product
PRODUCTS = 1 / 8 + 1 / 8 + 1 / 4 + 1 / 4  # µs of a step's products for each token
ENGINE = 'autograd::engine::evaluate_function: GroupedMmBackward0'


class Writer:
    """One rank: an operator launches a kernel; times are in µs, a kernel takes tokens ÷ 8."""

    def __init__(self, rank, meets=False):
        self.meets = meets
        self.rank, self.events, self.now, self.device, self.number = rank, [], 0.0, 20.0, 100

    def slice(self, category, name, start, duration, tid, args):
        self.events.append({'ph': 'X', 'cat': category, 'name': name, 'pid': 0 if category == 'kernel' else 7, 'tid': tid, 'ts': start,
                            'dur': duration, 'args': args})

    def product(self, shapes, duration, around=None):
        start, self.number = self.now, self.number + 1
        if around:
            self.slice('cpu_op', around, start, 9, 7, {'External id': self.number + 1000})
        self.slice('cpu_op', 'aten::_grouped_mm', start + 1, 7, 7, {'External id': self.number, 'Input Dims': shapes})
        self.slice('cuda_runtime', 'cudaLaunchKernel', start + 3, 2, 7, {'correlation': self.number, 'External id': self.number})
        self.kernel('cutlass::grouped_gemm_kernel', 7, duration, {})
        self.now += 10

    def kernel(self, name, stream, duration, args, advance=True):
        self.slice('kernel', name, self.device, duration, stream,
                   {'correlation': self.number, 'External id': self.number, 'stream': stream, 'device': self.rank, **args})
        self.device += duration if advance else 0

    def reduce(self, description, duration, advance=False):
        """Starts with the kernel that is launched next, or stands before it."""
        self.number += 1
        self.slice('cuda_runtime', 'cudaLaunchKernel', self.now, 1, 7, {'correlation': self.number})
        self.kernel('ncclDevKernel_AllReduce_Sum_bf16_RING_LL', 20, duration,
                    {'Collective name': 'allreduce', 'Process Group Name': description[-1], 'Process Group Description': description,
                     'Process Group Ranks': '[0, 1]', 'Group size': 2}, advance)
        self.now += 2

    def step(self, index):
        start, tokens = self.now, TOKENS[self.rank]
        self.product([[tokens, 64], [2, 64, 256], [2]], tokens / 8)
        self.reduce('mesh_ep', tokens / 16)
        self.product([[tokens, 256], [2, 256, 64], [2]], tokens / 8)
        self.product([[tokens, 64], [2, 64, 256], [2]], tokens / 4, ENGINE)  # the gradient of the tokens
        self.product([[256, tokens], [tokens, 64], [2]], tokens / 4, ENGINE)  # of the weights: no input of three dimensions
        if self.meets:
            self.meet()
        self.slice('user_annotation', f'ProfilerStep#{index}', start, self.now - start, 7, {})

    def meet(self):
        """An all-reduce at the end of the step; the rank with fewer tokens waits in it."""
        self.reduce('mesh_dp', PRODUCTS * (max(TOKENS) - TOKENS[self.rank]) + 100, advance=True)

    def text(self):
        for index in (3, 4):
            self.step(index)
        groups = [{'pg_name': '1', 'pg_desc': 'mesh_ep', 'ranks': [0, 1]}]
        about = {'backend': 'nccl', 'rank': self.rank, 'world_size': 2, 'pg_config': groups}
        events = ',\n'.join(map(json.dumps, self.events))
        return f'{{"schemaVersion": 1, "distributedInfo": {json.dumps(about)}, "traceEvents": [\n{events}\n]}}'


def write(out, meets=False):
    out.mkdir(parents=True, exist_ok=True)
    for rank in range(2):
        (out / f'rank{rank}.json').write_text(Writer(rank, meets).text() + '\n')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', '--out', type=pathlib.Path, required=True)
    write(parser.parse_args().out)
