#!/usr/bin/env python3
"""Pipeline cells of real torch.distributed.pipelining runs against the schedule objects that ran.

pipelines.py [--only CASE,CASE] [--recorded DIR] [--show N]    exit 1 when something differs

Every case of record_pipelines.py is tried twice: as recorded (annotations and frames), and without `PP:…`, `Forward i`
and `Backward i` in the traces. Then only messages and autograd's numbers are left. Per rank and step, kinds, order,
stages and micro-batches are compared with the executed work of the stage objects. Each cell must be within the time of
its call. Facts that a case cannot contain are listed in LESS with the reason, and must be reported as unknown, not
guessed. Traces of tests/gen/kineto.py --shape pipeline are made and asked the same way, with and without annotations.
"""
import argparse
import csv
import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BIN = os.environ.get('STAGELINE_BIN', str(HERE.parents[1] / 'build/dev/stageline'))
sys.path.insert(0, str(HERE.parent / 'gen'))
import kineto  # noqa: E402

# case: the reason why messages alone are not enough.
LESS = {
    'zbv': 'a V sends both ways, and gloo without record_shapes does not say to whom',
    'dualpipe-v': 'a V sends both ways, and gloo without record_shapes does not say to whom',
}
NOTES = re.compile(r'^(PP:.*|(Forward|Backward) \d+)$')
SLACK_NS = 200_000  # the clock of the truth is read in Python, before and after the call


def cells_of(folder, *flags):
    """By (rank, step): [(kind, stage, micro-batch, start, end)] of compute cells by start; and what was said on the way."""
    done = subprocess.run([BIN, 'export', str(folder), '--to', 'csv', '-o', '-', *flags], capture_output=True, text=True,
                          env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1'})
    if done.returncode != 0:
        return None, done.stderr
    out, stages = {}, {}
    for row in csv.DictReader(io.StringIO(done.stdout)):
        if row.get('kind') not in ('F', 'B', 'I', 'W', 'F&B'):
            continue
        start = int(row['start_ns'])
        out.setdefault((int(row['rank']), int(row['step'])), []).append(
            (row['kind'], int(row['chunk'] or -1), int(row['micro_batch'] or -1), start, start + int(row['dur_ns'])))
        stages[int(row['rank'])] = int(row['stage'] or -1)
    for cells in out.values():
        cells.sort(key=lambda cell: cell[3])
    return out, stages


def without_notes(source, target):
    for path in sorted(source.glob('rank*.json.gz')):
        trace = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)
        trace['traceEvents'] = [e for e in trace['traceEvents'] if not NOTES.match(str(e.get('name', '')))]
        text = json.dumps(trace)
        text = re.sub(r'"(ts|dur)": "([0-9.]+)"', r'"\1": \2', text)  # decimals as they were written
        (target / path.name).write_bytes(gzip.compress(text.encode(), 1))


class Tally:
    def __init__(self, show):
        self.passed, self.failed, self.show = 0, 0, show

    def check(self, what, problem):
        if not problem:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= self.show:
            print(f'{what}: {problem}'[:600])


def action(text):
    stage, kind, micro_batch = re.match(r'(\d+)([FBIW])(\d+)$', text).groups()
    return kind, int(stage), int(micro_batch)


def as_run(calls):
    """The visible part of the calls: torch's first stage needs no input gradients and does its whole backward in W."""
    split = {call[0][2:] for call in calls if call[0].startswith('0W')}
    out = []
    for name, start, end in calls:
        kind, stage, micro_batch = action(name)
        if stage == 0 and str(micro_batch) in split and kind != 'F':
            if kind == 'W':
                out.append((f'0B{micro_batch}', start, end))
        else:
            out.append((name, start, end))
    return out


def compare(tally, what, cells, place, expected, times):
    """expected: {(rank, step): ["2F0", …]}; times: the same keys, [(start, end)]; place(rank, chunk) → virtual stage."""
    for key, wanted in expected.items():
        found = [f'{place(key[0], cell[1])}{cell[0]}{cell[2]}' for cell in cells.get(key, [])]
        calls = list(times[key])
        for i in range(min(len(found), len(wanted)) - 1):  # an overlapped pair has one time; the order of its halves is not said
            if cells[key][i][3:] == cells[key][i + 1][3:]:
                if found[i:i + 2] == wanted[i:i + 2][::-1]:
                    found[i:i + 2] = wanted[i:i + 2]
                calls[i:i + 2] = [(min(calls[i][0], calls[i + 1][0]), max(calls[i][1], calls[i + 1][1]))] * 2
        if found != wanted:
            at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), min(len(found), len(wanted)))
            tally.check(f'{what}: rank {key[0]} step {key[1]}',
                        f'{len(found)} cells of {len(wanted)}; from {at}: found {" ".join(found[at:at + 8])}, ran '
                        f'{" ".join(wanted[at:at + 8])}')
            continue
        tally.check(what, '')
        # Work ends before the next call begins: the loss is computed after the call of the last stage's forward.
        ends = [max(end, after) for (_, end), (after, _) in zip(calls, calls[1:])] + [1 << 62]
        late = [f'{w} by {start - cell[3]} and {cell[4] - end} ns' for w, cell, (start, _), end in zip(wanted, cells[key], calls, ends)
                if cell[3] < start - SLACK_NS or cell[4] > end + SLACK_NS]
        tally.check(f'{what}: rank {key[0]} step {key[1]}', late and f'outside of the call: {" ".join(late[:8])}')


def recorded(tally, folder, options):
    truth = json.loads(gzip.decompress((folder / 'truth.json.gz').read_bytes()))
    stages = truth['stages_of_rank']
    executed = {(rank, number): calls for rank, steps in enumerate(truth['executed']) for number, calls in enumerate(steps, 1)}
    with tempfile.TemporaryDirectory() as scratch:
        without_notes(folder, pathlib.Path(scratch))
        for how, source, flags in (('named', folder, []), ('inferred', scratch, ['--cells', 'inferred'])):
            if options.how and how != options.how:
                continue
            cells, note = cells_of(source, *flags)
            if how == 'inferred' and folder.name in LESS:
                tally.check(f'{folder.name} {how}', '' if cells is None and 'none' in note else f'told, though {LESS[folder.name]}')
                continue
            if cells is None:
                tally.check(f'{folder.name} {how}', note)
                continue
            seen = {key: as_run(calls) if how == 'inferred' else calls for key, calls in executed.items()}
            compare(tally, f'{folder.name} {how}', cells,
                    lambda rank, chunk: stages[rank][chunk] if 0 <= chunk < len(stages[rank]) else -1,
                    {key: [call[0] for call in calls] for key, calls in seen.items()},
                    {key: [tuple(call[1:]) for call in calls] for key, calls in seen.items()})


def generated(tally, options):
    for notes in ('none', 'actions', 'numbers', 'megatron'):
        for dp in (1, 2):
            with tempfile.TemporaryDirectory() as scratch:
                kineto.generate(['--shape', 'pipeline', '--notes', notes, '--ranks', 4 * dp, '--dp', dp, '--steps', 2, '-o', scratch])
                truth = json.loads((pathlib.Path(scratch) / 'truth.json').read_text())
                expected, times = {}, {}
                for rank, steps in enumerate(truth['order']):
                    for at, order in enumerate(steps):
                        stage = truth['stage_of_rank'][rank]
                        expected[rank, 100 + at] = [f'{stage}{cell}' for cell in order]
                        times[rank, 100 + at] = [tuple(truth['cells'][rank][at][cell]) for cell in order]
                cells, stages = cells_of(scratch)
                if cells is None:
                    tally.check(f'generated {notes}', stages)
                    continue
                compare(tally, f'generated {notes} dp {dp}', cells, lambda rank, chunk: stages[rank], expected, times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default='')
    parser.add_argument('--how', choices=('named', 'inferred'))
    parser.add_argument('--recorded', type=pathlib.Path, default=HERE / 'recorded' / 'pipelines')
    parser.add_argument('--show', type=int, default=12)
    options = parser.parse_args()
    only = [name for name in options.only.split(',') if name]
    tally = Tally(options.show)
    for folder in sorted(options.recorded.iterdir()):
        if not only or folder.name in only:
            recorded(tally, folder, options)
    if not only or 'generated' in only:
        generated(tally, options)
    print(f'{tally.passed} of {tally.passed + tally.failed} passed: cells of recorded and generated pipelines')
    return 1 if tally.failed else 0


if __name__ == '__main__':
    sys.exit(main())
