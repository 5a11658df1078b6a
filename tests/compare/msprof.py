"""./dev compare --msprof: the installed msprof-analyze and `pp-chart --compat msprof`, live on the same profiles, row for row.

  msprof.py [CASE…]          cases of msprof_cases.py; default: all

Where communication is marked by ranges (Level_none) msprof-analyze joins them as it did before its commit 2c51f1c7 (msprof_join.py).
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tests' / 'ascend'), str(ROOT / 'bench')]  # both have a run.py
import msprof_cases as cases  # noqa: E402
import rival  # noqa: E402
import run as ascend  # noqa: E402

COLUMNS = ['name', 'startNs', 'endNs', 'groupName', 'opType', 'dataType', 'count', 'connectionId']
READS = {'blocks': ascend.blocks_of, 'operations': lambda path: ascend.operations_of(path, COLUMNS),
         'links': lambda path: ascend.operations_of(path, ['name', 'startNs', 'opConnectionId'])}
counts = dict.fromkeys(READS, 0)


def make(case, folder):
    if case.simulated:
        ascend.run('simulate', *case.simulated.split(), '--format', 'ascend', '--steps', 2, '-q', '-o', folder, check=0)
    else:
        subprocess.run([sys.executable, ascend.GENERATOR, '--out', folder, *case.generated.split()], check=True, stdout=subprocess.DEVNULL)
    for rank, path in ascend.databases(folder).items():
        cases.alter(path, (*case.sql, *case.sql_of.get(rank, ())))


def differences(case, scratch, python):
    """A line for each table of a rank that is not theirs."""
    own, out = scratch / 'own', scratch / 'out'
    make(case, own)
    other = cases.copy_of(own, scratch / 'other')
    before = {path: path.read_bytes() for path in ascend.databases(own).values()}
    subprocess.run([python, pathlib.Path(__file__).with_name('msprof_join.py'), 'cluster', '-m', 'pp_chart', '-d', other, '--force',
                    *case.flags.split()], capture_output=True)
    ascend.run('pp-chart', '-d', own, '-o', out, '--compat', 'msprof', *case.flags.split(), check=None)
    theirs, ours, sources = ascend.databases(other), ascend.databases(out), ascend.databases(own)
    wrong = [f'{path} was changed' for path, content in before.items() if path.read_bytes() != content]
    for rank, path in theirs.items():
        # A rank that gets nothing has no copy: it is as its source.
        mine = ours.get(rank, sources[rank])
        for what, read in READS.items():
            want, got = read(path), read(mine)
            counts[what] += len(want or [])
            if (got or None) != (want or None):
                wrong.append(f'{what} of rank {rank}: {ascend.difference(got, want)}')
    return wrong


def main():
    python = rival.find_msprof()
    wanted = {name: case for name, case in cases.CASES.items() if not sys.argv[1:] or name in sys.argv[1:]}
    if not python or not ascend.GENERATOR.exists():
        print(f'skipped: {len(wanted)} comparisons with msprof-analyze, it or ../shared is not there')
        return 0
    failed = 0
    for name, case in wanted.items():
        with tempfile.TemporaryDirectory() as scratch:
            wrong = differences(case, pathlib.Path(scratch), python)
        print(f'{name}: {"equal" if not wrong else "; ".join(wrong)}', flush=True)
        failed += bool(wrong)
    rows = ', '.join(f'{count} {what}' for what, count in counts.items())
    print(f'{len(wanted) - failed} of {len(wanted)} equal to msprof-analyze ({rows})')
    return 1 if failed or not wanted else 0


if __name__ == '__main__':
    os.environ.setdefault('STAGELINE_BIN', str(ROOT / 'build' / 'release' / 'stageline'))
    sys.exit(main())
