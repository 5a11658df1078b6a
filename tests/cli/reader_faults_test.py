"""What profilers write wrongly or in their own way: absurd times, lost records, arrows, other dialects, several runs."""
import gzip
import json
import pathlib
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import flight_recorder
import nsys
import rocpd
import xplane
from support import Case, flaws, info, run

BASE_NS = 1_710_000_000_000_000_000


def x(cat, name, ts, dur, pid=4001, tid=4001, **args):
    return {'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid, 'ts': ts, 'dur': dur, 'args': args}


def kineto(events, **members):
    return json.dumps({'schemaVersion': 1, 'baseTimeNanoseconds': BASE_NS, 'deviceProperties': [{'id': 0, 'name': 'NVIDIA H100 80GB HBM3'}],
                       **members, 'traceEvents': events})


def launches(count=40, period=100, kernel=60, at=1000, delay=20, number=1, pid=4001, device=0, call='cudaLaunchKernel', per_step=10, first_step=1):
    """A host that launches a kernel every `period` µs, and annotates steps of `per_step` of them."""
    events = []
    for i in range(count):
        start, corr = at + period * i, number + i
        events += [x('cpu_op', 'aten::mm', start, 12, pid, pid, **{'External id': corr}),
                   x('cuda_runtime', call, start + 3, 6, pid, pid, correlation=corr, **{'External id': corr}),
                   x('kernel', 'ampere_sgemm_64x64', start + 3 + delay, kernel, device, 7, stream=7, device=device, correlation=corr, **{'External id': corr})]
    for k in range(count // per_step):
        events.append(x('user_annotation', f'ProfilerStep#{first_step + k}', at - 1 + period * per_step * k, period * per_step, pid, pid))
    return events


def answer(path):
    told = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
    told['share'] = {part['id']: round(100 * part['share'], 1) for part in told['parts']}
    told['ids'] = [f['id'] for f in told['findings']]
    return told


def launched(path):
    """(device work whose call is known, work without one)"""
    query = "SELECT sum(launch_id IS NOT NULL) AS linked, sum(launch_id IS NULL) AS orphans FROM slices WHERE category IN ('kernel', 'gpu_memcpy', 'gpu_memset')"
    return tuple(map(int, run('sql', path, query, '--format', 'csv', '-q', check=0).out.split()[1].split(',')))


if __name__ == '__main__':
    unittest.main()
