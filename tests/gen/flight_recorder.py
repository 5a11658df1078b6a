#!/usr/bin/env python3
"""Dumps of torch.distributed's flight recorder, as NCCL and gloo ranks write them, with planted faults.

    flight_recorder.py [--ranks 4] [--steps 3] [--fault KIND:RANK] [--messages] [--json] [--gloo] [--ring N] -o FOLDER

Every step each rank calls all_reduce and _all_gather_base on all ranks, then all_reduce in its group of two ("TP").
With --messages the lower rank of a pair sends to the upper one. After the last step comes one more all_reduce of all
ranks, which has the fault. It is missing, sizes, type, dtype, stuck, twisted (input and output differ), none (all have
completed), or underway (no rank has). With `ring`, ranks 0 and 1 wait for each other in two groups. Source of the keys:
FlightRecorder formats 2.9 and 2.10.
"""
import argparse
import json
import pathlib
import pickle

BEGIN = 1_795_382_776_000_000_000


class Rank:
    def __init__(self, rank, options):
        self.rank, self.options, self.entries, self.sequences, self.ops = rank, options, [], {}, {}
        self.now = BEGIN + rank * 2_000
        pair = rank // 2 * 2
        self.groups = {'0': ('default_pg', list(range(options.ranks))), str(1 + rank // 2): ('TP', [pair, pair + 1])}
        if options.fault[0] == 'ring':
            self.groups['7'] = ('PP', [0, 1])

    def call(self, group, op, sizes_in, sizes_out, state='completed', dtype='Float', line=40, dtype_out=None):
        sequence = self.sequences.setdefault(group, [0, 0])
        is_p2p = op.startswith(('send', 'recv'))
        sequence[is_p2p] += 1
        self.now += 2_000_000
        done, gloo = state == 'completed', self.options.gloo
        entry = {
            'frames': [{'name': 'train_step', 'filename': '/job/train.py', 'line': line}, {'name': '<module>', 'filename': '/job/train.py', 'line': 90}],
            'record_id': len(self.entries), 'pg_id': int(group), 'process_group': (group, self.groups[group][0]),
            'thread_name': 'python', 'thread_id': '1000', 'collective_seq_id': sequence[0], 'p2p_seq_id': sequence[1],
            'op_id': sum(sequence), 'profiling_name': ('gloo:' if gloo else 'nccl:') + op, 'time_created_ns': self.now,
            'input_sizes': sizes_in, 'input_dtypes': [dtype] * len(sizes_in), 'output_sizes': sizes_out,
            'output_dtypes': [dtype_out or dtype] * len(sizes_out), 'state': 'scheduled' if gloo else state,
            'time_discovered_started_ns': self.now + 100_000 if state != 'scheduled' and not gloo else None,
            'time_discovered_completed_ns': self.now + 1_400_000 if done and not gloo else None,
            'retired': done or self.options.timed_out, 'timeout_ms': 600_000, 'is_p2p': is_p2p}
        if done and not gloo:
            entry['duration_ms'] = 1.25
        self.entries.append(entry)

    def dump(self):
        config = {name: {'name': name, 'desc': desc, 'ranks': str(ranks)} for name, (desc, ranks) in self.groups.items()}
        if self.options.gloo:  # it names the group that was made last, under no name
            config = {'': {'name': '', 'desc': '', 'ranks': '[0, 1]'}}
        kept = self.entries[-self.options.ring:] if self.options.ring else self.entries
        return {'version': '2.10', 'pg_config': config, 'comm_lib_version': '2.30.7',
                'pg_status': {'0': {'last_enqueued_collective': 1, 'last_started_collective': 1, 'last_completed_collective': 1}}, 'entries': kept}


def make(options):
    kind, culprit = options.fault
    ranks = [Rank(r, options) for r in range(options.ranks)]
    n = options.ranks
    for rank in ranks:
        pair = str(1 + rank.rank // 2)
        for step in range(options.steps):
            rank.call('0', 'all_reduce', [[64, 32]], [[64, 32]])
            rank.call('0', '_all_gather_base', [[64, 32]], [[64 * n, 32]])
            rank.call(pair, 'all_reduce', [[8, 32]], [[8, 32]], line=41)
            if options.messages:
                first = rank.rank // 2 * 2
                if rank.rank == first:
                    rank.call('0', f'send {first}->{first + 1}', [[64, 32]], [], line=50 + step)
                else:
                    rank.call('0', f'recv {first + 1}<-{first}', [], [[64, 32]], line=50 + step)
        me, op, sizes, out, dtype, state = rank.rank == culprit, 'all_reduce', [[10]], [[10]], 'Float', 'started'
        if kind == 'ring':
            # Rank 0 is in TP first, rank 1 in PP: each waits where the other comes later.
            if rank.rank < 2:
                rank.call('1' if rank.rank == 0 else '7', 'all_reduce', [[4]], [[4]], state='started', line=60 + rank.rank)
            continue
        if kind == 'missing' and me:
            continue
        if kind == 'type' and me:
            op = 'broadcast'
        if kind == 'sizes' and me:
            sizes = out = [[12]]
        if kind == 'twisted' and me:
            out = [[20]]
        if kind == 'dtype' and me:
            dtype = 'BFloat16'
        if kind == 'none' or (kind == 'stuck' and not me):
            state = 'completed'
        rank.call('0', op, sizes, out, state=state, dtype=dtype, line=42)
    return {rank.rank: rank.dump() for rank in ranks}


def write(dumps, folder, as_json=False):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank, dump in dumps.items():
        if not as_json:
            (folder / f'nccl_trace_rank_{rank}').write_bytes(pickle.dumps(dump, protocol=2))
            continue
        # JSON has no frames, zeros for what never was, and numbers of groups as texts.
        for entry in dump['entries']:
            del entry['frames']
            for key in ('time_discovered_started_ns', 'time_discovered_completed_ns'):
                entry[key] = entry[key] or 0
        (folder / f'fr_{rank}.json').write_text(json.dumps(dump))


def parse(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument('--ranks', type=int, default=4)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--fault', default='none:0', type=lambda text: (text.split(':')[0], int(text.split(':')[1])))
    for flag in ('--messages', '--json', '--gloo', '--timed-out'):
        parser.add_argument(flag, action='store_true')
    parser.add_argument('--ring', type=int, default=0)
    parser.add_argument('-o', dest='folder')
    return parser.parse_args(arguments)


if __name__ == '__main__':
    given = parse()
    write(make(given), given.folder, given.json)
