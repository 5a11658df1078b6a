"""The shared part of these tests: running Python with the package or under `stageline record`, and reading the
recording."""
import csv
import io
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'cli'))
from support import BIN, Case, flaws, info, run  # noqa: E402, F401

# The package of the build tree, or of the environment that the wheel was installed into (wheel.py).
PACKAGE = pathlib.Path(os.environ.get('STAGELINE_PACKAGE') or pathlib.Path(BIN).resolve().parent / 'python')
EXTENSION = PACKAGE / 'stageline_record' / '_record.abi3.so'
STAND_IN = HERE / 'stand_in'
RANKS = ('STAGELINE_RANK', 'RANK', 'WORLD_SIZE', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK', 'PMI_RANK', 'PADDLE_TRAINER_ID')


def needs_extension(test):
    return unittest.skipUnless(EXTENSION.exists(), 'needs python3-dev when building')(test)


def clean_environment(**more):
    kept = {k: v for k, v in os.environ.items() if (k == 'SLURM_CONF' or not k.startswith(('STAGELINE_', 'SLURM_', 'PYTHON'))) and k not in RANKS}
    return {**kept, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1', 'PYTHONDONTWRITEBYTECODE': '1', **more}


class Recorded(Case):
    def setUp(self):
        super().setUp()
        self.out = self.dir / 'rec'

    def python(self, code, *flags, check=0, env=None, path=(PACKAGE,)):
        """Runs `code` with the package on the path; it records to self.out."""
        full = clean_environment(**{'STAGELINE_DIR': str(self.out), 'PYTHONPATH': os.pathsep.join(map(str, path)), **(env or {})})
        done = subprocess.run([sys.executable, *flags, '-c', code], capture_output=True, text=True, env=full, timeout=600, cwd=self.dir)
        self.assertEqual(done.returncode, check, done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def record(self, *command, check=0, env=None, flags=(), out=None):
        """Runs stageline record -o self.out FLAGS -- COMMAND."""
        done = subprocess.run([BIN, 'record', '-o', str(out or self.out), *flags, '--', *map(str, command)], capture_output=True, text=True,
                              env=clean_environment(**(env or {})), timeout=600, cwd=self.dir)
        if check is not None:
            self.assertEqual(done.returncode, check, done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def cells(self, *more):
        """By rank: ["0F3", …] (chunk, kind, micro-batch) of the pipeline's work in order of time."""
        done = run('export', self.out, '--to', 'csv', '-o', '-', *more, check=0)
        rows = [r for r in csv.DictReader(io.StringIO(done.out)) if r['kind']]
        rows.sort(key=lambda r: int(r['start_ns']))
        found = {}
        for r in rows:
            found.setdefault(int(r['rank']), []).append(f'{r["chunk"]}{r["kind"]}{r["micro_batch"]}')
        return found


def launch_ranks(code, count, **env):
    """A program that runs `code` in `count` processes, as torchrun does; the exit code is the worst of them."""
    return (f'import os, subprocess, sys\n'
            f'children = [subprocess.Popen([sys.executable, "-c", {code!r}], env={{**os.environ, **{env!r}, "RANK": str(r), '
            f'"WORLD_SIZE": "{count}", "PADDLE_TRAINER_ID": str(r), "PADDLE_TRAINERS_NUM": "{count}"}}) for r in range({count})]\n'
            f'sys.exit(max(child.wait() for child in children))')
