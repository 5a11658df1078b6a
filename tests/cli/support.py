"""The shared part of the whole-program tests: running stageline, making worker logs, finding ../shared."""
import base64
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

BIN = os.environ.get('STAGELINE_BIN', str(pathlib.Path(__file__).resolve().parents[2] / 'build/dev/stageline'))
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED = SOURCE.parent / 'shared' / 'data'


def sanitized():
    """Whether the program was built under a sanitizer, which takes memory of its own."""
    binary = pathlib.Path(BIN).read_bytes()
    return b'__asan_init' in binary or b'__tsan_init' in binary


def needs_shared(test):
    """Skips (and so counts) a test when ../shared is absent, as on a user's machine."""
    return unittest.skipUnless(SHARED.is_dir(), 'needs ../shared')(test)


def run(*args, check=None, stdin=None, env=None, timeout=600, cwd=None):
    """Runs stageline; `check` is the expected exit code. Output as text, undecodable bytes kept."""
    full_env = {**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1', **(env or {})}
    done = subprocess.run([BIN, *map(str, args)], capture_output=True, input=stdin, env=full_env, timeout=timeout, cwd=cwd)
    done.out = done.stdout.decode('utf-8', 'replace')
    done.err = done.stderr.decode('utf-8', 'replace')
    if check is not None and done.returncode != check:
        raise AssertionError(f'exit {done.returncode}, expected {check}: {args}\n{done.out[-2000:]}\n{done.err[-2000:]}')
    return done


def info(*paths, check=0):
    return json.loads(run('info', '--json', *paths, check=check).out)


def flaws(report):
    """Returns notes by name; counts of several files are added."""
    found = {}
    for d in report['diagnostics']:
        found[d['name']] = {**d, 'count': d['count'] + found[d['name']]['count']} if d['name'] in found else d
    return found


GLOG = 'I1020 09:15:07.265326 22317 standalone_executor.cc:217] '
BASE_MS = 1697793307000.0


def job(kind, mb, start, end, prefix=GLOG, job_id=None):
    """One line; times in ms after BASE_MS, or None for the zero times of a job without compute."""
    stamp = lambda t: '0.000000' if t is None else f'{BASE_MS + t:.6f}'
    return (f'{prefix}Profiler Info: Job ({mb if job_id is None else job_id}), type = {kind}, micro_batch_id = {mb}, '
            f'job_start_time = {stamp(start)}, job_end_time = {stamp(end)}\n')


def one_step(rank=0, ranks=2, micro_batches=3, at=0.0):
    """FThenB on two or more ranks: F 10 ms, B 20 ms, optimizer 5 ms; exactly representable times."""
    lines = [job('forward', i, at + 10 * (rank + i), at + 10 * (rank + i + 1)) for i in range(micro_batches)]
    back = at + 10 * (ranks + micro_batches)
    lines += [job('backward', i, back + 20 * (ranks - 1 - rank + i), back + 20 * (ranks - rank + i)) for i in range(micro_batches)]
    end = back + 20 * (ranks + micro_batches)
    return ''.join(lines) + job('optimizer', 0, end, end + 5)


class Case(unittest.TestCase):
    """A test with a folder of its own."""
    maxDiff = 4000

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='stageline-test-'))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def two_ranks(self, steps=2, folder=''):
        for rank in range(2):
            self.write(f'{folder}workerlog.{rank}', ''.join(one_step(rank, at=200 * s) for s in range(steps)))
        return self.dir / folder if folder else self.dir


def page_answer(path, name):
    """Returns a report's answer to this question: JSON, or the header of a binary one; None if there is none."""
    block = re.search(r'<script type="application/octet-stream" data-answer="' + re.escape(name) + r'">([^<]*)</script>', path.read_text())
    if not block:
        return None
    body = gzip.decompress(base64.b64decode(block.group(1)))
    header = 4 + struct.unpack('<I', body[:4].ljust(4))[0]  # of text some 500 MB: it begins with a bracket and a quote
    if header <= len(body):
        body = body[4:header]
    return json.loads(body)
