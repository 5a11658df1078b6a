#!/usr/bin/env python3
"""TensorBoard's installed profiler plugin and `--compat tb`, live on the same traces: tb-memory and tb-module.

  tb_live.py TRACE…

The plugin is that of $STAGELINE_RIVAL_TB_PYTHON, a Python with torch_tb_profiler 0.4.3 and pandas (TensorBoard itself is not needed).
Where it is missing everything is skipped, with a count. Its released version knows runtime calls only by torch 1.12's category;
here it is told the newer one, as its last source has it.
"""
import collections
import csv
import gzip
import io
import json
import logging
import os
import pathlib
import subprocess
import sys

BIN = os.environ.get('STAGELINE_BIN', str(pathlib.Path(__file__).resolve().parents[2] / 'build/dev/stageline'))
PYTHON = os.environ.get('STAGELINE_RIVAL_TB_PYTHON', '')
ROUNDING_US = 0.02  # of a call: its times are differences of doubles


def plugin_answers(path):
    """Runs in the plugin's Python: what it makes of one file."""
    from torch_tb_profiler.profiler import trace
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.module_op import aggegate_module_view
    from torch_tb_profiler.run import RunProfile
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(100_000)
    trace.EventTypeMap['cuda_runtime'] = trace.EventTypes.RUNTIME
    raw = (gzip.open if path.endswith('.gz') else open)(path, 'rb').read()
    data = RunProfileData.from_json('worker', 0, json.loads(raw.decode('utf-8', 'replace'), strict=False))
    out = {'operators': [], 'events': [], 'modules': []}
    if data.memory_snapshot is not None:
        run = RunProfile('worker', 0)
        run.memory_snapshot, run.tid2tree, run.profiler_start_ts = data.memory_snapshot, data.tid2tree, data.profiler_start_ts
        for device, rows in data.memory_snapshot.get_memory_statistics(data.tid2tree).items():
            out['operators'] += [[device, name, *map(str, (s[6], s[3], s[0], s[5], s[2], s[4], s[1]))] for name, s in rows.items()]
        for device, rows in run.get_memory_events(time_metric='us', memory_metric='B')['rows'].items():
            out['events'] += [[device, row[0], str(int(row[1]))] for row in rows]

    def walk(modules, depth):
        for m in modules:
            out['modules'].append([str(depth), m.name, str(m.id), str(m.occurences), str(m.operators), m.host_duration,
                                   m.self_host_duration, m.device_duration, m.self_device_duration])
            walk(m.children, depth + 1)
    walk(aggegate_module_view(data.tid2tree, data.events) or [], 0)
    print(json.dumps(out))


def ours(analysis, table, path):
    done = subprocess.run([BIN, 'analyze', analysis, path, '--compat', 'tb', '--table', table, '--format', 'csv', '-q'],
                          capture_output=True, text=True)
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def differences(what, theirs, mine):
    theirs, mine = collections.Counter(map(tuple, theirs)), collections.Counter(map(tuple, mine))
    wrong = sum((theirs - mine).values()) + sum((mine - theirs).values())
    print(f'  {what}: {sum((theirs & mine).values())} equal, {wrong} different')
    for sign, rows in (('theirs', theirs - mine), ('ours', mine - theirs)):
        for row in sorted(rows)[:3]:
            print(f'    {sign} {row}')
    return wrong


def main():
    if sys.argv[1:2] == ['--plugin']:
        return plugin_answers(sys.argv[2])
    if not PYTHON:
        print(f'skipped: {len(sys.argv) - 1} traces, $STAGELINE_RIVAL_TB_PYTHON names no Python with torch_tb_profiler')
        return 0
    wrong = 0
    for path in sys.argv[1:]:
        print(path)
        done = subprocess.run([PYTHON, __file__, '--plugin', path], capture_output=True, text=True)
        if done.returncode != 0:
            print('  the plugin fails:', done.stderr.strip().splitlines()[-1])
            continue
        theirs = json.loads(done.stdout.splitlines()[-1])
        wrong += differences('memory by operator', theirs['operators'], [row[1:] for row in ours('tb-memory', 'memory-operators', path)])
        wrong += differences('memory events', theirs['events'], [row[1:4] for row in ours('tb-memory', 'memory-events', path)])
        modules, bad = ours('tb-module', 'modules', path), 0
        for a, b in zip(theirs['modules'], modules):
            near = all(abs(x - int(y) / 1000) <= ROUNDING_US * max(1, int(a[3])) for x, y in zip(a[5:], b[7:11]))
            if a[:5] != [b[1], *b[3:7]] or not near:
                bad += 1
                print(f'    theirs {a}\n    ours   {b}')
        bad += abs(len(modules) - len(theirs['modules']))
        print(f'  modules: {len(modules)}, {bad} different')
        wrong += bad
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
