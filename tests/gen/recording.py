#!/usr/bin/env python3
"""Recordings as libstageline_record writes them, made from docs/formats/recording.md alone: recording.py -o FOLDER.

A 1F1B run of two stages on two hosts, three micro-batches, two steps. It has jobs on a device whose clock runs 40 ppm
fast and started elsewhere, messages on the host's clock, a counter, marks, drops. Rank 1 lost a chunk to damage and was
never closed.
"""
import argparse
import json
import pathlib
import struct

TICKS = 2_000_000_000  # a second
EPOCH = 1_760_000_000_000_000_000
FORWARD, BACKWARD, SEND_F, RECV_F, SEND_B, RECV_B, OPTIMIZER = 1, 2, 6, 7, 8, 9, 11
RANGE, INSTANT, COUNTER, STEP = 0, 1, 2, 3


def table_of(polynomial=0x82F63B78):
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = table_of()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = b''
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def zigzag(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def ticks(ms):
    """Returns the host's clock at a time of the run."""
    return 10 * TICKS + round(ms * TICKS / 1000)


def device_ns(ms):
    return 5_000_000 + round(ms * 1e6 * 1.00004)


class File:
    """One .slrec of one rank."""

    def __init__(self, rank, host, **place):
        self.uuid = bytes([rank + 1]) * 16 if rank < 255 else (rank + 1).to_bytes(16, 'little')
        head = b'SLREC01\n' + struct.pack('<IIBBHIQQIi', 1, 0, 1, 1, 0, 0, TICKS, EPOCH, 100 + rank, rank) + self.uuid
        self.data = head[:12] + struct.pack('<I', crc32c(head)) + head[16:]
        self.sequence = 0
        meta = {'format': 1, 'uuid': self.uuid.hex(), 'rank': rank, 'pid': 100 + rank, 'host': host, 'job': 'golden', 'clock': 1, 'tick_shift': 1,
                'ticks_per_second': TICKS, 'start_realtime_ns': EPOCH, 'world': 2, 'stage': rank, 'dp_rank': 0, 'pp': 2, **place}
        self.chunk(1, json.dumps(meta).encode())
        self.place = 0

    def chunk(self, kind, payload, first=0, flags=0):
        head = b'SLCK' + struct.pack('<BBHIIIIQ', kind, 0, flags, len(payload), 0, 0, self.sequence, first)
        head = head[:12] + struct.pack('<II', crc32c(head), crc32c(payload)) + head[20:]
        self.data += head + payload + bytes(-len(payload) % 8)
        self.sequence += 1

    def names(self, texts):
        self.chunk(2, b''.join(struct.pack('<HH', i + 1, len(t)) + t.encode() for i, t in enumerate(texts)))

    def lanes(self, rows):
        """(id, device kind, clock, name)"""
        self.lane_rows([(i, kind, clock, 0 if kind else -1, 7, 0, name) for i, kind, clock, name in rows])

    def lane_rows(self, rows):
        """(id, device kind, clock, device, thread, stream, name)"""
        self.chunk(3, b''.join(struct.pack('<IIBBhIQ48s', i, 0, *facts, name.encode()) for i, *facts, name in rows))

    def clocks(self, times, anchors):
        rows = b''
        for ms in times:
            ns = round(ms * 1e6)
            rows += struct.pack('<8x5q', ticks(ms), 3_000_000 + ns, 9_000_000 + ns, EPOCH + ns, 100)
        for ms in anchors:
            rows += struct.pack('<BB6xqqq16x', 1, 1, device_ns(ms), ticks(ms) - 1000, ticks(ms) + 1000)
        self.chunk(5, rows)

    def ranges(self, records):
        """(type, lane, name, step, start ms, end ms or value, on device, kind, micro-batch, peer), and of what CUPTI told (…, bytes, sequence)"""
        first = ticks(records[0][4])
        out, lane, step, host_end, device_end, places = b'', 0, -1, first >> 1, 0, 0
        for kind_of, of_lane, name, of_step, start, end, device, kind, mb, peer, *reported in records:
            head = (64 if reported else 0) | kind_of | (8 if of_lane != lane else 0) | (16 if kind else 0) | (32 if of_step != step else 0) | (64 if peer >= 0 else 0) | (128 if device else 0)
            out += bytes([head]) + (b'\1' if device else b'')
            out += (varint(of_lane) if of_lane != lane else b'') + (zigzag(of_step - step) if of_step != step else b'')
            lane, step = of_lane, of_step
            out += varint(name)
            if device:
                a, b = device_ns(start), device_ns(end)
                out += zigzag(a - device_end) + varint(b - a)
                device_end = b
            else:
                a = ticks(start) >> 1
                out += zigzag(a - host_end)
                host_end = a
                if kind_of == RANGE:
                    host_end = ticks(end) >> 1
                    out += varint(host_end - a)
                elif kind_of == COUNTER:
                    out += struct.pack('<d', end)
                elif kind_of == STEP:
                    out += zigzag(end)
            if kind:
                out += bytes([kind]) + varint(mb + 1) + varint(1)
            if peer >= 0:
                out += b'\6' + varint(peer) + varint(4096)
            if reported:
                size, sequence = reported
                out += bytes([8 | (4 if size >= 0 else 0)]) + (varint(size) if size >= 0 else b'') + varint(sequence)
            places += 2 if device or peer >= 0 or reported else 1
        self.chunk(4, varint(0) + varint(self.place) + varint(places) + varint(len(records)) + out, first, 1)
        self.place += places

    def gap(self, reason, count):
        self.chunk(6, struct.pack('<IIQQQ', reason, 0, count, 0, 0))


def schedule(rank):
    """1F1B of two stages: (kind, micro-batch, start ms, end ms) of a step."""
    if rank == 0:
        return [(FORWARD, 0, 0, 10), (FORWARD, 1, 10, 20), (BACKWARD, 0, 31, 51), (FORWARD, 2, 51, 61), (BACKWARD, 1, 62, 82), (BACKWARD, 2, 93, 113)]
    return [(FORWARD, 0, 10.5, 20.5), (BACKWARD, 0, 20.5, 30.5), (FORWARD, 1, 30.5, 40.5), (BACKWARD, 1, 40.5, 61), (FORWARD, 2, 62, 72), (BACKWARD, 2, 72, 92)]


def make(folder):
    for rank in range(2):
        f = File(rank, f'node{rank}')
        f.names(['loss', 'checkpoint', 'input queue'])
        f.lanes([(1, 1, 1, 'compute'), (2, 0, 0, f'python {4700 + rank}'), (3, 0, 0, 'p2p queue')])
        f.clocks([0, 2], [0])
        for step in range(2):
            at = step * 125.0
            f.ranges([(STEP, 2, 0, step, at, step, False, 0, -1, -1), (RANGE, 2, 3, step, at + 0.1, at + 0.4, False, 0, -1, -1)])
            f.ranges([(RANGE, 1, 0, step, at + a, at + b, True, kind, mb, -1) for kind, mb, a, b in schedule(rank)])
            other = 1 - rank
            kinds = {0: (SEND_F, RECV_B), 1: (RECV_F, SEND_B)}[rank]
            f.ranges([(RANGE, 3, 0, step, at + 20 + 10 * mb, at + 20.3 + 10 * mb, False, kinds[0], mb, other) for mb in range(3)])
            f.ranges([(RANGE, 3, 0, step, at + 60 + 10 * mb, at + 60.3 + 10 * mb, False, kinds[1], mb, other) for mb in range(3)])
            f.ranges([(RANGE, 1, 0, step, at + 114, at + 120, True, OPTIMIZER, -1, -1)])
            f.ranges([(COUNTER, 2, 1, step, at + 121, 2.5 - step, False, 0, -1, -1), (INSTANT, 2, 2, step, at + 122, 0, False, 0, -1, -1)])
        f.clocks([260], [250])
        f.gap(5, 3)  # three ranges of another lane were captured
        data = f.data
        if rank == 0:
            f.chunk(7, b'{"records":42}')
            data = f.data
        else:  # the messages of the first step took a hit, and the writer was killed in the middle of a chunk
            hit = [i for i in range(len(data)) if data.startswith(b'SLCK', i) and data[i + 4] == 4][2]
            data = data[:hit + 40] + b'\xff' + data[hit + 41:] + data[64:90]
        (folder / f'node{rank}.r{rank:05}.p{100 + rank}.1760000000.000.slrec').write_bytes(data)


COLLECTIVE, LOAD = 10, 12
TRAINING_STEPS, TRANSFER = 21, 4.0


def training_times(rank, step, fault):
    """The ms of a rank's step: data wait, forward, backward, and unrecorded time after the optimizer."""
    wait, forward, backward, after = 0.5, 10.0, 20.0, 0.3
    if fault == 'data':
        wait = 15.0
    if fault == 'data on one' and rank == 2:
        wait = 9.0
    if fault == 'straggler' and rank == 1:
        forward = 17.0
    if fault == 'pause' and rank == 3 and step in (6, 13):
        after = 300.0
    if fault == 'pause of all' and step in (6, 13):
        after = 300.0
    if fault == 'between':
        after = 12.0
    if fault == 'in turns' and rank == step % 4:
        backward = 26.0
    return wait, forward, backward, after


def make_training(folder, fault='', ranks=4, own_batches=False):
    """DDP: each step waits for its data, runs forward and backward, waits in backward until the gradients of all are reduced, steps its
    optimizer. The reduction ends at one time on all ranks, `TRANSFER` ms after the last of them has its gradients. With `own_batches` no wait for
    data is recorded, and collectives are on the thread alone, as under FSDP2."""
    transfer = {'wire': 25.0}.get(fault, TRANSFER)
    files = [File(rank, f'node{rank // 2}', world=ranks, stage=0, dp_rank=rank, pp=1) for rank in range(ranks)]
    text = f'all_reduce of gradients (default_pg, {ranks} ranks)'
    for rank, f in enumerate(files):
        f.names(['data wait', text, f'wait for {text}'])
        f.lanes([(1, 0, 0, f'python {4700 + rank}'), (2, 0, 0, 'collectives')])
        f.clocks([0], [])
    at = [0.0] * ranks
    for step in range(TRAINING_STEPS):
        times = [training_times(rank, step, fault) for rank in range(ranks)]
        begun = [a + wait + forward for a, (wait, forward, _, _) in zip(at, times)]
        there = [b + backward for b, (_, _, backward, _) in zip(begun, times)]
        done = max(there) + transfer
        for rank, f in enumerate(files):
            wait, forward, _, after = times[rank]
            a, b = at[rank], begun[rank]
            load = [] if own_batches else [(RANGE, 1, 1, step, a, a + wait, False, LOAD, 0, -1)]
            behind = [] if own_batches else [(RANGE, 2, 2, step, b + 5, done, False, COLLECTIVE, 0, -1, 8_000_000, 0)]
            f.ranges([*load, (STEP, 1, 0, step, a + wait, step, False, 0, -1, -1),
                      (RANGE, 1, 0, step, a + wait, b, False, FORWARD, 0, -1), *behind,
                      (RANGE, 1, 3, step, there[rank], done, False, COLLECTIVE, 0, -1),
                      (RANGE, 1, 0, step, b, done + 0.2, False, BACKWARD, 0, -1),
                      (RANGE, 1, 0, step, done + 0.3, done + 2.3, False, OPTIMIZER, -1, -1)])
            at[rank] = done + 2.3 + after
    for rank, f in enumerate(files):
        f.clocks([at[rank] + 5], [])
        f.chunk(7, b'{"records":42}')
        (folder / f'node{rank // 2}.r{rank:05}.p{100 + rank}.1760000000.000.slrec').write_bytes(f.data)


def make_kernels(folder):
    """Two stages that record kernels too: each job is launched on the thread and runs two kernels; a copy, a message; the last kernel's launch was lost."""
    for rank in range(2):
        f = File(rank, 'node0')
        texts = ['gemm', 'ncclDevKernel_SendRecv', 'Memcpy HtoD', 'cudaLaunchKernel', 'cudaMemcpyAsync', 'cuLaunchKernel']
        f.names(texts)
        gemm, message, copy, launch, call, driver = range(1, 7)
        f.lane_rows([(1, 6, 0, -1, 4700 + rank, 0, f'thread {4700 + rank}'), (2, 0, 0, -1, 4700 + rank, 0, f'python {4700 + rank}'),
                     (3, 5, 0, rank, 1, 7, f'GPU {rank} stream 7'), (4, 5, 0, rank, 1, 20, f'GPU {rank} stream 20')])
        f.clocks([0, 2], [])
        number = 100
        for step in range(2):
            at, records = step * 125.0, []
            f.ranges([(STEP, 2, 0, step, at, step, False, 0, -1, -1)])

            def work(lane, name, start, dur, how, size=-1):
                nonlocal number
                number += 1
                if how:
                    records.append((RANGE, 1, how, step, at + start - 0.5, at + start - 0.45, False, 0, -1, -1, -1, number))
                records.append((RANGE, lane, name, step, at + start, at + start + dur, False, 0, -1, -1, size, number))

            jobs = schedule(rank)
            f.ranges([(RANGE, 2, 0, step, at + a - 0.9, at + a + 0.5, False, kind, mb, -1) for kind, mb, a, b in jobs])
            for kind, mb, a, b in jobs:
                work(3, gemm, a, (b - a) * 0.4, launch)
                work(3, gemm, a + (b - a) * 0.5, (b - a) * 0.4, driver)
                work(4, message, b, 0.3, launch)
            work(3, copy, 115, 1, call, 8_000_000)
            work(3, gemm, 117, 2, 0)
            f.ranges(records)
        f.clocks([260], [])
        f.chunk(7, b'{"records":1}')
        (folder / f'node0.r{rank:05}.p{100 + rank}.1760000000.000.slrec').write_bytes(f.data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', dest='folder', required=True, type=pathlib.Path, help='folder to write to')
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)


if __name__ == '__main__':
    main()
