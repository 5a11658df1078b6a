#!/usr/bin/env python3
"""Torch traces of collectives and messages at planned times: each member arrives when it is told to, and all leave at planned ends.

    python3 tests/gen/collectives.py -o DIR
"""
import argparse
import json
import pathlib

BASE_NS = 1_780_000_000_000_000_000
ELEMENT = {'BFloat16': 2, 'Float': 4}
KERNEL = {'allreduce': 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL', '_allgather_base': 'ncclDevKernel_AllGather_RING_LL'}


class Job:
    """Times are in µs; `hosts` has the host of each rank, `shift_us` what its clock is ahead."""

    def __init__(self, hosts, device='NVIDIA H100 80GB HBM3', groups=(), shift_us=None):
        self.hosts, self.device, self.groups, self.shift = hosts, device, list(groups), shift_us or {}
        self.events = [[] for _ in hosts]
        self.number = 100
        for rank in range(len(hosts)):  # the recording does not begin within a collective
            self.compute(rank, 50, 300)

    def slice(self, rank, category, name, start, duration, tid, args):
        self.events[rank].append({'ph': 'X', 'cat': category, 'name': name, 'pid': 0 if category == 'kernel' else 7, 'tid': tid,
                                  'ts': round(start + self.shift.get(self.hosts[rank], 0), 3), 'dur': round(duration, 3), 'args': args})

    def compute(self, rank, start, end, launch=None):
        self.number += 1
        self.slice(rank, 'cuda_runtime', 'cudaLaunchKernel', start - 20 if launch is None else launch, 2, 7, {'correlation': self.number})
        self.slice(rank, 'kernel', 'gemm', start, end - start, 7, {'correlation': self.number, 'stream': 7})

    def call(self, rank, start, end, calls, kernel=None, channels=16, bare=False, launch=None):
        """One kernel and the call (or the coalesced calls, which end before the launch) that it belongs to."""
        self.number += 1
        launch = start - 33 if launch is None else launch
        coalesced = len(calls) > 1
        for k, args in enumerate(calls):
            self.slice(rank, 'cpu_op', 'record_param_comms', launch - 7 + k, 0.5 if coalesced else 9, 7, args)
        if not bare:
            self.slice(rank, 'cuda_runtime', 'cudaLaunchKernelExC', launch, 2, 7, {'correlation': self.number})
        args = {'correlation': self.number, 'stream': 20, 'grid': [channels, 1, 1], 'block': [544, 1, 1]}
        if len(calls) == 1:
            args.update(calls[0])
        name = kernel or KERNEL.get(calls[0]['Collective name'] if calls else '', 'ncclDevKernel_SendRecv')
        self.slice(rank, 'kernel', name, start, end - start, 20, args)

    def args(self, name, group, elements, number=None, dtype='BFloat16', cut=30, **more):
        """`group` is an index of groups; elements are (in, out)."""
        title, description, ranks = self.groups[group]
        shown = ranks[:cut]
        text = '[' + ', '.join(map(str, shown)) + (', ...]' if len(ranks) > cut else ']')
        args = {'Collective name': name, 'dtype': dtype, 'In msg nelems': elements[0], 'Out msg nelems': elements[1], 'Group size': len(ranks),
                'Process Group Name': title, 'Process Group Description': description, 'Process Group Ranks': text}
        if number is not None:
            args['Seq'] = number
        args.update({key.replace('_', ' '): value for key, value in more.items()})
        return args

    def step(self, number, start, end):
        for rank in range(len(self.hosts)):
            self.slice(rank, 'user_annotation', f'ProfilerStep#{number}', start, end - start, 7, {})

    def write(self, out, without=()):
        out.mkdir(parents=True, exist_ok=True)
        config = [{'pg_name': name, 'pg_desc': description, 'pg_size': len(ranks), 'ranks': ranks} for name, description, ranks in self.groups]
        for rank, events in enumerate(self.events):
            if rank in without:
                continue
            about = {'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': self.device}],
                     'distributedInfo': {'backend': 'nccl', 'rank': rank, 'world_size': len(self.hosts), 'pg_config': config},
                     'host_name': self.hosts[rank], 'baseTimeNanoseconds': BASE_NS}
            lines = ',\n'.join(map(json.dumps, events))
            (out / f'rank{rank}.json').write_text(json.dumps(about)[:-1] + ', "traceEvents": [\n' + lines + '\n]}\n')


def example():
    """Two steps of four ranks on one host: an all-reduce that rank 2 comes late to, and messages from rank 0 to rank 1."""
    job = Job(['node0'] * 4, groups=[('0', 'mesh_dp', [0, 1, 2, 3]), ('1', 'pp', [0, 1])])
    for step in range(2):
        at = 1000.0 + 4000 * step
        for rank in range(4):
            arrived = at + 500 + (300 if rank == 2 else 10 * rank)
            job.compute(rank, at, arrived - 4)
            job.call(rank, arrived, at + 800 + 850, [job.args('allreduce', 0, (100_000_000, 100_000_000), step + 1)])
            job.compute(rank, arrived + 100, arrived + 200)
        for rank, name, peer in ((0, 'send', 'Dst Rank'), (1, 'recv', 'Src Rank')):
            job.call(rank, at + 2000 + 50 * rank, at + 2150,
                     [job.args(name, 1, (16_000_000, 16_000_000), step + 1, **{peer.replace(' ', '_'): 1 - rank})])
        job.step(step + 3, at - 100, at + 3800)
    return job


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', '--out', type=pathlib.Path, required=True)
    example().write(parser.parse_args().out)
