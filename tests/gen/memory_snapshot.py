#!/usr/bin/env python3
"""Snapshots of PyTorch's allocator as torch.cuda.memory._dump_snapshot writes them, from a small built-in allocator.

    memory_snapshot.py [--oom full|fragmented|split|elsewhere] [--old] [--no-times] [--expandable] [--json] [--protocol 5] -o FILE

The allocator here has segments of 20 MiB, first fit, rounds to 512 bytes, and records its actions. So its state at any
time is known independently of the file (make() returns it).
"""
import argparse
import json
import pathlib
import pickle

MIB = 1 << 20
FRAMES = {name: [{'name': name, 'filename': '/job/train.py', 'line': 10 + i}, {'name': 'main', 'filename': '/job/train.py', 'line': 90}]
          for i, name in enumerate(('forward', 'backward', 'optimizer_step', 'init'))}


class Allocator:
    def __init__(self, capacity, times=True, expandable=False, categories=True, base=0x7F0000000000):
        self.capacity, self.times, self.expandable, self.categories = capacity, times, expandable, categories
        self.segments, self.blocks, self.trace = {}, {}, []  # address → size; address → (size, requested, state, frames)
        self.next, self.us, self.held, self.peak = base, 1_795_382_536_000_000, 0, 0
        self.recording = False

    def say(self, action, addr, size, frames, **more):
        self.us += 10
        if not self.recording:
            return
        entry = {'action': action, 'addr': addr, 'size': size, 'stream': 0, 'frames': FRAMES[frames], **more}
        if self.times:
            entry['time_us'] = self.us
        self.trace.append(entry)

    def free_pieces(self):
        for begin, size in sorted(self.segments.items()):
            at = begin
            for address in sorted(a for a in self.blocks if begin <= a < begin + size):
                if address > at:
                    yield at, address - at
                at = address + self.blocks[address][0]
            if at < begin + size:
                yield at, begin + size - at

    def alloc(self, size, frames, category=None):
        rounded = -(-size // 512) * 512
        place = next((a for a, free in self.free_pieces() if free >= rounded), None)
        if place is None:
            take = max(20 * MIB, -(-rounded // (2 * MIB)) * 2 * MIB)
            left = self.capacity - sum(self.segments.values())
            if take > left:
                self.say('oom', left, rounded, frames, device_free=left)
                return None
            place = self.next
            self.next += take if self.expandable else take + 64 * MIB
            self.segments[place] = take
            self.say('segment_map' if self.expandable else 'segment_alloc', place, take, frames)
        self.blocks[place] = (rounded, size, 'active_allocated', frames)
        self.held += size
        self.peak = max(self.peak, self.held)
        self.say('alloc', place, size, frames, **({'category': category} if category and self.categories else {}))
        return place

    def free(self, address, complete=True):
        rounded, size, _, frames = self.blocks[address]
        self.say('free_requested', address, size, frames)
        if not complete:
            self.blocks[address] = (rounded, size, 'active_pending_free', frames)
            return
        self.say('free_completed', address, size, frames)
        self.held -= size
        del self.blocks[address]

    def snapshot(self, old=False, limit=None):
        segments = []
        spans = sorted(self.segments.items())
        if self.expandable and spans:  # one segment of all that touch
            joined = [list(spans[0])]
            for begin, size in spans[1:]:
                if joined[-1][0] + joined[-1][1] == begin:
                    joined[-1][1] += size
                else:
                    joined.append([begin, size])
            spans = joined
        free = dict()
        for at, size in self.free_pieces():
            free[at] = size
        for begin, size in spans:
            blocks, at = [], begin
            while at < begin + size:
                if at in self.blocks:
                    rounded, requested, state, frames = self.blocks[at]
                    block = {'size': rounded, 'state': state}
                    if old:
                        block['history'] = [{'addr': at, 'real_size': requested, 'frames': FRAMES[frames]}]
                    else:
                        block.update(address=at, requested_size=requested, frames=FRAMES[frames])
                    blocks.append(block)
                    at += rounded
                else:
                    blocks.append({'size': free[at], 'state': 'inactive', **({} if old else {'address': at, 'requested_size': 0})})
                    at += free[at]
            segment = {'device': 0, 'address': begin, 'total_size': size, 'stream': 0, 'segment_type': 'large', 'blocks': blocks,
                       'allocated_size': sum(b['size'] for b in blocks if b['state'] == 'active_allocated'),
                       'active_size': sum(b['size'] for b in blocks if b['state'] != 'inactive')}
            if not old:
                segment.update(segment_pool_id=(0, 0), is_expandable=self.expandable, frames=FRAMES['init'])
            segments.append(segment)
        out = {'segments': segments, 'device_traces': [self.trace]}
        if not old:
            out['allocator_settings'] = {'PYTORCH_CUDA_ALLOC_CONF': '', 'max_split_size': -1, 'expandable_segments': self.expandable}
            out['external_annotations'] = []
        return out


def make(oom=None, times=True, expandable=False, categories=True, steps=2, base=0x7F0000000000):
    """The allocator after a small training job, its history begun after the parameters were made."""
    a = Allocator({None: 400 * MIB, 'full': 80 * MIB, 'fragmented': 80 * MIB, 'split': 90 * MIB, 'elsewhere': 400 * MIB}[oom], times, expandable, categories, base)
    parameters = [a.alloc(3 * MIB + 100, 'init', 'parameter') for _ in range(4)]
    a.recording = True
    for _ in range(steps):
        activations = [a.alloc(5 * MIB, 'forward', 'activation') for _ in range(4)]
        gradients = []
        for one in reversed(activations):
            gradients.append(a.alloc(3 * MIB + 100, 'backward', 'gradient'))
            a.free(one)
        for one in gradients:
            a.free(one)
    state = [a.alloc(MIB, 'optimizer_step', 'optimizer_state') for _ in range(4)]
    if oom == 'full':
        big = a.alloc(40 * MIB, 'forward', 'activation')
        a.alloc(30 * MIB, 'forward', 'activation')
    if oom in ('fragmented', 'split'):
        pieces = [a.alloc(9 * MIB, 'forward', 'activation') for _ in range(6)]
        for one in pieces[::2]:
            a.free(one)
        a.alloc(19 * MIB if oom == 'fragmented' else 45 * MIB, 'backward', 'gradient')
    if oom == 'elsewhere':
        a.say('oom', 300 * MIB, 8 * MIB, 'forward', device_free=300 * MIB)
    a.free(state[0])
    a.free(state[1], complete=False)
    del parameters
    return a


def write(path, old=False, as_json=False, protocol=4, zeros=0, **options):
    a = make(**options)
    snapshot = a.snapshot(old)
    if old:
        for entry in snapshot['device_traces'][0]:
            entry.pop('time_us', None)
    path = pathlib.Path(path)
    path.write_bytes(json.dumps(snapshot).encode() if as_json else pickle.dumps(snapshot, protocol) + bytes(zeros))
    return a


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--oom', choices=('full', 'fragmented', 'split', 'elsewhere'))
    parser.add_argument('--old', action='store_true')
    parser.add_argument('--no-times', action='store_true')
    parser.add_argument('--expandable', action='store_true')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('--protocol', type=int, default=4)
    parser.add_argument('-o', '--output', required=True)
    args = parser.parse_args()
    write(args.output, args.old, args.json, args.protocol, oom=args.oom, times=not args.no_times, expandable=args.expandable)
