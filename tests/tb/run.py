#!/usr/bin/env python3
"""`--compat tb` against what TensorBoard's profiler plugin itself showed for its own sample captures.

The plugin's regression test kept the data of its views, five lines a capture (overview, pies of operators, operators,
kernels, pie of kernels), for two captures of a ResNet50. They are no part of the project: a capture that is not in
../shared/data is skipped with a count.

run.py [--data DIR]    DIR holds result_check_file.txt and captures, at any depth; exit 1 when something differs
"""
import argparse
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve()
BIN = os.environ.get('STAGELINE_BIN', str(HERE.parents[2] / 'build/dev/stageline'))
# A worktree lies one level deeper than the checkout it belongs to.
SHARED = [HERE.parents[n] / 'shared/data/kineto/tb_plugin' for n in (3, 4)]
CAPTURES = {'worker0.1623143089861': 0, 'worker0.1623212756351': 5}  # file → its first line
counts = {'passed': 0, 'failed': 0, 'skipped': 0}


def check(what, got, expected):
    same = got == expected
    counts['passed' if same else 'failed'] += 1
    if not same:
        print(f'{what}: {got!r}, the plugin has {expected!r}')


def table(analysis, capture, name):
    done = subprocess.run([BIN, 'analyze', analysis, str(capture), '--compat', 'tb', '--table', name, '--format', 'csv', '-q'],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def check_row(what, row, expected):
    for key, value in expected.items():
        check(f'{what}: {key}', row[key] if isinstance(value, str) else float(row[key]), value)


def check_overview(capture, view):
    columns = [c['name'] for c in view['steps']['columns'] if 'name' in c]
    steps = table('tb-overview', capture, 'step-breakdown')
    check('steps', [r['Step'] for r in steps], [r[0] for r in view['steps']['rows']])
    for row, expected in zip(steps, view['steps']['rows']):
        check_row(f'step {row["Step"]}', row, dict(zip(columns[1:], expected[1::2])))
        total = re.search(r'Total: (\d+)us', expected[2])[1]
        check(f'step {row["Step"]}: total', row['Total'], total)
    averages = {r['Category']: r for r in table('tb-overview', capture, 'step-averages')}
    whole = view['performance'][0]
    for part in [whole, *whole['children']]:
        check_row('averages', averages[part['name']],
                  {'Time Duration (us)': part['value'], 'Percentage (%)': part['extra']})
    devices = table('tb-overview', capture, 'device-utilization')
    figures = {d['title']: d['value'] for d in view['gpu_metrics']['data']}
    check('devices', len(devices), 1)
    check('device', devices[0]['Name'], figures['Name'])
    check('device memory', f'{devices[0]["Memory (GB)"]} GB', figures['Memory'])
    check('compute capability', devices[0]['Compute Capability'], figures['Compute Capability'])
    for title in ('GPU Utilization', 'Est. SM Efficiency', 'Est. Achieved Occupancy', 'Kernel Time using Tensor Cores'):
        check(title, f'{float(devices[0][title + " (%)"])} %', figures[title])
    # Its sentences are not ours; what they are about and their numbers must agree.
    advice = {r['recommendation']: float(r['value_share']) for r in table('tb-overview', capture, 'recommendations')}
    loading = re.search(r'([\d.]+)% of the step time is in DataLoader', view['recommendations'])
    eligible = re.search(r'Kernels with (\d+)% time are launched by Tensor Cores eligible', view['recommendations'])
    check('advice on loading', 'input-loading' in advice and round(100 * advice['input-loading'], 1),
          float(loading[1]) if loading else False)
    check('advice on tensor cores', 'tensor-cores' in advice and round(100 * advice['tensor-cores']),
          int(eligible[1]) if eligible else False)


def check_operators(capture, view):
    ours = {r['name']: r for r in table('tb-operator', capture, 'operators')}
    check('operators', sorted(ours), sorted(r['name'] for r in view['data']))
    for expected in view['data']:
        metrics = {k: v for k, v in expected.items() if k not in ('name', 'has_call_stack')}
        check_row(expected['name'], ours.get(expected['name'], dict.fromkeys(metrics, 'nan')), metrics)


def check_kernels(capture, view):
    columns = [c['name'] for c in view['data']['columns']]
    ours = {r['Name']: r for r in table('tb-kernel', capture, 'kernels')}
    check('kernels', sorted(ours), sorted(r[0] for r in view['data']['rows']))
    for expected in view['data']['rows']:
        metrics = dict(zip(columns[1:], expected[1:]))
        check_row(expected[0], ours.get(expected[0], dict.fromkeys(metrics, 'nan')), metrics)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--data')
    options = parser.parse_args()
    folder = pathlib.Path(options.data) if options.data else next((p for p in SHARED if p.is_dir()), SHARED[0])
    golden = folder / 'result_check_file.txt'
    for name, line in CAPTURES.items():
        found = sorted(folder.rglob(name + '.pt.trace.json*')) if golden.exists() else []
        if not found:
            counts['skipped'] += 1
            continue
        views = [json.loads(text) for text in golden.read_text().splitlines()[line:line + 4]]
        check_overview(found[0], views[0])
        check_operators(found[0], views[2])
        check_kernels(found[0], views[3])
    print(f'{counts["passed"]} passed, {counts["failed"]} failed, {counts["skipped"]} captures skipped (not in ../shared/data)')
    return 1 if counts['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
