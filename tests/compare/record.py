#!/usr/bin/env python3
"""./dev compare --record: the installed torch trains a pipeline on four processes (torchrun, gloo, CPU) under `stageline record`.

record.py [--only CASE,CASE] [--marked] [--keep DIR]     exit 1 when something differs

Every cell is compared with what the stage objects ran (kinds, order, chunks, micro-batches, times), and the schedule that stageline
recognises with the class that ran. Each case once as it is, by the hooks, and 1f1b once more with a program that marks its jobs itself.
"""
import argparse
import collections
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile

from recorded_jobs import BIN, HERE, PACKAGE, SECONDS, find_torch, run, torchrun
import pipelines
import record_pipelines

# case → the schedule's name in stageline.
CASES = {'1f1b': '1f1b', 'interleaved': 'vpp', 'gpipe': 'fthenb', '1f1b-two-replicas': '1f1b', 'looped-bfs': 'bfs',
         'interleaved-zb': 'interleaved-zb', 'zbv': 'zb-v', 'dualpipe-v': 'dualpipe-v'}


def train(python, case, folder, marked):
    command = torchrun(python, 4, HERE / 'record_training.py', case, folder, *(['--marked'] if marked else []))
    return run(command, path=[PACKAGE], STAGELINE_DIR=folder / 'rec') if marked else run(command, folder / 'rec')


def messages_differ(recording, stages):
    """'' where every activation and gradient between stages of two ranks is there from both ends, with its bytes; else what is not."""
    rows = csv.DictReader(io.StringIO(subprocess.run([BIN, 'export', recording, '--to', 'csv', '-o', '-'], capture_output=True, text=True).stdout))
    found = {kind: collections.Counter() for kind in ('SF', 'RF', 'SB', 'RB')}
    for row in rows:
        if row['kind'] in found:
            rank = int(row['rank'])
            stage = stages[rank][int(row['chunk'])] + {'SF': 0, 'RF': -1, 'SB': 0, 'RB': 1}[row['kind']]  # the stage that sends
            found[row['kind']][row['step'], row['dp'], stage, row['micro_batch']] += 1
    if not found['SF'] or found['SF'] != found['RF'] or found['SB'] != found['RB']:
        return f'sent and received differ: {[(k, sum(v.values())) for k, v in found.items()]}'
    last = max(s for of in stages for s in of)
    crossing = sum(stages_rank != other for stages_rank, other in ((rank_of(stages, s), rank_of(stages, s + 1)) for s in range(last)))
    wanted = crossing * len({(k[0], k[1], k[3]) for k in found['SF']})
    return '' if sum(found['SF'].values()) == wanted else f'{sum(found["SF"].values())} sent forward, {wanted} expected'


def rank_of(stages, stage):
    return next(rank for rank, of in enumerate(stages) if stage in of)


def compare(tally, python, case, folder, marked):
    what = f'{case}{" marked" if marked else ""}'
    try:
        done = train(python, case, folder, marked)
    except subprocess.TimeoutExpired:
        tally.check(what, f'not trained within {SECONDS} s')
        return
    if done.returncode != 0:
        tally.check(what, f'exit {done.returncode}: {done.stderr[-600:]}')
        return
    if not marked:
        tally.check(what, '' if 'none dropped' in done.stderr else done.stderr[-400:])
    _, chunks, style, options = record_pipelines.CASES[case]
    stages = [record_pipelines.stages_of(r, chunks, style, 4 // options.get('replicas', 1)) for r in range(4)]
    executed = {(rank, step): calls for rank in range(4) for step, calls in enumerate(json.loads((folder / f'truth{rank}.json').read_text()))}
    cells, note = pipelines.cells_of(folder / 'rec')
    if cells is None:
        tally.check(what, note)
        return
    pipelines.compare(tally, what, cells, lambda rank, chunk: stages[rank][chunk], {k: [c[0] for c in v] for k, v in executed.items()},
                      {k: [tuple(c[1:]) for c in v] for k, v in executed.items()})
    tally.check(f'{what}: messages', '' if marked else messages_differ(folder / 'rec', stages))
    said = subprocess.run([BIN, 'info', folder / 'rec'], capture_output=True, text=True).stdout
    schedule = next((line.split(maxsplit=1)[1] for line in said.splitlines() if line.startswith('schedule ')), 'none')
    tally.check(what, '' if schedule.lower().startswith(CASES[case]) else f'recognised as {schedule}, ran {CASES[case]}')
    print(f'{what}: {schedule}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default='')
    parser.add_argument('--marked', action='store_true', help='only with the program that marks its jobs itself')
    parser.add_argument('--keep', default='')
    options = parser.parse_args()
    python = find_torch('training under stageline record')
    if not python:
        return 0
    only = [name for name in options.only.split(',') if name] or list(CASES)
    tally = pipelines.Tally(12)
    with tempfile.TemporaryDirectory() as scratch:
        for case, marked in [(c, False) for c in only if not options.marked] + [(c, True) for c in only if c == '1f1b' or options.marked]:
            folder = pathlib.Path(options.keep or scratch).resolve() / f'{case}{"-marked" if marked else ""}'
            folder.mkdir(parents=True)
            compare(tally, python, case, folder, marked)
    print(f'{tally.passed} of {tally.passed + tally.failed} passed: cells of recorded training')
    return 1 if tally.failed else 0


if __name__ == '__main__':
    sys.exit(main())
