"""stageline explain on runs with causes that no list of faults contains: findings must follow from measurements. There
are slow ranks that take turns, work that is late in one direction, and hosts that are late everywhere. Others are cells
whose time depends on their number, time in a step that no work fills, and steps that differ."""
import json
import os
import sys
import unittest

from support import Case, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'gen'))
from finding_keys import keys_of  # noqa: E402
from planted import Planted, chance  # noqa: E402

WELL = dict(stages=4, micro_batches=16, steps=8)


def words(finding):
    return finding['title_en'] + ' ' + finding['detail_en']


class ExplainKinds(Case):
    def reported(self, name, planted):
        path = planted.write(self.dir / (name + '.csv'))
        found = json.loads(run('explain', path, '--format', 'json', '-q', check=0).out)
        if found['account']:
            self.assertAlmostEqual(sum(line['ns'] for line in found['account']), found['step_ns'], delta=20)
        return found

    def priced(self, finding, ill, well):
        true_ns = (ill.period - well.period) * 1e6
        self.assertGreater(true_ns, 0.02 * ill.period * 1e6, 'the case itself')
        self.assertAlmostEqual(finding['lost_ns'], true_ns, delta=max(0.15 * true_ns, 0.01 * ill.period * 1e6))

    def line(self, found, part):
        return sum(line['ns'] for line in found['account'] if line['id'] == part) / found['step_ns']

    def test_ranks_that_are_slow_by_turns_are_two_causes(self):
        options = dict(WELL, dp=4, steps=12)
        turns = lambda st, d, s, k, mb: 1.3 if (d, s) == ((1, 1) if st < 6 else (2, 2)) else 1  # noqa: E731
        found = self.reported('turns', Planted(**options, cost=turns))
        self.assertEqual(sorted(f['key'] for f in found['findings'] if f['id'] == 'rank.slow'), ['rank:10', 'rank:5'], [f['title_en'] for f in found['findings']])
        self.assertFalse([f['title_en'] for f in found['findings'] if f['id'] == 'ranks.slow'])
        for finding in found['findings']:
            if finding['key'] == 'rank:10':
                self.assertIn('in 6 of 12 steps', words(finding))

    def test_ranks_that_are_slow_at_the_same_times_stay_one_cause(self):
        both = lambda st, d, s, k, mb: 1.3 if d == 1 and s in (1, 2) and st >= 6 else 1  # noqa: E731
        first = self.reported('together', Planted(**dict(WELL, dp=4, steps=12), cost=both))['findings'][0]
        self.assertEqual(first['id'], 'ranks.slow')
        self.assertIn('are slow together (1.30× the others since step 6 (1.00× before, 1.30× after))', first['title_en'])

    def test_a_stage_that_is_slow_all_along_has_no_shape(self):
        for seed in range(1, 7):
            ends = lambda st, d, s, k, mb: {0: 1.1, 3: 1.35 + (0.004 if st % 2 else 0)}.get(s, 1)  # noqa: E731
            first = self.reported(f'ends-{seed}', Planted(**dict(WELL, seed=seed), cost=ends))['findings'][0]
            self.assertIn('in 8 of 8 steps. Spreading the same work', first['detail_en'])

    def test_one_kind_of_work_is_no_heavy_stage(self):
        again = lambda st, d, s, k, mb: 1.33 if (s, k) == (1, 'B') else 1  # noqa: E731
        first = self.reported('again', Planted(**WELL, cost=again))['findings'][0]
        self.assertEqual(first['key'], 'stage:1')
        self.assertIn('check its backward', first['title_en'])
        self.assertNotIn('a heavy stage and a slow device look the same', first['detail_en'])
        whole = lambda st, d, s, k, mb: 1.33 if s == 1 else 1  # noqa: E731
        first = self.reported('whole', Planted(**WELL, cost=whole))['findings'][0]
        self.assertIn('a heavy stage and a slow device look the same', first['detail_en'])
        self.assertIn('assuming 8 per stage today', first['detail_en'])

    def test_one_direction_that_starts_late_is_said_to_be_one(self):
        well = Planted(**WELL)
        loss = Planted(**WELL, pause=lambda st, d, s, k, mb: 12 if (s, k) == (3, 'B') else 0)
        found = self.reported('loss', loss)
        self.assertEqual([f['id'] for f in found['findings']], ['rank.late_launch'], [f['title_en'] for f in found['findings']])
        self.assertIn('Rank 3 starts every backward 12.0\u202fms late', found['findings'][0]['title_en'])
        self.priced(found['findings'][0], loss, well)

    def test_hosts_that_are_late_everywhere_are_no_rank_and_no_message_for_sure(self):
        found = self.reported('everywhere', Planted(**WELL, pause=lambda st, d, s, k, mb: 4))
        self.assertNotIn('rank.late_launch', [f['id'] for f in found['findings']])
        for finding in found['findings']:
            if finding['id'] == 'messages.slow':
                self.assertIn('Message-like gaps', finding['title_en'])
                self.assertIn('Messages were not recorded, and hosts that start work late look the same', finding['detail_en'])
        self.assertGreater(sum(f['lost_share'] for f in found['findings']), 0.1)

    def test_cells_go_with_their_number(self):
        for name, cost, said in (('growing', lambda st, d, s, k, mb: 1 + 0.04 * mb, 'The work of micro-batches on every stage gets slower within each step'),
                                 ('reduced-beside', lambda st, d, s, k, mb: 1.3 if k == 'B' and mb >= 10 else 1,
                                  'The backward of micro-batches on every stage is slow from 10 on (1.30× the earlier ones)')):
            with self.subTest(name):
                well, ill = Planted(**WELL), Planted(**WELL, cost=cost)
                found = self.reported(name, ill)
                self.assertEqual([f['id'] for f in found['findings']], ['micro_batch.slow'], [f['title_en'] for f in found['findings']])
                self.assertIn(said, found['findings'][0]['title_en'])
                self.priced(found['findings'][0], ill, well)

    def test_cells_of_one_stage_go_with_their_number(self):
        well, ill = Planted(**WELL), Planted(**WELL, cost=lambda st, d, s, k, mb: 1 + 0.04 * mb if s == 2 else 1)
        found = self.reported('growing-stage', ill)
        self.assertEqual([f['key'] for f in found['findings']], ['stage:2'], [f['title_en'] for f in found['findings']])
        self.assertIn('The work of micro-batches on stage 2 gets slower within each step', found['findings'][0]['title_en'])
        self.priced(found['findings'][0], ill, well)

    def test_links_that_are_slow_one_way_are_no_cable(self):
        slow = lambda st, d, a, b, mb, k: 5.0 if b < a else 0  # noqa: E731
        first = self.reported('one-way', Planted(**dict(WELL, messages=True), message=slow))['findings'][0]
        self.assertEqual(first['id'], 'link.slow')
        self.assertIn('Backward messages are slow on every link (5.20\u202fms', first['title_en'])
        self.assertEqual({'link:1-0', 'link:2-1', 'link:3-2'}, set(keys_of(first)))

    def test_neighbours_are_one_place(self):
        well = Planted(**WELL)
        cool = Planted(**WELL, cost=lambda st, d, s, k, mb: 2 if (s, k) == (1, 'B') and mb >= 13 else 1)
        found = self.reported('cool', cool)
        self.assertEqual([f['id'] for f in found['findings']], ['cell.slow'], [f['title_en'] for f in found['findings']])
        self.assertIn('B13–B15 of stage 1 are slow', found['findings'][0]['title_en'])
        self.assertTrue({'cell:1.B13', 'cell:1.B15', 'stage:1'} <= set(keys_of(found['findings'][0])))
        self.priced(found['findings'][0], cool, well)

    def test_a_micro_batch_is_long_in_what_is_long(self):
        found = self.reported('forwards', Planted(**WELL, cost=lambda st, d, s, k, mb: 2 if k == 'F' and mb == 0 else 1))
        self.assertIn('The forward of micro-batch 0 is slow', found['findings'][0]['title_en'])
        found = self.reported('both', Planted(**WELL, cost=lambda st, d, s, k, mb: 2 if mb == 0 else 1))
        self.assertIn('Micro-batch 0 is slow', found['findings'][0]['title_en'])

    def idle(self, planted, ms, name=''):
        """All ranks spend `ms` without work between the reductions and the optimizer."""
        rows = []
        for d, s, step, kind, what, start, end, mb in planted.rows:
            later = ms * step + (ms if kind == 'O' else 0)
            if kind == 'O' and name:
                rows.append((d, s, step, 'other', name, start + ms * step, start + later, -1))
            rows.append((d, s, step, kind, what, start + later, end + later, mb))
        planted.rows = rows
        return planted

    def test_time_in_a_step_that_no_work_fills_is_no_schedules(self):
        for name in ('', 'clip_grad_norm'):
            with self.subTest(name):
                found = self.reported('idle-' + name, self.idle(Planted(**WELL), 50, name))
                first = found['findings'][0]
                self.assertEqual(first['id'], 'tail.exposed')
                self.assertEqual((first['key'], first['places'][0]['kind']), ('tail:' + (name.replace('_', '-') or 'idle'), 'host'))
                self.assertAlmostEqual(first['lost_ns'], 50e6, delta=1e6)
                self.assertIn(name or 'The cause was not recorded', words(first))
        # A short one is a line of the account.
        found = self.reported('idle-short', self.idle(Planted(**WELL), 8))
        self.assertEqual(found['findings'], [])
        self.assertIn('gap between the pipeline and collectives or optimizer', found['closing_en'])

    def test_a_long_step_is_reported_by_what_was_recorded_in_it(self):
        planted = Planted(**dict(WELL, steps=12), pause=lambda st, d, s, k, mb: 400 if (s, k, mb) == (3, 'F', 0) and st in (4, 8) else 0)
        starts = {st: start for d, s, st, k, _, start, end, mb in planted.rows if (s, k, mb) == (3, 'F', 0)}
        planted.rows += [(0, 3, st, 'other', 'checkpoint', starts[st] - 400, starts[st], -1) for st in (4, 8)]
        first = self.reported('checkpoint', planted)['findings'][0]
        self.assertIn('rank 3 started F0', first['title_en'])
        self.assertIn('late while checkpoint ran on it', first['title_en'])
        self.assertNotIn('not recorded', words(first))
        self.assertIn('between-steps:checkpoint', keys_of(first))

    def test_starts_are_not_late_where_rows_are_missing(self):
        planted = Planted(**WELL)
        planted.rows = [row for i, row in enumerate(planted.rows) if row[3] not in 'FB' or chance('lost', i) > 0.03]
        found = self.reported('holes', planted)
        self.assertEqual(found['findings'], [])
        self.assertNotIn('starts late', found['closing_en'])

    def test_uneven_data_are_not_doubted_beside_their_own_finding(self):
        packed = lambda st, d, s, k, mb: 0.75 + 0.5 * chance('packed', st, d, mb)  # noqa: E731
        found = self.reported('packed', Planted(**dict(WELL, dp=4, steps=12), cost=packed))
        self.assertEqual(found['findings'][0]['id'], 'sequence.long')
        self.assertNotIn('within noise', found['closing_en'])

    def chain(self, *runs):
        """Runs one after the other, as one run."""
        first = runs[0]
        step, end, rows = first.steps, max(row[6] for row in first.rows), list(first.rows)
        for one in runs[1:]:
            shift = end + 1 - min(row[5] for row in one.rows)
            rows += [(d, s, st + step, k, n, a + shift, b + shift, mb) for d, s, st, k, n, a, b, mb in one.rows]
            step, end = step + one.steps, max(row[6] for row in rows)
        first.rows = rows
        return first

    def test_steps_of_unequal_numbers_are_said_to_be(self):
        found = self.reported('ramp', self.chain(*[Planted(**dict(WELL, micro_batches=m, steps=4, seed=m)) for m in (4, 8, 16)]))
        self.assertEqual(found['findings'], [])
        self.assertIn('4 to 16 micro-batches', found['run_en'])

    def test_replicas_with_more_micro_batches_are_a_line(self):
        few, many = Planted(**WELL), Planted(**dict(WELL, micro_batches=18, seed=2))
        rows, begin = [], 0.0
        for step in range(few.steps):
            ends, of_step = [], []
            for d, one in enumerate((few, many)):
                own = [row for row in one.rows if row[2] == step]
                first = min(row[5] for row in own)
                of_step += [(d, s, st, k, n, a - first + begin, b - first + begin, mb) for _, s, st, k, n, a, b, mb in own if k in 'FB']
            last = max(row[6] for row in of_step)
            for d in range(2):
                for s in range(4):
                    ends.append((d, s, step, 'C', 'all-reduce', max(row[6] for row in of_step if row[:2] == (d, s)), last + 2, -1))
            rows += of_step + ends
            begin = last + 3
        few.rows = rows
        found = self.reported('unequal', few)
        self.assertIn('16 to 18 micro-batches', found['run_en'])
        self.assertIn('waiting for replicas with more micro-batches', found['closing_en'])
        self.assertGreater(self.line(found, 'replicas'), 0.02)

    def test_evaluation_is_no_missing_row(self):
        train = Planted(**dict(WELL, steps=4))
        rows, end, number = [], 0.0, 0
        for turn in range(3):
            for step in range(4):
                own = [row for row in train.rows if row[2] == step]
                shift = end + 1 - min(row[5] for row in own)
                rows += [(d, s, number, k, n, a + shift, b + shift, mb) for d, s, _, k, n, a, b, mb in own]
                end, number = max(row[6] for row in rows), number + 1
            rows += [(0, s, number, 'F', '', end + 1 + 10.2 * (s + mb), end + 11 + 10.2 * (s + mb), mb) for mb in range(8) for s in range(4)]
            end, number = max(row[6] for row in rows), number + 1
        train.rows = rows
        found = self.reported('evaluation', train)
        self.assertFalse(found['why_not'])
        self.assertIn('3 steps contain only forwards', found['note_en'])

    def test_what_a_repeated_step_takes_is_not_known(self):
        planted = Planted(**WELL)
        again = [(d, s, st, k, n, a + 30000, b + 30000, mb) for d, s, st, k, n, a, b, mb in planted.rows if st >= 3]
        planted.rows = [row for row in planted.rows if row[2] <= 5] + again
        found = self.reported('restart', planted)
        self.assertIn('is unknown', found['title_en'])
        self.assertIn('went back to an earlier step', found['why_not'])
        self.assertEqual(found['findings'], [])


if __name__ == '__main__':
    unittest.main()
