#!/usr/bin/env python3
"""Writes a dashboard folder of miles: phases of training ranks and of rollouts, and trajectories.

    miles.py [--ranks 4] [--steps 4] [--long-step 2] [--long-s 20] -o FOLDER

A step is a rollout of six trajectories, for which all ranks wait, then training and the sync of the weights. In
--long-step one trajectory takes --long-s more than the slowest of the others. Times are seconds since the epoch.
"""
import argparse
import json
import pathlib

EPOCH_NS = 1_789_380_000_236_048_000
LENGTHS_MS = (9_000, 21_000, 17_500, 12_250, 20_000, 15_000)  # of the trajectories, which start 100 ms apart


def seconds(ns):
    return float(f'{ns // 10**9}.{ns % 10**9:09d}')


class Dashboard:
    """Has the lines of phases and of trajectories. `tails` are (step, trajectory, ns that it runs alone)."""

    def __init__(self, ranks=4, steps=4, long_step=2, long_s=20, asynchronous=False):
        self.ranks, self.phases, self.events, self.tails, self.lengths_ns = ranks, [], [], [], []
        at = EPOCH_NS
        for step in range(steps):
            at = self.step(step, at, long_s * 10**9 if long_step in (step, 'all') else 0, asynchronous)
        self.phase('rollout', at, None, -1, 'rollout_manager')  # still runs

    def phase(self, name, start, end, rank, role='train', gpus=None):
        self.phases.append({'name': name, 't0': seconds(start), 't1': -1.0 if end is None else seconds(end), 'node': 'node-0',
                            'gpus': [rank] if gpus is None and rank >= 0 else gpus or [], 'rank': rank, 'role': role})

    def step(self, step, start, longer, asynchronous):
        ends = []
        for k, ms in enumerate(LENGTHS_MS):
            began = start + 200_000_000 + 100_000_000 * k
            ended = began + ms * 10**6 + (longer if k == 1 else 0)
            ends.append(ended)
            for kind, at, turn in (('attempt_start', began, -1), ('gen_start', began, 1), ('gen_end', ended, 1), ('attempt_end', ended, -1)):
                self.events.append({'ts': seconds(at), 'kind': kind, 'turn': turn, 'detail': '', 'sample_index': 6 * step + k, 'group_index': 2 * step + k // 3, 'weight_version': str(step)})
        order = sorted(ends)
        self.tails.append((step, f'trajectory {6 * step + ends.index(order[-1])}', order[-1] - order[-2]))
        end = order[-1] + 100_000_000
        self.phase('rollout', start, None, -1, 'rollout_manager')
        self.phase('rollout', start, end, -1, 'rollout_manager')
        waited = start + 5 * 10**9 if asynchronous else end  # an asynchronous trainer has a batch long before the rollout ends
        for rank in range(self.ranks):
            self.phase('train_wait', start, waited, rank)
            self.phase('actor_train', waited, waited + 18 * 10**9, rank)
        trained = waited + 18 * 10**9
        self.phase('update_weights', trained, trained + 2 * 10**9, 0, gpus=list(range(self.ranks)))
        after = max(trained + 2 * 10**9, end) + 100_000_000
        self.lengths_ns.append(after - start)
        return after

    def write(self, folder):
        folder = pathlib.Path(folder)
        (folder / 'phases').mkdir(parents=True, exist_ok=True)
        for name, rows in (('phases/20260914_10.jsonl', self.phases), ('trajectories.jsonl', self.events)):
            (folder / name).write_text(''.join(json.dumps(row) + '\n' for row in rows))
        (folder / 'meta.json').write_text(json.dumps({'run_name': 'grpo', 'start_ts': seconds(EPOCH_NS), 'args': {}, 'schema_version': 1}))
        return folder


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ranks', type=int, default=4)
    parser.add_argument('--steps', type=int, default=4)
    parser.add_argument('--long-step', type=int, default=2)
    parser.add_argument('--long-s', type=float, default=20)
    parser.add_argument('-o', '--output', required=True)
    args = parser.parse_args()
    print(Dashboard(args.ranks, args.steps, args.long_step, int(args.long_s)).write(args.output))
