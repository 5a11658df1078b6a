#!/usr/bin/env python3
"""Asks a tool about the incidents: tools.py TOOL DIR [WORKERS] > ANSWERS.jsonl, with TOOL stageline, slowdown, hta, nsys_ai, slow_rank or advisor.

Each answers in the benchmark's vocabulary (docs/reference/diagnosis.md). Tools that print tables only are read by a rule, in their favour:
the largest part of the time that the tool itself calls lost, at the most exact place that it gives. STAGELINE_BIN is the program;
STAGELINE_RIVAL_HTA_PYTHON a Python with HTA (traceinsight), STAGELINE_RIVAL_NSYS_AI the command nsys-ai, STAGELINE_RIVAL_MSPROF the command
msprof-analyze, STAGELINE_RIVAL_MSPROF_PYTHON the Python that has it."""
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'tests/gen'))
from finding_keys import keys_of  # noqa: E402

import nsys_form  # noqa: E402

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


# Maps calls that nsys-ai saw in a gap of the device, and its patterns, to our findings.
NSYS_CALLS = [('Malloc', {'host.allocator'}), ('cudaFree', {'host.allocator'}), ('Synchronize', {'host.sync'}), ('Memcpy', {'copies', 'copies.pageable'}),
              ('Module', {'host.blocked'}), ('Launch', {'host.blocked'})]
NSYS_PATTERNS = {'Small Kernel Overhead': {'launches', 'launch.bound'}, 'Excessive Synchronization': {'host.sync', 'host'}, 'Excessive H2D Transfers': {'copies'},
                 'Continuous H2D Transfers': {'copies'}, 'H2D Transfer Spike': {'copies'}, 'Synchronous Memcpy': {'copies'},
                 'Pageable Memory in Async Memcpy': {'copies', 'copies.pageable'}, 'NCCL Serialization': {'communication'},
                 'Compute-Communication Imbalance': {'communication'}, 'Layer NCCL Hotspot': {'communication'}, 'Pipeline Imbalance': {'communication'}}


def nsys_ai(where, _):
    """nsys-ai's diagnosis of each device and its known patterns, on the profile in the form of Nsight Systems. The idle time of a device is one
    finding, with the call in its longest gap; copies that it calls large are one; what it says of long kernels is no loss and left out."""
    with tempfile.TemporaryDirectory() as scratch:
        profile = pathlib.Path(scratch) / 'profile.sqlite'
        nsys_form.write(where, profile)

        def said(*words):
            command = [os.environ['STAGELINE_RIVAL_NSYS_AI'], *words, '--format', 'json']
            return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=scratch, env={**os.environ, 'HOME': scratch, 'NSYS_AI_INGEST': 'sqlite'}).stdout)
        found, idle, copied = [], {}, {}
        for rank, events in nsys_form.traces(where):
            span = max(event['ts'] + event['dur'] for event in events) - min(event['ts'] for event in events)
            told = said('diagnose', str(profile), '--gpu', str(rank), '--session', f'{scratch}/session{rank}')['findings']
            for one in told:
                text = f'{one["label"]} {one.get("note", "")}'
                if share := re.match(r'GPU Idle Summary \((\S+)%', one['label']):
                    idle[rank] = [float(share[1]) / 100, '']
                elif one['label'].startswith('GPU Idle Gap') and rank in idle and not idle[rank][1]:
                    idle[rank][1] = text
                elif one['label'].startswith('Large ') and 'Transfer' in one['label']:
                    copied[rank] = copied.get(rank, 0) + (one['end_ns'] - one['start_ns']) / 1000 / span
        if idle:
            text = max(idle.values())[1]
            called = text.partition('CPU: ')[2]
            keys = next((meant for word, meant in NSYS_CALLS if word in called), set()) | ({'copies'} if 'Memcpy' in called else {'host'})
            found.append({'keys': sorted(keys), 'cost_share': sum(share for share, _ in idle.values()) / len(idle), 'text': text})
        if copied:
            found.append({'keys': ['copies'], 'cost_share': sum(copied.values()) / len(copied), 'text': 'large transfers'})
        for one in said('skill', 'run', 'root_cause_matcher', str(profile)):
            if one['severity'] in ('warning', 'critical') and one['pattern'] in NSYS_PATTERNS:
                found.append({'keys': sorted(NSYS_PATTERNS[one['pattern']]), 'cost_share': None, 'text': f'{one["pattern"]}: {one["evidence"]}'})
    return sorted(found, key=lambda one: -(one['cost_share'] or 0))


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


ADVISOR = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from msprof_analyze.prof_common.additional_args_manager import AdditionalArgsManager
AdditionalArgsManager().init({'language': 'en', 'force': True})
from msprof_analyze.advisor.analyzer.cluster.slow_rank_analyzer import SlowRankAnalyzer
ranks = SlowRankAnalyzer(sys.argv[1], language='en', output_path=sys.argv[2])
ranks.optimize(template_key='overall')
print(json.dumps({'said': ranks.bottelneck, 'rows': ranks.format_datas['data']}))
"""


def advisor(where, truth):
    """msprof-analyze's advisor: its search for slow ranks, the part of it that answers on these databases. It names what differs (computing,
    communication, free) by how much, and prints each rank's times: the finding is the rank that computes, or is free, longest."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([os.environ['STAGELINE_RIVAL_MSPROF_PYTHON'], '-c', ADVISOR, where, out], check=True, capture_output=True, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    steps, found = len({row[0] for row in told['rows']}), []
    for part, column, keys in (('Computing', 2, set()), ('Free', 4, {'host'})):
        if not (gap := re.search(rf'difference of {part} time \s*has reached ([\d.]+)ms', told['said'])):
            continue
        times = {}
        for row in told['rows']:
            times[row[1]] = times.get(row[1], 0) + row[column]
        rank = max(times, key=times.get)
        alike = {other for other, time in times.items() if time >= 0.98 * times[rank]}
        stages = {other % truth['stages'] for other in alike}
        found.append({'keys': sorted({f'rank:{other}' for other in alike} | ({f'stage:{stages.pop()}'} if len(stages) == 1 else set()) | keys),
                      'cost_ns': float(gap[1]) * 1e6, 'text': f'{part} of {steps} steps'})
    return sorted(found, key=lambda one: -one['cost_ns'])


TOOLS = {'stageline': (stageline, ('pipeline', 'profile', 'ascend')), 'slowdown': (slowdown, ('pipeline', 'ascend')), 'hta': (hta, ('profile',)),
         'nsys_ai': (nsys_ai, ('profile',)), 'slow_rank': (slow_rank, ('ascend',)), 'advisor': (advisor, ('ascend',))}


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
    for row in ask(sys.argv[1], pathlib.Path(sys.argv[2]), *map(int, sys.argv[3:4])):
        print(json.dumps(row), flush=True)
