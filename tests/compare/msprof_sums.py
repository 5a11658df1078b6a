#!/usr/bin/env python3
"""The installed msprof-analyze and `--compat msprof` (and, where its figures are right, our default), live on the same folders.

  msprof_sums.py DIR…        DIR holds *_ascend_pt folders; default: the real databases of ../shared, where these are

$STAGELINE_RIVAL_MSPROF is the command msprof-analyze (26.2.0). Where it is missing, or gives no answer itself, that is
skipped, with a count. It writes into the folders that it reads: it gets copies.
"""
import csv
import decimal
import io
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get('STAGELINE_BIN', str(ROOT / 'build/dev/stageline'))
RIVAL = os.environ.get('STAGELINE_RIVAL_MSPROF', '')
counts = {'equal': 0, 'different': 0, 'skipped': 0}
# mode, its table, our analysis and table, columns that say which row it is, and whether our default mode is asked (column of ours by theirs)
CASES = [
    ('compute_op_sum', 'ComputeOpAllRankStats', 'compute-op-sum', 'compute-op-types', ['OpType', 'TaskType'], None),
    ('compute_op_sum', 'ComputeOpPerRankStatsByOpType', 'compute-op-sum', 'compute-op-types-by-rank', ['OpType', 'TaskType', 'Rank'], None),
    ('compute_op_sum', 'ComputeOpPerRankStatsByOpName', 'compute-op-sum', 'compute-ops', ['OpName', 'OpType', 'TaskType', 'InputShapes', 'Rank'], None),
    ('hccl_sum', 'HcclAllRankStats', 'hccl-sum', 'hccl-types', ['OpType'], None),
    ('hccl_sum', 'HcclPerRankStats', 'hccl-sum', 'hccl-ranks', ['OpType', 'Rank'], None),
    ('hccl_sum', 'HcclTopOpStats', 'hccl-sum', 'hccl-top', ['OpName'], None),
    ('cann_api_sum', 'CannApiSumRank', 'cann-api-sum', 'cann-api-ranks', ['name', 'rank'], None),
    ('cann_api_sum', 'CannApiSum', 'cann-api-sum', 'cann-api', ['name'], None),
    ('slow_rank', 'SlowRank', 'slow-rank', 'slow-ranks', ['rankId'], None),
    ('slow_rank', 'SlowOpStats', 'slow-rank', 'late-collectives', ['OpName', 'GroupName'], None),
    ('cluster_time_summary', 'ClusterTimeSummary', 'cluster-time-summary', 'cluster-time-summary', ['rank', 'step'], None),
    # Our own sums from the device rows are the profiler's, to the microsecond's last digit that it writes.
    ('cluster_time_summary', 'ClusterTimeSummary', 'cluster-time-summary', 'cluster-time-summary', ['rank', 'step'],
     {'computation': 'compute_ns', 'communicationNotOverlapComputation': 'exposed_communication_ns', 'communication': 'communication_ns',
      'communicationOverlapComputation': 'overlap_ns',  # its waits are another question: docs/analyses/cluster-time-summary.md
      'memoryNotOverlapComputationCommunication': 'exposed_memory_ns'}),
    ('communication_time_sum', 'ClusterCommunicationTime', 'communication-time-sum', 'communication-times', ['rank_id', 'hccl_op_name'],
     {'elapsed_time': 'elapse_ns', 'transit_time': 'transit_ns', 'wait_time': 'wait_ns', 'synchronization_time': 'synchronization_ns',
      'idle_time': 'idle_ns'}),
]
SCALE = {'cluster_time_summary': 1e-3, 'communication_time_sum': 1e-6}  # of our ns in its unit
OUR_KEYS = {'rank_id': 'rank', 'hccl_op_name': 'name'}


def rival_tables(mode, folder):
    with tempfile.TemporaryDirectory() as work:
        copy, out = pathlib.Path(work) / 'in', pathlib.Path(work) / 'out'
        shutil.copytree(folder, copy)
        subprocess.run(['chmod', '-R', 'u+w', str(copy)], check=True)
        subprocess.run([RIVAL, 'cluster', '-m', mode, '-d', str(copy), '-o', str(out), '--force'], capture_output=True, timeout=900)
        tables = {}
        for path in out.rglob('*.db'):
            db = sqlite3.connect(path)
            for name, in db.execute("select name from sqlite_master where type='table'").fetchall():
                cursor = db.execute(f'select * from "{name}"')
                heads = [d[0] for d in cursor.description]
                tables[name] = [dict(zip(heads, row)) for row in cursor]
        return tables


def ours(analysis, table, folder, compat, *options):
    done = subprocess.run([BIN, 'analyze', analysis, folder, '--table', table, '--format', 'csv', '-q', *options,
                           *(['--compat', 'msprof'] if compat else [])],
                          capture_output=True, text=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def same(a, b, slack):
    a, b = ('' if v is None else str(v) for v in (a, b))
    if a == b:
        return True
    try:
        x, y = float(a), float(b)
    except ValueError:
        return False
    return abs(x - y) <= slack + 1e-9 * max(abs(x), abs(y))


def compare(case, folder, tables):
    mode, theirs, analysis, table, keys, columns = case
    rows = tables.get(theirs)
    if not rows:
        counts['skipped'] += 1
        print(f'skipped: {mode} has no {theirs} of {folder}')
        return
    # The profile's own sums of communication are of one plane, which is its fault and --compat's.
    mine = {tuple(str(r[OUR_KEYS.get(k, k) if columns else k]) for k in keys): r
            for r in ours(analysis, table, folder, columns is None or mode == 'communication_time_sum')}
    for row in rows:
        if row.get('hccl_op_name') == 'Total Op Info':
            continue
        other = mine.get(tuple(str(row[k]) for k in keys))
        for name, value in row.items():
            if name in keys or (columns and name not in columns) or (not columns and other and name not in other):
                continue
            if other is None:
                found = None
            elif columns:
                found = float(other[columns[name]] or 'nan') * SCALE[mode]
            else:
                found = other[name]
            # A microsecond's part that its text cuts; milliseconds of analysis.db are exact to the nanosecond's own rounding.
            equal = other is not None and same(value, found, {1e-3: 0.0011, 1e-6: 2e-6}.get(SCALE.get(mode), 1e-6))
            counts['equal' if equal else 'different'] += 1
            if not equal and counts['different'] <= 20:
                print(f'{folder}: {theirs} {[row[k] for k in keys]} {name}: theirs {value}, ours {found}')


def count(equal, what):
    counts['equal' if equal else 'different'] += 1
    if not equal and counts['different'] <= 20:
        print(what)


def compare_links(folder):
    """Totals of the links between two ranks that both know, of `communication_matrix_sum`."""
    rows = [r for r in rival_tables('communication_matrix_sum', folder).get('ClusterCommunicationMatrix', [])
            if r['hccl_op_name'].endswith('-total') and r['transport_type'] != 'LOCAL']
    mine = {}
    for row in ours('communication-matrix', 'links', folder, False):
        total = mine.setdefault((int(row['src_rank']), int(row['dst_rank'])), [0, 0])
        total[0] += int(row['bytes'])
        total[1] += int(row['transit_ns'])
    for row in rows:
        size, time = mine.get((int(row['src_rank']), int(row['dst_rank'])), (0, 0))
        count(abs(size - row['transit_size'] * 1e6) < 1 and abs(time - row['transit_time'] * 1e6) < 10,
              f'{folder}: link {row["src_rank"]} to {row["dst_rank"]}: theirs {row["transit_size"]} MB in {row["transit_time"]} ms, ours {size} in {time}')
    if not rows:
        counts['skipped'] += 1
        print(f'skipped: communication_matrix_sum has no totals of {folder}')


def compare_gaps(folder):
    """The longest gaps of `free_analysis` are ours, or hold a copy, which it leaves out (docs/analyses/free-analysis.md)."""
    rows = rival_tables('free_analysis', folder).get('FreeAnalysis', [])
    done = subprocess.run([BIN, 'info', '--json', folder], capture_output=True, text=True)
    first = json.loads(done.stdout)['start_ns']
    copies = {}
    for row in ours('events', 'events', folder, False):
        if row['category'] in ('gpu_memcpy', 'gpu_memset'):
            copies.setdefault(row['rank'], []).append(first + int(row['start_ns']))
    gaps = {(r['rank'], first + int(r['start_ns']), int(r['free_ns'])) for r in ours('free-analysis', 'free-gaps', folder, False, '--top', '100000')}
    for row in rows:
        start, end = (round(decimal.Decimal(row[f'{side}Time(us)']) * 1000) for side in ('start', 'end'))
        rank = str(row['rankId'])
        count((rank, start, end - start) in gaps or any(start <= at < end for at in copies.get(rank, [])),
              f'{folder}: gap of rank {rank} at {start} for {end - start} ns is none of ours')
    if not rows:
        counts['skipped'] += 1
        print(f'skipped: free_analysis has no gaps of {folder}')


def main():
    folders = [pathlib.Path(a) for a in sys.argv[1:]] or [p for p in [ROOT.parent / 'shared/data/ascend/msinsight_db/level1'] if p.is_dir()]
    if not RIVAL or not folders:
        print(f'msprof-analyze: {len(CASES)} comparisons skipped: ' + ('no data' if RIVAL else '$STAGELINE_RIVAL_MSPROF is not set'))
        return 0
    for folder in folders:
        answers = {mode: rival_tables(mode, folder) for mode in dict.fromkeys(case[0] for case in CASES)}
        for case in CASES:
            compare(case, folder, answers[case[0]])
        compare_links(folder)
        compare_gaps(folder)
    print('msprof-analyze: ' + ', '.join(f'{n} {what}' for what, n in counts.items()))
    return 1 if counts['different'] or counts['equal'] == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
