#!/usr/bin/env python3
"""./dev compare --incidents: real training with planted faults, recorded, explained, and held to what the same program takes without them.

run.py [--only NAME,…] [--keep DIR] [--table]     DIR: where runs stay, and those that are there are asked again; exit 1 when a fault is not named or a price is off by more than it may be

It runs program.py. A pair is four runs, without the fault, with it, with it, without it, so that a machine that grows
slower meanwhile slows both. Step times come from the program's own clock. They are the median over both runs for the
steps with the same fault, and the mean of these medians. The truth is the difference; the noise is the difference of
two equal runs. The price is that of the finding that has one of the incident's keys, the mean of both runs with the
fault. A price may deviate by 8 points of the step, or by twice the noise if that is more; the mean of all by 3. Other
findings of 1 % of a step or more are counted: in runs with a fault those without any of its keys, in runs without one
all. --table prints rows for bench/README.md.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.setdefault('STAGELINE_BIN', str(ROOT / 'build/dev/stageline'))).resolve()
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'tests' / 'gen'), str(HERE)]
import rival as rivals  # noqa: E402
from finding_keys import keys_of  # noqa: E402

SECONDS, STEPS, WARM_UP = 300, 20, 2  # as in program.py, which needs torch
MEAN_POINTS, MOST_POINTS, TOLD = 0.03, 0.08, 0.01
GPIPE, INTERLEAVED = {'schedule': 'ScheduleGPipe', 'forward_ms': 8.0, 'backward_ms': 16.0}, {'schedule': 'ScheduleInterleaved1F1B', 'ranks': 2, 'chunks': 2}
REPLICAS = {'replicas': 2}
PLAIN = {'schedule': '', 'ranks': 2, 'forward_ms': 30.0, 'backward_ms': 60.0}


def rule(do, **where):
    return {'do': do, **where}


# name → (the program without the fault, the fault, keys that name it; a price that is not lost_ns; --profile)
INCIDENTS = {
    'slow stage': ({}, rule('work', rank=2, times=1.5), ('stage:2', 'rank:2')),
    'slow forward of a stage': ({}, rule('work', rank=1, kind='F', times=2), ('stage:1', 'rank:1')),
    'slow stage from step 10 on': ({}, rule('work', rank=1, times=1.6, **{'from': 10}), ('stage:1', 'rank:1', 'onset:*')),
    'stage slower with every step': ({}, rule('work', rank=1, grow=0.05), ('stage:1', 'rank:1', 'trend:*')),
    'slow stage, GPipe': (GPIPE, rule('work', rank=2, times=1.4), ('stage:2', 'rank:2')),
    'slow stage, interleaved': (INTERLEAVED, rule('work', rank=1, times=1.4), ('stage:1', 'rank:1', 'stage:1.*')),
    'slow chunk, interleaved': (INTERLEAVED, rule('work', rank=1, chunk=0, times=1.8), ('stage:1', 'stage:1.c0', 'chunk:1.0')),
    'slow rank of a stage': (REPLICAS, rule('work', rank=3, times=1.5), ('rank:3',)),
    'slow replica': (REPLICAS, rule('work', ranks=[2, 3], times=1.5), ('replica:1', 'ranks:*', 'rank:2', 'rank:3')),
    'first micro-batch long everywhere': ({}, rule('work', micro_batch=0, times=2.5), ('micro-batch:0',)),
    'warm-up step': ({}, rule('work', step=0, times=4), ('step:2',)),
    'late message, one way': ({}, rule('message', rank=1, peer=2, ms=12), ('link:1-2',)),
    'one message hangs': ({}, rule('message', rank=1, peer=2, ms=400, step=9, micro_batch=3), ('step:11', 'link:1-2')),
    'every ninth message late': ({}, rule('message', rank=2, peer=3, ms=40, micro_batch=4), ('link:2-3', 'messages')),
    'host late at every cell': ({}, rule('before', rank=1, ms=5), ('host:1', 'rank:1')),
    'host pauses': ({}, rule('before', rank=2, ms=60, micro_batch=5, every=3), ('host', 'host:2', 'gc', 'rank:2')),
    'garbage collection': ({}, rule('collect', rank=1, micro_batch=3, every=2), ('host', 'host:1', 'gc', 'rank:1')),
    'data every step': ({}, rule('data', ms=40), ('between-steps*',)),
    'data every fifth step': ({}, rule('data', ms=150, every=5), ('between-steps*',)),
    'checkpoint': ({}, rule('between', ms=800, step=10), ('between-steps*',)),
    'evaluation every fifth step': ({}, rule('between', ms=200, every=5), ('between-steps*',)),
    'slow optimizer': ({}, rule('optimizer', ms=30), ('tail:optimizer', 'tail')),
    'late reduction of gradients': (REPLICAS, rule('reduce', ms=30), ('tail*', 'between-steps*')),
    'DDP: data': (PLAIN, rule('data', ms=40), ('input*',)),
    'DDP: slow rank': (PLAIN, rule('work', rank=1, times=1.4), ('rank:1', 'rank*')),
    'DDP: data of one rank': (PLAIN, rule('data', rank=1, ms=40), ('rank:1', 'rank*', 'input*')),
    'DDP: one rank pauses': (PLAIN, rule('between', rank=1, ms=400, every=7), ('rank:1', 'step*', 'host*')),
    'DDP: checkpoint': (PLAIN, rule('between', ms=600, step=9), ('step*', 'outside', 'between-steps*')),
    'profile: slow stage, interleaved': (INTERLEAVED, rule('work', rank=1, times=1.4), ('stage:1', 'rank:1', 'stage:1.*'), {'profile': True}),
    'profile: slow stage, GPipe': (GPIPE, rule('work', rank=2, times=1.5), ('stage:2', 'rank:2'), {'profile': True}),
    'profile: data every step': (INTERLEAVED, rule('data', ms=40), ('between-steps*', 'input*'), {'profile': True}),
    'profile: slow optimizer': (INTERLEAVED, rule('optimizer', ms=40), ('tail*', 'between-steps*', 'optimizer*'), {'profile': True}),
}


def keys(finding):
    """The keys of a finding: those of its places, otherwise its id with the rank or step that it is about."""
    found = keys_of(finding)
    if not found:
        found.add(finding['id'])
    found |= {f'{what}:{finding[what]}' for what in ('rank', 'step') if finding.get(what) is not None}
    return found


def names(finding, wanted):
    return any(fnmatch.fnmatchcase(key, pattern) for key in keys(finding) for pattern in wanted)


def train(python, setup, folder, profile):
    """([ns of each step], what explain says). A run that is in the folder already (--keep) is not run again, only asked."""
    if not (folder / 'steps0.json').exists():
        run_program(python, setup, folder, profile)
    began = json.loads((folder / 'steps0.json').read_text())
    reported = subprocess.run([BIN, 'explain', folder if profile else folder / 'rec', '--format', 'json', '--quiet'], capture_output=True, text=True)
    if reported.returncode != 0:
        raise RuntimeError(reported.stderr[-600:])
    return [after - before for before, after in zip(began, began[1:])], json.loads(reported.stdout)


def run_program(python, setup, folder, profile):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = [python, str(HERE / 'program.py'), json.dumps(setup), str(folder), *(['--profile'] if profile else [])]
    recorder = [] if profile else [str(BIN), 'record', '-o', str(folder / 'rec'), '--steps', f'{WARM_UP}:{WARM_UP + STEPS - 1}', '--']
    environment = {k: v for k, v in os.environ.items() if not k.startswith('STAGELINE_')}
    environment.update(OMP_NUM_THREADS='1', GLOO_SOCKET_IFNAME='lo')
    done = subprocess.run([*recorder, *program], env=environment, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0 or not profile and 'none dropped' not in done.stderr:
        raise RuntimeError(f'exit {done.returncode}: {done.stderr[-600:]}')


def class_of(fault, step):
    """Returns the class of steps with the same fault. Rank 0, whose clock is used, waits in the next step for work of
    another rank at the end of a step."""
    if 'grow' in fault:
        return step
    own = step - (1 if fault['do'] == 'between' and fault.get('rank', 0) != 0 else 0)
    return (own == fault.get('step', own), own >= fault.get('from', 0), (own + 1) % fault.get('every', 1) == 0)


def step_ns(runs, fault):
    """Returns the median of the steps with the same fault, and the mean of these."""
    classes = [class_of(fault, step) for step in range(STEPS)]
    medians = {c: statistics.median(run[i] for run in runs for i in range(STEPS) if classes[i] == c) for c in set(classes)}
    return statistics.mean(medians[c] for c in classes)


def price_ns(reported, wanted, field):
    """The price of the largest finding that names the fault; None: none does."""
    found = [f for f in reported['findings'] if names(f, wanted)]
    return max(((f[field] if f.get('priced') else f.get('lost_ns')) or f['lost_share'] * reported['step_ns'] for f in found), default=None)


def others(reported, wanted):
    return [f'{f["id"]} {100 * f["lost_share"]:.1f} %' for f in reported['findings'] if not names(f, wanted) and f['lost_share'] >= TOLD]


def pair(python, name, folder):
    base, fault, wanted, *more = INCIDENTS[name]
    more = more[0] if more else {}
    well, ill = {**base, 'steps': STEPS}, {**base, 'steps': STEPS, 'faults': [fault]}
    runs = [train(python, setup, folder / f'{place}-{"ill" if setup is ill else "well"}', more.get('profile')) for place, setup in enumerate((well, ill, ill, well))]
    (well_steps, ill_steps), reported = ([[runs[i][0] for i in pick] for pick in ((0, 3), (1, 2))]), [runs[1][1], runs[2][1]]
    period, plain = step_ns(ill_steps, fault), step_ns(well_steps, fault)
    noise = max(abs(step_ns(both[:1], fault) - step_ns(both[1:], fault)) for both in (well_steps, ill_steps)) / period
    prices = [price_ns(one, wanted, more.get('price', 'lost_ns')) for one in reported]
    first = sum(bool(one['findings']) and names(one['findings'][0], wanted) for one in reported)
    return {'name': name, 'period_ms': period / 1e6, 'true': (period - plain) / period, 'noise': noise, 'named': sum(p is not None for p in prices), 'first': first,
            'told': None if None in prices else statistics.mean(prices) / period,
            'beside': [text for one in reported for text in others(one, wanted)], 'healthy': [text for i in (0, 3) for text in others(runs[i][1], ())]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default='')
    parser.add_argument('--keep', default='')
    parser.add_argument('--table', action='store_true')
    options = parser.parse_args()
    python = rivals.find_torch()
    if not python or not (BIN.parent / 'python/stageline_record/_record.abi3.so').exists():
        print(f'skipped: {len(INCIDENTS)} real incidents, torch cannot be installed here or Python has no headers')
        return 0
    only = [text for text in options.only.split(',') if text]
    rows, failed = [], 0
    if options.table:
        print('| fault | step | true cost | told | error, points | noise | named, first (of 2) |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |', flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in [n for n in INCIDENTS if not only or any(text in n for text in only)]:
            try:
                row = pair(python, name, pathlib.Path(options.keep or scratch).resolve() / name.replace(' ', '-').replace(':', '').replace(',', ''))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f'{name}: {error}', flush=True)
                continue
            off = None if row['told'] is None else row['told'] - row['true']
            wrong = off is None or abs(off) > max(MOST_POINTS, 2 * row['noise'])
            failed += wrong
            rows.append((row, off))
            reported, error = ('–', '–') if off is None else (f'{100 * row["told"]:.1f} %', f'{100 * off:+.1f}')
            if options.table:
                print(f'| {name} | {row["period_ms"]:.0f} ms | {100 * row["true"]:.1f} % | {reported} | {error} | {100 * row["noise"]:.1f} | {row["named"]}, {row["first"]} |', flush=True)
            else:
                print(f'{"WRONG " if wrong else ""}{name}: {row["period_ms"]:.1f} ms, true {100 * row["true"]:.1f} %, reported {reported}, off {error}, noise {100 * row["noise"]:.1f}, named {row["named"]} and first {row["first"]} of 2'
                      f'; beside it {row["beside"] or "nothing"}; without it {row["healthy"] or "nothing"}', flush=True)
    errors = [abs(off) for _, off in rows if off is not None]
    if errors:
        mean = statistics.mean(errors)
        failed += mean > MEAN_POINTS
        print(f'{len(rows)} pairs: named in {sum(r["named"] for r, _ in rows)} of {2 * len(rows)} runs, first in {sum(r["first"] for r, _ in rows)}; error of prices {100 * mean:.1f} points on average, '
              f'{100 * max(errors):.1f} at most; beside the fault {sum(len(r["beside"]) for r, _ in rows)} other findings, without it {sum(len(r["healthy"]) for r, _ in rows)}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
