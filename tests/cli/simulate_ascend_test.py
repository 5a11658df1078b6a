"""stageline simulate --format ascend: the databases hold what the profiler would write, and what the truth says."""
import collections
import csv
import decimal
import json
import sqlite3
import unittest

from support import Case, run

NO_PEER = 4294967295


def databases(folder):
    """Rank → an open database."""
    found = {int(p.stem.rsplit('_', 1)[1]): p for p in folder.glob('*_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_*.db')}
    return {rank: sqlite3.connect(f'file:{path}?immutable=1', uri=True) for rank, path in sorted(found.items())}


def rows(db, sql):
    return db.execute(sql).fetchall()


class SimulateAscend(Case):
    def simulate(self, name, *flags, schedule='1f1b'):
        run('simulate', schedule, '--format', 'ascend', '--jitter', 0.05, *flags, '--force', '-o', self.dir / name, check=0)
        opened = databases(self.dir / name)
        for db in opened.values():
            self.addCleanup(db.close)
        return opened

    def truth(self, name):
        with open(self.dir / name / 'truth.csv') as file:
            return list(csv.DictReader(file))

    def test_marks_are_the_cells_of_the_truth(self):
        for schedule in ('1f1b', 'zb-h1', 'vpp', 'dualpipe', 'dualpipe-v-mindspeed'):
            opened = self.simulate(schedule, '--micro-batches', 8, '--steps', 2, schedule=schedule)
            wanted = collections.defaultdict(set)
            for cell in self.truth(schedule):
                start = int(decimal.Decimal(cell['start_ts']) * 10**9)
                wanted[int(cell['rank'])].add((start, start + int(decimal.Decimal(cell['duration']) * 10**9)))
            for rank, db in opened.items():
                got = rows(db, 'SELECT t.startNs, t.endNs, s.value FROM MSTX_EVENTS m JOIN TASK t USING (connectionId) '
                               'JOIN STRING_IDS s ON s.id = m.message ORDER BY 1')
                logits = 16 if schedule == 'dualpipe-v-mindspeed' and rank == 0 else 0  # of the loss: in no cell
                self.assertEqual(wanted[rank] - {g[:2] for g in got}, set(), (schedule, rank))
                self.assertEqual(len(got), len(wanted[rank]) + logits, (schedule, rank))
                self.assertTrue(all(a[1] <= b[0] for a, b in zip(got, got[1:])), 'blocks of one rank overlap')

    def test_what_is_read_back_is_the_truth(self):
        def cells(path):
            table = csv.DictReader(run('export', path, '--to', 'csv', '-o', '-', '-q', check=0).out.splitlines())
            return sorted((c['rank'], c['step'], c['kind'], c['chunk'], c['micro_batch'], c['start_ns'], c['dur_ns'])
                          for c in table if c['kind'] in ('F', 'B', 'I', 'W'))

        for schedule in ('1f1b', 'vpp', 'zb-h1', 'interleaved-zb', 'zb-v', 'dualpipe-v', 'dualpipe'):
            for marks in ('guide', 'helper'):
                folder = self.dir / f'{schedule}-{marks}'
                self.simulate(folder.name, '--marks', marks, '--level', 'none' if marks == 'guide' else 0, '--p2p', 'batch', '--micro-batches', 8,
                              '--steps', 2, schedule=schedule)
                truth = self.dir / 'truth.csv'
                (folder / 'truth.csv').replace(truth)
                self.assertEqual(cells(folder), cells(truth), (schedule, marks))

    def test_what_several_schedules_explain_stays_unknown(self):
        """Breadth-first marks without numbers are those of all-forwards-first with twice the micro-batches: no number may be wrong."""
        for schedule in ('bfs', 'bfs-unreversed'):
            folder = self.dir / schedule
            self.simulate(schedule, '--micro-batches', 8, '--steps', 1, schedule=schedule)
            truth = self.dir / 'truth.csv'
            (folder / 'truth.csv').replace(truth)
            read = [{(c['rank'], c['start_ns']): (c['kind'], c['chunk'], c['micro_batch']) for c in csv.DictReader(
                run('export', path, '--to', 'csv', '-o', '-', '-q', check=0).out.splitlines()) if c['kind'] in ('F', 'B')}
                for path in (folder, truth)]
            self.assertEqual(read[0].keys(), read[1].keys())
            for place, found in read[0].items():
                for got, want in zip(found, read[1][place]):
                    self.assertIn(got, ('', want), (schedule, place, found))
            self.assertIn('several_schedules', run('info', folder, check=0).out)

    def test_links_of_the_truth_are_operations_at_both_ends(self):
        opened = self.simulate('links', '--stages', 3, '--tp', 2, '--dp', 2, '--cp', 2, '--order', 'pp-tp-dp-cp', '--level', 1, '--steps', 1)
        self.assertEqual(len(opened), 24)
        ends = collections.Counter()
        for rank, db in opened.items():
            metadata = dict(rows(db, 'SELECT name, value FROM META_DATA'))
            groups = json.loads(metadata['parallel_group_info'])
            pp = next(g for g in groups.values() if g['group_name'] == 'pp')
            self.assertEqual(pp['global_ranks'], [rank - rank % 3 + i for i in range(3)])  # pp counts fastest
            self.assertEqual(sorted(g['group_name'] for g in groups.values()), ['cp', 'dp', 'dp_cp', 'pp', 'tp'])
            for name, start, end, src, dst in rows(
                    db, 'SELECT s.value, o.startNs, o.endNs, t.srcRank, t.dstRank FROM COMMUNICATION_OP o '
                        'JOIN STRING_IDS s ON s.id = o.opName JOIN COMMUNICATION_TASK_INFO t USING (opId) '
                        "JOIN STRING_IDS y ON y.id = t.taskType WHERE y.value = 'Notify_Record'"):
                self.assertLess(start, end)
                if name.startswith('hcom_send'):
                    ends['send', rank, pp['global_ranks'][dst], start, end] += 1
                elif name.startswith('hcom_receive'):
                    ends['receive', pp['global_ranks'][dst], rank, start, end] += 1
        with open(self.dir / 'links' / 'truth_links.csv') as file:
            links = list(csv.DictReader(file))
        self.assertEqual(len(links), 8 * 2 * 2 * 8)  # pipelines × hops × directions × micro-batches
        for link in links:
            src, dst, sent, posted, end = (int(link[k]) for k in ('src_rank', 'dst_rank', 'send_ns', 'receive_ns', 'end_ns'))
            self.assertEqual((ends['send', src, dst, sent, max(end, sent + 1000)], ends['receive', src, dst, posted, end]), (1, 1), link)

    def test_tensor_parallel_peers_that_are_slow_are_both_named(self):
        self.simulate('pair', '--stages', 4, '--chunks', 2, '--tp', 2, '--dp', 2, '--steps', 4, '--fault', 'slow-rank:2,1.4', '--fault', 'slow-rank:3,1.4', schedule='vpp')
        reported = json.loads(run('explain', self.dir / 'pair', '--format', 'json', '-q', check=0).out)
        slow = next(f for f in reported['findings'] if f['id'] == 'rank.slow')
        self.assertRegex(slow['title_en'], r'^Rank 2 \(with its peer 3 of the same stage and replica')

    def test_the_host_runs_ahead_within_its_steps(self):
        for level in ('none', 0, 1):
            for db in self.simulate(f'host{level}', '--level', level, '--optimizer', 3, '--cost', '0.05,0.1', '--steps', 3).values():
                table = 'MSTX_EVENTS' if level == 'none' else 'CANN_API'
                self.assertEqual(rows(db, f'SELECT count(*) FROM {table} c JOIN TASK t USING (connectionId) '
                                          'WHERE c.endNs > t.startNs OR c.endNs <= c.startNs')[0][0], 0)
                self.assertEqual(rows(db, 'SELECT id FROM STEP_TIME'), [(10,), (11,), (12,)])
                self.assertEqual(rows(db, f'SELECT count(*) FROM {table} m WHERE NOT EXISTS (SELECT 1 FROM STEP_TIME s '
                                          'WHERE m.startNs >= s.startNs AND m.endNs <= s.endNs)')[0][0], 0)

    def test_what_flags_leave_out_and_add(self):
        tables = lambda db: {name for name, in rows(db, "SELECT name FROM sqlite_master WHERE type = 'table'")}
        bare = self.simulate('bare', '--no-step-time')[0]
        self.assertFalse(tables(bare) & {'STEP_TIME', 'COMMUNICATION_OP', 'CANN_API'})
        zero = self.simulate('zero', '--level', 0)[0]
        self.assertEqual(rows(zero, 'SELECT DISTINCT s.value, t.dstRank FROM COMMUNICATION_TASK_INFO t JOIN STRING_IDS s ON s.id = t.taskType'),
                         [('N/A', NO_PEER)])
        batch = self.simulate('batch', '--level', 1, '--p2p', 'batch')[1]
        names = {name.split('__')[0] for name, in rows(batch, 'SELECT s.value FROM COMMUNICATION_OP o JOIN STRING_IDS s ON s.id = o.opName')}
        self.assertEqual(names, {'hcom_batchSendRecv'})
        for form in ('plain', 'escaped'):
            texts = [t for t, in rows(self.simulate(form, '--level-none-comm', form)[1],
                                      "SELECT m.value FROM MSTX_EVENTS e JOIN STRING_IDS m ON m.id = e.message JOIN STRING_IDS d "
                                      "ON d.id = e.domainId WHERE d.value = 'communication'")]
            messages = [json.loads(t.replace('\\"', '"')) for t in texts]
            self.assertEqual({m['opName'] for m in messages}, {'HcclSend', 'HcclRecv'})
            self.assertEqual([('srcRank' in m or 'destRank' in m) for m in messages], [form == 'escaped'] * len(messages))
        count = lambda *flags: rows(self.simulate('pops', *flags, '--micro-batches', 8, '--steps', 1, schedule='dualpipe-v-mindspeed')[0],
                                    'SELECT count(*) FROM MSTX_EVENTS')[0][0]
        self.assertEqual([count(), count('--empty-pop'), count('--dw-detach')], [38, 42, 42])
        helped = self.simulate('helped', '--marks', 'helper', '--pp-info')[1]
        messages = [json.loads(t) for t, in rows(helped, 'SELECT s.value FROM MSTX_EVENTS e JOIN STRING_IDS s ON s.id = e.message')]
        self.assertEqual({(m['stage'], m['step']) for m in messages}, {(1, 10), (1, 11), (1, 12)})
        self.assertEqual({m['micro_batch'] for m in messages}, set(range(8)))
        self.assertEqual(json.loads(dict(rows(helped, 'SELECT * FROM META_DATA'))['pp_info']), {'pp_type': '1f1b', 'microbatch_num': 8})

    def test_the_rank_map_has_every_place(self):
        sizes = {'tp': 2, 'cp': 2, 'dp': 2, 'pp': 3}
        for order in ('tp-cp-ep-dp-pp', 'pp-tp-cp-dp', 'dp-pp-cp-tp'):
            self.simulate(order, '--stages', 3, '--tp', 2, '--cp', 2, '--dp', 2, '--order', order, '--machines', 2, '--micro-batches', 3,
                          '--steps', 1, '--level', 0)
            tables = json.loads(run('analyze', 'rank-map', self.dir / order, '--format', 'json', check=0).out)['tables']
            places = next(t for t in tables if t['name'] == 'rank-map')['rows']
            for rank, place in enumerate(places):
                rest = rank
                for dim in (d for d in order.split('-') if d != 'ep'):
                    self.assertEqual(place[dim], rest % sizes[dim], (order, rank, dim))
                    rest //= sizes[dim]
                self.assertEqual((place['rank'], place['host'], place['device']), (rank, f'machine{rank // 12}', rank % 12))
                peers = [p['rank'] for p in places if all(p[d] == place[d] for d in ('tp', 'cp', 'dp'))]
                self.assertEqual(place['pp_ranks'], ','.join(map(str, peers)))
                self.assertEqual(len(peers), 3)
                self.assertGreater(place['compute_ns'], 0)
                self.assertGreater(place['bubble_share'], 0)
            reported = json.loads(run('info', '--json', self.dir / order, check=0).out)
            self.assertEqual((reported['stages'], reported['replicas'], reported['context_parallel']), (3, 2, 2), order)
            self.assertIn('3 × 4 pipelines (2 replicas, 2 context-parallel in each)', run('info', self.dir / order, check=0).out)

    def test_same_bytes_whatever_the_threads(self):
        made = []
        for threads in (1, 4):
            folder = self.dir / f'threads{threads}'
            run('simulate', '1f1b', '--format', 'ascend', '--level', 1, '--steps', 2, '--jitter', 0.1, '--threads', threads, '--force', '-o', folder, check=0)
            made.append({str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob('*') if p.is_file()})
        self.assertEqual(made[0], made[1])

    def test_refusals(self):
        self.assertIn('--format ascend', run('simulate', '1f1b', '--level', 1, '-o', self.dir / 'x', check=2).err)
        self.assertIn('no order', run('simulate', '1f1b', '--format', 'ascend', '--order', 'pp-xx', '-o', self.dir / 'x', check=2).err)
        self.assertIn('ranks', run('simulate', '1f1b', '--format', 'ascend', '--tp', 4000, '--cp', 4000, '-o', self.dir / 'x', check=2).err)
        self.assertIn('--level none', run('simulate', '1f1b', '--format', 'ascend', '--level', 1, '--level-none-comm', 'plain', '-o',
                                          self.dir / 'x', check=2).err)
        mine = self.dir / 'mine' / 'a_1_2_ascend_pt'
        mine.mkdir(parents=True)
        (mine / 'profiler_info_2.json').write_text('{}')
        self.assertIn('no simulation', run('simulate', '1f1b', '--format', 'ascend', '-o', mine.parent, check=2).err)
        self.assertTrue(mine.exists())
        for stages in (4, 2):  # a second run replaces the first
            run('simulate', '1f1b', '--format', 'ascend', '--stages', stages, '--force', '-o', self.dir / 'own', check=0)
        self.assertEqual(len(list((self.dir / 'own').glob('*_ascend_pt'))), 2)
        for flag, word in (('level', '7'), ('marks', 'none'), ('p2p', ''), ('framework', 'jax'), ('level-none-comm', 'x')):
            self.assertIn(f'--{flag} is one of', run('simulate', '1f1b', '--format', 'ascend', f'--{flag}', word, '-o', self.dir / 'x', check=2).err)
        self.assertIn('1 000 000 ranks', run('simulate', '1f1b', '--format', 'ascend', '--tp', 1000, '--dp', 250, '-o', self.dir / 'x',
                                             check=2).err.replace('\u202f', ' '))
        self.assertFalse((self.dir / 'x').exists())

    def test_only_what_a_simulation_wrote_is_replaced(self):
        own = self.dir / 'own'
        again = ('simulate', '1f1b', '--format', 'ascend', '--stages', 2, '--micro-batches', 2, '--steps', 1, '-o', own)
        run(*again, check=0)
        # The file is next to truth.csv, and has a process number like Stageline's.
        theirs = own / 'node0_100000_20250101000000000_ascend_pt'
        (theirs / 'ASCEND_PROFILER_OUTPUT').mkdir(parents=True)
        info = theirs / 'profiler_info_0.json'
        info.write_text('{}')
        self.assertIn('no simulation', run(*again, check=2).err)
        self.assertEqual(info.read_text(), '{}')
        info.unlink()  # folders alone hold nothing
        database = next(own.rglob('ascend_pytorch_profiler_*.db'))
        whole = database.read_bytes()
        database.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # another measurement under the name of ours
        self.assertIn('no simulation', run(*again, check=2).err)
        database.write_bytes(whole)
        (own / 'truth.csv').unlink()
        self.assertIn('--force', run(*again, check=2).err)
        run(*again, '--force', check=0)
        self.assertEqual(sum(any(p.rglob('*.db')) for p in own.glob('*_ascend_pt')), 2)


if __name__ == '__main__':
    unittest.main()
