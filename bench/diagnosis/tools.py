#!/usr/bin/env python3
"""Asks a tool about the incidents: tools.py TOOL DIR > ANSWERS.jsonl, with TOOL stageline, slowdown, hta or slow_rank.

Each answers in the benchmark's vocabulary (docs/reference/diagnosis.md). Tools that print tables only are read by a rule, in their favour:
the largest part of the time that the tool itself calls lost, at the most exact place that it gives. STAGELINE_BIN is the program;
STAGELINE_RIVAL_HTA_PYTHON a Python with HTA (traceinsight), STAGELINE_RIVAL_MSPROF the command msprof-analyze."""
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'tests/gen'))
from finding_keys import keys_of  # noqa: E402

BIN = os.environ.get('STAGELINE_BIN', 'stageline')
# Parts of a step that ids of findings belong to, for truths that name no place.
AREAS = {'input.loading': 'input', 'copies.pageable': 'copies', 'launch.bound': 'launches', 'host.collective': 'communication'}


def stageline(where, truth):
    said = json.loads(subprocess.run([BIN, 'explain', where, '--format', 'json', '--quiet'], check=True, capture_output=True, text=True).stdout)
    found = []
    for one in said['findings']:
        keys = keys_of(one) | {one['id']} | ({AREAS[one['id']]} if one['id'] in AREAS else set()) | ({'host'} if one['id'].startswith(('host.', 'device.idle', 'input.', 'launch.')) else set())
        cost = {'cost_ns': one['lost_ns']} if one.get('lost_ns') is not None and truth['kind'] != 'profile' else {'cost_share': one.get('lost_share')}
        found.append({'keys': sorted(keys), **cost, 'text': one['title_en'] + ' ' + one['detail_en']})
    return found


def slowdown(where, truth):
    """StragglerAnalysis' method (NSDI 2025) as `stageline analyze slowdown` has it: the slowdown of the job by worker, stage, replica and type."""
    said = json.loads(subprocess.run([BIN, 'analyze', 'slowdown', where, '--format', 'json', '--quiet'], check=True, capture_output=True, text=True).stdout)
    tables = {table['name']: table['rows'] for table in said['tables']}
    places = [(row['S_w'], 0, {f'rank:{row["rank"]}'}) for row in tables['workers']] + [(row['S'], 1, {f'stage:{row["stage"]}'}) for row in tables['stages']]
    places += [(row['S'], 2, {f'replica:{row["dp"]}', 'replicas'}) for row in tables['ranks']] + [(row['S'], 3, {'messages'}) for row in tables['types'] if 'message' in row['type']]
    most = max((place[0] or 1 for place in places), default=1)
    if most < 1.01:
        return []
    # Of places that explain nine tenths of the largest slowdown, the most exact one.
    slow, _, keys = min((place for place in places if (place[0] or 1) - 1 >= 0.9 * (most - 1)), key=lambda place: (place[1], -place[0]))
    return [{'keys': sorted(keys), 'cost_share': 1 - 1 / slow}]


HTA = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
run = TraceAnalysis(trace_dir=sys.argv[1])
idle = run.get_idle_time_breakdown(ranks=sorted(run.t.traces), visualize=False)[0]
parts = run.get_temporal_breakdown(visualize=False)
print(json.dumps({'idle': idle.to_dict('records'), 'parts': parts.to_dict('records')}, default=float))
"""


def hta(where, _):
    """HTA's idle time of each rank's busiest stream by its cause, its temporal breakdown, and what that says of ranks: one that computes longer than
    the others, or whose communication is shorter because they wait for it, as its search for stragglers has it (that call fails on these traces)."""
    said = json.loads(subprocess.run([os.environ['STAGELINE_RIVAL_HTA_PYTHON'], '-W', 'ignore', '-c', HTA, where], check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    parts, found, idle = {row['rank']: row for row in said['parts']}, [], {}
    time = lambda rank: sum(parts[rank][f'{name}_time(us)'] for name in ('idle', 'compute', 'non_compute'))
    for row in said['idle']:
        idle.setdefault(row['rank'], {}).setdefault(row['stream'], {})[row['idle_category']] = row['idle_time']
    idle = {rank: min(streams.values(), key=lambda one: sum(one.values())) for rank, streams in idle.items()}

    def add(keys, shares, text):
        if shares and max(shares) >= 0.01:
            found.append({'keys': sorted(keys), 'cost_share': sum(shares) / len(shares), 'text': text})
    for name, keys in (('host_wait', {'host'}), ('kernel_wait', {'launches'})):
        add(keys, [one.get(name, 0) / time(rank) for rank, one in idle.items()], name)
    share_of = {name: {rank: row[f'{name}_time(us)'] / time(rank) for rank, row in parts.items()} for name in ('compute', 'non_compute')}
    add({'copies', 'communication'}, list(share_of['non_compute'].values()), 'non-compute time')
    for name, choose in (('compute', max), ('non_compute', min)) if len(parts) > 2 else ():
        rank = choose(parts, key=share_of[name].get)
        rest = sorted(value for other, value in share_of[name].items() if other != rank)
        add({f'rank:{rank}'}, [abs(share_of[name][rank] - rest[len(rest) // 2])], f'{name} time of ranks')
    return sorted(found, key=lambda one: -one['cost_share'])


def slow_rank(where, truth):
    """msprof-analyze's slow_rank: the rank that others wait for most often; several that tie, and their stage, are one answer. It gives no cost."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([os.environ['STAGELINE_RIVAL_MSPROF'], 'cluster', '-m', 'slow_rank', '-d', where, '-o', out, '--export_type', 'text'], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError((done.stdout + done.stderr)[-800:])
        rows = [row for path in pathlib.Path(out).rglob('rank_stats.csv') for row in csv.DictReader(path.read_text().splitlines())]
    if not rows:
        return []
    most = max(int(row['slowAffectCount']) for row in rows)
    ranks = {int(row['rankId']) for row in rows if int(row['slowAffectCount']) == most}
    stages = {rank % truth['stages'] for rank in ranks}
    return [{'keys': sorted({f'rank:{rank}' for rank in ranks} | ({f'stage:{stages.pop()}'} if len(stages) == 1 else set())), 'cost_share': None}]


TOOLS = {'stageline': (stageline, ('pipeline', 'profile', 'ascend')), 'slowdown': (slowdown, ('pipeline', 'ascend')), 'hta': (hta, ('profile',)), 'slow_rank': (slow_rank, ('ascend',))}


def ask(name, folder, workers=2):
    """One answer for each incident that is for the tool. One that it fails on has no finding, and says why."""
    tool, kinds = TOOLS[name]
    truths = [json.loads(line) for line in (folder / 'truth.jsonl').read_text().splitlines()]

    def answer(truth):
        try:
            return {'incident': truth['incident'], 'findings': tool(str(folder / truth['incident'] / truth['input']), truth)}
        except (subprocess.SubprocessError, RuntimeError, KeyError, ValueError, IndexError) as error:
            return {'incident': truth['incident'], 'findings': [], 'failed': str(getattr(error, 'stderr', '') or error)[-300:]}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        yield from pool.map(answer, [truth for truth in truths if truth['kind'] in kinds])


if __name__ == '__main__':
    for row in ask(sys.argv[1], pathlib.Path(sys.argv[2])):
        print(json.dumps(row), flush=True)
