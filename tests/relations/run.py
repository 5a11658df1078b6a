#!/usr/bin/env python3
"""Changes that cannot change the answer do not: relations (relations.py) between a run and a changed copy of it.

  run.py [--shared] [--only LETTERS] [--all] [--jobs N] [PATH…]

Each fixture of tests/golden, and with --shared each input of ../shared/data (skipped with a count where it is absent), is asked of every
relation. A relation holds, fails (with what differs), or does not apply: the source cannot have the change, or the run lacks what is changed;
the reason is printed with --all. The last lines count each of them. open.txt lists the failures that are known and not yet fixed; it only
shrinks. Any other failure fails the test.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile
import traceback

import answers
import relations
from sources import NotGiven

HERE = pathlib.Path(__file__).resolve().parent
OPEN = HERE / 'open.txt'
GOLDEN = HERE.parent / 'golden' / 'readers'
SHARED = (HERE.parents[2] / 'shared' / 'data').resolve()
# Folders of ../shared/data in which every file is a run, those that are a run whatever lies deeper, and those that hold no run.
APART = ('sources/merged', 'sources/torch215', 'sources/chrome', 'sources/otlp', 'imports/nsys', 'imports/pftrace/generic', 'imports/parquet', 'faults/pipelines',
         'pipeline_ops/bytedance', 'sources/logs', 'sources/paddle')
WHOLE = ('faults/files/*/input', 'faults/files/*/input/*', 'faults/frameworks/*/*', 'faults/torch_runs/*/*', 'faults/paddle_ascend/*', 'paddle/*', 'kineto/*',
         'kineto/hta/*', 'kineto/hta/*/*', 'pipeline_ops/*', 'ascend/golden/*/input', 'ascend/golden/*', 'ascend/msinsight_db/*', 'ascend/modes/*', 'imports/*/*', 'sources/*/*',
         'sources/paddle/*')


def fixtures():
    return {path.parent.name: path for path in sorted(GOLDEN.glob('*/input')) if any(path.iterdir())}


def size_of(path):
    return sum(p.stat().st_size for p in path.rglob('*') if p.is_file()) if path.is_dir() else path.stat().st_size


def holds_runs(path):
    """Whether its folders are runs of their own rather than ranks of one."""
    inner = list(path.iterdir())
    return path.name in ('hta', 'critical_path', 'trace_compare', 'trace_diff') or path.name == 'input' and len(inner) > 1 and all(p.is_dir() and not re.search(r'ascend|plugins|rank', p.name) for p in inner)


def shared():
    """Every folder or file of ../shared/data that the program reads, a folder before what lies in it."""
    found = {}
    for top in APART:
        found |= {path: None for path in sorted((SHARED / top).iterdir()) if path.is_file()}
    for pattern in WHOLE:
        found |= {path: None for path in sorted(SHARED.glob(pattern)) if path.is_dir() and not holds_runs(path) and str(path.relative_to(SHARED)) not in APART}
    read = {}
    for path in found:
        if not any(parent in read.values() for parent in path.parents) and answers.asked(None, 'info', path, '--json'):
            read[str(path.relative_to(SHARED))] = path
    return read


def ask_one(label, path, names):
    """(label, relation, outcome, lines) for each relation."""
    rows = []
    with tempfile.TemporaryDirectory(prefix='relations-') as folder:
        case = relations.Case(path, pathlib.Path(folder))
        for name in names:
            try:
                found = relations.RELATIONS[name](case)
                rows.append((label, name, 'failed' if found else 'held', found))
            except NotGiven as reason:
                rows.append((label, name, 'refused', [str(reason)]))
            except relations.Absent as reason:
                rows.append((label, name, 'not there', [str(reason)]))
            except Exception:  # a fault of the test is a failure of the test, with its place
                rows.append((label, name, 'failed', ['the test: ' + traceback.format_exc().strip().splitlines()[-1] + ' | ' + traceback.format_exc().strip().splitlines()[-3]]))
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('paths', nargs='*', type=pathlib.Path)
    p.add_argument('--shared', action='store_true', help='also every input of ../shared/data')
    p.add_argument('--only', default='', help='relations by the beginning of their names, such as b,k,"n absurd"')
    p.add_argument('--below', type=int, default=0, metavar='KB', help='leave out inputs of ../shared/data of more than so many kB; their number is said')
    p.add_argument('--all', action='store_true', help='print also why a relation does not apply')
    p.add_argument('--lines', type=int, default=4, help='differences printed of each failure')
    p.add_argument('--jobs', type=int, default=min(2, os.cpu_count() or 1))
    options = p.parse_args()
    runs = {str(path.resolve().relative_to(SHARED) if path.resolve().is_relative_to(SHARED) else path): path.resolve() for path in options.paths} or fixtures()
    skipped = 0
    if options.shared:
        if SHARED.is_dir():
            found = shared()
            small = {label: path for label, path in found.items() if not options.below or size_of(path) <= 1000 * options.below}
            skipped = len(found) - len(small)
            runs = ({} if options.paths else runs) | small
        else:
            skipped = 1
    names = [n for n in relations.RELATIONS if not options.only or any(n.startswith(o) for o in options.only.split(','))]
    count, fresh, still = collections.Counter(), [], set()
    known = {line.partition(' | ')[0] for line in OPEN.read_text().splitlines() if line and line[0] != '#'}
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for rows in pool.map(ask_one, runs, runs.values(), [names] * len(runs)):
            for label, name, outcome, lines in rows:
                count[name, outcome] += 1
                if outcome == 'failed':
                    (still.add if f'{label}: {name}' in known else fresh.append)(f'{label}: {name}')
                if outcome == 'failed' or options.all and lines:
                    print(f'{outcome}: {label}: {name}' + ''.join(f'\n    {line}' for line in lines[:options.lines]), flush=True)
    for name in names:
        print(f'{name:12} ' + ', '.join(f'{count[name, outcome]} {outcome}' for outcome in ('held', 'refused', 'not there', 'failed')))
    for line in sorted(line for line in known - still if line.split(': ')[0] in runs and line.split(': ')[1] in names):
        print(f'holds now, so take it from open.txt: {line}')
    print(f'relations: {sum(count.values())} of {len(runs)} runs, {len(fresh)} fail, {len(still)} known to fail, {skipped} skipped')
    return 1 if fresh else 0


if __name__ == '__main__':
    sys.exit(main())
