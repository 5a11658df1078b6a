#!/usr/bin/env python3
"""Compares analyses under `--compat msprof` with the tables of msprof-analyze's modes, for every case of ../shared/data/ascend/modes. Tables
are compared as sets of rows, because its worker processes end in any order. Default answers are compared with the generator's truth. Without
../shared it prints that it was skipped."""
import collections
import contextlib
import csv
import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT.parent / 'shared' / 'data' / 'ascend' / 'modes'
STAGELINE = os.environ.get('STAGELINE_BIN', str(ROOT / 'build' / 'dev' / 'stageline'))
MODES = {  # mode: {files of the answer, which are rows of one table here: (analysis, table)}
    'computational_op_masking': {'ComputationalOperatorMaskingLinearity': ('comm-comp-overlap', 'comm-comp-overlap-by-kind')},
    'ep_load_balance': {'EPTokensSummary': ('expert-load', 'expert-load'), 'TopEPTokensInfo': ('expert-load', 'expert-groups')},
    'freq_analysis': {'AbnormalFrequencyRanks FreeFrequencyRanks': ('slow-rank', 'device-clocks')},
    'module_statistic': {'ModuleStatistic': ('tb-module', 'modules')},
    'operator_mfu': {'OperatorMFU': ('roofline', 'roofline'), 'ModuleMFU': ('tb-module', 'module-totals')},
    'communication_group_map': {'CommunicationGroupMapping': ('hccl-sum', 'hccl-group-work')},
}


def rows_of(text):
    rows = list(csv.reader(io.StringIO(text)))
    return rows[0], collections.Counter(tuple(value(v) for v in row) for row in rows[1:])


def value(text):
    """Rounds to nine digits, because quotients may differ in the last bit; times since the epoch have more digits."""
    return f'{float(text):.9g}' if re.fullmatch(r'-?\d{1,15}(\.\d+)?(e[+-]?\d+)?', text) else text


def ask(folder, analysis, table, *options):
    done = subprocess.run([STAGELINE, 'analyze', analysis, *([folder] if folder else []), '--format', 'csv', '--table', table, '-q', *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, f'{analysis}: exit {done.returncode}\n{done.stderr}'
    return rows_of(done.stdout)


def options_of(how):
    """Returns the options that the golden's command adds: --parallel_types and --step_id."""
    words = how.splitlines()[0].split()
    out = []
    if '--parallel_types' in words:
        out += ['--kinds', words[words.index('--parallel_types') + 1]]
    if '--step_id' in words:
        out += ['--steps', words[words.index('--step_id') + 1]]
    return out


def compare(case, folder):
    wrong, asked = [], 0
    for mode in sorted(path for path in case.iterdir() if path.name.partition('.')[0] in MODES):
        for name, (analysis, table) in MODES[mode.name.partition('.')[0]].items():
            goldens = [rows_of(path.read_text()) for path in (mode / f'{file}.csv' for file in name.split()) if path.exists()]
            if not goldens:
                continue
            want = goldens[0][0], sum((rows for _, rows in goldens), collections.Counter())
            got = ask(folder, analysis, table, '--compat', 'msprof', *options_of((mode / 'how.txt').read_text()))
            asked += sum(want[1].values())
            if got != want:
                missing, extra = want[1] - got[1], got[1] - want[1]
                wrong.append(f'{case.name} {mode.name} {name}: columns {got[0]}, missing {list(missing.items())[:2]}, '
                             f'too many {list(extra.items())[:2]} of {sum(want[1].values())}')
    return wrong, asked


def extracted(case, scratch):
    with tarfile.open(case / 'input.tar.xz') as archive:
        archive.extractall(scratch, **({'filter': 'data'} if hasattr(tarfile, 'data_filter') else {}))  # Debian 12 has no filters
    return pathlib.Path(scratch) / 'cluster'


def compare_two(case, folder):
    """The rows of cluster_time_compare_summary, of a case against moe_base."""
    golden = case / 'cluster_time_compare_summary' / 'ClusterTimeCompareSummary.csv'
    if not golden.exists():
        return [], 0
    want = rows_of(golden.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        got = ask(None, 'cluster-time-diff', 'cluster-time-diff', '--compat', 'msprof', '--control', extracted(CASES / 'moe_base', scratch),
                  '--test', folder)
    wrong = [] if got == want else [f'{case.name} cluster_time_compare_summary: missing {list((want[1] - got[1]).items())[:2]}, too many '
                                    f'{list((got[1] - want[1]).items())[:2]}']
    return wrong, sum(want[1].values())


def tables_of(text):
    """Reads a table of cluster_analysis.db as rows; objects of JSON and sets of ranks are compared by value, folders not at all."""
    def plain(name, text):
        if name == 'profilePath':
            return ''
        if name == 'value':
            return json.dumps(json.loads(text), sort_keys=True)
        return f'{float(text):.8g}' if re.fullmatch(r'-?\d{1,16}(\.\d+)?(e-?\d+)?', text) else text  # numbers of groups are longer
    rows = list(csv.reader(io.StringIO(text)))
    return rows[0], collections.Counter(tuple(plain(name, v) for name, v in zip(rows[0], row)) for row in rows[1:])


def compare_cluster_db(case, folder):
    """The exporter's database has the rows of mode `all`."""
    wrong, asked = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / 'cluster_analysis.db'
        done = subprocess.run([STAGELINE, 'export', folder, '--to', 'cluster-db', '-o', path, '-q'], capture_output=True, text=True)
        assert done.returncode == 0, f'cluster-db: exit {done.returncode}\n{done.stderr}'
        with contextlib.closing(sqlite3.connect(path)) as db:
            for golden in sorted((case / 'all').glob('*.csv')):
                want = tables_of(golden.read_text())
                out = io.StringIO()
                found = db.execute(f'SELECT * FROM {golden.stem}')
                csv.writer(out).writerows([[column[0] for column in found.description], *found])
                got = tables_of(out.getvalue())
                asked += sum(want[1].values())
                if got != want:
                    missing, extra = want[1] - got[1], got[1] - want[1]
                    wrong.append(f'{case.name} cluster-db {golden.stem}: columns {got[0]}, {sum(missing.values())} missing {list(missing)[:2]}, '
                                 f'{sum(extra.values())} too many {list(extra)[:2]} of {sum(want[1].values())}')
    return wrong, asked


def compare_prices(case, folder):
    """What a planted slow rank costs is what the generator measured without it (README.md of the cases), within a tenth."""
    true = {'moe_base': ('experts.uneven', None, 0.115), 'moe_slow_freq': ('rank.slow', 5, 0.211), 'moe_throttle': ('rank.slow', 2, 0.088)}.get(case.name)
    if not true:
        return []
    done = subprocess.run([STAGELINE, 'explain', folder, '--json', '-q'], capture_output=True, text=True)
    found = [x for x in json.loads(done.stdout)['findings'] if x['id'] in ('rank.slow', 'rank.late', 'experts.uneven')]
    shares = [(x['id'], x['rank'], x['lost_share']) for x in found]
    right = len(shares) == 1 and shares[0][0] == true[0] and true[1] in (None, shares[0][1]) and abs(shares[0][2] / true[2] - 1) < 0.1
    return [] if right else [f'{case.name}: {shares}, true {true}']


def compare_tokens(case, folder, truth):
    """Tokens of forwards by rank and step are those of the generator."""
    with open(truth / 'tokens.csv', newline='') as file:
        want = collections.Counter()
        for row in csv.DictReader(file):
            if row['pass'] == 'fwd':
                want[row['rank'], row['step']] += int(row['tokens'])
    _, rows = ask(folder, 'expert-load', 'expert-load')
    got = {(row[0], row[1]): int(row[4]) for row in rows}
    return [] if got == dict(want) else [f'{case.name}: tokens {got}, true {dict(want)}']


def compare_modules(case, folder, truth):
    """Device time of forwards by rank and module is that of the generator's kernels; modules that communicate may have more."""
    want = collections.Counter()
    with open(truth / 'kernels.csv', newline='') as file:
        for row in csv.DictReader(file):
            if row['modules']:
                want[row['rank'], row['modules']] += int(row['end_ns']) - int(row['start_ns'])
    names, rows = ask(folder, 'tb-module', 'modules')
    got = {(row[0], row[2]): int(row[names.index('self_device_ns')]) for row in rows}
    communicates = ('RowParallelLinear', 'MoELayer')
    wrong = {key: (ns, got.get(key, 0)) for key, ns in want.items() if (got.get(key, 0) < ns if key[1].endswith(communicates) else got.get(key, 0) != ns)}
    return [f'{case.name}: module {key}: true {true} ns, {ours} here' for key, (true, ours) in list(wrong.items())[:3]]


def compare_gpu(case, folder, gpu):
    """Forwards of the GPU twin take 0.8 times as long in every module (calibrate_npu_gpu: 3.75 and 5.97 for two of them)."""
    out = subprocess.run([STAGELINE, 'diff', folder, gpu, '--by', 'module', '--table', 'items', '--format', 'csv', '-q'], capture_output=True, text=True).stdout
    rows = [row for row in csv.DictReader(out.splitlines()) if row['part'] == 'compute' and int(row['a_ns']) and int(row['b_ns']) and 'outside' not in row['name']]
    wrong = [f"{case.name}: {row['name']} {row['a_ns']} on the NPU, {row['b_ns']} ns on the GPU" for row in rows
             if abs(int(row['b_ns']) / int(row['a_ns']) / 0.8 - 1) > 0.001]
    return wrong if len(rows) >= 5 else [f'{case.name}: {len(rows)} modules of both']


def main():
    if not CASES.is_dir():
        print('skipped: goldens of msprof-analyze, ../shared is not there')
        return 0
    wrong, asked = [], 0
    for case in sorted(path for path in CASES.iterdir() if (path / 'input.tar.xz').exists()):
        with tempfile.TemporaryDirectory() as scratch:
            folder, truth = extracted(case, scratch), pathlib.Path(scratch) / 'truth'
            for asking in (compare, compare_two):
                found, rows = asking(case, folder)
                wrong += found
                asked += rows
            if (case / 'all').is_dir():
                found, rows = compare_cluster_db(case, folder)
                wrong += found
                asked += rows
            wrong += compare_prices(case, folder)
            if (gpu := folder.parent / 'gpu.sqlite').exists():
                wrong += compare_gpu(case, folder, gpu)
            if (truth / 'tokens.csv').exists():
                wrong += compare_tokens(case, folder, truth)
                wrong += compare_modules(case, folder, truth)
    found, rows = compare_cluster_db(CASES / 'real_level1', CASES.parent / 'msinsight_db' / 'level1')
    wrong += found
    asked += rows
    print('\n'.join(wrong))
    print(f'{asked} rows of msprof-analyze asked, {len(wrong)} answers differ')
    return 1 if wrong or not asked else 0


if __name__ == '__main__':
    sys.exit(main())
