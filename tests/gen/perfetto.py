#!/usr/bin/env python3
"""Perfetto traces written field by field, small and with planted facts: what torch writes, and what other writers do.

    perfetto.py [--rank 0] [--steps 2] [--json] -o FILE.pftrace[.gz]

torch() lays a rank out as torch 2.15 does: one sequence, all begins of a group and then all its ends, device work as render
stages. Packets for all other cases are put together from the functions below: packet(event(BEGIN, track=1, name='a'), time=5).
"""
import argparse
import gzip
import json
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf import field, fixed64  # noqa: E402

BEGIN, END, INSTANT, COUNTER, STATE = 1, 2, 3, 4, 5
CLEARED, NEEDS = 1, 2
EPOCH = 1_795_382_776_000_000_000


def message(**fields):
    """message(f8=5, f11=b'…'): fields by number, in the order given."""
    return b''.join(field(int(name[1:]), value) for name, value in fields.items())


def packet(*bodies, time=None, seq=1, flags=None, clock=None, **fields):
    body = b''.join(bodies)
    return field(1, message(f8=time, f58=clock, f10=seq, f13=flags, **fields) + body)


def interned(names=(), categories=(), notes=(), more=b''):
    def entries(number, texts):
        return b''.join(field(number, message(f1=i, f2=t)) for i, t in enumerate(texts, 1))
    return field(12, entries(1, categories) + entries(2, names) + entries(3, notes) + more)


def note(name, value):
    """A debug annotation; lists nest."""
    def content(v):
        if isinstance(v, bool):
            return field(2, int(v))
        if isinstance(v, int):
            return field(4, v)
        if isinstance(v, float):
            return field(5, v)
        if isinstance(v, str):
            return field(6, v)
        return b''.join(field(12, content(one)) for one in v)
    return (field(10, name) if isinstance(name, str) else field(1, name)) + content(value)


def event(kind, track=None, name=None, category=None, notes=(), flows=(), ends=(), **fields):
    label = field(10 if isinstance(name, int) else 23, name)
    where = field(3 if isinstance(category, int) else 22, category)
    return field(11, field(9, kind) + field(11, track) + label + where + b''.join(field(4, note(*n)) for n in notes) + fixed64(47, flows) +
                 fixed64(48, ends) + message(**fields))


def process(uuid, pid, name=None):
    return field(1, field(60, message(f1=uuid, f3=message(f1=pid, f6=name))))


def thread(uuid, pid, tid, name=None, parent=None):
    return field(1, field(60, message(f1=uuid, f5=parent, f4=message(f1=pid, f2=tid, f5=name))))


def track(uuid, name, parent=None, **fields):
    return field(1, field(60, message(f1=uuid, f2=name, f5=parent, **fields)))


def clocks(*pairs, seq=None, time=None, primary=None):
    """Each pair is (clock, ns) or (clock, ns, 'incremental')."""
    return packet(field(6, b''.join(field(1, message(f1=p[0], f2=p[1], f3=1 if len(p) > 2 else None)) for p in pairs) + field(2, primary)), time=time, seq=seq)


def packed(packets, codec='zlib'):
    if codec == 'zlib':
        return field(1, field(50, zlib.compress(packets)))
    assert len(packets) < 1 << 16  # a zstd frame of one raw block, as no compressor is needed to make it
    frame = b'\x28\xb5\x2f\xfd\xa0' + struct.pack('<I', len(packets)) + struct.pack('<I', len(packets) << 3 | 1)[:3] + packets
    return field(1, field(133, frame))


def write(path, *packets):
    path = pathlib.Path(path)
    data = b''.join(packets)
    if path.name.endswith('.gz'):
        with open(path, 'wb') as raw, gzip.GzipFile('', 'wb', mtime=0, fileobj=raw) as out:
            out.write(data)
    else:
        path.write_bytes(data)
    return path


def plan(rank, steps):
    """Returns the work of a rank: (name, category, start, end, notes) of the host, and device work. Ends touch begins,
    and outlast them."""
    host, device, correlation = [], [], 100
    for step in range(steps):
        at = EPOCH + 1_000_000 * step
        host.append((f'ProfilerStep#{step + 1}', 'user_annotation', at, at + 900_000, {'Ev Idx': len(host)}))
        for k in range(3):
            begin = at + 10_000 + 100_000 * k
            host.append((f'aten::op{k}', 'cpu_op', begin, begin + 100_000, {'External id': len(host) + 1, 'Input Dims': [[8, 32 + k], []], 'Input type': ['float', '']}))
            correlation += 1
            host.append(('cudaLaunchKernel', 'cuda_runtime', begin + 5_000, begin + 12_000 + 90_000 * (k == 1), {'cbid': 211, 'correlation': correlation}))
            collective = {'Collective name': 'allreduce', 'dtype': 'Float', 'In msg nelems': '4096', 'Out msg nelems': '4096', 'Group size': '2',
                          'Process Group Name': '0', 'Seq': str(step)} if k == 2 else {}
            name = 'ncclDevKernel_AllReduce_Sum_f32_RING_LL' if k == 2 else f'gemm_{k}'
            device.append((name, 20 if k == 2 else 7, begin + 20_000, 50_000 + 1_000 * rank, correlation, collective))
    return host, device


def torch(path, rank=0, steps=2, snapshot=True, ends=None):
    """`ends`: this number of ends is written, and everything after them is missing."""
    host, device = plan(rank, steps)
    names = sorted({h[0] for h in host} | {d[0] for d in device})
    categories = ['user_annotation', 'cpu_op', 'cuda_runtime']
    more = b''.join(field(24, message(f1=i, f2=t)) for i, t in ((1, 'Kernel'), (100, '[07] stream 7'), (101, '[20] stream 20')))
    more += field(23, message(f1=1, f2=4000 + rank))
    more += b''.join(field(1000, message(f1=i, f3=d)) for i, d in enumerate(sorted({d[0] for d in device}), 1))
    more += b''.join(field(1001, message(f1=i, f2=t)) for i, t in enumerate(('registers_per_thread', 'shared_mem_dynamic'), 1))
    more += field(47, message(f1=1, f3=0, f2=field(1, message(f1=0, f2='Power (W)'))))
    out = [clocks((6, EPOCH), (1, EPOCH), seq=1, time=EPOCH)] if snapshot else []
    out += [process(1, 4000 + rank, 'python'), thread(2, 4000 + rank, 4000 + rank, 'thread 4000 (python)', parent=1)]
    out.append(packet(interned(names, categories, more=more), seq=1, flags=CLEARED))
    for group in (('user_annotation', 'cpu_op'), ('cuda_runtime',)):
        rows = [h for h in host if h[1] in group]
        for name, category, begin, end, notes in rows:
            out.append(packet(event(BEGIN, 2, names.index(name) + 1, categories.index(category) + 1, tuple(notes.items())), time=begin, flags=NEEDS))
        out += [packet(event(END, 2), time=end) for _, _, _, end, _ in rows]
    if ends is not None:
        last = [i for i, p in enumerate(out) if p.endswith(event(END, 2))]
        return write(path, *out[:last[ends]])
    kernels = sorted({d[0] for d in device})
    for i, (name, stream, begin, dur, correlation, extra) in enumerate(device, 1):
        texts = {'device id': 0, 'context id': 1, 'stream id': stream, 'correlation': correlation, **extra}
        body = message(f1=i, f2=dur, f11=0, f13=101 if stream == 20 else 100, f14=1, f5=1, f20=names.index(name) + 1, f19=kernels.index(name) + 1,
                       f21=message(f1=message(f1=128, f2=1, f3=1), f2=message(f1=256, f2=1, f3=1)) + field(3, message(f1=1, f4=32)))
        out.append(packet(field(53, body + b''.join(field(6, message(f1=k, f2=str(v))) for k, v in texts.items())), time=begin, flags=NEEDS))
    out += [packet(field(52, field(4, 1) + field(2, message(f1=0, f3=200.0 + k))), time=EPOCH + 500_000 * k, flags=NEEDS) for k in range(3)]
    return write(path, *out)


def torch_json(path, rank=0, steps=2):
    """Returns the same window as torch's JSON."""
    host, device = plan(rank, steps)
    pid = 4000 + rank
    events = [{'ph': 'X', 'cat': c, 'name': n, 'pid': pid, 'tid': pid, 'ts': (b - EPOCH) / 1000, 'dur': (e - b) / 1000, 'args': a} for n, c, b, e, a in host]
    events += [{'ph': 'X', 'cat': 'kernel', 'name': n, 'pid': 0, 'tid': s, 'ts': (b - EPOCH) / 1000, 'dur': d / 1000,
                'args': {'device': 0, 'context': 1, 'stream': s, 'correlation': c, **{k: int(v) if v.isdigit() and k != 'Process Group Name' else v for k, v in x.items()},
                         'grid': [128, 1, 1], 'block': [256, 1, 1], 'registers per thread': 32}}
               for n, s, b, d, c, x in device]
    path = pathlib.Path(path)
    path.write_text(json.dumps({'schemaVersion': 1, 'deviceProperties': [], 'baseTimeNanoseconds': EPOCH, 'traceEvents': events}))
    return path


def from_chrome(path, events):
    """Writes the slices of a Chrome trace (ph X) as Cuspy does: device work as render stages with its arguments as texts, all else on
    tracks of threads."""
    def ns(us):
        return EPOCH + round(us * 1000)
    device = [e for e in events if e['cat'] in ('kernel', 'gpu_memcpy', 'gpu_memset')]
    host = [e for e in events if e['cat'] not in ('kernel', 'gpu_memcpy', 'gpu_memset')]
    threads = sorted({(e['pid'], e['tid']) for e in host})
    names = sorted({e['name'] for e in events})
    categories = sorted({e['cat'] for e in host})
    streams = sorted({e['args']['stream'] for e in device})
    more = b''.join(field(24, message(f1=i, f2=t)) for i, t in [(1, 'Kernel')] + [(100 + k, f'[{s:02}] stream {s}') for k, s in enumerate(streams)])
    more += field(23, message(f1=1, f2=threads[0][0]))
    out = [clocks((6, EPOCH), (1, EPOCH), seq=1, time=EPOCH), process(1, threads[0][0], 'python')]
    out += [thread(2 + i, pid, tid, f'thread {tid} (python)', parent=1) for i, (pid, tid) in enumerate(threads)]
    out.append(packet(interned(names, categories, more=more), seq=1, flags=CLEARED))
    for i, of in enumerate(threads):
        rows = sorted((e for e in host if (e['pid'], e['tid']) == of), key=lambda e: (e['ts'], -e['dur']))
        open_ends = []
        for e in rows:
            while open_ends and open_ends[-1] <= ns(e['ts']):
                out.append(packet(event(END, 2 + i), time=open_ends.pop()))
            out.append(packet(event(BEGIN, 2 + i, names.index(e['name']) + 1, categories.index(e['cat']) + 1, tuple(e['args'].items())), time=ns(e['ts']), flags=NEEDS))
            open_ends.append(ns(e['ts'] + e['dur']))
        out += [packet(event(END, 2 + i), time=end) for end in reversed(open_ends)]
    for i, e in enumerate(sorted(device, key=lambda e: e['ts']), 1):
        stream = e['args']['stream']
        body = message(f1=i, f2=round(e['dur'] * 1000), f11=0, f13=100 + streams.index(stream), f14=1, f5=1, f20=names.index(e['name']) + 1)
        texts = {'device id': 0, 'context id': 1, 'stream id': stream, **{k: v for k, v in e['args'].items() if k not in ('device', 'stream')}}
        out.append(packet(field(53, body + b''.join(field(6, message(f1=k, f2=str(v))) for k, v in texts.items())), time=ns(e['ts']), flags=NEEDS))
    return write(path, *out)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rank', type=int, default=0)
    parser.add_argument('--steps', type=int, default=2)
    parser.add_argument('--json', action='store_true', help='the same window as JSON')
    parser.add_argument('-o', '--output', required=True)
    wanted = parser.parse_args()
    (torch_json if wanted.json else torch)(wanted.output, wanted.rank, wanted.steps)
