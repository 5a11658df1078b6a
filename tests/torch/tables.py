#!/usr/bin/env python3
"""`analyze operators --format torch` and `export-stacks` against what torch itself printed, character for character.

tables.py [--only CASE,CASE] [--recorded DIR] [--show N]   exit 1 when something differs that is not expected to

The recorded tables are made by record_tables.py (torch 2.13.0 for most of the project, 2.14.1 for stack-torch214, out-of-memory and python-export; `./dev compare` records again
with the installed torch). A program without the commands skips, with a count. If the export lacks data that torch used,
the recording lists the losses, and has torch's table of the exported events: that one must be met exactly.
"""
import argparse
import difflib
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BIN = os.environ.get('STAGELINE_BIN', str(HERE.parents[1] / 'build/dev/stageline'))


def stageline(*arguments):
    return subprocess.run([BIN, *map(str, arguments)], capture_output=True,
                          env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1', 'COLUMNS': '80'})


def flags(table, version):
    """The command line of one recorded table: its keys are torch's argument names. Up to 2.13, Python frames are always rows."""
    words = [] if tuple(map(int, version.split('.')[:2])) >= (2, 14) else ['--include-python-functions']
    for key, value in table.items():
        if key not in ('text', 'exported'):
            words += [f'--{key.replace("_", "-")}'] + ([] if value is True else [str(value).lower() if value in (None, False) else str(value)])
    return words


def difference(expected, found, lines=12):
    diff = difflib.unified_diff(expected.splitlines(), found.splitlines(), 'torch', 'stageline', lineterm='', n=0)
    return '\n'.join('    ' + line[:220] for line in list(diff)[:lines])


class Tally:
    def __init__(self, show):
        self.passed, self.failed, self.shown, self.show = 0, 0, 0, show

    def add(self, case, command, expected, done):
        found = done.stdout.decode('utf-8', 'replace')
        # torch's text has no line end of its own after the last; a command ends with one.
        same = done.returncode == 0 and found in (expected, expected + '\n')
        if same:
            self.passed += 1
            return
        self.failed += 1
        if self.shown < self.show:
            self.shown += 1
            print(f'{case}: stageline {" ".join(map(str, command))}')
            print(difference(expected, found) if done.returncode == 0 else f'    exit {done.returncode}: {done.stderr.decode()[:300]}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default='')
    parser.add_argument('--recorded', type=pathlib.Path, default=HERE / 'recorded')
    parser.add_argument('--show', type=int, default=6, help='how many differences are printed')
    options = parser.parse_args()
    only = [name for name in options.only.split(',') if name]
    truths = [path for path in sorted(options.recorded.glob('*.truth.json.gz')) if not only or path.name.split('.')[0] in only]
    if not truths:
        print(f'no recorded tables in {options.recorded}')
        return 1
    has_tables = re.search(rb'^ *operators ', stageline('help', 'analyses').stdout, re.M)
    has_stacks = re.search(rb'^ *export-stacks ', stageline('help').stdout, re.M)
    tally, skipped = Tally(options.show), [0, 0]
    version = '?'
    for path in truths:
        case = path.name.split('.')[0]
        truth = json.loads(gzip.decompress(path.read_bytes()))
        version = truth['torch']
        trace = path.with_name(f'{case}.trace.json.gz')
        if has_tables:
            for table in truth['tables']:
                command = ['analyze', 'operators', trace, '--format', 'torch', *flags(table, version)]
                tally.add(case, command, table.get('exported', table['text']), stageline(*command))
            if 'lost' in truth:
                lost = sum(table['text'] != table['exported'] for table in truth['tables'])
                print(f'{case}: {lost} of {len(truth["tables"])} tables are those of the events as exported: {truth["lost"]}')
        else:
            skipped[0] += len(truth['tables'])
        with tempfile.TemporaryDirectory() as scratch:
            for metric, text in truth['stacks'].items() if has_stacks else ():
                out = pathlib.Path(scratch) / 'stacks'
                command = ['export-stacks', trace, '--stacks', 'torch', '--metric', metric, '-o', out]
                done = stageline(*command)
                done.stdout = out.read_bytes() if out.exists() else done.stdout
                tally.add(case, command, text, done)
        skipped[1] += 0 if has_stacks else len(truth['stacks'])
    for count, what in zip(skipped, ('tables, this program has no analysis "operators"',
                                     'stacks, this program has no command "export-stacks"')):
        if count:
            print(f'skipped: {count} {what}')
    print(f'{tally.passed} of {tally.passed + tally.failed} passed: tables and stacks of torch {version}')
    return 1 if tally.failed else 0


if __name__ == '__main__':
    sys.exit(main())
