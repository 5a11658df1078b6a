#!/usr/bin/env python3
"""Makes the incidents of the benchmark: make.py DIR [--seed N] [--pipelines N] [--profiles N] [--ascend N] [--tool STAGELINE]

DIR/NAME has the input of one incident, DIR/truth.jsonl one line for each: what was planted, where, and what it costs. The truth is
counterfactual: the same run, with the same random numbers, without the fault. docs/reference/diagnosis.md has the format and the vocabulary.
Three kinds of input, by the generators of the tests: tables of pipeline cells (tests/gen/planted.py), torch profiles (tests/gen/profile_faults.py)
and databases of Ascend's profiler (`stageline simulate`). One number decides everything that is drawn."""
import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'tests/gen'))
import profile_faults  # noqa: E402
from planted import Planted, chance  # noqa: E402


# ---- pipelines: hooks of Planted, and the keys that name the fault ------------------------------------------------------

def course(r, steps):
    """(does the fault act in this step, words that say when)"""
    kind = r.random()
    if kind < 0.6:
        return (lambda step: True), ''
    if kind < 0.8:
        first = r.randint(steps // 3, 2 * steps // 3)
        return (lambda step: step >= first), f'onset:{first}'
    every = r.randint(2, 4)
    return (lambda step: step % every == 0), f'every:{every}'


def of_stage(stage, dp):
    """Keys of a slow stage; of one pipeline alone its rank is the same thing."""
    return [f'stage:{stage}', *([f'rank:{stage}'] if dp == 1 else [])]


def pipeline_fault(r, run):
    """(class, hooks, keys that name it, keys that are true too, when); None where the run cannot have what was drawn."""
    stages, dp, steps, mbs = run['stages'], run['dp'], run['steps'], run['micro_batches']
    stage, replica, factor = r.randrange(stages), r.randrange(dp), 1 + r.choice([0.15, 0.25, 0.4, 0.7])
    acts, when = course(r, steps)
    rank, low, seed = replica * stages + stage, r.randrange(max(stages - 1, 1)), run['seed']
    ends = (low, low + 1) if r.random() < 0.5 else (low + 1, low)
    kind = r.choice(['stage', 'stage', 'rank', 'replica', 'all', 'link', 'link', 'hang', 'gap', 'gap', 'checkpoint', 'reduction', 'optimizer', 'pauses', 'pauses-rank', 'late',
                     'micro-batch'])
    late, length, name = r.choice([6, 10, 15]), r.choice([40, 80]), r.choice(['', 'load_batch', 'evaluation'])
    made = {
        'stage': lambda: stages > 1 and (dict(cost=lambda st, d, s, k, mb: factor if s == stage and acts(st) else 1), of_stage(stage, dp), [], when),
        'rank': lambda: dp > 2 and (dict(cost=lambda st, d, s, k, mb: factor if (d, s) == (replica, stage) and acts(st) else 1), [f'rank:{rank}'], [f'replica:{replica}'], when),
        'replica': lambda: dp > 2 and (dict(cost=lambda st, d, s, k, mb: factor if d == replica and acts(st) else 1), [f'replica:{replica}'], ['replicas'], when),
        'all': lambda: when and (dict(cost=lambda st, d, s, k, mb: factor if acts(st) else 1), ['all', 'onset*', 'every*', 'steps'], [], when),
        'link': lambda: stages > 1 and (dict(message=lambda st, d, a, b, mb, k: late if (a, b) == ends and acts(st) else 0), [f'link:{ends[0]}-{ends[1]}'], ['messages', f'link:{ends[1]}-{ends[0]}'], when),
        'hang': lambda: stages > 1 and (dict(message=lambda st, d, a, b, mb, k: 2500 if (st, d, a, b, mb) == (steps // 2, replica, *ends, mbs // 2) else 0),
                                        [f'link:{ends[0]}-{ends[1]}', f'hang:{ends[0]}-{ends[1]}'], ['messages'], f'step:{steps // 2}'),
        'gap': lambda: (dict(gaps=lambda st: [(name, length)] if acts(st) else []), ['between-steps*'], [], when),
        'checkpoint': lambda: (dict(gaps=lambda st: [('checkpoint', 2000)] if st == steps // 2 else []), ['between-steps*'], [], f'step:{steps // 2}'),
        'reduction': lambda: dp > 1 and (dict(tail=lambda st: (length * 1.5, 3.0)), ['tail:collective', 'tail:all-reduce', 'tail:reduce*'], [], ''),
        'optimizer': lambda: (dict(tail=lambda st: (2.0, length * 1.5)), ['tail:optimizer'], [], ''),
        'pauses': lambda: (dict(pause=lambda st, d, s, k, mb: length if chance(seed, 'p', st, d, s, k, mb) < 0.02 else 0), ['host', 'host:*'], ['rank:*'], ''),
        'pauses-rank': lambda: dp > 1 and (dict(pause=lambda st, d, s, k, mb: length if (d, s) == (replica, stage) and chance(seed, 'p', st, k, mb) < 0.08 else 0),
                                           [f'host:{rank}', f'rank:{rank}'], ['host'], ''),
        'late': lambda: dp > 1 and (dict(pause=lambda st, d, s, k, mb: 4 if (d, s) == (replica, stage) else 0), [f'rank:{rank}', f'host:{rank}'], ['host'], ''),
        'micro-batch': lambda: (dict(cost=lambda st, d, s, k, mb: 2.5 if mb == 0 else 1), ['micro-batch:0'], [], ''),
    }[kind]
    found = made()
    return (kind, *found) if found else None


def merged(*hooks):
    """The hooks of several faults as those of one run: factors multiply, delays add."""
    out = {}
    for name in {name for one in hooks for name in one}:
        of = [one[name] for one in hooks if name in one]
        if len(of) == 1:
            out[name] = of[0]
        elif name == 'cost':
            out[name] = lambda *place, of=of: of[0](*place) * of[1](*place)
        elif name == 'gaps':
            out[name] = lambda step, of=of: of[0](step) + of[1](step)
        elif name == 'tail':
            out[name] = lambda step, of=of: tuple(max(pair) for pair in zip(of[0](step), of[1](step)))
        else:
            out[name] = lambda *place, of=of: of[0](*place) + of[1](*place)
    return out


def pipelines(folder, count, seed):
    for number in range(count):
        r = random.Random(f'pipeline {seed} {number}')
        run = dict(stages=r.choice([2, 3, 4, 4, 6]), micro_batches=r.choice([4, 6, 8, 12]), dp=r.choice([1, 1, 2, 3, 4]), steps=r.choice([8, 10, 12, 16]),
                   jitter=r.choice([0.005, 0.01, 0.02, 0.03]), messages=r.random() < 0.5, seed=seed * 100_000 + number)
        faults = []
        for _ in range(0 if r.random() < 0.15 else 1 if r.random() < 0.75 else 2):
            while not (one := pipeline_fault(r, run)) or any(one[0] == other[0] for other in faults):
                pass
            faults.append(one)
        path = folder / f'pipeline-{number:03d}' / 'cells.csv'
        path.parent.mkdir(parents=True)
        ill = Planted(**run, **merged(*(one[1] for one in faults)))
        ill.write(path)
        told = []
        for i, (kind, _, keys, also, when) in enumerate(faults):
            without = Planted(**run, **merged(*(one[1] for j, one in enumerate(faults) if j != i)))
            told.append({'class': kind, 'keys': keys, 'also': also, 'when': when, 'evidence': [], 'cost_ns': round((ill.period - without.period) * 1e6), 'cost_share': 1 - without.period / ill.period})
        yield {'incident': path.parent.name, 'kind': 'pipeline', 'input': 'cells.csv', 'stages': run['stages'], 'period_ns': round(ill.period * 1e6), 'faults': told}


# ---- torch profiles ------------------------------------------------------------------------------------------------------

# Where the time of a fault of tests/gen/profile_faults.py goes, for tools that say no more than that; the host's where it is not here.
AREAS = {'late-rank': ['rank:1', 'communication'], 'slow-rank': ['rank:2', 'communication'], 'input': ['input', 'host'], 'pageable': ['copies'], 'small': ['launches', 'host'], 'barrier': ['communication', 'host']}


def profiles(folder, count, seed):
    names = [name for name in profile_faults.CASES if not name.startswith('healthy')]
    plain = profile_faults.STEPS, profile_faults.LAYERS, profile_faults.KERNEL_US
    for number in range(count):
        r = random.Random(f'profile {seed} {number}')
        is_healthy = r.random() < 0.15
        name = r.choice(names)
        fault, ranks, ids, words = profile_faults.CASES[name]
        # Faults of one step are in steps 1 to 4. Shorter kernels make the same fault cost more.
        profile_faults.STEPS, profile_faults.LAYERS, profile_faults.KERNEL_US = r.choice([5, 6, 8]), r.choice([8, 12, 16]), r.choice([250.0, 400.0, 600.0])
        where = folder / f'profile-{number:03d}'
        ill, well = profile_faults.play(None if is_healthy else fault, ranks), profile_faults.play(None, ranks)
        profile_faults.write(ill, where / 'traces')
        length, without = profile_faults.wall(ill), profile_faults.wall(well)
        area = AREAS.get(name, ['host'])
        faults = [] if is_healthy else [{'class': name, 'keys': [*ids, *(key for key in area if key.startswith('rank'))], 'also': area, 'when': '', 'evidence': list(words),
                                         'cost_ns': round((length - without) * 1e3), 'cost_share': 1 - without / length}]
        yield {'incident': where.name, 'kind': 'profile', 'input': 'traces', 'period_ns': round(length * 1e3), 'faults': faults}
    profile_faults.STEPS, profile_faults.LAYERS, profile_faults.KERNEL_US = plain


# ---- Ascend --------------------------------------------------------------------------------------------------------------

def period_of(truth):
    """Mean period of the steps in truth.csv, seconds: from the first start of a step to that of the next."""
    begins, end = {}, 0.0
    with open(truth) as file:
        for row in csv.DictReader(file):
            start = float(row['start_ts'])
            begins[row['step']] = min(begins.get(row['step'], start), start)
            end = max(end, start + float(row['duration']))
    return (end - min(begins.values())) / len(begins)


def ascend(folder, count, seed, tool):
    for number in range(count):
        r = random.Random(f'ascend {seed} {number}')
        stages, dp = r.choice([2, 4]), r.choice([1, 2, 4])
        stage, rank, factor = r.randrange(stages), r.randrange(stages * dp), r.choice([1.2, 1.3, 1.5])
        kind = r.choice(['healthy', 'stage', 'stage', 'rank', 'rank', 'late', 'pauses-rank'])
        kind = 'stage' if kind in ('rank', 'late', 'pauses-rank') and dp < 3 else kind
        fault, keys, also = {'healthy': ('', [], []), 'stage': (f'slow-stage:{stage},{factor}', of_stage(stage, dp), []),
                             'rank': (f'slow-rank:{rank},{factor}', [f'rank:{rank}'], [f'replica:{rank // stages}']),
                             'late': (f'late-launch:{rank},4ms', [f'rank:{rank}', f'host:{rank}'], ['host']),
                             'pauses-rank': (f'gc:60ms,0.08,{rank}', [f'rank:{rank}', f'host:{rank}'], ['host'])}[kind]
        words = ['1f1b', '--format', 'ascend', '--level', '1', '--stages', stages, '--dp', dp, '--steps', r.choice([5, 8]), '--micro-batches', r.choice([4, 8]), '--cost', '10,20',
                 '--jitter', r.choice([0.005, 0.02]), '--latency', '0.2', '--seed', seed * 1000 + number, '--quiet']
        where, periods = folder / f'ascend-{number:03d}', {}
        for name, more in (('well', []), ('profiles', ['--fault', fault] if fault else [])):
            subprocess.run([str(word) for word in (tool, 'simulate', *words, *more, '-o', where / name)], check=True, capture_output=True)
            periods[name] = period_of(where / name / 'truth.csv')
            (where / name / 'truth.csv').unlink()
        subprocess.run(['rm', '-r', where / 'well'], check=True)
        share = 1 - periods['well'] / periods['profiles']
        faults = [{'class': kind, 'keys': keys, 'also': also, 'when': '', 'evidence': [], 'cost_ns': round((periods['profiles'] - periods['well']) * 1e9), 'cost_share': share}] if fault else []
        yield {'incident': where.name, 'kind': 'ascend', 'input': 'profiles', 'stages': stages, 'period_ns': round(periods['profiles'] * 1e9), 'faults': faults}


def make(folder, tool, seed=1, counts=(260, 100, 60)):
    folder.mkdir(parents=True)
    with open(folder / 'truth.jsonl', 'w') as out:
        for rows in (pipelines(folder, counts[0], seed), profiles(folder, counts[1], seed), ascend(folder, counts[2], seed, tool)):
            for row in rows:
                out.write(json.dumps(row) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--pipelines', type=int, default=260)
    parser.add_argument('--profiles', type=int, default=100)
    parser.add_argument('--ascend', type=int, default=60)
    parser.add_argument('--tool', default='stageline', help='the program that simulates Ascend\'s profiles')
    asked = parser.parse_args()
    make(asked.folder, asked.tool, asked.seed, (asked.pipelines, asked.profiles, asked.ascend))


if __name__ == '__main__':
    main()
