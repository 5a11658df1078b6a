"""./dev compare --msprof: the installed msprof-analyze and `pp-chart --compat msprof`, live on the same profiles, row for row."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tests' / 'ascend'), str(ROOT / 'bench')]  # both have a run.py
import rival  # noqa: E402
import run as ascend  # noqa: E402

CASES = {
    'dualpipev_dp2_tp2': '--schedule dualpipev --pp 4 --mb 11 --level 1 --pp-info --dp 2 --tp 2',
    'dualpipev_cp2': '--schedule dualpipev --pp 2 --mb 9 --cp 2 --level 1 --pp-info',
    'dualpipev_one_stage': '--schedule dualpipev --pp 1 --mb 5 --pp-info',
    'dualpipev_8x16': '--schedule dualpipev --pp 8 --mb 16 --pp-info --steps 3',
    'dualpipev_no_steps': '--schedule dualpipev --pp 4 --mb 8 --pp-info --no-step-time --steps 1',
    'dualpipev_detached': '--schedule dualpipev --pp 4 --mb 8 --pp-info --dw-detach --level 1',
    '1f1b_cp2_tp2': '--schedule 1f1b --pp 3 --mb 7 --level 1 --cp 2 --tp 2',
    '1f1b_skewed': '--schedule 1f1b --pp 16 --mb 16 --level 1 --skew-ns 5000000',
    '1f1b_bulk': '--schedule 1f1b --pp 2 --mb 4 --bulk 5000',
}
COLUMNS = ['name', 'startNs', 'endNs', 'groupName', 'opType', 'dataType', 'count']


def main():
    python = rival.find_msprof()
    if not python or not ascend.GENERATOR.exists():
        print(f'skipped: {len(CASES)} comparisons with msprof-analyze, it or ../shared is not there')
        return 0
    failed = 0
    for name, arguments in CASES.items():
        with tempfile.TemporaryDirectory() as scratch:
            own, other, out = (pathlib.Path(scratch) / n for n in ('own', 'other', 'out'))
            subprocess.run([sys.executable, ascend.GENERATOR, '--out', own, *arguments.split()], check=True, stdout=subprocess.DEVNULL)
            shutil.copytree(own, other)
            subprocess.run([pathlib.Path(python).parent / 'msprof-analyze', 'cluster', '-m', 'pp_chart', '-d', other, '--force'],
                           capture_output=True)
            ascend.run('pp-chart', '-d', own, '-o', out, '--compat', 'msprof', check=None)
            theirs, ours = ascend.databases(other), ascend.databases(out)
            wrong = []
            for rank, path in theirs.items():
                for what, read in (('blocks', ascend.blocks_of), ('operations', lambda p: ascend.operations_of(p, COLUMNS)),
                                   ('links', lambda p: ascend.operations_of(p, ['name', 'startNs', 'opConnectionId']))):
                    want, got = read(path), read(ours[rank]) if rank in ours else None
                    if got != want:
                        wrong.append(f'{what} of rank {rank}: {ascend.difference(got, want)}')
            print(f'{name}: {"equal" if not wrong else "; ".join(wrong)}')
            failed += bool(wrong)
    print(f'{len(CASES) - failed} of {len(CASES)} equal to msprof-analyze')
    return 1 if failed else 0


if __name__ == '__main__':
    os.environ.setdefault('STAGELINE_BIN', str(ROOT / 'build' / 'release' / 'stageline'))
    sys.exit(main())
