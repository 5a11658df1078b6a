#!/usr/bin/env python3
"""Execution traces of Chakra (NAME.RANK.et), small and with planted facts.

    chakra.py [--ranks 2] [--steps 2] [--no-starts] -o FOLDER

Every rank has per step an operator with one nested in it, and a kernel that belongs to the inner one. It also has an
all-reduce of 4 MiB on a stream of its own, and a send from rank 0 to rank 1. --no-starts writes durations alone, as for
simulators.
"""
import argparse
import pathlib

from protobuf import field, varint

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
EPOCH_US = 1_795_382_776_000_000


def message(body):
    return varint(len(body)) + body


def attribute(name, value):
    """A bool is bool_val, an int int64_val, text string_val."""
    return field(1, name) + (field(27, int(value)) if isinstance(value, bool) else field(9, value) if isinstance(value, int) else field(29, value))


def node(number, name, kind, start, duration, control=(), data=(), packed=True, **attributes):
    def numbers(at, values):
        return field(at, b''.join(map(varint, values))) if packed and values else field(at, list(values))
    return message(field(1, number) + field(2, name) + field(3, kind) + numbers(4, control) + numbers(5, data) + (field(6, start) if start else b'') +
                   (field(7, duration) if duration else b'') + field(10, [attribute(*a) for a in attributes.items()]))


def trace(rank, steps=2, starts=True, begin=EPOCH_US):
    out = message(field(1, '0.0.4') + field(2, attribute('schema', '1.1.1-chakra.0.0.4')))
    out += message(field(1, 1) + field(2, '## process_group:init ##') + field(3, 1))
    number, last = 2, None
    for step in range(steps):
        at = begin + 1000 * step if starts else 0

        def when(us):
            return at + us if starts else 0
        linear, addmm, kernel, reduce, send = range(number, number + 5)
        number += 5
        out += node(linear, 'aten::linear', COMPUTE, when(0), 300, control=[last] if last else [], is_cpu_op=True, tid=7)
        out += node(addmm, 'aten::addmm', COMPUTE, when(20), 200, control=[linear], is_cpu_op=True, tid=7, packed=False)
        out += node(kernel, 'ampere_sgemm', COMPUTE, when(150 + 5 * rank), 400, control=[addmm], is_cpu_op=False, stream=7)
        out += node(reduce, 'ncclDevKernel_AllReduce_Sum_f32', COLLECTIVE, when(560), 300, data=[kernel], is_cpu_op=False, stream=20, comm_type=0, comm_size=4 << 20, pg_name='dp')
        if rank < 2:
            out += node(send, 'ncclDevKernel_SendRecv', SEND if rank == 0 else RECEIVE, when(870), 90, data=[reduce], is_cpu_op=False, comm_size=1 << 20, comm_src=0, comm_dst=1, comm_tag=step)
        last = linear
    return out


def write(folder, ranks=2, steps=2, starts=True, name='run'):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        (folder / f'{name}.{rank}.et').write_bytes(trace(rank, steps, starts))
    return folder


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--steps', type=int, default=2)
    parser.add_argument('--no-starts', action='store_true')
    parser.add_argument('-o', '--output', required=True)
    args = parser.parse_args()
    write(args.output, args.ranks, args.steps, not args.no_starts)
