#!/usr/bin/env python3
"""./dev compare --record: frameworks train without a pipeline under `stageline record`, each with planted faults that explain must name.

training.py [--only WAY[-FAULT],…] [--keep DIR]     exit 1 when something is not recorded or not named

train_plainly.py is the program: torch's DDP and FSDP2, transformers' Trainer, Accelerate, Lightning, on two processes
over gloo. A way whose package cannot be installed is skipped.
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

from recorded_jobs import BIN, HERE, SECONDS, find_torch, run, torchrun
import pipelines

PACKAGES = {'ddp': 'torch', 'fsdp2': 'torch', 'trainer': 'transformers, accelerate', 'accelerate': 'accelerate', 'lightning': 'lightning'}
# fault → the required finding of explain, and a word of its title.
FAULTS = {'': (None, ''), 'data': ('input.loading', ''), 'straggler': ('rank.late', 'rank 1'), 'pause': ('step.outlier', 'rank 0'),
          'wire': ('comm.exposed', '')}
STEPS = 20


def jobs_differ(folder):
    """'' where each rank has a forward and a backward in each of the steps, a collective, and its optimizers."""
    rows = list(csv.DictReader(io.StringIO(subprocess.run([BIN, 'export', folder, '--to', 'csv', '-o', '-'], capture_output=True, text=True).stdout)))
    for rank in ('0', '1'):
        steps = collections.defaultdict(collections.Counter)
        for row in rows:
            if row['rank'] == rank:
                steps[int(row['step'])][row['kind']] += 1
        if len(steps) != STEPS:
            return f'rank {rank} has {len(steps)} steps, ran {STEPS}'
        for step, kinds in steps.items():
            if (kinds['F'], kinds['B']) != (1, 1) or kinds['C'] < 1:
                return f'rank {rank}, step {step}: {dict(kinds)}'
        optimizers = sum(kinds['O'] for kinds in steps.values())  # the first may be over before the recording has begun
        if optimizers < STEPS - 1:
            return f'rank {rank}: {optimizers} optimizer steps of {STEPS}'
    return ''


def compare(tally, python, way, fault, folder):
    what = f'{way} {fault}'.strip()
    try:
        done = run(torchrun(python, 2, HERE / 'train_plainly.py', way, *([fault] if fault else [])), folder)
    except subprocess.TimeoutExpired:
        tally.check(what, f'not trained within {SECONDS} s')
        return
    if done.returncode != 0 or 'none dropped' not in done.stderr or 'is not recorded' in done.stderr:
        tally.check(what, f'exit {done.returncode}: {done.stderr[-600:]}')
        return
    tally.check(f'{what}: jobs', jobs_differ(folder))
    reported = json.loads(subprocess.run([BIN, 'explain', folder, '--format', 'json'], capture_output=True, text=True).stdout)
    wanted, word = FAULTS[fault]
    titles = [f'{f["id"]}: {f["title_en"]}' for f in reported['findings']]
    if wanted:
        found = [f for f in reported['findings'] if f['id'] == wanted and word in f['title_en']]
        tally.check(f'{what}: named', '' if found and reported['findings'].index(found[0]) < 2 else f'not among the first two: {titles}')
    print(f'{what}: {reported["step_ns"] / 1e6:.1f} ms a step; {titles[0] if titles else "nothing to say"}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default='')
    parser.add_argument('--keep', default='')
    options = parser.parse_args()
    python = find_torch('training under stageline record')
    if not python:
        return 0
    only = [name for name in options.only.split(',') if name]
    tally, skipped = pipelines.Tally(12), 0
    with tempfile.TemporaryDirectory() as scratch:
        for way, packages in PACKAGES.items():
            if subprocess.run([python, '-c', f'import {packages}'], capture_output=True).returncode != 0:
                skipped += 1
                print(f'skipped: {way}, {packages} is not there')
                continue
            for fault in FAULTS:
                name = f'{way}-{fault}' if fault else way
                if only and name not in only and way not in only or not only and fault and packages != 'torch' and fault != 'straggler':
                    continue
                compare(tally, python, way, fault, pathlib.Path(options.keep or scratch).resolve() / name)
    print(f'{tally.passed} passed, {tally.failed} failed, {skipped} skipped')
    return 1 if tally.failed else 0


if __name__ == '__main__':
    sys.exit(main())
