#!/usr/bin/env python3
"""Makes Kineto traces of a simulated training job. It has data-parallel ranks, each with a main and an autograd thread,
runtime calls, kernels on a compute stream, copies, and collectives that end together on all ranks. The text has
Kineto's format.

  python3 tests/gen/kineto.py -o DIR --ranks 8 --events 1000000 --format both.

The same options and seed give the same bytes. The eras are ns (torch 2.4 and newer: decimals, baseTimeNanoseconds,
device annotations, collective arguments), us (1.12 to 2.2: whole microseconds), old (1.8 to 1.11: Operator, Kernel,
"stream 7"). The faults are slow-rank:RANK,FACTOR (its kernels), host-delay:RANK,MS[,EVERY] (its data loader, in every
EVERYth step), clock:RANK,MS (its clock is ahead). --shape pipeline and dualpipe: see kineto_pipeline.py. It works as a
module too: generate(arguments) → [(rank, path, events, bytes)].
"""
import argparse
import gzip
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kineto_pipeline  # noqa: E402
from kineto_plan import Plan  # noqa: E402
from kineto_rank import NS_BASE, Rank  # noqa: E402

SEPARATOR = b',\n'
NAMES = {'nvidia': 'NVIDIA H100 80GB HBM3', 'amd': 'AMD Instinct MI300X'}


class Sink:
    """The file of a rank. Kineto's first sections are written at once, the later ones wait in scratch files."""

    def __init__(self, options, rank):
        self.path = os.path.join(options.out, 'json' if options.format == 'both' else '', rank_file(options, rank.rank))
        if options.format == 'gz':
            self.path += '.gz'
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.minify, self.events, self.bytes = options.minify, 0, 0
        self.out = (gzip.GzipFile(self.path, 'wb', compresslevel=options.gzip_level, mtime=0) if options.format == 'gz'
                    else open(self.path, 'wb'))
        self.later = {name: tempfile.TemporaryFile() for name in ('memory', 'frames', 'activity', 'annotations')}
        self.write(header(options, rank))

    def write(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        if self.minify:
            data = minified(data)
        self.bytes += len(data)
        self.out.write(data)

    def take(self, rank):
        """Moves the text that the rank has printed so far; every event is followed by a comma."""
        for name in ('ops', *self.later):
            events = getattr(rank, name)
            if not events:
                continue
            self.events += len(events)
            data = ',\n'.join(events).encode() + SEPARATOR
            events.clear()
            if name == 'ops':
                self.write(data)
            else:
                self.later[name].write(data)

    def finish(self, options, rank):
        for scratch in self.later.values():
            scratch.seek(0)
            while piece := scratch.read(1 << 24):
                self.write(piece)
            scratch.close()
        last = tail(options, rank)
        self.events += len(last)
        self.write(',\n'.join(last))
        self.write(footer(options, rank))
        self.out.close()


def minified(data):
    """Without the white space that Kineto puts around every token; names keep theirs."""
    for old, new in ((b'\n    ', b''), (b'\n      ', b''), (b'  {\n', b'{'), (b'\n  }', b'}'), (b'\n', b''), (b'": ', b'":'),
                     (b', "', b',"')):
        data = data.replace(old, new)
    return data


def rank_file(options, rank):
    return f'rank-{rank}.pt.trace.json'


def header(options, rank):
    amd = options.vendor == 'amd'
    devices = ',\n    '.join(
        f'{{\n      "id": {i}, "name": "{NAMES[options.vendor]}", "totalGlobalMem": {85018279936},\n      "computeMajor": 9, '
        f'"computeMinor": {4 if amd else 0},\n      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,\n      '
        f'"regsPerBlock": 65536, "warpSize": {64 if amd else 32},\n      "sharedMemPerBlock": {65536 if amd else 49152}, "numSms": '
        f'{304 if amd else 132}\n    }}' for i in range(options.gpus))
    text = f'\n{{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {devices}\n  ],\n'
    if options.era == 'ns':
        versions = (('"roctracer_version": 4.1', '"hip_runtime_version": 60342131', '"hip_driver_version": 60342131') if amd else
                    ('"cupti_version": 26', '"cuda_runtime_version": 12080', '"cuda_driver_version": 12080'))
        text += ''.join(f'  {line},\n' for line in versions)
    for flag, name in ((options.shapes, 'record_shapes'), (options.memory, 'profile_memory'), (options.python, 'with_stack')):
        if flag and options.era != 'old':
            text += f'  "{name}": 1,\n'
    if options.distributed_info and options.era != 'old':
        more = ''
        if options.era == 'ns':
            ranks = ', '.join(str(r) for r in range(options.ranks))
            more = (f', "pg_count": 1, "pg_config": [{{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", '
                    f'"pg_size": {options.ranks}, "ranks": [{ranks}]}}], "nccl_version": "2.26.2"')
        text += f'  "distributedInfo": {{"backend": "nccl", "rank": {rank.rank}, "world_size": {options.ranks}{more}}},\n'
    if options.era == 'ns':
        text += (f'  "trace_id": "{options.seed * 1000003 + rank.rank:032X}",\n  "displayTimeUnit": "ms",\n'
                 f'  "baseTimeNanoseconds": {NS_BASE},\n')
    return text + '  "traceEvents": [\n'


def tail(options, rank):
    """Metadata, the span of the capture and its two marks; the last event of a file is always Record Window End."""
    begin = rank.when(rank.begin)
    rows = []

    def name(kind, pid, tid, args):
        rows.append(f'  {{\n    "name": "{kind}", "ph": "M", "ts": {begin}, "pid": {pid}, "tid": {tid},\n    "args": {{\n      {args}\n'
                    f'    }}\n  }}')

    for pid, label, order in [(rank.pid, 'CPU', rank.pid)] + [(i, f'GPU {i}', 5000000 + i) for i in range(options.gpus)]:
        name('process_name', pid, 0, '"name": "python3"')
        name('process_labels', pid, 0, f'"labels": "{label}"')
        name('process_sort_index', pid, 0, f'"sort_index": {order}')
    for stream in rank.streams.values():
        name('thread_name', rank.device, f'"stream {stream}"' if rank.old else stream, f'"name": "stream {stream} "')
        name('thread_sort_index', rank.device, f'"stream {stream}"' if rank.old else stream, f'"sort_index": {stream}')
    for tid in (rank.main, rank.autograd):
        name('thread_name', rank.pid, f'"{tid}"' if rank.old else tid, f'"name": "thread {tid} (python3)"')
        name('thread_sort_index', rank.pid, f'"{tid}"' if rank.old else tid, f'"sort_index": {tid}')
    rows.append(f'  {{\n    "ph": "X", "cat": "Trace", "ts": {begin}, "dur": {rank.span(rank.begin, rank.t - rank.begin)},\n    "pid": '
                f'"{"Traces" if rank.old else "Spans"}", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n    "args": {{\n'
                f'      "Op count": 0\n    }}\n  }}')
    rows.append(f'  {{\n    "name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g",\n    "pid": "Traces", "tid": '
                f'"Trace PyTorch Profiler", "ts": {begin}\n  }}')
    rows.append(f'  {{\n    "name": "Record Window End", "ph": "i", "s": "g",\n    "pid": "", "tid": "", "ts": '
                f'{rank.when(rank.t + 50_000)}\n  }}')
    return rows


def footer(options, rank):
    return '\n]}' if options.era == 'old' else f'\n  ],\n  "traceName": "/tmp/traces/{rank_file(options, rank.rank)}"\n}}\n'


def play_step(options, ranks, index, layers):
    ready = [rank.forward_backward(index, layers) for rank in ranks]
    starts, ends = [[] for _ in ranks], []
    for k in range(len(ready[0])):
        # On a rank's own clock: a rank whose clock is ahead sees everything later.
        skew = [int(options.skew_ms.get(rank.rank, 0) * 1e6) for rank in ranks]
        before = ends[-1] + 1500 if ends else max(rank.reduces_end - s for rank, s in zip(ranks, skew)) + 1500
        begin = [max(times[k] - s, before) for times, s in zip(ready, skew)]
        for mine, time_ns in zip(starts, begin):
            mine.append(time_ns)
        ends.append(max(begin) + options.link_us * 1000)
    for rank, mine in zip(ranks, starts):
        skew = int(options.skew_ms.get(rank.rank, 0) * 1e6)
        rank.finish_step(index, layers, [t + skew for t in mine], [t + skew for t in ends])


def events_of(options, layers):
    """Events a rank prints in the second of two steps."""
    counts = []
    rank = Rank(options, 0, Plan)
    for index in range(2):
        play_step(options, [rank], index, layers)
        counts.append(sum(len(getattr(rank, name)) for name in ('ops', 'memory', 'frames', 'activity', 'annotations')))
    return counts[1] - counts[0]


def layers_for(options):
    if options.layers:
        return options.layers
    few, more = events_of(options, 16), events_of(options, 32)
    per_layer = (more - few) / 16
    return max(1, round((options.events / options.steps - (few - 16 * per_layer)) / per_layer))


def parse(arguments=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('-o', '--out', required=True, metavar='DIR')
    p.add_argument('--ranks', type=int, default=8)
    p.add_argument('--only-ranks', default='', help='comma list: the job has --ranks, these are written')
    p.add_argument('--events', type=int, default=100_000, help='of a rank, about (default 100000)')
    p.add_argument('--layers', type=int, default=0, help='instead of --events')
    p.add_argument('--steps', type=int, default=6)
    p.add_argument('--first-step', type=int, default=100)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--model', choices=('transformer', 'mlp'), default='transformer')
    p.add_argument('--bucket', type=int, default=2, help='layers whose gradients are reduced together')
    p.add_argument('--link-us', type=int, default=120, help='of a collective, once every rank has arrived')
    p.add_argument('--gpus', type=int, default=8, help='devices of a host')
    p.add_argument('--format', choices=('json', 'gz', 'both'), default='gz', help='both: in folders json/ and gz/')
    p.add_argument('--gzip-level', type=int, default=6)
    p.add_argument('--era', choices=('ns', 'us', 'old'), default='ns')
    p.add_argument('--vendor', choices=('nvidia', 'amd'), default='nvidia')
    p.add_argument('--old-nccl', action='store_true', help='ncclKernel_… names in the ns era too')
    p.add_argument('--python', action='store_true', help='python_function frames')
    p.add_argument('--memory', action='store_true', help='[memory] instants')
    p.add_argument('--sync', action='store_true', help='cuda_sync rows')
    p.add_argument('--triton', action='store_true', help='Triton operators, which carry a stream')
    p.add_argument('--graphs', action='store_true', help='layers are replays of CUDA graphs')
    p.add_argument('--no-shapes', dest='shapes', action='store_false')
    p.add_argument('--no-device-annotations', dest='device_annotations', action='store_false')
    p.add_argument('--no-distributed-info', dest='distributed_info', action='store_false')
    p.add_argument('--minify', action='store_true', help='JSON without white space between tokens')
    p.add_argument('--shape', choices=('data-parallel', 'pipeline', 'dualpipe'), default='data-parallel')
    p.add_argument('--notes', choices=('none', 'actions', 'numbers', 'megatron'), default='none', help='pipeline: what says F and B')
    p.add_argument('--micro-batches', type=int, default=8, help='pipeline: of a step')
    p.add_argument('--dp', type=int, default=1, help='pipeline: replicas; --ranks counts all')
    p.add_argument('--fault', action='append', default=[], metavar='KIND:RANK,X', help='see above; may be given again')
    options = p.parse_args(arguments)
    options.slow, options.host_delay, options.skew_ms, options.fault_every = {}, {}, {}, 1
    for fault in options.fault:
        kind, _, rest = fault.partition(':')
        values = rest.split(',')
        if kind not in ('slow-rank', 'host-delay', 'clock') or len(values) < 2:
            p.error(f'--fault is slow-rank:RANK,FACTOR, host-delay:RANK,MS[,EVERY] or clock:RANK,MS, not {fault}')
        rank, amount = int(values[0]), float(values[1])
        if kind == 'slow-rank':
            options.slow[rank] = amount
        elif kind == 'clock':
            options.skew_ms[rank] = amount
        else:
            options.host_delay[rank] = int(amount * 1e6)
            options.fault_every = int(values[2]) if len(values) > 2 else 1
    return options


def generate(arguments):
    options = parse([str(a) for a in arguments])
    if options.shape != 'data-parallel':
        make = kineto_pipeline.generate_pipeline if options.shape == 'pipeline' else kineto_pipeline.generate_dualpipe
        return make(options)
    layers = layers_for(options)
    ranks = [Rank(options, r, Plan) for r in range(options.ranks)]
    only = {int(r) for r in options.only_ranks.split(',')} if options.only_ranks else set(range(options.ranks))
    sinks = {rank.rank: Sink(options, rank) for rank in ranks if rank.rank in only}
    for index in range(options.steps):
        play_step(options, ranks, index, layers)
        for rank in ranks:
            if rank.rank in sinks:
                sinks[rank.rank].take(rank)
            for name in ('ops', 'memory', 'frames', 'activity', 'annotations'):
                getattr(rank, name).clear()
    written = []
    for rank in ranks:
        if sink := sinks.get(rank.rank):
            sink.finish(options, rank)
            if options.format == 'both':
                target = os.path.join(options.out, 'gz', rank_file(options, rank.rank) + '.gz')
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(sink.path, 'rb') as plain, gzip.GzipFile(target, 'wb', compresslevel=options.gzip_level, mtime=0) as packed:
                    shutil.copyfileobj(plain, packed, 1 << 22)
            written.append((rank.rank, sink.path, sink.events, sink.bytes))
    return written


def main():
    begin, cpu = time.perf_counter(), time.process_time()
    written = generate(sys.argv[1:])
    events, size = sum(w[2] for w in written), sum(w[3] for w in written)
    print(f'{len(written)} ranks, {events} events, {size / 1e6:.1f} MB of JSON, {time.perf_counter() - begin:.1f} s '
          f'({events / max(1e-3, time.process_time() - cpu):.0f} events a CPU second)', file=sys.stderr)


if __name__ == '__main__':
    main()
