"""The ledger of communication: planned arrivals and ends give every number of the tables."""
import collections
import csv
import json
import sys
import unittest

from support import SHARED, SOURCE, Case, needs_shared, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import drawn_jobs  # noqa: E402
import flight_recorder  # noqa: E402
import recording  # noqa: E402
import xplane  # noqa: E402
from collectives import Job, example  # noqa: E402

COMMUNICATION = SHARED / 'communication'
GROUP = [('0', 'dp', [0, 1, 2, 3])]


def table(path, name, *options):
    out = run('analyze', 'communication', path, '--format', 'json', '--table', name, *options, check=0)
    return next(t['rows'] for t in json.loads(out.out)['tables'] if t['name'] == name)


class LedgerTest(Case):
    def rows(self, job, *options, name='communication', **how):
        job.write(self.dir / 'trace', **how)
        return table(self.dir / 'trace', name, *options)

    def one(self, job, *options, **how):
        rows = self.rows(job, *options, **how)
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def test_transfer_begins_with_the_last_arrival(self):
        job = example()
        rows = {row['operation']: row for row in self.rows(job)}
        reduce = rows['all_reduce']
        self.assertEqual((reduce['group'], reduce['description'], reduce['ranks'], reduce['hosts'], reduce['channels']), ('0-3', 'mesh_dp', 4, 1, 16))
        self.assertEqual((reduce['count'], reduce['calls'], reduce['bytes'], reduce['bucket_bytes']), (2, 8, 400_000_000, 1 << 27))
        self.assertEqual(reduce['transfer_ns'], 2 * 850_000)
        self.assertEqual(reduce['wait_ns'], 2 * (300 + 290 + 270) * 1000)
        # 100 µs of each kernel are covered: of those who wait, before rank 2 came; of rank 2, in the transfer.
        self.assertEqual(reduce['exposed_wait_ns'], 2 * (200 + 190 + 170) * 1000)
        self.assertEqual(reduce['exposed_transfer_ns'], 2 * (4 * 850 - 100) * 1000)
        self.assertAlmostEqual(reduce['algorithm_gbps'], 400 / 1.7)
        self.assertAlmostEqual(reduce['bus_gbps'], 600 / 1.7)
        self.assertEqual((reduce['last_rank'], reduce['last_count'], reduce['basis'], reduce['verdict']), (2, 2, 'clock', 'normal'))
        message = rows['send_recv']
        self.assertEqual((message['group'], message['count'], message['bytes'], message['transfer_ns'], message['wait_ns']),
                         ('0-1', 2, 64_000_000, 200_000, 100_000))
        ranks = table(self.dir / 'trace', 'communication-ranks')
        self.assertEqual([(r['last_count'], r['late_ns'], r['wait_ns']) for r in ranks],
                         [(0, 0, 600_000), (0, 0, 580_000), (2, 540_000, 0), (0, 0, 540_000)])

    def reduce(self, took_us, elements=400_000_000, hosts=('a',) * 4, number=1, **how):
        job = Job(list(hosts), groups=GROUP, **how)
        for rank in range(4):
            job.call(rank, 500 + rank, 503 + took_us, [job.args('allreduce', 0, (elements, elements), number)])
        return job

    def test_a_time_is_judged_by_the_links_of_the_device(self):
        expected = self.one(self.reduce(9000))['expected_ns']
        wires = 800e6 / 450
        for took, verdict in ((wires * 0.9, 'impossible'), (expected, 'normal'), (expected * 1.9, 'normal'), (expected * 2.2, 'slow')):
            self.assertEqual(self.one(self.reduce(round(took / 1000, 3)))['verdict'], verdict, took)
        self.assertEqual(self.one(self.reduce(30, elements=1000))['verdict'], 'small')
        self.assertEqual(self.one(self.reduce(9000, device='NVIDIA H100 PCIe'))['verdict'], 'unknown')
        self.assertEqual(self.one(self.reduce(9000, device='NVIDIA H100 PCIe'), '--fabric', 'pcie5')['verdict'], 'impossible')
        self.assertEqual(self.one(self.reduce(9000, device='NVIDIA H100 NVL'))['expected_ns'], None)

    def test_a_rate_above_the_links_is_reduction_inside_the_network(self):
        self.assertEqual(self.one(self.reduce(2500))['algorithm'], 'in-network (by rate)')
        self.assertEqual(self.one(self.reduce(2800))['algorithm'], '')

    def test_clocks_of_hosts_do_not_matter(self):
        hosts = ('a', 'a', 'b', 'b')
        truth = self.one(self.reduce(9000, hosts=hosts), '--network', '400')
        self.assertEqual((truth['hosts'], truth['basis'], truth['transfer_ns']), (2, 'durations', 9_000_000))
        self.assertEqual(truth['across_bytes'], 2 * 800_000_000)
        self.assertEqual(self.one(self.reduce(9000, hosts=hosts))['verdict'], 'unknown')
        for shift in (-1e6, -10e3, 10e3, 1e6):
            row = self.one(self.reduce(9000, hosts=hosts, shift_us={'b': shift}), '--network', '400')
            self.assertEqual(row, truth)

    def test_a_missing_member_leaves_no_time(self):
        row = self.one(self.reduce(9000), without=[2])
        self.assertEqual((row['count'], row['partly'], row['calls'], row['transfer_ns'], row['wait_ns'], row['bus_gbps']), (0, 1, 3, 0, 0, None))
        self.reduce(9000).write(self.dir / 'trace2', without=[2])
        said = run('analyze', 'communication', self.dir / 'trace2', check=0)
        self.assertIn('the traces of ranks 2 are missing', said.out + said.err)

    def test_all_to_all_v_waits_only_for_peers_with_bytes(self):
        rows = [[0, 100, 0, 300], [50, 7, 50, 50], [0, 10, 5, 0], [20, 20, 0, 0]]  # rows[a][b]: from a to b
        for unit in (1, 64):  # the lists count rows or elements
            job = Job(['a'] * 4, groups=GROUP)
            for rank in range(4):
                sent, came = rows[rank], [rows[other][rank] for other in range(4)]
                job.call(rank, 500 + 100 * (rank == 2), 700, [job.args('all_to_allv', 0, (sum(sent) * 64, sum(came) * 64), 1,
                                                              In_split_size=str([v * unit for v in sent]), Out_split_size=str([v * unit for v in came]))])
            row = self.one(job)
            self.assertEqual(row['bytes'], 400 * 128)
            self.assertEqual(row['transfer_ns'], 200_000)  # ranks 0 and 3 have nothing for or from rank 2
            self.assertEqual(row['wait_ns'], 100_000)      # only rank 1 waits for it
            self.assertAlmostEqual(row['bus_gbps'], 400 * 128 / 200_000)

    def test_coalesced_calls_belong_to_the_kernel_behind_them(self):
        job = Job(['a'] * 4, groups=GROUP)
        for rank in range(4):
            gather = job.args('_allgather_base', 0, (1000, 4000), 1)
            job.call(rank, 500, 600, [gather] * 3, kernel='ncclDevKernel_AllGather_RING_LL')
            after, before = (rank + 1) % 4, (rank - 1) % 4
            job.call(rank, 800, 900, [job.args('send', 0, (500, 500), 2, Dst_Rank=after), job.args('recv', 0, (500, 500), 2, Src_Rank=before)])
            job.call(rank, 1000, 1050, [], kernel='void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(int)')
        rows = {(row['group'], row['operation']): row for row in self.rows(job)}
        self.assertEqual(rows['0-3', 'all_gather']['bytes'], 3 * 4000 * 2)
        for pair in ('0-1', '1-2', '2-3', '0,3'):  # one operation for each peer of a batch
            self.assertEqual((rows[pair, 'send_recv']['count'], rows[pair, 'send_recv']['bytes']), (1, 1000))
        own = rows['', 'unknown']
        self.assertEqual((own['unmatched'], own['count'], own['algorithm'], own['ranks'], own['bucket_bytes']), (4, 0, 'custom', 0, -1))

    def test_a_number_that_never_moves_is_none(self):
        job = Job(['a'] * 4, groups=GROUP)
        for rank in range(4):
            for k in range(3):
                job.call(rank, 500 + 1000 * k, 600 + 1000 * k, [job.args('allreduce', 0, (8, 8), 0)])
        self.assertEqual(self.one(job)['count'], 3)
        job.call(1, 4000, 4100, [job.args('allreduce', 0, (8, 8), 0)])  # one more on one rank: nothing is shifted
        row = self.one(job)
        self.assertEqual((row['count'], row['unmatched']), (0, 13))

    def test_members_beyond_the_cut_list_come_from_the_groups_of_the_trace(self):
        job = Job(['a'] * 36, groups=[('0', 'dp', list(range(36)))])
        for rank in range(36):
            job.call(rank, 500, 600, [job.args('allreduce', 0, (8, 8), 1)])
        row = self.one(job)
        self.assertEqual((row['group'], row['ranks'], row['count']), ('0-35', 36, 1))

    def test_groups_of_one_name_are_siblings(self):
        groups = [('2 mesh_tp', 'tp', [2 * k, 2 * k + 1]) for k in range(4)]
        job = Job(['a'] * 8, groups=groups)
        for rank in range(8):
            job.call(rank, 500, 700 if rank in (4, 5) else 600, [job.args('_allgather_base', rank // 2, (8_000_000, 16_000_000), 1)])
        rows = {row['group']: row for row in self.rows(job)}
        self.assertEqual(sorted(rows), ['0-1', '2-3', '4-5', '6-7'])
        self.assertAlmostEqual(rows['4-5']['siblings_ratio'], 2)
        self.assertAlmostEqual(rows['0-1']['siblings_ratio'], 1)

    def flight(self, *arguments, durations=None, name='dumps'):
        dumps = flight_recorder.make(flight_recorder.parse(arguments))
        for rank, dump in dumps.items():
            for entry in dump['entries']:
                if durations is None:
                    entry.pop('duration_ms', None)
                elif 'duration_ms' in entry:
                    entry['duration_ms'] = durations(rank, entry)
        flight_recorder.write(dumps, self.dir / name)
        return {(r['group'], r['operation'], r['bucket_bytes']): r for r in table(self.dir / name, 'communication')}

    def test_dumps_of_a_flight_recorder_have_times_where_calls_were_timed(self):
        rows = self.flight('--messages', durations=lambda rank, entry: 1.25 if rank == 2 else 1.5)
        reduce, gather, pair, message = (rows[key] for key in (
            ('0-3', 'all_reduce', 8192), ('0-3', 'all_gather', 32768), ('2-3', 'all_reduce', 1024), ('0-1', 'send_recv', 8192)))
        self.assertEqual((reduce['description'], reduce['ranks'], reduce['count'], reduce['calls'], reduce['bytes']), ('default_pg', 4, 3, 12, 3 * 64 * 32 * 4))
        self.assertEqual((gather['count'], gather['bytes'], pair['description'], pair['count'], pair['bytes']), (3, 3 * 4 * 64 * 32 * 4, 'TP', 3, 3 * 8 * 32 * 4))
        # Rank 2 has the shortest kernels: it came last, and its time is the transfer.
        self.assertEqual((reduce['transfer_ns'], reduce['wait_ns'], reduce['basis'], reduce['last_rank'], reduce['last_count']),
                         (3 * 1_250_000, 3 * 3 * 250_000, 'durations', 2, 3))
        self.assertAlmostEqual(reduce['bus_gbps'], 1.5 * 8192 / 1_250_000)
        self.assertEqual((reduce['exposed_wait_ns'], reduce['verdict'], reduce['hosts']), (None, 'unknown', 0))
        self.assertEqual((message['count'], message['unmatched'], message['bytes'], message['transfer_ns']), (3, 0, 3 * 8192, 3 * 1_500_000))

    def test_calls_that_were_not_timed_have_sizes_alone(self):
        timed = self.flight(durations=lambda rank, entry: 1.25, name='timed')
        rows = self.flight()
        self.assertEqual(set(rows), set(timed))
        for key, row in rows.items():
            unknown = {'transfer_ns': None, 'wait_ns': None, 'algorithm_gbps': None, 'bus_gbps': None, 'last_rank': None, 'last_count': 0, 'basis': ''}
            self.assertEqual(row, {**timed[key], **unknown})
        self.assertIn('no duration_ms', run('analyze', 'communication', self.dir / 'dumps', check=0).err)
        rank = table(self.dir / 'dumps', 'communication-ranks')[0]
        self.assertEqual((rank['calls'], rank['last_count'], rank['wait_ns']), (10, None, None))
        # If only some calls of a row are timed, its rates use these.
        rows = self.flight(durations=lambda rank, entry: 1.25 if entry['collective_seq_id'] < 5 else None, name='mixed')
        mixed, whole = rows['0-3', 'all_reduce', 8192], timed['0-3', 'all_reduce', 8192]
        self.assertEqual((mixed['bytes'], mixed['transfer_ns']), (whole['bytes'], 2 * 1_250_000))
        self.assertAlmostEqual(mixed['bus_gbps'], whole['bus_gbps'])

    def test_messages_after_lost_calls_are_not_matched(self):
        rows = self.flight('--messages', '--ring', '6')
        self.assertFalse([key for key in rows if key[1] == 'send_recv' and rows[key]['count']])
        self.assertEqual(rows['0-3', 'all_reduce', 8192]['count'], 1)  # numbers still say which call is which

    def test_operations_of_xla_have_no_group(self):
        for planes, name, size in ((xplane.tpu(devices=2, steps=2), 'tpu', 32768), (xplane.gpu(devices=2, steps=2), 'gpu', -1)):
            path = self.dir / f'{name}.xplane.pb'
            path.write_bytes(xplane.space(planes))
            row, = table(path, 'communication')
            self.assertEqual((row['group'], row['ranks'], row['operation'], row['bucket_bytes'], row['count'], row['unmatched']), ('', 0, 'all_reduce', size, 0, 4))
            self.assertIn('no group', run('analyze', 'communication', path, check=0).err)

    def test_options_are_checked(self):
        self.reduce(9000).write(self.dir / 'trace')
        for option in (['--network', '-1'], ['--fabric', 'nvlink9'], ['--nvlink-domain', '0'], ['--gpus-per-host', 'x']):
            run('analyze', 'communication', self.dir / 'trace', *option, check=2)


@needs_shared
class TruthTest(Case):
    COLUMNS = ('description ranks hosts count partly calls unmatched bytes transfer_ns wait_ns exposed_transfer_ns exposed_wait_ns algorithm_gbps bus_gbps '
               'last_rank last_count verdict siblings_ratio across_bytes').split()

    def same(self, got, truth, where):
        if isinstance(truth, float) and got is not None:
            self.assertLessEqual(abs(got - truth), 1e-6 * max(1, abs(truth)), where)
        else:
            self.assertEqual(got, truth, where)

    def test_planned_cases(self):
        for case in sorted((COMMUNICATION / 'ledger').iterdir()):
            truth = json.loads((case / 'truth.json').read_text())
            options = ['--network', str(truth['nic'] * 8)] if truth['nic'] else []
            keys = ('group', 'operation', 'bucket_bytes')
            rows = {tuple(row[k] for k in keys): row for row in table(case, 'communication', *options)}
            self.assertEqual(set(rows), {tuple(row[k] for k in keys) for row in truth['communication']}, case.name)
            for row in truth['communication']:
                got = rows[tuple(row[k] for k in keys)]
                for column in self.COLUMNS:
                    if column in row:
                        self.same(got[column], row[column], (case.name, row['group'], row['operation'], column))
                if 'transfer_true_ns' in row:
                    self.assertTrue(row['transfer_at_least_ns'] - 1 <= got['transfer_ns'] <= row['transfer_true_ns'] * 1.001, case.name)
                    self.assertEqual((got['bus_gbps'], got['verdict']), (None, 'unknown'))
            ranks = {row['rank']: row for row in table(case, 'communication-ranks', *options)}
            for row in truth['ranks']:
                for column in ('calls', 'last_count', 'late_ns', 'wait_ns', 'exposed_wait_ns'):
                    self.assertEqual(ranks[row['rank']][column], row[column], (case.name, row['rank'], column))

    def sizes(self, fabric, nic, nodes, n, times):
        """One trace with all operations of a table's rows: the answer's instances by operation and size."""
        job = Job([f'node{rank * nodes // n}' for rank in range(n)], groups=[('0', 'dp', list(range(n)))])
        for k, (operation, size, took_ns) in enumerate(times):
            name, elements = {'all_reduce': ('allreduce', (size // 4, size // 4)), 'all_gather': ('_allgather_base', (size // 4 // n, size // 4)),
                              'reduce_scatter': ('_reduce_scatter_base', (size // 4, size // 4 // n)), 'all_to_all': ('all_to_all', (size // 4, size // 4)),
                              'broadcast': ('broadcast', (size // 4, size // 4)), 'send_recv': ('send', (size // 4, size // 4))}[operation]
            at = 1e7 * k
            ends = (0, n - 1) if operation == 'send_recv' else range(n)
            for rank in ends:
                more = {'Dst_Rank': ends[1]} if operation == 'send_recv' and rank == 0 else {'Src_Rank': 0} if operation == 'send_recv' else {}
                job.call(rank, at + 100, at + 100 + took_ns / 1000, [job.args('recv' if 'Src_Rank' in more else name, 0, elements, k, dtype='Float', **more)])
        job.write(self.dir / 'sizes')
        options = ['--fabric', fabric] + (['--network', str(nic * 8)] if nic else [])
        rows = table(self.dir / 'sizes', 'communication-instances', *options)
        return [sorted(rows, key=lambda row: row['start_ns'])[k] for k in range(len(times))]

    @staticmethod
    def by_setup(name):
        lines = [line for line in (COMMUNICATION / name).read_text().splitlines() if not line.startswith('#')]
        setups = {}
        for row in csv.DictReader(lines):
            setups.setdefault((row['fabric'], float(row['nic']), int(row['nodes']), int(row['n'])), []).append(row)
        return setups

    def test_expected_times(self):
        for setup, rows in self.by_setup('expected.csv').items():
            got = self.sizes(*setup, [(row['operation'], int(row['size']), 9e6) for row in rows])
            for row, answer in zip(rows, got):
                self.assertLessEqual(abs(answer['expected_ns'] - float(row['expected_ns'])), 0.5 + 1e-6 * float(row['expected_ns']), row)

    def test_measured_sweeps_are_healthy(self):
        for setup, rows in self.by_setup('sweeps.csv').items():
            whole = [dict(row, size=str(int(row['size']) // 4 * 4)) for row in rows]
            for factor, allowed in ((1.0, {'normal', 'small'}),):
                got = self.sizes(*setup, [('all_reduce', int(row['size']), factor * float(row['measured_ns'])) for row in whole])
                self.assertLessEqual({answer['verdict'] for answer in got}, allowed, setup)
            slow = [row for row in whole if row['verdict'] == 'normal']
            got = self.sizes(*setup, [('all_reduce', int(row['size']), 2.2 * float(row['expected_ns'])) for row in slow])
            self.assertEqual({answer['verdict'] for answer in got}, {'slow'} if slow else set())

class RecordingTest(Case):
    def test_recordings_keep_what_nccl_says_of_its_operations(self):
        for rank in range(2):
            file = recording.File(rank, 'node0')
            file.names(['nccl:all_reduce (RING LL128, 16 channels)', 'gemm', 'cudaLaunchKernel', 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'])
            reduce, gemm, launch, kernel = 1, 2, 3, 4
            file.lane_rows([(1, 6, 0, -1, 70, 0, 'thread 70'), (2, 0, 0, -1, 70, 0, 'python 70'), (3, 5, 0, rank, 1, 7, 'GPU stream 7'), (4, 4, 0, rank, 2, 0xabc, 'NCCL dp'),
                            (5, 5, 0, rank, 1, 20, 'GPU stream 20')])
            file.clocks([0, 2], [])
            file.ranges([(recording.STEP, 2, 0, 0, 0, 0, False, 0, -1, -1)])
            rows = []
            for k in range(4):
                at, came = 5 * k, 5 * k + 1 + rank * 0.5
                rows += [(recording.RANGE, 1, launch, 0, at + 0.1, at + 0.12, False, 0, -1, -1, -1, 2 * k), (recording.RANGE, 3, gemm, 0, at + 0.2, at + 0.8, False, 0, -1, -1, -1, 2 * k),
                         (recording.RANGE, 1, launch, 0, at + 0.14, at + 0.16, False, 0, -1, -1, -1, 2 * k + 1),
                         (recording.RANGE, 5, kernel, 0, came, at + 3, False, 0, -1, -1, -1, 2 * k + 1), (recording.RANGE, 4, reduce, 0, came, at + 3, False, 0, -1, -1, 8_000_000, k)]
            file.ranges(rows)
            file.clocks([30], [])
            file.chunk(7, b'{"records":5}')
            (self.dir / f'node0.r{rank:05}.p{100 + rank}.1760000000.000.slrec').write_bytes(file.data)
        row, = table(self.dir, 'communication')
        self.assertEqual((row['group'], row['operation'], row['ranks'], row['count'], row['bytes'], row['algorithm'], row['channels']),
                         ('0-1', 'all_reduce', 2, 4, 4 * 8_000_000, 'RING LL128', 16))
        self.assertEqual((row['transfer_ns'], row['wait_ns'], row['last_rank']), (4 * 1_500_000, 4 * 500_000, 1))


class ReportOfTraceLens(Case):
    """What TraceLens (NcclAnalyser of 171dd74, by its definitions) reports of each collective that synchronises: the k-th of each rank in a group, its full message, the
    shortest kernel as latency, and rates with 1024³ for 10⁹. Its groups are names alone, so it is right where names differ and nothing is missing."""
    FACTORS = {'allreduce': lambda n: 2 * (n - 1) / n, '_allgather_base': lambda n: (n - 1) / n, '_reduce_scatter_base': lambda n: (n - 1) / n, 'all_to_all': lambda n: (n - 1) / n}

    def report(self, folder):
        calls = collections.defaultdict(list)
        for path in sorted(folder.glob('rank*.json')):
            counts = collections.Counter()
            for event in sorted((e for e in json.loads(path.read_text())['traceEvents'] if e['cat'] == 'kernel' and 'Collective name' in e['args']), key=lambda e: e['ts']):
                args = event['args']
                group = args['Process Group Name'], args['Process Group Ranks'], args['Collective name']
                calls[group + (counts[group],)].append(event)
                counts[group] += 1
        for key, events in calls.items():
            args = events[0]['args']
            elements = args['Out msg nelems'] if key[2] == '_allgather_base' else args['In msg nelems']
            latency = min(e['dur'] for e in events)
            algorithm = elements * 2 / 1024**3 / (latency / 1e6)
            yield elements * 2, latency, algorithm * self.FACTORS[key[2]](args['Group size']), len(events) == args['Group size']

    def test_each_collective_is_equal(self):
        for seed in range(40, 48):
            case = drawn_jobs.Case(seed, False)
            if case.hosts == 1:  # on one clock, the transfer is from the last arrival to the last end
                continue
            folder = self.dir / str(seed)
            drawn_jobs.make(seed, False, str(folder))
            across = [row for row in table(folder, 'communication-instances') if row['basis'] == 'durations']
            theirs = [row for row in self.report(folder)]
            self.assertTrue(all(whole for *_, whole in theirs))
            ours = collections.Counter((row['bytes'], row['took_ns'], round(row['bus_gbps'] * 1e9 / 1024**3, 6)) for row in across)
            told = collections.Counter((size, round(latency * 1000), round(bus, 6)) for size, latency, bus, _ in theirs)
            self.assertGreater(len(ours), 10, seed)
            self.assertEqual(ours - told, collections.Counter(), seed)



if __name__ == '__main__':
    unittest.main()
