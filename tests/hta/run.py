#!/usr/bin/env python3
"""`--compat hta` against what HTA itself printed: every table of every golden in ../shared/data/hta_golden.

run.py [--only CASE,CASE] [--checks REGEX] [--goldens DIR]    exit 1 when something differs; skips with a count without the goldens

Checks live in checks_*.py and register for results of a golden by name (support.check). A result that failed in
HTA must exit 2 with HTA's reason; one that was None must print an empty table.
"""
import argparse
import importlib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import support  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--only', default='')
    parser.add_argument('--checks', default='')
    parser.add_argument('--goldens', default=str(support.DATA / 'hta_golden'), help='where HTA\'s answers are')
    options = parser.parse_args()
    golden = pathlib.Path(options.goldens)
    if not golden.is_dir():
        print('skipped: no HTA goldens here (../shared/data/hta_golden)')
        return 0
    for path in sorted(HERE.glob('checks_*.py')):
        importlib.import_module(path.stem)
    only = [name for name in options.only.split(',') if name]
    agree, differ, open_results = 0, [], 0
    for folder in sorted(golden.iterdir()):
        if not (folder / 'manifest.json').exists() or (only and folder.name not in only):
            continue
        case = support.Case(folder)
        for name, record in case.manifest['results'].items():
            found = support.check_for(name)
            if options.checks and not re.search(options.checks, name):
                continue
            if not found:
                open_results += 1
                if options.checks or only:
                    print(f'{case.name}: {name}: no check')
                continue
            function, match = found
            try:
                problems = function(case, name, record, match)
            except Exception as error:  # a check that breaks is a difference, not the end of the run
                problems = [f'{type(error).__name__}: {error}']
            if problems:
                differ += [f'{case.name}: {name}: {text}' for text in problems[:3]]
            else:
                agree += 1
    for text in differ:
        print(text[:400])
    print(f'{agree} of {agree + len({d.split(": ")[0] + d.split(": ")[1] for d in differ})} passed: results of HTA met, '
          f'{open_results} without a check')
    return 1 if differ else 0


if __name__ == '__main__':
    sys.exit(main())
