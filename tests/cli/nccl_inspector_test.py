"""NCCL Inspector's logs: members and ranks of communicators, transfers without waiting, logs without times, damage."""
import csv
import io
import json
import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import nccl_inspector
from support import SHARED, Case, flaws, info, needs_shared, run

SAMPLES = SHARED / 'sources' / 'nccl_inspector'


def table(path, name):
    out = json.loads(run('analyze', 'communication', path, '--format', 'json', '--table', name, check=0).out)
    return next(t['rows'] for t in out['tables'] if t['name'] == name)


def slices(path):
    text = run('sql', path, 'SELECT rank, name, start_ns, dur_ns FROM slices', '--format', 'csv', '-q', check=0).out
    return sorted((int(r['rank']), r['name'], int(r['start_ns']), int(r['dur_ns'])) for r in csv.DictReader(io.StringIO(text)))


def sums(path):
    """Sums of each group, by its members as its instances have them, and operation: a row of the ledger has the communicator's id instead."""
    members = {id_: ('0-3' if ranks == [0, 1, 2, 3] else '%d-%d' % tuple(ranks) if ranks[1] == ranks[0] + 1 else '%d,%d' % tuple(ranks)) for id_, _, ranks in nccl_inspector.GROUPS}
    rows = table(path, 'communication')
    assert {(r['group'], r['operation']) for r in table(path, 'communication-instances')} <= {(members.get(r['group'], r['group']), r['operation']) for r in rows}
    return {(members.get(r['group'], r['group']), r['operation']): (r['count'], r['unmatched'], r['bytes'], r['transfer_ns'], r['wait_ns']) for r in table(path, 'communication')}


class NcclInspectorTest(Case):
    def test_calls_have_ranks_of_the_job_and_the_device_s_lengths(self):
        made = nccl_inspector.write(self.dir / 'run')
        first = min(call[5] for call in made)
        self.assertEqual(slices(self.dir / 'run'), sorted((c[0], 'nccl' + c[2], (c[5] - first) * 1000, c[6] * 1000) for c in made))
        about = info(self.dir / 'run')
        self.assertEqual((about['format'], about['ranks']), ('nccl-inspector', 4))
        self.assertFalse([d for d in about['diagnostics'] if d['severity'] != 'info'])

    def test_the_ledger_has_every_group_by_its_members(self):
        for plain in (False, True):
            folder = self.dir / f'run{plain}'
            nccl_inspector.write(folder, steps=4, late=2, plain=plain)
            got = sums(folder)
            self.assertEqual(set(got), {('0-3', 'all_reduce'), ('0-1', 'all_reduce'), ('2-3', 'all_reduce'), ('0-1', 'reduce_scatter'), ('2-3', 'reduce_scatter'),
                                        ('0,2', 'all_gather'), ('1,3', 'all_gather'), ('0,2', 'send_recv'), ('1,3', 'send_recv')})
            # An all-gather's size is one rank's part in the log.
            self.assertEqual(got['0,2', 'all_gather'][:4], (4, 0, 4 * (64 << 20), 4 * 1_300_000))
            self.assertEqual(got['2-3', 'all_reduce'][:4], (4, 0, 4 * (8 << 20), 4 * 400_000))
            self.assertEqual(got['0,2', 'send_recv'][:4], (4, 0, 4 * (4 << 20), 4 * 300_000))
            ranks = {r['rank']: r for r in table(folder, 'communication-ranks')}
            self.assertEqual(max(ranks.values(), key=lambda r: r['late_ns'])['rank'], 2)
            self.assertEqual(ranks[2]['wait_ns'], 0)
            # The logs do not record what computing covers.
            self.assertEqual({r['exposed_wait_ns'] for r in table(folder, 'communication')} | {r['exposed_wait_ns'] for r in ranks.values()}, {None})
            self.assertEqual({r['exposed_ns'] for r in table(folder, 'communication-instances')}, {None})
            said = run('explain', folder, check=0).out
            self.assertIn('Rank 2 arrives last at collectives', said)
            self.assertNotIn('idle –', said)
            self.assertNotIn('exposed', said)  # no computing was recorded that could cover it
            self.assertIn('nothing else was recorded', said)

    def test_nothing_is_said_of_what_was_not_recorded(self):
        nccl_inspector.write(self.dir / 'run', late=2)
        for question in ('temporal-breakdown', 'idle-time-breakdown', 'comm-comp-overlap', 'critical-path-analysis', 'tb-overview', 'tb-distributed', 'cluster-time-summary',
                         'free-analysis', 'aten-op-kernels-and-delay', 'cuda-kernel-launch-stats', 'queue-length-summary', 'queue-length-time-series',
                         'time-spent-blocked-on-full-queue'):
            self.assertIn(f'{question} needs what devices computed or hosts did', run('analyze', question, self.dir / 'run', check=2).err)
        report = self.dir / 'report.json'
        run('export', self.dir / 'run', '--to', 'json', '-o', report, '-q', check=0)
        told = json.loads(report.read_text())
        self.assertFalse({'temporal-breakdown', 'device-idle', 'idle-time', 'comm-comp-overlap', 'step-averages', 'cluster-times'} & {t['name'] for t in told['tables']})
        self.assertFalse([d for d in told['diagnostics'] if 'launch' in d['message'] and 'graph' not in d['message']])
        figures = {line.split()[0]: line for line in run('info', self.dir / 'run', '--figures', 'all', '-q', check=0).out.splitlines() if line and line[0] != ' '}
        self.assertIn('nothing but communication was recorded', figures['comm_hidden'])
        gaps = 'SELECT count(*) AS n FROM gaps({})'
        count = [run('sql', self.dir / 'run', gaps.format(of), '--format', 'csv', '-q', check=0).out.split()[1] for of in ('', '0, 10000')]
        self.assertEqual((count[0], int(count[1]) > 0), ('0', True))  # between the calls of one stream there are gaps

    def test_an_unknown_size_is_empty(self):
        nccl_inspector.write(self.dir / 'run')
        for path in (self.dir / 'run').iterdir():
            path.write_text(re.sub(r'"coll_msg_size_bytes": ?\d+', f'"coll_msg_size_bytes": {2**64 - 4096}', path.read_text()))  # as of types of one byte
        found = [r for r in table(self.dir / 'run', 'communication') if r['operation'] != 'send_recv']
        self.assertEqual({(r['bucket_bytes'], r['bytes'], r['bus_gbps']) for r in found}, {(-1, 0, None)})
        self.assertNotIn('-1 B', run('analyze', 'communication', self.dir / 'run', '--table', 'communication', check=0).out)

    def test_without_times_the_order_stands_and_a_note_says_so(self):
        nccl_inspector.write(self.dir / 'run', plain=True, hosts=2)
        about = info(self.dir / 'run')
        self.assertEqual(flaws(about)['nccl_inspector.no_times']['severity'], 'warning')
        names = [c[2] for c in nccl_inspector.calls() if c[0] == 0]
        self.assertEqual([name for _, name, _, _ in sorted((s for s in slices(self.dir / 'run') if s[0] == 0), key=lambda s: s[2])], ['nccl' + name for name in names])

    def test_an_export_without_times_keeps_clocks_sizes_and_notes(self):
        nccl_inspector.write(self.dir / 'run', steps=4, late=2, plain=True)
        run('export', self.dir / 'run', '--to', 'perfetto', '-o', self.dir / 'run.pftrace', '-q', check=0)
        one, two = info(self.dir / 'run'), info(self.dir / 'run.pftrace')
        self.assertEqual(two['clock'], 'per-rank')
        self.assertEqual(two['clock'], one['clock'])
        self.assertLessEqual({'nccl_inspector.no_times', 'nccl_inspector.recorded_calls'}, {d['name'] for d in two['diagnostics']})
        columns = ('operation', 'bucket_bytes', 'count', 'unmatched', 'bytes', 'transfer_ns', 'wait_ns')
        rows = [sorted(tuple(r[c] for c in columns) for r in table(self.dir / path, 'communication')) for path in ('run', 'run.pftrace')]
        self.assertEqual(*rows)
        self.assertEqual(*(run('explain', self.dir / path, '-q', check=0).out.replace(path, 'X') for path in ('run.pftrace', 'run')))

    def test_the_order_of_files_and_lines_changes_nothing(self):
        nccl_inspector.write(self.dir / 'run', late=1)
        want, ledger = slices(self.dir / 'run'), sums(self.dir / 'run')
        draw = random.Random(9)
        for copy in range(6):
            folder = self.dir / f'copy{copy}'
            folder.mkdir()
            for path in (self.dir / 'run').iterdir():
                lines = path.read_text().splitlines()
                draw.shuffle(lines)
                (folder / f'{draw.randrange(10**6)}.log').write_text('\n'.join(lines) + '\n')
            self.assertEqual(slices(folder), want)
            self.assertEqual(sums(folder), ledger)

    def test_a_lost_call_or_rank_shifts_no_pair(self):
        nccl_inspector.write(self.dir / 'run')
        whole = sums(self.dir / 'run')
        path = self.dir / 'run' / 'node-0-pid4000.log'
        lines = path.read_text().splitlines()
        del lines[4]  # the first all-reduce of all ranks
        path.write_text('\n'.join(lines) + '\n')
        got = sums(self.dir / 'run')
        self.assertEqual(got['0-3', 'all_reduce'][0], 2)
        self.assertEqual({k: v for k, v in got.items() if k != ('0-3', 'all_reduce')}, {k: v for k, v in whole.items() if k != ('0-3', 'all_reduce')})
        nccl_inspector.write(self.dir / 'three', ranks=[0, 1, 3])
        about = info(self.dir / 'three')
        self.assertIn('without a log: 2', flaws(about)['nccl_inspector.missing_ranks']['message'])
        self.assertEqual(sums(self.dir / 'three')['0-1', 'all_reduce'], whole['0-1', 'all_reduce'])

    def test_damage_is_counted(self):
        nccl_inspector.write(self.dir / 'run')
        path = self.dir / 'run' / 'node-0-pid4000.log'
        data = path.read_bytes()
        path.write_bytes(data[:-40])
        self.assertTrue([d for d in info(path)['diagnostics'] if d['severity'] == 'loss'])
        self.assertEqual(len(slices(path)), len(data.splitlines()) - 1)
        first = data.splitlines()[0].decode()
        odd = [first.replace('"coll_exec_time_us":', '"coll_exec_time_us":-'), first.replace('"rank":0', '"rank":9'), first.replace('AllReduce', ''), '{"header":{},"n_ranks":1,"coll_perf":{}}']
        path.write_text('\n'.join([first, *odd]) + '\n')
        self.assertEqual(flaws(info(path))['nccl_inspector.bad_line']['count'], 4)
        no_rate = first[:first.index('"coll_algobw_gbs":')] + '"coll_algobw_gbs":nan,"coll_busbw_gbs":-nan' + first[first.index(',"event_trace_sn"'):]
        byte_size = first.replace(f'"coll_msg_size_bytes":{8 << 20}', f'"coll_msg_size_bytes":{2**64 - 100}')
        path.write_text(no_rate + '\n' + byte_size + '\n')
        self.assertNotIn('nccl_inspector.bad_line', flaws(info(path)))
        for at in range(1, len(data), 977):
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
            self.assertIn(run('info', path).returncode, (0, 2))

    @needs_shared
    def test_logs_of_the_real_plugin(self):
        truth = json.loads((SAMPLES / 'truth.json').read_text())
        for kind in ('verbose', 'plain'):
            late = truth[kind]['slow']['global_rank']
            groups = {(r['group'], r['operation']): r for r in table(SAMPLES / kind, 'communication-instances')}
            members = {','.join(map(str, c['global_ranks'])).replace('0,1,2,3', '0-3').replace('0,1', '0-1').replace('2,3', '2-3') for c in truth[kind]['communicators'].values()}
            self.assertEqual({group for group, _ in groups}, members)
            per_rank = {r['rank']: r for r in table(SAMPLES / kind, 'communication-ranks')}
            calls = per_rank[late]['calls']
            self.assertEqual(per_rank[late]['last_count'], calls)
            # The plugin's own threads see a call up to 50 µs late, and ranks come up to 60 µs apart anyway.
            self.assertAlmostEqual(per_rank[late]['late_ns'] / calls / 1000, truth[kind]['slow']['late_us_each_call'], delta=60)

    @needs_shared
    def test_logs_without_times_agree_with_the_plan(self):
        case = SHARED / 'communication' / 'inspector' / 'inspector_230'
        truth = json.loads((case / 'truth.json').read_text())['communication']
        got = {(r['group'], r['operation']): r for r in table(case, 'communication')}
        for want in truth:
            row = got[want['group'], want['operation']]
            for key in ('description', 'ranks', 'hosts', 'count', 'calls', 'bytes', 'bucket_bytes', 'transfer_ns', 'wait_ns', 'last_rank', 'last_count', 'partly', 'unmatched'):
                self.assertEqual(row[key], want[key], (want['group'], want['operation'], key))
        self.assertEqual(len(got), len(truth))


if __name__ == '__main__':
    unittest.main()
