#!/usr/bin/env python3
"""./dev compare compares the installed HTA with `--compat hta`, live on the same traces, by the checks of tests/hta. It
also lets the installed torch profile small programs, and compares its tables by tests/torch/tables.py.

  run.py [--deep] [--only NAME,NAME] [--checks REGEX] [--keep DIR] [FOLDER…]    HTA, then torch
  run.py --torch [--only CASE,CASE] [--keep DIR]                                torch alone
  run.py --msprof [FOLDER…]                                                     msprof-analyze alone: msprof*.py beside this
  run.py --drop-in [--only NAME,NAME]                                           HTA and stageline.hta, frame by frame: drop_in.py
  run.py --planned                                                              what plan --emit prints, by the frameworks' parsers: planned.py
  run.py --record [--only CASE,CASE]                                            training under stageline record: RECORDED beside this
  run.py --incidents [--only NAME,NAME] [--keep DIR]                            real training with planted faults: tests/incidents/run.py
  ./dev compare --drift [--only NAME,NAME] [--update]                           what changed in their newest releases: drift.py beside this
  ./dev compare --outputs OLD [NEW]                                             two programs of ours, byte by byte: outputs.py beside this

Without FOLDER: every trace folder of ../shared/data/kineto where there is one, and traces made by tests/gen/kineto.py.
--deep also compares what takes HTA minutes. HTA comes from PyPI into the cache, or is the one of
$STAGELINE_RIVAL_HTA_PYTHON; if it cannot be installed everything is skipped, with a count. Its version may differ from
that of the goldens, so a difference here is a reason to look, not always a bug of Stageline.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = ROOT.parent / 'shared' / 'data' / 'kineto'
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'tests' / 'gen')]
import drop_in  # noqa: E402
import kineto  # noqa: E402
import rival as rivals  # noqa: E402

RECORDED = ('record.py', 'training.py', 'megatron.py', 'zero.py', 'titan.py')  # --only: cases of the first two
SECONDS = 900  # the most a folder may take HTA
DEEP_BYTES = 300_000  # compressed; smaller folders are always compared in depth
MADE = {f'made_{name}': drop_in.MADE[name] for name in (
    'ns', 'ns_sync_triton', 'ns_old_nccl', 'ns_python_memory', 'ns_graphs', 'ns_minified', 'ns_one_step', 'us',
    'us_no_device_annotations', 'old', 'amd', 'amd_us')}


def given_folders():
    """Folders of ../shared/data/kineto that hold traces, by name."""
    found = {}
    for folder in sorted([DATA, *DATA.rglob('*')]) if DATA.is_dir() else []:
        if folder.is_dir() and 'memory_analysis' not in folder.parts and any(
                f.name.endswith(('.json', '.json.gz')) for f in folder.iterdir() if f.is_file()):
            found[str(folder.relative_to(DATA)).replace('/', '_')] = folder
    return found


def compare_torch(only, keep):
    """Compares what the installed torch prints and runs on the spot: its tables and stacks, and pipelines of four
    processes."""
    python = rivals.find_torch()
    if not python:
        print('skipped: torch\'s tables and pipelines, torch cannot be installed here')
        return 0
    tests = ROOT / 'tests' / 'torch'
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for recorder, check, known in (('record_tables.py', 'tables.py', '{}.truth.json.gz'),
                                       ('record_pipelines.py', 'pipelines.py', 'pipelines/{}')):
            cases = [name for name in only.split(',') if name and (tests / 'recorded' / known.format(name)).exists()]
            if only and not cases:
                continue
            out = pathlib.Path(keep or scratch).resolve() / recorder.removesuffix('.py')
            made = subprocess.run([python, tests / recorder, out, *(['--only', ','.join(cases)] if only else [])], stdout=sys.stderr)
            if made.returncode != 0:
                print(f'skipped: some of {recorder}, this torch could not record them')
            if out.is_dir():
                failed |= subprocess.run([sys.executable, tests / check, '--recorded', out]).returncode
    return failed


def compare_planned():
    return subprocess.run([sys.executable, HERE / 'planned.py']).returncode


def compare_msprof(folders):
    """The installed msprof-analyze: pp-chart --compat msprof, what it makes of our simulated runs, and its sums. 1: something differs."""
    python = rivals.find_msprof()
    if python:
        os.environ['STAGELINE_RIVAL_MSPROF'] = str(pathlib.Path(python).parent / 'msprof-analyze')
    failed = 0
    for script, arguments in (('msprof.py', []), ('msprof_sim.py', []), ('msprof_sums.py', folders)):
        print(f'{script}:', flush=True)
        failed |= subprocess.run([sys.executable, HERE / script, *arguments]).returncode
    return failed


def main():
    parser = argparse.ArgumentParser(prog='./dev compare', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folders', nargs='*')
    parser.add_argument('--deep', action='store_true')
    parser.add_argument('--only', default='')
    parser.add_argument('--checks', default='')
    parser.add_argument('--keep', default='', help='leave HTA\'s answers in this folder, and use those that are there')
    parser.add_argument('--torch', action='store_true', help='only torch\'s tables and pipelines')
    parser.add_argument('--msprof', action='store_true', help='only msprof-analyze: pp-chart, our simulated runs, its sums (of FOLDER…)')
    parser.add_argument('--drop-in', action='store_true', help='only HTA and stageline.hta, frame by frame, on generated sets')
    parser.add_argument('--planned', action='store_true', help='only what plan --emit prints, read by released parsers')
    parser.add_argument('--record', action='store_true', help='only training under stageline record')
    parser.add_argument('--incidents', action='store_true', help='only real training with planted faults, told and priced')
    options = parser.parse_args()
    if options.incidents:
        more = [text for name in ('only', 'keep') if getattr(options, name) for text in (f'--{name}', getattr(options, name))]
        return subprocess.run([sys.executable, ROOT / 'tests' / 'incidents' / 'run.py', *more]).returncode
    if options.record:
        chosen = [('record.py', options.only), ('training.py', options.only)] if options.only else [(s, '') for s in RECORDED]
        return max(subprocess.run([sys.executable, HERE / script, *(['--only', only] if only else [])]).returncode for script, only in chosen)
    if options.planned:
        return compare_planned()
    if options.drop_in:
        python = rivals.find_hta()
        if not python:
            print('skipped: stageline.hta, HTA cannot be installed here')
            return 0
        return subprocess.run([sys.executable, HERE / 'drop_in.py', '--python', python, '--only', options.only, '--keep', options.keep],
                              env={**os.environ, 'PYTHONPATH': str(ROOT / 'build/dev/python')}).returncode
    if options.msprof:
        return compare_msprof(options.folders)
    if options.torch:
        return compare_torch(options.only, options.keep)
    only = [name for name in options.only.split(',') if name]
    made = {} if options.folders else {n: a for n, a in MADE.items() if not only or n in only}
    folders = {pathlib.Path(f).name: pathlib.Path(f) for f in options.folders} or {
        n: f for n, f in given_folders().items() if not only or n in only}
    python = rivals.find_hta()
    if not python:
        print(f'skipped: {len(made) + len(folders)} comparisons, HTA cannot be installed here')
        return 0 if options.folders or only else max(compare_torch('', options.keep), compare_planned())
    print(rivals.hta_version(python), file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(options.keep or os.path.join(scratch, 'answers')).resolve()
        traces = out / 'traces' if options.keep else pathlib.Path(scratch) / 'traces'
        for name, arguments in made.items():
            folders[name] = traces / name
            if not folders[name].exists():
                kineto.generate([*arguments, '-o', folders[name]])
        late = []
        for name, folder in sorted(folders.items()):
            answers = out / 'answers' / name
            if (answers / 'manifest.json').exists():
                continue
            size = sum(f.stat().st_size for f in folder.iterdir() if f.name.endswith('.gz'))
            deep = ['--deep'] if options.deep or size < DEEP_BYTES else []
            print(f'HTA on {name}', file=sys.stderr, flush=True)
            try:
                done = subprocess.run([python, HERE / 'hta_live.py', folder, answers, *deep], timeout=SECONDS, capture_output=True,
                                      text=True)
                if done.returncode != 0:
                    late.append(f'{name}: HTA ended with {done.returncode}: {done.stderr.strip()[-200:]}')
            except subprocess.TimeoutExpired:
                late.append(f'{name}: HTA took more than {SECONDS} s')
        for text in late:
            print(f'skipped: {text}')
        checks = ['--checks', options.checks] if options.checks else []
        failed = subprocess.run([sys.executable, ROOT / 'tests' / 'hta' / 'run.py', '--goldens', out / 'answers', *checks]).returncode
    return failed if options.folders or only else max(failed, compare_torch('', options.keep), compare_planned())


if __name__ == '__main__':
    sys.exit(main())
