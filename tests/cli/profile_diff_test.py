"""stageline diff of two profiles: what was changed between them is named, with its part of the bar, its operator and its cost; the parts add up; exit codes are for CI."""
import json
import sys
import unittest

from support import SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests' / 'gen'))
import host_training  # noqa: E402
import profile_faults as gen  # noqa: E402


def slower(place, rank):
    if place == 'begin':
        rank.scale = 1.5


def slower_rank(place, rank):
    if place == 'begin' and rank.number == 1:
        rank.scale = 1.5


class Reduced(gen.Rank):
    """Gradients are reduced while the next layers compute."""
    wait = False

    def layer(self, backward):
        super().layer(backward)
        if backward:
            with self.op('c10d::allreduce_'):
                self.work(gen.REDUCE, 500.0, stream=20, after=self.free[7], **{'Collective name': 'allreduce', 'Group size': 2})
            if self.wait:
                self.free[7] = self.free[20]


class Waited(Reduced):
    wait = True


class Split(gen.Rank):
    """Two kernels do what one did, and under other names."""
    names = ('splitk_gemm', 'splitk_reduce')

    def layer(self, backward):
        with self.op('aten::mm'):
            for name in self.names:
                self.work(name, (2 if backward else 1) * gen.KERNEL_US * self.scale / len(self.names))


class Renamed(Split):
    names = ('cutlass_gemm',)


# name → ((fault, kind) of A, the same of B, ranks, the part that changes, its words, what stands behind it)
CHANGES = {
    'operator': ((None, gen.Rank), (slower, gen.Rank), 1, 'compute', 'compute (aten::mm)', 'aten::mm'),
    'copies': ((None, gen.Rank), (gen.pageable, gen.Rank), 1, 'memory', 'exposed copies (Memcpy HtoD (Pageable -> Device))', 'scheduler.py:31'),
    'overlap': ((None, Reduced), (None, Waited), 1, 'comm', 'exposed communication (allreduce)', 'allreduce'),
    'input': ((None, gen.Rank), (gen.input_wait, gen.Rank), 1, 'idle-input', 'waiting for input', 'DataLoader'),
    'sleep': ((None, gen.Rank), (gen.sleeping, gen.Rank), 1, 'idle-host', 'waiting for the host', 'train.py:88'),
    'malloc': ((None, gen.Rank), (gen.allocate, gen.Rank), 1, 'idle-allocator', 'memory allocation', 'aten::empty'),
}


class ProfileDiff(Case):
    def made(self, name, fault=None, ranks=1, kind=gen.Rank, without=()):
        """Writes a run and returns its folder and its mean step in ns, as it was made."""
        played = gen.play(fault, ranks, kind)
        gen.write([rank for rank in played if rank.number not in without], str(self.dir / name))
        return self.dir / name, gen.wall(played) / gen.STEPS * 1e3

    def diff(self, a, b, *words, check=0):
        found = json.loads(run('diff', a, b, '--format', 'json', '-q', *words, check=check).out)
        tables = {table['name']: table['rows'] for table in found['tables']}
        self.assertEqual(sum(row['effect_ns'] for row in tables['groups']), found['change_ns'])
        runs = {row['run']: row for row in tables['runs']}
        self.assertAlmostEqual(runs['b']['step_ns'] - runs['a']['step_ns'], found['change_ns'], delta=2)
        for name, path in (('a', a), ('b', b)):  # the parts are those of explain
            explained = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
            self.assertEqual(round(explained['step_ns']), runs[name]['step_ns'])
            values = {row['kind']: row[name + '_ns'] for row in tables['groups']}
            for part in explained['parts']:
                self.assertAlmostEqual(values[part['id']], part['share'] * explained['step_ns'], delta=2)
        return found, tables

    def test_a_run_with_itself_has_no_difference(self):
        a, _ = self.made('a')
        out = run('diff', a, a, '--fail-on', '0.1%', check=0).out
        self.assertIn('No difference beyond noise', out)
        found, tables = self.diff(a, a)
        self.assertEqual((found['change_ns'], found['beyond_noise']), (0, False))
        self.assertEqual(tables['items'], [])

    def test_what_was_changed_is_named_at_its_cost_and_the_sum_closes(self):
        for name, (of_a, of_b, ranks, part, cause, behind) in CHANGES.items():
            with self.subTest(name):
                a, step_a = self.made(name + ' a', of_a[0], ranks, of_a[1])
                b, step_b = self.made(name + ' b', of_b[0], ranks, of_b[1])
                found, tables = self.diff(a, b, '--fail-on', '3%', check=1)
                true_ns = step_b - step_a
                self.assertAlmostEqual(found['change_ns'] / true_ns, 1, delta=0.05)
                self.assertTrue(found['beyond_noise'])
                self.assertTrue(found['cause_en'].startswith(cause), found['cause_en'])
                top = tables['groups'][0]
                self.assertEqual((top['kind'], top['sure']), (part, 'yes'))
                self.assertAlmostEqual(top['effect_ns'] / true_ns, 1, delta=0.1)
                self.assertIn(behind, json.dumps(found['changes'][0]))
                self.assertTrue(found['headline_zh'] and found['cause_zh'])
                back, _ = self.diff(b, a, '--fail-on', '3%')
                self.assertEqual(back['change_ns'], -found['change_ns'])
                there = {row['kind']: row['effect_ns'] for row in tables['groups'] if row['cause'] == 'part'}
                for row in back['tables'][1]['rows']:
                    if row['cause'] == 'part':
                        self.assertAlmostEqual(row['effect_ns'], -there[row['kind']], delta=1)

    def test_kernels_that_were_renamed_or_split_are_matched_by_their_operator(self):
        a, _ = self.made('a')
        for kind, said in ((Renamed, 'ampere_bf16_s16816gemm'), (Split, '24 → 48 per step')):
            b, _ = self.made(kind.__name__, slower, 1, kind)
            found, tables = self.diff(a, b)
            items = [row for row in tables['items'] if row['part'] == 'compute']
            self.assertEqual([row['name'] for row in items], ['aten::mm'])
            self.assertGreater(items[0]['a_ns'], 0)
            self.assertIn(said, items[0]['kernels'])
            self.assertEqual(found['cause_en'], 'compute (aten::mm)')
            same, _ = self.made(kind.__name__ + ' as fast', None, 1, kind)
            self.assertLess(abs(self.diff(a, same)[0]['change_share']), 0.01)

    def test_a_late_rank_is_named_where_the_others_wait(self):
        a, step_a = self.made('a', None, 3)
        b, step_b = self.made('b', gen.late_rank, 3)
        found, tables = self.diff(a, b, '--fail-on', '3%', check=1)
        effects = {row['kind']: row['effect_ns'] / (step_b - step_a) for row in tables['groups']}
        self.assertAlmostEqual(effects['comm-wait'], 2 / 3, delta=0.05)  # two of three ranks wait
        self.assertAlmostEqual(effects['idle-host'], 1 / 3, delta=0.05)
        self.assertIn('rank 1 arrives last in B', found['changes'][0]['en'])
        self.assertEqual(found['changes'][0]['places'], [{'kind': 'ranks', 'ranks': [1]}])
        self.assertTrue(found['cause_en'].startswith('rank 1 arrives last in B'), found['cause_en'])
        host = next(row for row in tables['items'] if row['part'] == 'idle-host')
        self.assertEqual((host['rank'], host['at']), (1, 'data.py:7'))

    def test_items_of_hosts_are_never_more_than_their_part(self):
        # Both buckets are in flight at once, during computing: together they take longer than what is exposed.
        for name, late in (('a', 0), ('b', 10)):
            (self.dir / name).mkdir()
            host_training.write(self.dir / name, host_training.make(more=lambda rank, step, late=late: late if rank == 1 else 0))
        found = json.loads(run('diff', self.dir / 'a', self.dir / 'b', '--format', 'json', '-q', check=0).out)
        tables = {table['name']: table['rows'] for table in found['tables']}
        parts = {row['kind']: row for row in tables['groups']}
        items = [row for row in tables['items'] if row['part'] == 'comm']
        self.assertIn('gloo:all_reduce', [row['name'] for row in items])
        for column in ('a_ns', 'b_ns'):
            self.assertGreater(sum(row[column] for row in items), 0)
            self.assertLessEqual(sum(row[column] for row in items), parts['comm'][column] + len(items), column)

    def test_one_rank_is_named_and_a_lost_rank_is_reported(self):
        a, _ = self.made('a', None, 3)
        b, _ = self.made('b', slower_rank, 3)
        found, tables = self.diff(a, b)
        self.assertEqual([row['rank'] for row in tables['items'] if row['part'] == 'compute'], [1])
        fewer, _ = self.made('fewer', None, 3, gen.Rank, (2,))
        found, _ = self.diff(a, fewer)
        self.assertEqual(found['differences'][0]['en'], 'B has 2 ranks, A 3')
        self.assertFalse(found['beyond_noise'])

    def test_one_long_step_does_not_hide_what_all_others_show(self):
        a, _ = self.made('a')
        b, _ = self.made('b', lambda place, rank: (slower(place, rank), gen.save(place, rank)))
        found, tables = self.diff(a, b, '--fail-on', '20%', check=1)
        self.assertEqual({row['kind']: row['sure'] for row in tables['groups']}['compute'], 'yes')
        once, _ = self.made('once', gen.save)
        run('diff', a, once, '--fail-on', '3%', check=0)  # a single long step is no trend

    def test_one_step_is_said_to_be_little_evidence(self):
        a, _ = self.made('a')
        found = json.loads(run('diff', a, a, '--steps', '2', '--format', 'json', '-q', check=0).out)
        self.assertIn('little evidence', found['differences'][0]['en'])

    def what_if(self, path):
        found = json.loads(run('what-if', path, '--format', 'json', '-q', check=0).out)
        explained = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        fixes = next(table['rows'] for table in found['tables'] if table['name'] == 'fixes')
        alone = {row['fix']: row['saving_ns'] for row in fixes if row['fix'] != 'combined'}
        self.assertEqual(alone, {f['id']: f['saving_ns'] or f['lost_ns'] for f in explained['findings'] if f['lost_share'] > 0})
        return found, {row['fix']: row['saving_ns'] for row in fixes}, alone

    def test_what_if_lists_each_loss_as_explain_does_and_all_of_them_together(self):
        def both(place, rank):
            gen.sleeping(place, rank)
            gen.pageable(place, rank)

        _, step = self.made('a')
        b, slow = self.made('b', both)
        _, fixes, alone = self.what_if(b)
        self.assertEqual(set(alone), {'host.busy', 'copies.pageable'})
        self.assertAlmostEqual(fixes['combined'] / (slow - step), 1, delta=0.1)  # the step without both
        late, slow = self.made('late', lambda place, rank: (gen.late_rank(place, rank), gen.sleeping(place, rank)), 3)
        found, fixes, alone = self.what_if(late)
        _, step = self.made('in time', None, 3)
        self.assertAlmostEqual(fixes['combined'] / (slow - step), 1, delta=0.1)
        healthy, _ = self.made('healthy')
        self.assertEqual(self.what_if(healthy)[1], {})


if __name__ == '__main__':
    unittest.main()
