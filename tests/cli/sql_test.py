"""stageline sql: the questions of docs/howto/sql.md with answers computed from the files themselves. It also tests
pushed-down conditions against others, the same rows in a real SQLite database, refusals, limits, and forms of
output."""
import csv
import io
import itertools
import json
import os
import pathlib
import random
import select
import shutil
import signal
import sqlite3
import statistics
import struct
import sys
import tempfile
import unittest
from collections import defaultdict
from decimal import Decimal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import collectives
import kineto
from support import SOURCE, Case, run

DEVICE = ('kernel', 'gpu_memcpy', 'gpu_memset')


def ask(path, query, *flags):
    """Returns the answer's rows as tuples."""
    return [tuple(row) for row in json.loads(run('sql', path, query, '--format', 'json', '-q', *flags, check=0).out)['rows']]


def refused(path, query, *flags):
    return run('sql', path, query, '-q', *flags, check=2).err


def ns(microseconds):
    return int(Decimal(microseconds) * 1000)


def union(intervals):
    """Merged [start, end) of intervals."""
    out = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def length(merged):
    return sum(end - start for start, end in merged)


def quantile(values, q):
    values = sorted(values)
    at = (len(values) - 1) * q
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


class Profile(unittest.TestCase):
    """Two ranks of a profiler, read by this test with nothing but json and decimals."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='stageline-test-')
        cls.path = pathlib.Path(cls.folder) / 'run'
        kineto.generate(['-o', str(cls.path), '--ranks', '2', '--layers', '2', '--steps', '4', '--memory', '--format', 'json'])
        cls.events, cls.instants, cls.steps = [], [], {}
        for rank in range(2):
            written = json.loads((cls.path / f'rank-{rank}.pt.trace.json').read_text(), parse_float=Decimal)
            for e in written['traceEvents']:
                if e['ph'] == 'X' and e.get('cat') != 'Trace':
                    event = dict(rank=rank, name=e['name'], cat=e['cat'], start=ns(e['ts']), dur=ns(e['dur']), args=e.get('args', {}), tid=str(e['tid']))
                    event['end'] = event['start'] + event['dur']
                    cls.events.append(event)
                elif e['ph'] == 'i' and e['name'] == '[memory]':
                    cls.instants.append((rank, e['args']))
        cls.work = [e for e in cls.events if e['cat'] in DEVICE]
        cls.calls = {(e['rank'], e['args']['correlation']): e for e in cls.events if e['cat'] == 'cuda_runtime' and 'correlation' in e['args']}
        cls.zero = min(e['start'] for e in cls.events)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def test_01_device_time_by_kernel(self):
        rows = ask(self.path, "SELECT key AS name, count, total_ns, 1.0 * total_ns / sum(total_ns) OVER () AS share FROM totals('name') WHERE class <> '' "
                              'ORDER BY total_ns DESC, key LIMIT 10')
        sums = defaultdict(list)
        for e in self.work:
            sums[e['name']].append(e['dur'])
        whole = sum(map(sum, sums.values()))
        truth = sorted(((n, len(d), sum(d), sum(d) / whole) for n, d in sums.items()), key=lambda r: (-r[2], r[0]))[:10]
        self.assertEqual([r[:3] for r in rows], [t[:3] for t in truth])
        for row, known in zip(rows, truth):
            self.assertAlmostEqual(row[3], known[3], places=12)
        # Question 2 is the same without totals().
        plain = ask(self.path, 'SELECT name, count(*), sum(dur_ns) AS total FROM kernels GROUP BY name ORDER BY total DESC, name LIMIT 10')
        self.assertEqual(plain, [t[:3] for t in truth])

    def test_03_busy_share_counts_streams_once(self):
        rows = ask(self.path, 'SELECT rank, union_ns(start_ns, dur_ns), max(end_ns) - min(start_ns) FROM kernels GROUP BY rank')
        truth = []
        for rank in range(2):
            mine = [(e['start'], e['end']) for e in self.work if e['rank'] == rank]
            truth.append((rank, length(union(mine)), max(e for _, e in mine) - min(s for s, _ in mine)))
        self.assertEqual(rows, truth)

    def test_waits_for_a_device_are_no_work_of_it(self):
        """The golden profile has synchronisations on its devices' rows: they have no class, anywhere."""
        path = SOURCE / 'tests/golden/readers/kineto/input'
        self.assertGreater(ask(path, "SELECT count(*) FROM slices WHERE name = 'Stream Sync'")[0][0], 0)
        self.assertEqual(ask(path, "SELECT count(*) FROM slices WHERE category = 'cuda_sync' AND class IS NOT NULL"), [(0,)])
        self.assertEqual(ask(path, "SELECT count(*) FROM slices WHERE class = 'OTHER'"), ask(path, "SELECT count(*) FROM kernels WHERE class = 'OTHER'"))
        plain = ask(path, 'SELECT name, class, count(*), sum(dur_ns) FROM kernels GROUP BY name, class ORDER BY 1, 2')
        self.assertEqual(ask(path, "SELECT key, class, count, total_ns FROM totals('name') WHERE class <> '' ORDER BY 1, 2"), plain)
        self.assertEqual(ask(path, "SELECT sum(total_ns) FROM totals('class') WHERE key <> ''"), [(sum(r[3] for r in plain),)])
        self.assertEqual(ask(path, "SELECT sum(count) FROM totals('name', NULL, NULL, 'OTHER')"), [(None,)])

    def test_how_long_devices_worked(self):
        kinds = {'COMMUNICATION': lambda e: e['name'].startswith('nccl'), 'MEMORY': lambda e: e['cat'] != 'kernel',
                 'COMPUTATION': lambda e: e['cat'] == 'kernel' and not e['name'].startswith('nccl')}
        mine = {rank: [e for e in self.work if e['rank'] == rank] for rank in range(2)}
        truth = []
        for rank, work in mine.items():
            covered = length(union((e['start'], e['end']) for e in work))
            span = max(e['end'] for e in work) - min(e['start'] for e in work)
            truth.append((rank, None, len(work), covered, span))
            self.assertAlmostEqual(ask(self.path, f'SELECT busy_share FROM busy({rank})')[0][0], covered / span, places=12)
        self.assertEqual(ask(self.path, 'SELECT rank, nullif(class, \'\'), count, busy_ns, span_ns FROM busy()'), truth)
        for kind, fits in kinds.items():
            some = [e for e in mine[1] if fits(e)]
            self.assertEqual(ask(self.path, f"SELECT count, busy_ns FROM busy(1, NULL, NULL, '{kind}')"), [(len(some), length(union((e['start'], e['end']) for e in some)))])
        low, high = sorted(e['start'] - self.zero for e in mine[0])[len(mine[0]) // 3], sorted(e['end'] - self.zero for e in mine[0])[len(mine[0]) * 2 // 3]
        cut = [(max(low, e['start'] - self.zero), min(high, e['end'] - self.zero)) for e in mine[0] if e['start'] - self.zero < high and e['end'] - self.zero > low]
        self.assertEqual(ask(self.path, f'SELECT count, busy_ns, span_ns FROM busy(0, {low}, {high})'), [(len(cut), length(union(cut)), high - low)])
        self.assertEqual(ask(self.path, f'SELECT count, busy_ns FROM busy(0, {high}, {low})'), [(0, 0)])
        self.assertIn('no rank 7', refused(self.path, 'SELECT * FROM busy(7)'))
        self.assertIn('COMPUTATION', refused(self.path, "SELECT * FROM busy(0, 0, 5, 'WORK')"))
        self.assertIn('whole number', refused(self.path, "SELECT * FROM busy('x')"))

    def gaps(self, rank):
        mine, out = sorted((e for e in self.work if e['rank'] == rank), key=lambda e: e['start']), []
        end = last = None
        for e in mine:
            if last is not None and e['start'] > end:
                out.append((e['start'] - end, end, last, e))
            if last is None or e['end'] > end:
                end, last = e['end'], e
        return sorted(out, key=lambda g: -g[0])

    def test_04_largest_holes_and_what_stands_around_them(self):
        rows = ask(self.path, 'SELECT g.dur_ns, a.name, b.name, g.host_ns FROM gaps(0) g JOIN slices a ON a.id = g.before_id JOIN slices b ON b.id = g.after_id '
                              'ORDER BY 1 DESC LIMIT 5')
        truth = []
        for dur, start, before, after in self.gaps(0)[:5]:
            launch = self.calls[0, after['args']['correlation']]
            truth.append((dur, before['name'], after['name'], max(0, min(launch['end'], start + dur) - start)))
        self.assertEqual(rows, truth)

    def test_04_gaps_are_the_idle_time_of_the_breakdown(self):
        answer = json.loads(run('analyze', 'idle-time-breakdown', self.path, '--table', 'device-idle', '--format', 'json', '-q').out)
        own = sum(row['idle_ns'] for row in answer['tables'][0]['rows'] if row['rank'] == 0)
        self.assertEqual(ask(self.path, 'SELECT sum(dur_ns) FROM gaps(0)'), [(own,)])

    def test_05_what_the_host_did_in_the_largest_hole(self):
        rows = ask(self.path, 'SELECT s.name, s.dur_ns FROM slices s, (SELECT start_ns, dur_ns FROM gaps(0) ORDER BY dur_ns DESC LIMIT 1) g WHERE s.rank = 0 '
                              "AND s.lane_kind = 'host' AND s.start_ns < g.start_ns + g.dur_ns AND s.end_ns > g.start_ns ORDER BY s.dur_ns DESC, s.name")
        dur, start, _, _ = self.gaps(0)[0]
        truth = [(e['name'], e['dur']) for e in self.events
                 if e['rank'] == 0 and e['cat'] not in (*DEVICE, 'gpu_user_annotation') and e['start'] < start + dur and e['end'] > start]
        self.assertEqual(rows, sorted(truth, key=lambda r: (-r[1], r[0])))

    def test_06_communication_hidden_under_computation(self):
        rows = ask(self.path, "SELECT rank, both_ns(start_ns, dur_ns, class = 'COMMUNICATION'), union_ns(CASE WHEN class = 'COMMUNICATION' THEN start_ns END, dur_ns) "
                              "FROM kernels WHERE class IN ('COMPUTATION', 'COMMUNICATION') GROUP BY rank")
        truth = []
        for rank in range(2):
            kernels = [e for e in self.work if e['rank'] == rank and e['cat'] == 'kernel']
            sides = [union((e['start'], e['end']) for e in kernels if ('nccl' in e['name']) == comm) for comm in (False, True)]
            both = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in sides[0] for b in sides[1])
            truth.append((rank, both, length(sides[1])))
        self.assertEqual(rows, truth)
        made = ask(self.path, 'WITH i(s, d, k) AS (VALUES (0, 10, 0), (5, 10, 1), (8, 4, 0), (8, 1, 0), (20, 5, 1), (22, 1, 0), (30, 5, NULL), (NULL, 9, 1)) '
                              'SELECT both_ns(s, d, k), union_ns(s, d) FROM i')
        self.assertEqual(made, [(7 + 1, 15 + 5 + 5)])

    def launched(self):
        for e in self.work:
            call = self.calls[e['rank'], e['args']['correlation']]
            yield e, call, max(0, e['start'] - call['end'])

    def test_07_launch_delay_by_call(self):
        rows = ask(self.path, 'SELECT c.name, quantile(k.launch_delay_ns, 0.5), quantile(k.launch_delay_ns, 0.99), count(*) FROM kernels k '
                              'JOIN slices c ON c.id = k.call_id GROUP BY c.name')
        delays = defaultdict(list)
        for _, call, delay in self.launched():
            delays[call['name']].append(delay)
        self.assertEqual([(r[0], r[3]) for r in rows], [(n, len(d)) for n, d in sorted(delays.items())])
        for name, half, high, _ in rows:
            self.assertAlmostEqual(half, quantile(delays[name], 0.5), delta=1e-6 * (half + 1))
            self.assertAlmostEqual(high, quantile(delays[name], 0.99), delta=1e-6 * (high + 1))

    def test_08_kernels_shorter_than_their_call(self):
        rows = ask(self.path, 'SELECT rank, count(*) FROM kernels WHERE dur_ns < call_dur_ns GROUP BY rank')
        count = defaultdict(int)
        for e, call, _ in self.launched():
            count[e['rank']] += e['dur'] < call['dur']
        self.assertEqual(rows, [(rank, n) for rank, n in sorted(count.items()) if n])

    def test_09_kernels_within_one_range(self):
        name = next(e['name'] for e in self.events if e['name'].startswith('ProfilerStep#'))
        rows = ask(self.path, 'SELECT k.name, sum(k.dur_ns) FROM kernels k, (SELECT rank, min(start_ns) a, max(end_ns) b FROM slices '
                              f"WHERE name = '{name}' AND lane_kind = 'host' GROUP BY rank) r WHERE k.rank = r.rank AND k.start_ns BETWEEN r.a AND r.b "
                              'GROUP BY k.name ORDER BY 2 DESC, 1')
        sums = defaultdict(int)
        for rank in range(2):
            ranges = [e for e in self.events if e['rank'] == rank and e['name'] == name and e['cat'] == 'user_annotation']
            first, last = min(e['start'] for e in ranges), max(e['end'] for e in ranges)
            for e in self.work:
                if e['rank'] == rank and first <= e['start'] <= last:
                    sums[e['name']] += e['dur']
        self.assertEqual(rows, sorted(sums.items(), key=lambda r: (-r[1], r[0])))

    def test_10_device_time_below_operators_by_launch(self):
        rows = ask(self.path, "SELECT op_name, count(DISTINCT op_id), sum(dur_ns) FROM kernels WHERE op_name GLOB 'aten::*' GROUP BY op_name ORDER BY 3 DESC, 1")
        ops = {(e['rank'], e['args']['External id']): e for e in self.events if e['cat'] == 'cpu_op' and 'External id' in e['args']}
        calls, sums = defaultdict(set), defaultdict(int)
        for e in self.work:
            op = ops.get((e['rank'], e['args'].get('External id')))
            if op and op['name'].startswith('aten::'):
                calls[op['name']].add((e['rank'], e['args']['External id']))
                sums[op['name']] += e['dur']
        self.assertEqual(rows, sorted(((n, len(calls[n]), s) for n, s in sums.items()), key=lambda r: (-r[2], r[0])))

    def test_11_the_slowest_rank_of_each_step(self):
        durations = {(e['rank'], int(e['name'].split('#')[1])): e['dur'] for e in self.events
                     if e['name'].startswith('ProfilerStep#') and e['cat'] == 'user_annotation'}
        numbers = sorted({step for _, step in durations})
        rows = ask(self.path, 'SELECT step, rank, max(dur_ns) FROM steps GROUP BY step')
        self.assertEqual(rows, [(s, *max(((r, durations[r, s]) for r in range(2)), key=lambda p: p[1])) for s in numbers])
        # 12: outlier steps
        mine = [durations[0, s] for s in numbers]
        rows = ask(self.path, 'SELECT step, dur_ns FROM steps WHERE rank = 0 AND dur_ns > 1.01 * (SELECT quantile(dur_ns, 0.5) FROM steps WHERE rank = 0)')
        self.assertEqual(rows, [(s, durations[0, s]) for s in numbers if durations[0, s] > 1.01 * statistics.median(mine)])

    def test_13_who_arrives_last(self):
        rows = ask(self.path, 'SELECT rank, count(*) FROM (SELECT seq, group_name, rank, start_ns, max(start_ns) OVER (PARTITION BY group_name, seq) AS last '
                              'FROM collectives) WHERE start_ns = last GROUP BY rank ORDER BY 2 DESC, 1')
        groups = defaultdict(list)
        for e in self.work:
            if 'Seq' in e['args']:
                groups[e['args']['Process Group Name'], e['args']['Seq']].append((e['start'], e['rank']))
        count = defaultdict(int)
        for members in groups.values():
            for start, rank in members:
                count[rank] += start == max(members)[0]
        self.assertEqual(rows, sorted(((r, n) for r, n in count.items() if n), key=lambda r: (-r[1], r[0])))
        # Question 14: bytes and bus time; the wait is until the last rank started.
        rows = ask(self.path, 'SELECT name, dtype, count(*), sum(bytes), sum(dur_ns - coalesce(wait_ns, 0)) FROM collectives GROUP BY 1, 2')
        size = moved = bus = 0
        for e in self.work:
            if 'Seq' in e['args']:
                last = max(groups[e['args']['Process Group Name'], e['args']['Seq']])[0]
                size += 1
                moved += 2 * max(e['args']['In msg nelems'], e['args']['Out msg nelems'])
                bus += e['dur'] - min(e['dur'], last - e['start'])
        self.assertEqual(rows, [('allreduce', 'BFloat16', size, moved, bus)])

    def test_15_copies_by_direction(self):
        rows = ask(self.path, "SELECT name, count(*), sum(bytes), 1.0 * sum(bytes) / sum(dur_ns) FROM kernels WHERE class = 'MEMORY' GROUP BY name")
        copies = defaultdict(list)
        for e in self.work:
            if e['cat'] != 'kernel':
                copies[e['name']].append((e['args']['bytes'], e['dur']))
        self.assertEqual([r[:3] for r in rows], [(n, len(c), sum(b for b, _ in c)) for n, c in sorted(copies.items())])
        for row in rows:
            self.assertAlmostEqual(row[3], sum(b for b, _ in copies[row[0]]) / sum(d for _, d in copies[row[0]]))

    def test_21_peak_of_memory_and_its_operator(self):
        rows = ask(self.path, 'SELECT m.device, m.allocated_bytes, s.name FROM memory m LEFT JOIN slices s ON s.id = m.op_id ORDER BY m.allocated_bytes DESC LIMIT 1')
        self.assertEqual(rows[0][:2], (0, max(a['Total Allocated'] for _, a in self.instants if a['Device Type'] == 1)))
        self.assertEqual(ask(self.path, 'SELECT rank, count(*), sum(bytes) FROM memory GROUP BY rank'),
                         [(r, len(m), sum(a['Bytes'] for a in m)) for r in range(2) for m in [[a for k, a in self.instants if k == r]]])

    def test_23_arguments_of_the_longest_kernels(self):
        rows = ask(self.path, 'SELECT k.name, a.key, a.value, a.type FROM (SELECT id, name FROM kernels WHERE rank = 0 AND grid <> \'\' ORDER BY dur_ns DESC LIMIT 3) k JOIN args a ON a.slice_id = k.id')
        longest = sorted((e for e in self.work if e['rank'] == 0 and 'grid' in e['args']), key=lambda e: -e['dur'])[:3]
        self.assertEqual([r[:2] for r in rows], [(e['name'], key) for e in longest for key in e['args']])
        values = {(r[1], r[3]): r[2] for r in rows}
        self.assertEqual(values['stream', 'number'], str(longest[-1]['args']['stream']))
        self.assertEqual(json.loads(values['grid', 'array']), [int(v) for v in longest[-1]['args']['grid']])

    def test_24_self_time_of_operators_by_thread(self):
        rows = ask(self.path, "SELECT tid, name, sum(self_ns) FROM slices WHERE rank = 0 AND category = 'cpu_op' GROUP BY tid, name ORDER BY 3 DESC, 2 LIMIT 20")
        sums = defaultdict(int)
        host = [e for e in self.events if e['rank'] == 0 and e['cat'] not in (*DEVICE, 'gpu_user_annotation')]
        for tid in {e['tid'] for e in host}:
            stack = []
            for e in sorted((e for e in host if e['tid'] == tid), key=lambda e: (e['start'], -e['dur'])):
                while stack and stack[-1]['end'] <= e['start']:
                    stack.pop()
                if stack and stack[-1]['cat'] == 'cpu_op':
                    sums[tid, stack[-1]['name']] -= e['dur']
                if e['cat'] == 'cpu_op':
                    sums[tid, e['name']] += e['dur']
                stack.append(e)
        truth = sorted(((t, n, s) for (t, n), s in sums.items()), key=lambda r: (-r[2], r[1]))[:20]
        self.assertEqual(rows, truth)
        # totals() nests alike
        self.assertEqual(ask(self.path, "SELECT sum(self_ns) FROM totals('name', 0) WHERE key IN (SELECT name FROM slices WHERE category = 'cpu_op')"),
                         [(sum(sums.values()),)])

    def test_25_findings_with_their_price_and_proof(self):
        rows = ask(self.path, 'SELECT id, title, lost_ns, saving_ns, command FROM findings')
        reported = json.loads(run('explain', self.path, '--json', '-q').out)['findings']
        self.assertEqual(rows, [(f['id'], f['title_en'], f['lost_ns'], f['saving_ns'], f['command']) for f in reported])

    def test_times_count_from_the_first_slice(self):
        self.assertEqual(ask(self.path, 'SELECT min(start_ns) FROM slices'), [(0,)])
        first = min(self.work, key=lambda e: (e['rank'], e['start']))
        self.assertEqual(ask(self.path, 'SELECT min(start_ns) FROM kernels WHERE rank = 0'), [(first['start'] - self.zero,)])

    def test_trees(self):
        (parent, child), = ask(self.path, 'SELECT parent_id, id FROM slices WHERE depth = 2 LIMIT 1')
        path = ask(self.path, f'SELECT id, distance FROM path({child})')
        self.assertEqual(path[0], (child, 0))
        self.assertEqual(path[1], (parent, 1))
        self.assertEqual(len(path), 3)
        below = dict(ask(self.path, f'SELECT id, distance FROM below({path[2][0]})'))
        self.assertEqual((below[path[2][0]], below[parent], below[child]), (0, 1, 2))
        # Launched work is below, too: as many kernels as have an operator among these.
        work = ask(self.path, f'SELECT count(*) FROM kernels WHERE op_id IN (SELECT id FROM below({path[2][0]}))')
        self.assertEqual(work, ask(self.path, f'SELECT count(*) FROM below({path[2][0]}) b JOIN kernels k ON k.id = b.id'))

    def test_filters_of_the_command_line(self):
        self.assertEqual(ask(self.path, 'SELECT DISTINCT rank FROM slices', '--ranks', '1'), [(1,)])
        steps = ask(self.path, 'SELECT DISTINCT step FROM slices ORDER BY 1', '--steps', '101:102')
        self.assertEqual(steps, [(101,), (102,)])
        self.assertEqual(ask(self.path, "SELECT sum(count) FROM totals('name')", '--steps', '101:102'),
                         ask(self.path, 'SELECT count(*) FROM slices WHERE step BETWEEN 101 AND 102'))

    # ---- what is pushed down ----

    def conditions(self, chance, texts=False):
        """(condition, the same so that SQLite looks at every row): + keeps a column from being pushed down, and takes its type, so that
        `texts` compares as numbers only without."""
        durations = sorted({e['dur'] for e in self.events})
        span = max(e['end'] for e in self.events) - self.zero
        names = sorted({e['name'] for e in self.events})
        number = {'rank': lambda: chance.choice([0, 1, 2]), 'step': lambda: chance.randint(99, 105), 'start_ns': lambda: chance.randint(-5, span),
                  'end_ns': lambda: chance.randint(-5, span), 'dur_ns': lambda: chance.choice(durations), 'stream': lambda: chance.choice([7, 20, 24, 3]),
                  'correlation': lambda: 1000 + chance.randint(0, 99), 'id': lambda: chance.choice([5, 4294967300, 77, -1, 2 ** 40]),
                  'parent_id': lambda: chance.choice([0, 4294967296, 9]), 'launch_id': lambda: chance.randint(0, 90), 'op_id': lambda: chance.randint(0, 90),
                  'name_id': lambda: chance.randint(0, 30)}
        text = {'name': lambda: chance.choice(names), 'category': lambda: chance.choice(['cpu_op', 'kernel', 'nothing', '']),
                'class': lambda: chance.choice(['COMPUTATION', 'MEMORY', 'COMMUNICATION', '']), 'lane_kind': lambda: chance.choice(['host', 'device', 'x']),
                'tid': lambda: chance.choice(['7', '100000', '1'])}
        while True:
            if chance.random() < 0.65:
                column = chance.choice(list(number))
                value = number[column]()
                how = chance.random()
                literal = str(value) if how < 0.8 else f'{value}.5' if how < 0.9 else f"'{value}'" if how < 0.97 and texts else 'NULL'
                op = chance.choice(['=', '<', '<=', '>', '>=', '=', 'IN'])
                right = f'({literal}, {number[column]()})' if op == 'IN' else literal
            else:
                column = chance.choice(list(text))
                value = text[column]()
                op = chance.choice(['=', '=', 'IN', 'GLOB', 'LIKE', 'REGEXP']) if column == 'name' else chance.choice(['=', 'IN'])
                part = value[:chance.randint(0, 8)].replace("'", '').replace('[', '').replace('(', '').replace('*', '').replace('?', '').replace('{', '').replace('+', '')
                quoted = "'" + value.replace("'", "''") + "'"
                right = {'=': quoted, 'IN': f"({quoted}, 'aten::mm')", 'GLOB': f"'{part}*'", 'LIKE': f"'{part}%'", 'REGEXP': f"'^{part}'" if part else "'.'"}[op]
            yield f'{column} {op} {right}', f'+{column} {op} {right}'

    def test_what_is_pushed_down_changes_nothing(self):
        chance = random.Random(24)
        source = self.conditions(chance)
        kernel_columns = {r[0] for r in ask(self.path, "SELECT name FROM columns('kernels')")}
        queries = []
        for _ in range(12):
            pushed, plain = [], []
            for k in range(40):
                table = chance.choice(['slices', 'kernels'])
                picked = []
                while len(picked) < chance.randint(1, 3):
                    one = next(source)
                    if table == 'slices' or one[0].split()[0] in kernel_columns:
                        picked.append(one)
                head = f'SELECT {k}, count(*), sum(id), sum(start_ns * 3 + dur_ns) FROM {table} WHERE '
                pushed.append(head + ' AND '.join(p for p, _ in picked))
                plain.append(head + ' AND '.join(p for _, p in picked))
            queries.append((' UNION ALL '.join(pushed), ' UNION ALL '.join(plain), pushed))
        some = 0
        for pushed, plain, each in queries:
            a, b = ask(self.path, pushed), ask(self.path, plain)
            for x, y, query in zip(a, b, each):
                self.assertEqual(x, y, query)
                some += x[1] > 0
        self.assertGreater(some, 60)  # and most find something

    def test_orders_that_are_kept(self):
        for order in ('name', 'name DESC', 'rank', 'rank DESC', 'id', 'name, id', 'rank DESC, start_ns'):
            column = order.split()[0].rstrip(',')
            rows = [r[0] for r in ask(self.path, f"SELECT {column} FROM slices WHERE dur_ns > 1000 AND lane_kind = 'host' ORDER BY {order}")]
            self.assertEqual(rows, sorted(rows, reverse=' DESC' in order), order)
        self.assertEqual(ask(self.path, 'SELECT name, count(*), sum(dur_ns) FROM slices WHERE rank = 1 AND dur_ns > 500 GROUP BY name'),
                         ask(self.path, 'SELECT +name, count(*), sum(dur_ns) FROM slices WHERE +rank = 1 AND dur_ns > 500 GROUP BY +name ORDER BY 1'))

    def test_the_plan_says_what_is_pushed(self):
        for query, part in {'SELECT * FROM slices WHERE id = 5': 'INDEX 0:0 2', 'SELECT name, count(*), max(id) FROM slices GROUP BY name': 'INDEX 1:',
                            'SELECT * FROM slices WHERE rank = 1 AND start_ns > 5': 'INDEX 0:1 2 6 4'}.items():
            plan = ask(self.path, 'EXPLAIN QUERY PLAN ' + query)
            self.assertIn(part, plan[0][3], plan)
            self.assertFalse([p for p in plan if 'TEMP B-TREE' in p[3]], plan)

    # ---- what is added up before SQLite sees it ----

    SUMS = ('count(*)', 'count(1)', 'sum(dur_ns)', 'avg(dur_ns)', 'min(start_ns)', 'max(end_ns)', 'sum(self_ns)', 'count(step)', 'max(step)', 'count(class)', 'min(name)',
            'sum(dur_ns) * 1.0 / count(*)', 'ms(sum(dur_ns))', 'sum(sum(dur_ns)) OVER ()', 'round(100.0 * sum(dur_ns) / sum(sum(dur_ns)) OVER (PARTITION BY 1), 3)',
            "coalesce(max(stream), -1)")
    KERNEL_SUMS = ('sum(bytes)', 'count(bytes)', 'min(launch_delay_ns)', 'avg(launch_delay_ns)', 'sum(call_dur_ns)', 'max(call_start_ns)')
    GROUPS = ('rank', 'name', 'class', 'category', 'step', 'stream', 'lane', 'tid', 'lane_kind', 'short_name(name)', "class = 'COMMUNICATION'", 'step % 2', 'name_id')

    def is_aggregated(self, query):
        return 'VIRTUAL TABLE INDEX 64:' in ' '.join(p[3] for p in ask(self.path, 'EXPLAIN QUERY PLAN ' + query))

    def test_sums_made_before_are_those_of_all_rows(self):
        """Random sums, groups and conditions, with the table and behind a subquery, which is read row by row."""
        chance = random.Random(26)
        source = self.conditions(chance, texts=True)
        kernel_columns = {r[0] for r in ask(self.path, "SELECT name FROM columns('kernels')")}
        added, asked, rows = 0, 0, 0
        for _ in range(90):
            table = chance.choice(['slices', 'kernels'])
            groups = [g for g in chance.sample(self.GROUPS, chance.randint(0, 3)) if table == 'slices' or g not in ('category', 'lane', 'tid', 'lane_kind', 'name_id')]
            sums = chance.sample(self.SUMS + (self.KERNEL_SUMS if table == 'kernels' else ()), chance.randint(1, 4))
            sums = [s for s in sums if table == 'slices' or 'self_ns' not in s]
            if not groups and not sums:
                continue
            picked = [p for p in (next(source)[0] for _ in range(chance.randint(0, 2))) if table == 'slices' or p.split()[0] in kernel_columns]
            query = 'SELECT ' + ', '.join(groups + sums) + ' FROM {}'
            if picked:
                query += ' WHERE ' + chance.choice([' AND ', ' AND ', ' OR ']).join(picked)
            if groups:
                by = ', '.join(str(i + 1) if chance.random() < 0.5 else g for i, g in enumerate(groups))
                query += f' GROUP BY {by}' + chance.choice(['', ' HAVING count(*) > 2', ' HAVING sum(dur_ns) > 5000'])
                query += ' ORDER BY ' + ', '.join(str(i + 1) + chance.choice(['', ' DESC']) for i in range(len(groups)))
            reported = json.loads(run('sql', self.path, query.format(table), '--format', 'json', '-q', check=0).out)
            plain = json.loads(run('sql', self.path, query.format(f'(SELECT * FROM {table} LIMIT -1)'), '--format', 'json', '-q', check=0).out)
            self.assertEqual(reported['columns'], plain['columns'], query)
            self.assertEqual(len(reported['rows']), len(plain['rows']), query)
            for a, b in zip(reported['rows'], plain['rows']):
                for x, y in zip(a, b):
                    self.assertTrue(x == y or isinstance(x, float) and abs(x - y) <= 1e-12 * abs(y), (query, a, b))
            asked += 1
            rows += len(reported['rows'])
            added += self.is_aggregated(query.format(table))
        self.assertGreater(added, asked // 3)
        self.assertGreater(rows, 300)

    def test_what_may_be_aggregated_first(self):
        for query in ('SELECT count(*), sum(dur_ns) FROM slices', 'SELECT name, count(*) FROM slices GROUP BY name', 'SELECT s.name n, sum(s.dur_ns) FROM slices s GROUP BY n ORDER BY 2 DESC LIMIT 5',
                      'SELECT rank, avg(dur_ns) FROM kernels WHERE start_ns BETWEEN 5 AND 900000 GROUP BY 1', 'SELECT max(dur_ns) FROM slices WHERE dur_ns > 5 AND rank = 1',
                      "SELECT * FROM (SELECT name, sum(dur_ns) AS total FROM kernels WHERE class <> '' GROUP BY name) WHERE total > 5",
                      'SELECT count(*) FROM slices UNION ALL SELECT count(*) FROM kernels -- both'):
            self.assertTrue(self.is_aggregated(query), query)
        # Rows, what would not mean the same, and what is not known to.
        for query in ('SELECT * FROM slices', 'SELECT name, dur_ns FROM slices', 'SELECT name, max(dur_ns), id FROM slices GROUP BY name', 'SELECT name, sum(dur_ns) FROM slices',
                      'SELECT count(DISTINCT name) FROM slices', 'SELECT name, quantile(dur_ns, 0.5) FROM slices GROUP BY name', 'SELECT sum(dur_ns) FROM slices WHERE dur_ns > 5 OR rank = 1',
                      'SELECT sum(dur_ns) FROM slices WHERE dur_ns + 1 > 5', 'SELECT sum(dur_ns) FROM slices WHERE dur_ns > 5.5e0', 'SELECT depth, count(*) FROM slices GROUP BY depth',
                      'SELECT sum(dur_ns) FILTER (WHERE rank = 1) FROM slices', 'SELECT sum(a.dur_ns) FROM slices a, slices b WHERE a.id = b.id', 'SELECT total(dur_ns) FROM slices',
                      'SELECT sum(dur_ns) OVER () FROM slices', 'SELECT rank AS dur_ns, sum(dur_ns) FROM slices GROUP BY rank', 'SELECT group_concat(name) FROM slices GROUP BY rank',
                      'WITH slices AS (SELECT 1 AS dur_ns) SELECT sum(dur_ns) FROM slices',
                      'SELECT k.rank, (SELECT count(*) FROM slices s WHERE s.parent_id = k.op_id) FROM kernels k LIMIT 3'):
            self.assertFalse(self.is_aggregated(query), query)
        self.assertEqual(ask(self.path, 'WITH slices AS (SELECT 1 AS dur_ns) SELECT sum(dur_ns) FROM slices'), [(1,)])
        self.assertEqual(ask(self.path, 'CREATE TEMP TABLE slices AS SELECT 7 AS dur_ns; SELECT sum(dur_ns) FROM slices'), [(7,)])
        # A condition that only the slices themselves can answer: asked of them.
        count = ask(self.path, 'SELECT count(*) FROM (SELECT * FROM slices LIMIT -1) WHERE dur_ns > 1000.5')
        self.assertEqual(ask(self.path, 'SELECT count(*) FROM slices WHERE dur_ns > 1000.5'), count)
        self.assertEqual(ask(self.path, 'SELECT count(*) FROM slices WHERE end_ns < 900000'), ask(self.path, 'SELECT count(*) FROM (SELECT * FROM slices LIMIT -1) WHERE end_ns < 900000'))
        self.assertEqual(ask(self.path, 'SELECT count(*), sum(dur_ns), max(dur_ns), avg(dur_ns) FROM slices WHERE rank = 77'), [(0, None, None, None)])
        for name in ('slices_aggregated', 'kernels_aggregated'):
            self.assertIn('no such table', refused(self.path, f"SELECT * FROM {name}('rank', 'dur_ns')"))
            self.assertEqual(ask(self.path, f"SELECT * FROM tables WHERE name = '{name}'"), [])
        self.assertIn('did you mean dur_ns', refused(self.path, 'SELECT sum(durns) FROM slices'))
        # An error is that of the words that were written, at their place in them.
        err = refused(self.path, "SELECT count(*) FROM slices WHERE name = 'a")
        self.assertIn("'a", err)
        self.assertNotIn('aggregate_', err)
        for query, place in (('SELECT count(*), sum(dur_ns) FROM slices WHERE rank = = 1', '= 1'), ('SELECT name, sum(dur_ns) FROM slices GROUP BY name ORDER BY 9', ''), ('SELECT max(dur_ns) FROM slices WHERE nme = 1', 'nme')):
            err = refused(self.path, query)
            self.assertNotIn('aggregate_', err)
            if place:
                lines = err.splitlines()
                self.assertEqual(lines[2].index('^') - 2, query.index(place), err)
        # Time is bounded, whatever is written.
        for query in ('SELECT ' * 2800, 'SELECT ' + 'ms(' * 6000, 'SELECT ' + 'count(*),' * 2000 + '1 FROM slices', 'SELECT ' + 'ms(' * 190 + 'sum(dur_ns' + ')' * 191 + ' FROM slices',
                      "SELECT count(*) FROM slices WHERE name = 'a", 'SELECT count(*) FROM slices WHERE (', 'SELECT FROM slices', 'SELECT count(*) FROM slices GROUP BY', 'SELECT , FROM slices GROUP BY 1'):
            self.assertIn(run('sql', self.path, query, '-q', timeout=60).returncode, (0, 2), query[:50])

    def test_the_first_by_a_number(self):
        """ORDER BY … LIMIT of a number keeps as many rows as are wanted; the plan sorts nothing."""
        for table, query in itertools.product(('slices', 'kernels'), (
                'SELECT id, dur_ns FROM {} ORDER BY dur_ns DESC, id LIMIT 10', 'SELECT id, start_ns FROM {} ORDER BY start_ns, id LIMIT 7', 'SELECT id, name FROM {} WHERE rank = 1 AND dur_ns < 9000 ORDER BY dur_ns DESC, id LIMIT 25',
                'SELECT id FROM {} WHERE step > 1 ORDER BY start_ns DESC, id LIMIT 3', 'SELECT id FROM {} ORDER BY dur_ns, id LIMIT 0', 'SELECT id FROM {} ORDER BY dur_ns, id LIMIT -1',
                'SELECT id FROM {} ORDER BY dur_ns DESC, id LIMIT 5 OFFSET 4', 'SELECT id FROM {} WHERE dur_ns < 9000.5 ORDER BY dur_ns DESC, id LIMIT 4', 'SELECT id FROM {} WHERE dur_ns % 2 = 0 ORDER BY dur_ns DESC, id LIMIT 4',
                "SELECT id FROM {} WHERE rank < '1' ORDER BY dur_ns DESC, id LIMIT 4", 'SELECT id FROM {} WHERE end_ns < 800000 ORDER BY dur_ns DESC, id LIMIT 4')):
            self.assertEqual(ask(self.path, query.format(table)), ask(self.path, query.format(f'(SELECT * FROM {table} LIMIT -1)')), query)
        plan = ask(self.path, 'EXPLAIN QUERY PLAN SELECT id FROM slices WHERE rank = 1 ORDER BY dur_ns DESC LIMIT 10')
        self.assertFalse([p for p in plan if 'TEMP B-TREE' in p[3]], plan)

    def test_a_real_database_with_the_same_rows_agrees(self):
        """Random queries over slices, kernels and steps, here and in a database that Python's sqlite3 keeps."""
        db = sqlite3.connect(':memory:')
        for table in ('slices', 'kernels', 'steps'):
            answer = json.loads(run('sql', self.path, f'SELECT * FROM {table}', '--format', 'json', '-q', check=0).out)
            types = dict(ask(self.path, f"SELECT name, type FROM columns('{table}')"))
            names = [c['name'] for c in answer['columns']]
            db.execute(f'CREATE TABLE {table} (' + ', '.join(f'"{n}" {types[n]}' for n in names) + ')')
            db.executemany(f'INSERT INTO {table} VALUES ({", ".join("?" * len(names))})', answer['rows'])
        chance = random.Random(25)
        source = self.conditions(chance, texts=True)
        for _ in range(30):
            picked = [next(source)[0] for _ in range(2)]
            picked = [p for p in picked if 'REGEXP' not in p] or ['rank = 0']
            group = chance.choice(['rank', 'name', 'category', 'step', 'tid', 'depth', 'lane'])
            query = (f'SELECT {group}, count(*), sum(dur_ns), min(start_ns), max(end_ns), count(DISTINCT name), sum(self_ns) FROM slices WHERE '
                     f'{chance.choice([" AND ", " OR "]).join(picked)} GROUP BY {group} HAVING count(*) > 1 ORDER BY 2 DESC, 1 LIMIT 20')
            self.assertEqual(ask(self.path, query), db.execute(query).fetchall(), query)
        for query in ('SELECT k.name, c.name, count(*), sum(k.launch_delay_ns) FROM kernels k JOIN slices c ON c.id = k.call_id GROUP BY 1, 2 ORDER BY 4 DESC, 1',
                      'SELECT p.name, count(*) FROM slices s JOIN slices p ON p.id = s.parent_id GROUP BY 1 ORDER BY 2 DESC, 1',
                      'SELECT s.step, s.rank, (SELECT count(*) FROM kernels k WHERE k.rank = s.rank AND k.step = s.step) FROM steps s ORDER BY 1, 2',
                      'SELECT name, row_number() OVER (PARTITION BY rank ORDER BY dur_ns DESC, id) AS n, dur_ns FROM kernels ORDER BY n, dur_ns DESC, id LIMIT 9',
                      'WITH RECURSIVE up(id) AS (SELECT max(id) FROM slices WHERE depth = 3 UNION ALL SELECT s.parent_id FROM slices s JOIN up USING (id) '
                      'WHERE s.parent_id IS NOT NULL) SELECT id FROM up'):
            self.assertEqual(ask(self.path, query), db.execute(query).fetchall(), query)

    # ---- analyses, schema ----

    def test_every_analysis_that_suits_is_a_table(self):
        names = [n for n, in ask(self.path, "SELECT name FROM tables WHERE kind = 'analysis' AND missing = ''")]
        self.assertGreater(len(names), 40)
        for name in names:
            done = run('sql', self.path, f'SELECT count(*) FROM {name}', '-q', '--format', 'csv')
            self.assertIn(done.returncode, (0, 2), name)
            if done.returncode == 2:
                self.assertRegex(done.err, r'^stageline: (.+: )?[a-z-]+', name)
                self.assertNotIn('SQL logic error', done.err)

    def test_analyses_answer_as_the_program_does(self):
        reported = json.loads(run('analyze', 'idle-time-breakdown', self.path, '--format', 'json', '-q').out)['tables'][0]
        names = [c['name'] for c in reported['columns']]
        self.assertEqual(ask(self.path, f'SELECT * FROM idle_time_breakdown__{reported["name"].replace("-", "_")}'), [tuple(r[n] for n in names) for r in reported['rows']])
        needs = refused(self.path, 'SELECT * FROM frequent_cuda_kernel_sequences__frequent_cuda_kernel_sequences')
        self.assertIn('--operator-name is missing', needs)
        few = ask(self.path, "SELECT count(*) FROM frequent_cuda_kernel_sequences__frequent_cuda_kernel_sequences WHERE operator_name = 'aten::linear'")
        self.assertTrue(few)
        self.assertIn('needs pipeline cells', refused(self.path, 'SELECT * FROM waterfall__waterfall'))
        hta = refused(self.path, "SELECT * FROM idle_time_breakdown__device_idle WHERE compat = 'nothing'", '--align', 'never')
        self.assertIn('has no compat "nothing"', hta)

    def test_the_schema(self):
        listed = ask(self.path, 'SELECT table_name, name, type, unit, help FROM columns')
        self.assertEqual([r for r in listed if not r[4].endswith(('.', '…'))], [])
        self.assertTrue(all(unit == 'ns' for _, name, _, unit, _ in listed if name.endswith('_ns') and name != 'mean_ns'),
                        [r for r in listed if r[1].endswith('_ns') and r[3] != 'ns'])
        self.assertIn('start_ns', run('sql', self.path, '--schema', '-q', check=0).out)
        self.assertIn('launch_delay_ns', run('sql', self.path, '--table', 'kernels', '-q', check=0).out)
        page = (SOURCE / 'docs/reference/sql.md').read_text()
        self.assertEqual([], sorted({t for t, *_ in listed if f'`{t}' not in page}), 'docs/reference/sql.md lists every table')

    # ---- refusals and limits ----

    def test_nothing_is_changed_and_nothing_reached(self):
        for query, words in {'PRAGMA page_size': 'PRAGMA', "ATTACH 'other.db' AS o": 'ATTACH', 'DELETE FROM slices': 'slices', 'DROP TABLE slices': '',
                             'UPDATE kernels SET dur_ns = 0': 'kernels', 'INSERT INTO steps VALUES (1)': 'steps', 'CREATE TABLE x (a)': 'temporary',
                             'CREATE VIRTUAL TABLE x USING fts5(a)': '', "SELECT load_extension('x')": 'load_extension', 'BEGIN': 'transactions',
                             "SELECT readfile('/etc/passwd')": 'readfile', 'SELECT * FROM sqlite_dbpage': '', 'VACUUM': '', 'ANALYZE': '',
                             "SELECT * FROM pragma_table_info('slices')": '', "SELECT zeroblob(1000000000)": 'zeroblob',
                             'CREATE TEMP TRIGGER t AFTER INSERT ON v BEGIN SELECT 1; END': 'SELECT', "VACUUM INTO '/tmp/x'": ''}.items():
            with self.subTest(query):
                self.assertIn(words, refused(self.path, query))

    def test_errors_say_where_and_what_was_meant(self):
        wrong = refused(self.path, 'SELECT name,\n  durns FROM kernels')
        self.assertIn('no such column: durns', wrong)
        self.assertIn('did you mean dur_ns?', wrong)
        if sqlite3.sqlite_version_info >= (3, 38):
            lines = wrong.splitlines()
            self.assertEqual(lines[1].strip(), 'durns FROM kernels')
            self.assertEqual(lines[2].index('^'), lines[1].index('durns'))
        self.assertIn('did you mean dur_ns?', refused(self.path, 'SELECT "durns" FROM kernels'))
        self.assertIn('did you mean kernels?', refused(self.path, 'SELECT * FROM kernel'))
        self.assertIn('did you mean union_ns?', refused(self.path, 'SELECT unoin_ns(1, 2)'))
        self.assertIn('start_ns', refused(self.path, 'SELECT start FROM slices'))
        self.assertIn('so it was read as the query', refused(self.path, 'nowhere.json'))
        self.assertIn('there is no rank 9', refused(self.path, 'SELECT * FROM gaps(9)'))
        self.assertIn('did you mean name?', refused(self.path, "SELECT * FROM totals('nam')"))
        self.assertIn('needs the id', refused(self.path, 'SELECT * FROM path'))
        self.assertIn('args needs the slice', refused(self.path, 'SELECT * FROM args'))
        self.assertIn('the query is empty', refused(self.path, ' ; -- nothing'))
        self.assertIn('share from 0 to 1', refused(self.path, 'SELECT quantile(dur_ns, 2) FROM slices'))
        self.assertIn('longer than 1000 bytes', refused(self.path, f"SELECT * FROM slices WHERE name GLOB '{'x' * 1001}'"))

    def test_limits(self):
        endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'
        self.assertIn('longer than 200 ms', refused(self.path, endless, '--timeout', '200ms'))
        self.assertIn('longer than 64 MiB', refused(self.path, "SELECT length(replace(hex(printf('%.*c', 9000, 'x')), '7', printf('%.*c', 9000, 'y')))"))
        grow = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000) SELECT sum(length(t)) FROM (SELECT group_concat(x) AS t FROM c)'
        self.assertEqual(len(ask(self.path, grow)), 1)
        self.assertRegex(refused(self.path, 'SELECT ' + '(' * 300 + '1' + ')' * 300), 'overflow|too deep|maximum depth')
        self.assertIn('too many', refused(self.path, ' UNION ALL '.join(['SELECT 1'] * 60)))
        run('sql', self.path, '--file', '-', '-q', stdin=b'SELECT 1 -- ' + b'x' * 1_000_100, check=2)
        done = run('sql', self.path, 'SELECT id FROM slices', '--rows', '5', check=0)
        self.assertEqual(len(done.out.splitlines()), 6)
        self.assertIn('--rows 0 prints all', done.err)
        reported = json.loads(run('sql', self.path, 'SELECT id FROM slices', '--rows', '5', '--format', 'json', '-q', check=0).out)
        self.assertEqual((reported['row_count'], reported['truncated'], len(reported['rows'])), (5, True, 5))

    # ---- forms ----

    def test_forms(self):
        query = "SELECT 1 AS a, 2.5 AS b, 'x,\"y' AS c, NULL AS d, '' AS e, x'0aff' AS f UNION ALL SELECT 9007199254740993, -0.125, 'ü', 7, 'z', NULL"
        self.assertEqual(run('sql', self.path, query, '--format', 'csv', '-q', check=0).out,
                         'a,b,c,d,e,f\n1,2.5,"x,""y",,"",0aff\n9007199254740993,-0.125,ü,7,z,\n')
        reported = json.loads(run('sql', self.path, query, '--format', 'json', '-q', check=0).out)
        self.assertEqual(reported['rows'], [[1, 2.5, 'x,"y', None, '', '0aff'], [9007199254740993, -0.125, 'ü', 7, 'z', None]])
        self.assertEqual(run('sql', self.path, query, '-q', check=0).out.splitlines()[1].split(), ['1', '2.5', 'x,"y', '–', '0aff'])
        self.assertEqual(reported['columns'][0], {'name': 'a', 'unit': ''})
        units = json.loads(run('sql', self.path, 'SELECT dur_ns, name FROM slices LIMIT 0', '--format', 'json', '-q', check=0).out)
        self.assertEqual(units, {'columns': [{'name': 'dur_ns', 'unit': 'ns'}, {'name': 'name', 'unit': ''}], 'rows': [], 'row_count': 0, 'truncated': False})

    def test_arrow_streams_are_read_back(self):
        """By a reader of this test's own: messages, flatbuffers and buffers as the format lays them down."""
        query = "SELECT id, name, dur_ns / 2.0 AS half, CASE WHEN id % 3 THEN step END AS step FROM slices WHERE rank = 0"
        columns = arrow_columns(run('sql', self.path, query, '--format', 'arrow', '-q', check=0).stdout)
        rows = ask(self.path, query)
        self.assertEqual([c[0] for c in columns], ['id', 'name', 'half', 'step'])
        self.assertEqual(list(zip(*(c[1] for c in columns))), rows)
        self.assertEqual([len(c[1]) for c in arrow_columns(run('sql', self.path, 'SELECT 1 AS a WHERE 0', '--format', 'arrow', '-q', check=0).stdout)], [0])

    def test_queries_from_files_and_pipes(self):
        file = pathlib.Path(self.folder) / 'q.sql'
        file.write_text('CREATE TEMP VIEW v AS SELECT * FROM kernels WHERE rank = 0;\nSELECT count(*) FROM v;\n')
        count = [(sum(e['rank'] == 0 for e in self.work),)]
        self.assertEqual([tuple(r) for r in json.loads(run('sql', self.path, '--file', file, '--format', 'json', '-q', check=0).out)['rows']], count)
        piped = run('sql', self.path, '--format', 'csv', '-q', stdin=file.read_bytes(), check=0).out
        self.assertEqual(piped, f'count(*)\n{count[0][0]}\n')
        target = pathlib.Path(self.folder) / 'out.csv'
        run('sql', self.path, 'SELECT 1 AS one', '--format', 'csv', '-o', target, '-q', check=0)
        self.assertEqual(target.read_text(), 'one\n1\n')
        before = (self.path / 'rank-0.pt.trace.json').read_bytes()
        run('sql', self.path, 'SELECT 1', '-o', self.path / 'rank-0.pt.trace.json', '-q', check=2)
        self.assertEqual((self.path / 'rank-0.pt.trace.json').read_bytes(), before)
        self.assertIn('a query is missing', run('sql', self.path, '-q', stdin=b'', check=2).err)
        self.assertIn('no query in it', run('sql', self.path, '--file', self._empty(), '-q', check=2).err)

    def _empty(self):
        path = pathlib.Path(self.folder) / 'empty.sql'
        path.write_text(' \n')
        return path


class Pipeline(unittest.TestCase):
    """A simulated pipeline; truth from its cells as CSV and from the analyses themselves."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='stageline-test-')
        cls.path = pathlib.Path(cls.folder) / 'run'
        run('simulate', '1f1b', '--stages', '4', '--micro-batches', '8', '--steps', '5', '--cost', '10,20', '--latency', '0.2', '--jitter', '0.03', '--messages',
            '--fault', 'slow-stage:2,1.4', '--fault', 'slow-link:1,2,+3ms', '--seed', '7', '-o', cls.path, check=0)
        cls.cells = [{k: (v if k in ('kind', 'name') else int(v) if v else None) for k, v in row.items()}
                     for row in csv.DictReader(io.StringIO(run('export', cls.path, '--to', 'csv', '-o', '-', '-q', check=0).out))]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def table(self, analysis, name):
        reported = json.loads(run('analyze', analysis, self.path, '--table', name, '--format', 'json', '-q', check=0).out)['tables'][0]
        return [tuple(r[c['name']] for c in reported['columns']) for r in reported['rows']], [c['name'] for c in reported['columns']]

    def test_16_cost_of_each_stage(self):
        rows = ask(self.path, "SELECT stage, kind, count(*), avg(dur_ns), quantile(dur_ns, 0.95) FROM cells WHERE kind IN ('F', 'B', 'I', 'W') GROUP BY stage, kind ORDER BY 1, 2")
        cost = defaultdict(list)
        for c in self.cells:
            if c['kind'] in 'FBIW':
                cost[c['stage'], c['kind']].append(c['dur_ns'])
        self.assertEqual([r[:3] for r in rows], [(*k, len(d)) for k, d in sorted(cost.items())])
        for stage, kind, _, mean, high in rows:
            self.assertAlmostEqual(mean, statistics.fmean(cost[stage, kind]), delta=1)
            self.assertAlmostEqual(high, quantile(cost[stage, kind], 0.95), delta=1)

    def test_totals_of_cells(self):
        for by, of in (('stage', lambda c: str(c['stage'])), ('kind', lambda c: c['kind'])):
            sums = defaultdict(list)
            for c in self.cells:
                sums[of(c)].append(c['dur_ns'])
            truth = sorted((k, len(d), sum(d), sum(d), min(d), max(d)) for k, d in sums.items())
            self.assertEqual(ask(self.path, f"SELECT key, count, total_ns, self_ns, min_ns, max_ns FROM totals('{by}') ORDER BY key"), truth)
        self.assertEqual(ask(self.path, "SELECT key, count FROM totals('kind', 2, 3) WHERE key = 'F'"), [('F', sum(c['rank'] == 2 and c['step'] == 3 and c['kind'] == 'F' for c in self.cells))])
        self.assertIn('neither class nor category', refused(self.path, "SELECT * FROM totals('stage', NULL, NULL, 'MEMORY')"))

    def test_messages_name_the_cells_at_both_ends(self):
        rows = ask(self.path, 'SELECT m.src_rank, m.dst_rank, m.kind, m.micro_batch, m.transfer_ns, a.rank, b.rank, a.kind, b.kind, b.micro_batch, min(a.end_ns, b.end_ns) - max(a.start_ns, b.start_ns), m.evidence '
                              'FROM messages m JOIN cells a ON a.id = m.send_id JOIN cells b ON b.id = m.recv_id')
        self.assertEqual(len(rows), ask(self.path, 'SELECT count(*) FROM messages')[0][0])
        self.assertGreater(len(rows), 100)
        for source, target, kind, micro_batch, took, a, b, send, receive, of_b, both, evidence in rows:
            self.assertEqual((source, target, send, receive, micro_batch, evidence), (a, b, 'S' + kind, 'R' + kind, of_b, 'messages'))
            self.assertEqual(took, both)
        log = SOURCE / 'tests/golden/readers/paddle-log/input'  # no messages were recorded: gaps
        for took, gap, evidence in ask(log, 'SELECT m.transfer_ns, b.start_ns - a.end_ns, m.evidence FROM messages m JOIN cells a ON a.id = m.send_id JOIN cells b ON b.id = m.recv_id'):
            self.assertEqual((took, evidence), (gap, 'gaps'))

    def test_17_bubble_share_of_every_rank_and_step(self):
        rows = ask(self.path, 'SELECT step, rank, 1 - 1.0 * union_ns(start_ns, dur_ns) / (SELECT max(end_ns) - min(start_ns) FROM cells c2 WHERE c2.step = c.step AND '
                              "kind IN ('F', 'B')) FROM cells c WHERE kind IN ('F', 'B') GROUP BY step, rank ORDER BY 1, 2")
        by = defaultdict(list)
        for c in self.cells:
            if c['kind'] in 'FB':
                by[c['step'], c['rank']].append((c['start_ns'], c['start_ns'] + c['dur_ns']))
        for step, rank, share in rows:
            whole = list(itertools.chain(*(v for (s, _), v in by.items() if s == step)))
            span = max(e for _, e in whole) - min(s for s, _ in whole)
            self.assertAlmostEqual(share, 1 - length(union(by[step, rank])) / span, places=12)
        self.assertEqual(len(rows), len(by))

    def test_18_slowest_link(self):
        rows, names = self.table('links', 'links')
        self.assertEqual(ask(self.path, 'SELECT * FROM links__links'), rows)
        worst = ask(self.path, 'SELECT src_rank, dst_rank, avg(transfer_ns) FROM messages GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1')[0]
        self.assertIn(worst[:2], {(1, 2), (2, 1)})  # the fault that was planted
        self.assertGreater(worst[2], 3_000_000)

    def test_19_cells_that_start_latest_after_what_they_waited_for(self):
        rows = ask(self.path, 'SELECT l.wait_ns, c.stage, c.kind, c.micro_batch, p.stage FROM cell_links l JOIN cells c ON c.id = l.to_id JOIN cells p ON p.id = l.from_id '
                              "WHERE c.kind = 'F' AND p.kind = 'F' ORDER BY 1 DESC")
        ends = {(c['step'], c['stage'], c['micro_batch']): c for c in self.cells if c['kind'] == 'F'}
        truth = sorted((c['start_ns'] - (p['start_ns'] + p['dur_ns']) for (step, stage, mb), c in ends.items() if (p := ends.get((step, stage - 1, mb)))), reverse=True)
        self.assertEqual([r[0] for r in rows], truth)
        self.assertTrue(all(r[1] == r[4] + 1 for r in rows))

    def test_20_where_the_step_went(self):
        rows, _ = self.table('waterfall', 'waterfall')
        self.assertEqual(ask(self.path, 'SELECT * FROM waterfall__waterfall()'), rows)

    def test_25_findings_name_the_table_that_proves_them(self):
        rows = ask(self.path, 'SELECT id, evidence FROM findings')
        self.assertIn('stage.slow', [r[0] for r in rows])
        for _, evidence in rows:
            if '__' in evidence:
                self.assertTrue(ask(self.path, f'SELECT count(*) FROM {evidence}'), evidence)

    def test_joins_over_ids(self):
        self.assertEqual(ask(self.path, 'SELECT count(*) FROM cells a JOIN cells b ON a.id = b.id'), [(len(self.cells),)])
        steps = ask(self.path, 'SELECT s.step, count(*) FROM steps s JOIN cells c ON c.step = s.step GROUP BY 1 ORDER BY 1')
        count = defaultdict(int)
        for c in self.cells:
            count[c['step']] += 1
        self.assertEqual(steps, sorted(count.items()))


class Sources(unittest.TestCase):
    def test_every_table_of_every_format(self):
        """A source with few columns has NULLs and empty tables, and says why it has no analysis: no query goes wrong by itself."""
        seen = defaultdict(int)
        for case in sorted((SOURCE / 'tests/golden/readers').iterdir()):
            inputs = sorted((case / 'input').iterdir())
            path = case / 'input' if len(inputs) > 1 or inputs[0].is_dir() else inputs[0]
            rows = ask(path, 'SELECT name, kind FROM tables')
            tables = [n for n, kind in rows if kind != 'analysis' and '(' not in n and n not in ('path', 'below', 'args')]
            for table in tables:
                seen[table] += len(ask(path, f'SELECT * FROM {table}')) > 0
        never = sorted(t for t, n in seen.items() if n == 0)
        self.assertLessEqual(set(never), {'marks', 'counters'}, 'each table has rows in some fixture')

    def test_tables_that_only_an_option_gives(self):
        path = SOURCE / 'tests/golden/readers/kineto/input'
        for table in ('idle_time_breakdown__interval_stats', 'tb_operator__operators_by_shape', 'tb_kernel__kernels_by_operator'):
            self.assertGreater(ask(path, f'SELECT count(*) FROM {table}')[0][0], 0, table)


class Counters(Case):
    def test_22_counters_at_the_time_of_a_kernel(self):
        """The sample before each kernel, of several series that lie across each other."""
        events = [{'ph': 'M', 'name': 'process_name', 'pid': 0, 'args': {'name': 'x'}}]
        for i in range(50):
            events.append({'ph': 'X', 'cat': 'kernel', 'name': f'k{i % 3}', 'pid': 0, 'tid': 7, 'ts': 100 * i + 5, 'dur': 60,
                           'args': {'stream': 7, 'device': 0, 'correlation': i, 'External id': i}})
        samples = defaultdict(list)
        for i in range(40):
            for name, every in (('queue', 130), ('other', 70)):
                samples[name].append((every * i, i * (3 if name == 'queue' else 7) % 11))
                events.append({'ph': 'C', 'name': name, 'pid': 0, 'ts': every * i, 'args': {'value': samples[name][-1][1]}})
        path = self.write('counters.pt.trace.json', json.dumps({'schemaVersion': 1, 'deviceProperties': [], 'traceEvents': events}))
        names = ask(path, 'SELECT DISTINCT name FROM counters ORDER BY 1')
        if not names:
            self.skipTest('this reader keeps no counters of that kind')
        queue = next(n for n, in names if 'queue' in n)
        rows = ask(path, f"SELECT k.start_ns, (SELECT value FROM counters c WHERE c.rank = k.rank AND c.name = '{queue}' AND c.time_ns <= k.start_ns "
                         'ORDER BY c.time_ns DESC LIMIT 1) FROM kernels k ORDER BY 1')
        truth = []
        for i in range(50):
            before = [v for t, v in samples['queue'] if t * 1000 <= (100 * i + 5) * 1000]
            truth.append((100_000 * i, before[-1] if before else None))
        self.assertEqual(rows, truth)
        merged = [r[0] for r in ask(path, 'SELECT time_ns FROM counters ORDER BY time_ns DESC')]
        self.assertEqual(merged, sorted(merged, reverse=True))
        self.assertEqual(len(merged), 80)


class Prompt(Case):
    def test_a_terminal_gets_a_prompt(self):
        import pty
        path = self.dir / 'run'
        run('simulate', '1f1b', '--stages', '2', '--micro-batches', '2', '--steps', '1', '-o', path, check=0)
        from support import BIN
        child, fd = pty.fork()
        if child == 0:
            os.environ.update(NO_COLOR='1', LC_ALL='C.UTF-8')
            os.execv(BIN, [BIN, 'sql', str(path)])
        shown = b''

        def until(words):
            nonlocal shown
            while words not in shown:
                if not select.select([fd], [], [], 60)[0]:
                    os.kill(child, signal.SIGKILL)
                    raise AssertionError(f'{words!r} does not come after {shown!r}')
                shown += os.read(fd, 4096)
        until(b'sql> ')
        os.write(fd, b'SELECT count(*) AS how_many\r')
        until(b'...> ')
        os.write(fd, b'FROM cells WHERE kind = \'F\';\r')
        until(b'how_many')
        until(b'4\r\n')
        os.write(fd, b'SELECT nowhere FROM cells;\r')
        until(b'no such column')
        os.write(fd, b'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c;\r')
        until(b'FROM c;\r\n')
        os.write(fd, b'\x03')  # gives up the query, not the program
        until(b'the query was cancelled')
        os.write(fd, b'.quit\r')
        while True:
            try:
                if not os.read(fd, 4096):
                    break
            except OSError:
                break
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


def arrow_columns(stream):
    """[(name, values)] of an Arrow IPC stream of int64, float64 and utf8 columns."""
    def table(at):
        back = at - struct.unpack_from('<i', buffer, at)[0]
        size = struct.unpack_from('<H', buffer, back)[0]
        places = [struct.unpack_from('<H', buffer, back + 4 + 2 * i)[0] for i in range((size - 4) // 2)]
        return lambda i: at + places[i] if i < len(places) and places[i] else None

    def go(at):
        return at + struct.unpack_from('<I', buffer, at)[0]
    columns, at = [], 0
    while True:
        mark, size = struct.unpack_from('<II', stream, at)
        assert mark == 0xffffffff
        at += 8
        if size == 0:
            assert at == len(stream)
            return [(name, values) for name, _, values in columns]
        buffer = stream[at:at + size]
        at += size
        assert at % 8 == 0
        message = table(go(0))
        kind = buffer[message(1)]
        assert struct.unpack_from('<h', buffer, message(0))[0] == 4
        header = table(go(message(2)))
        if kind == 1:
            fields = go(header(1))
            for i in range(struct.unpack_from('<I', buffer, fields)[0]):
                field = table(go(fields + 4 + 4 * i))
                name_at = go(field(0))
                name = buffer[name_at + 4:name_at + 4 + struct.unpack_from('<I', buffer, name_at)[0]].decode()
                columns.append((name, buffer[field(2)], []))
            continue
        length_ = struct.unpack_from('<q', buffer, header(0))[0]
        body_size = struct.unpack_from('<q', buffer, message(3))[0]
        body, at = stream[at:at + body_size], at + body_size
        places = go(header(2))
        pieces = [body[o:o + n] for o, n in struct.iter_unpack('<qq', buffer[places + 4:places + 4 + 16 * struct.unpack_from('<I', buffer, places)[0]])]
        for _, type_, values in columns:
            valid = pieces.pop(0)
            known = lambda i: not valid or valid[i >> 3] >> (i & 7) & 1  # noqa: B023,E731
            if type_ == 5:
                offsets, texts = struct.unpack(f'<{length_ + 1}i', pieces.pop(0)), pieces.pop(0)
                values += [texts[offsets[i]:offsets[i + 1]].decode() if known(i) else None for i in range(length_)]
            else:
                numbers = struct.unpack(f'<{length_}{"q" if type_ == 2 else "d"}', pieces.pop(0))
                values += [v if known(i) else None for i, v in enumerate(numbers)]


class Waits(Case):
    def test_a_send_waits_for_its_receive_and_a_group_for_its_own_members(self):
        job = collectives.Job(['node0'] * 4, groups=[('2', 'mesh_tp', [0, 1]), ('2', 'mesh_tp', [2, 3]), ('4', 'pp', [0, 1])])
        for pair, starts in ((0, (1000, 1070)), (1, (1400, 1430))):  # groups of one name and one number
            for rank, start in zip((2 * pair, 2 * pair + 1), starts):
                job.call(rank, start, starts[1] + 100, [job.args('allreduce', pair, (4096, 4096), 1)])
        # Each sends to the other with one number: a send is met by the receive of its own direction.
        for rank, start, name, peer, other in ((0, 2000, 'send', 'Dst_Rank', 1), (1, 2050, 'recv', 'Src_Rank', 0), (1, 3300, 'send', 'Dst_Rank', 0), (0, 3310, 'recv', 'Src_Rank', 1)):
            job.call(rank, start, start + 400, [job.args(name, 2, (4096, 4096), 7, **{peer: other})])
        job.write(self.dir / 'job')
        rows = ask(self.dir / 'job', 'SELECT name, rank, wait_ns FROM collectives ORDER BY start_ns')
        self.assertEqual(rows, [('allreduce', 0, 70000), ('allreduce', 1, 0), ('allreduce', 2, 30000), ('allreduce', 3, 0),
                                ('send', 0, 50000), ('recv', 1, 0), ('send', 1, 10000), ('recv', 0, 0)])


if __name__ == '__main__':
    unittest.main()
