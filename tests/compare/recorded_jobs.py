"""The shared part of the comparisons of `./dev compare --record`: how a training program is started and recorded, and
how released packages are fetched."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.setdefault('STAGELINE_BIN', str(ROOT / 'build/dev/stageline'))).resolve()
PACKAGE = pathlib.Path(os.environ.get('STAGELINE_PACKAGE') or BIN.parent / 'python')
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'tests/torch')]
import rival as rivals  # noqa: E402

SECONDS = 900


def find_torch(what):
    """Returns a Python with torch if the recorder has its extension; otherwise None, after printing that `what` is
    skipped."""
    python = rivals.find_torch()
    if python and (PACKAGE / 'stageline_record/_record.abi3.so').exists():
        return python
    print(f'skipped: {what}, torch cannot be installed here or Python has no headers')
    return None


def torchrun(python, ranks, *program):
    return [python, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', str(ranks), *map(str, program)]


def run(command, folder=None, path=(), **variables):
    """Runs it, under `stageline record` where a folder is given for the recording; `path` goes before PYTHONPATH."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith('STAGELINE_')}
    environment.update(OMP_NUM_THREADS='1', GLOO_SOCKET_IFNAME='lo', STAGELINE_PACKAGE=str(PACKAGE),
                       PYTHONPATH=os.pathsep.join(filter(None, [*map(str, path), os.environ.get('PYTHONPATH')])))
    environment.update({k: str(v) for k, v in variables.items()})
    recorder = [str(BIN), 'record', '-o', str(folder), '--'] if folder else []
    return subprocess.run([*recorder, *map(str, command)], env=environment, cwd=folder and folder.parent, capture_output=True, text=True, timeout=SECONDS)


def ended_badly(done):
    """Returns the problem of a job that has run all its steps and then did not end well; '' if there is none."""
    return done.returncode and f'all steps ran, then it ended with {done.returncode}: {done.stderr.strip()[-1000:]}' or ''


def kinds_of(folder):
    """{(rank, step): {kind: how many cells}} of a recording."""
    said = subprocess.run([BIN, 'sql', folder, 'select rank, step, kind, count(*) from cells group by 1, 2, 3', '--format', 'json', '--rows', '0'],
                          capture_output=True, text=True, check=True).stdout
    found = {}
    for rank, step, kind, count in json.loads(said)['rows']:
        found.setdefault((rank, step), {})[kind] = count
    return found


def kinds_differ(folder, ranks, steps, expected, some=()):
    """'' where every rank has, in each of the steps, as many cells of a kind as expected(rank) says, and at least one of the kinds `some`."""
    found = kinds_of(folder)
    wanted = {(rank, step) for rank in range(ranks) for step in range(steps)}
    if set(found) != wanted:
        return f'ranks and steps {sorted(found)}'
    for rank, step in sorted(wanted):
        kinds = found[rank, step]
        for kind, count in expected(rank).items():
            if kinds.get(kind, 0) != count:
                return f'rank {rank}, step {step}: {kinds.get(kind, 0)} {kind}, {count} ran'
        for kind in some:
            if kind not in kinds:
                return f'rank {rank}, step {step}: no {kind}'
    return ''


def _pip(python, *arguments, **more):
    return subprocess.run([python, '-m', 'pip', *map(str, arguments), '--quiet', '--disable-pip-version-check', '--no-deps'],
                          capture_output=True, **more).returncode == 0


def fetch(python, folder, *packages):
    """These packages and nothing that they depend on, in a folder for the path."""
    return _pip(python, 'install', '--target', folder, *packages)


def fetch_source(python, folder, name, version):
    """The unpacked source package, for what is not to be built; None where it cannot be fetched."""
    if not _pip(python, 'download', '--no-binary', name, '--no-build-isolation', f'{name}=={version}', '-d', folder, env={**os.environ, 'DS_BUILD_OPS': '0'}):
        return None
    with tarfile.open(next(folder.glob(f'{name}-*.tar.gz'))) as archive:
        archive.extractall(folder, filter='data')
    return folder / f'{name}-{version}'


class Versions:
    """Released versions of a package, each tried in a folder of its own; what cannot be fetched or run here is skipped and counted."""

    def __init__(self, name, known):
        self.name, self.versions = name, sys.argv[1:] or known
        self.passed = self.failed = self.skipped = 0

    def skip(self, what, why):
        print(f'{self.name} {what}: skipped, {why}', flush=True)
        self.skipped += 1

    def check(self, what, flaw, good='recorded as it ran'):
        print(f'{self.name} {what}: {flaw or good}', flush=True)
        self.passed += not flaw
        self.failed += bool(flaw)

    def each(self, compare):
        """compare(self, python, version, folder) for each; the exit code."""
        python = find_torch(self.name)
        if not python:
            return 0
        for version in self.versions:
            with tempfile.TemporaryDirectory() as scratch:
                compare(self, python, version, pathlib.Path(scratch))
        print(f'{self.passed} passed, {self.failed} failed, {self.skipped} skipped')
        return 1 if self.failed else 0
