"""stageline explain where rows are missing, times are absurd, steps are few, or a price is more than can be had: words that do not overclaim."""
import csv
import json
import os
import random
import sys
import unittest

from support import SHARED, Case, needs_shared, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'gen'))
from finding_keys import keys_of  # noqa: E402
from planted import Planted  # noqa: E402

BASE = ['--stages', 4, '--micro-batches', 16, '--steps', 6, '--latency', 0.2, '--jitter', 0.02, '--seed', 7]


class Doubts(Case):
    def made(self, name, *words, schedule='1f1b', how=('--format', 'cells')):
        run('simulate', schedule, *BASE, *how, *words, '--force', '-o', self.dir / name, '-q', check=0)
        return self.dir / name

    def reported(self, *words):
        return json.loads(run('explain', *words, '--format', 'json', '-q', check=0).out)

    def changed(self, name, path, change):
        """The rows of a run as `change` leaves them: it takes a list and gives one."""
        with open(path / 'cells.csv', encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
        out = self.dir / f'{name}.csv'
        with open(out, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(change(rows))
        return out


class SamePlace(Doubts):
    def test_pauses_at_one_place_of_every_step_are_no_garbage_collection(self):
        for stage in (0, 1, 2):
            with self.subTest(stage=stage):
                words = ['--fault', f'wrong-order:{stage}', '--level', 1]
                reported = self.reported(self.made(f'guide{stage}', *words, how=('--format', 'ascend')))
                first = reported['findings'][0]
                self.assertEqual(first['id'], 'host.pauses')
                self.assertTrue(first['title_en'].startswith('In every step rank '), first['title_en'])
                self.assertIn('operation order', first['title_en'])
                self.assertIn('Micro-batches are not numbered', first['detail_en'])
                self.assertNotIn('gc.collect', first['detail_en'])
                self.assertIn('执行顺序', first['title_zh'])
        # Recorded with numbers, the order itself is found.
        reported = self.reported(self.made('numbered', '--fault', 'wrong-order:1', '--marks', 'helper', how=('--format', 'ascend')))
        self.assertEqual(reported['findings'][0]['id'], 'schedule.order')

    def test_a_stage_without_a_file_looks_like_a_late_first_backward_of_gpipe(self):
        path = self.made('gpipe', schedule='fthenb')
        for last in (2, 3):
            with self.subTest(last=last):
                without = self.changed(f'to{last}', path, lambda rows, last=last: [row for row in rows if int(row['stage']) <= last])
                findings = self.reported(without)['findings']
                if last == 3:
                    self.assertEqual(findings, [])
                    continue
                self.assertEqual([f['id'] for f in findings], ['host.pauses'])
                self.assertTrue(findings[0]['detail_en'].endswith('A later stage that has no file here looks the same: its forward and backward would fill the time.'))

    def test_a_collector_is_still_one(self):
        first = self.reported(self.made('gc', '--steps', 20, '--fault', 'gc:60ms,0.02'))['findings'][0]
        self.assertEqual(first['id'], 'host.pauses')
        self.assertIn('garbage collection', first['title_en'])


class LinksThatNobodyRecorded(Doubts):
    def test_their_time_is_called_what_it_was_taken_from(self):
        for name, words in (('seen', ['--messages']), ('unseen', [])):
            found = self.reported(self.made(name, '--fault', 'slow-link:1,2,+30ms', *words))['findings']
            first = next(one for one in found if one['id'] == 'link.slow')
            for part in ('title_en', 'title_zh'):
                self.assertEqual({'title_en': 'inferred', 'title_zh': '按工作开始的时间推断'}[part] in first[part], name == 'unseen', first[part])
            self.assertEqual('Messages were not recorded' in first['detail_en'], name == 'unseen')
            self.assertEqual('transfer time only' in first['detail_en'], name == 'seen')


class ReplicasOnClocksOfTheirOwn(Doubts):
    """A replica on each machine, without messages or collectives between them: an offset of clocks looks like a late start in every step."""

    def test_a_late_start_may_be_a_clock_that_is_ahead(self):
        run_of = self.made('apart', '--dp', 2, '--machines', 2, '--clock-skew', 60, how=())
        found = self.reported(run_of)['findings'][0]
        self.assertIn('or its clock is ahead', found['title_en'])
        self.assertIn('nothing is lost', json.dumps(found))

    def test_where_collectives_tie_the_clocks_nothing_is_late(self):
        run_of = self.made('tied', '--dp', 2, '--machines', 2, '--clock-skew', 60, '--reduce', 5)
        self.assertNotIn('its clock is ahead', json.dumps(self.reported(run_of)))


class GapsThatTieClocks(Doubts):
    def test_a_late_rank_keeps_its_whole_price(self):
        # One replica and no messages: clocks are aligned by the very gaps that the late launches make longer.
        for schedule, rank, by in [('1f1b', 1, 4), ('1f1b', 2, 3), ('dualpipe-v', 2, 3), ('vpp', 2, 3)]:
            with self.subTest(schedule=schedule, rank=rank):
                well = self.reported(self.made('well', schedule=schedule))
                path = self.made('late', '--fault', f'late-launch:{rank},{by}ms', schedule=schedule)
                for align in ('auto', 'never'):
                    late = self.reported(path, '--align', align)
                    self.assertEqual([f['id'] for f in late['findings']], ['rank.late_launch'])
                    self.assertAlmostEqual(late['findings'][0]['lost_ns'] / (late['step_ns'] - well['step_ns']), 1, delta=0.05)


class FewSteps(Doubts):
    def test_what_may_be_chance_is_known(self):
        short = ['--seed', 6, '--fault', 'gc:60ms,0.003']
        reported = self.reported(self.made('short', *short))
        self.assertEqual(reported['findings'], [])
        self.assertIn('pauses', reported['closing_en'])
        self.assertIn('with 6 steps it is within noise: record more steps', reported['closing_en'])
        self.assertNotIn('No problem found', reported['closing_en'])
        self.assertIn('请多记录几步', reported['closing_zh'])
        self.assertIn('record more', run('report', self.dir / 'short', '-o', self.dir / 'r.html', check=0).out)
        enough = self.reported(self.made('enough', *short, '--steps', 40))
        self.assertEqual([f['id'] for f in enough['findings']], ['host.pauses'])

    def test_a_healthy_run_is_not_doubted(self):
        for jitter in (0.01, 0.02, 0.05):
            for schedule in ('1f1b', 'zb-v'):
                reported = self.reported(self.made('well', '--jitter', jitter, schedule=schedule))
                self.assertEqual(reported['findings'], [])
                self.assertRegex(reported['closing_en'], r'^No problem found[.:]')


class MissingRows(Doubts):
    def test_of_two_steps_one_may_lack_a_rank(self):
        path = self.made('two', '--steps', 2, '--dp', 2)
        reported = self.reported(self.changed('one', path, lambda rows: [r for r in rows if (r['rank'], r['step']) != ('2', '0')]))
        self.assertEqual(reported['why_not'], '')
        self.assertIn('1 step is incomplete (0)', reported['note_en'])

    def test_half_a_run_blames_nobody(self):
        path = self.made('whole')
        pick = random.Random(1)
        half = self.changed('half', path, lambda rows: [r for r in rows if pick.random() < 0.5])
        reported = self.reported(half)
        self.assertEqual(reported['findings'], [])
        self.assertRegex(reported['why_not'], r'\d+ of 768 expected forwards and backwards are missing')
        self.assertIn('缺少记录', reported['note_zh'])
        self.assertIn('expected forwards and backwards are missing', run('analyze', 'stragglers', half, check=0).err)

    def test_a_few_holes_are_counted_and_their_steps_left_out(self):
        path = self.made('slow', '--fault', 'slow-stage:2,1.3')
        gone = self.changed('gone', path, lambda rows: [r for i, r in enumerate(rows) if i % 97 != 5])
        reported = self.reported(gone)
        self.assertEqual([f['id'] for f in reported['findings']], ['stage.slow'])
        self.assertRegex(reported['note_en'], r'\d of 768 expected forwards and backwards are missing')

    def test_forwards_alone_are_not_late(self):
        forwards = self.changed('forwards', self.made('whole'), lambda rows: [r for r in rows if r['optype'].startswith('forward')])
        reported = self.reported(forwards, '--trust-clocks')
        self.assertEqual(reported['findings'], [])
        self.assertIn('without recorded backwards', reported['note_en'])
        slow = self.changed('slow', self.made('heavy', '--fault', 'slow-stage:1,1.4'), lambda rows: [r for r in rows if r['optype'].startswith('forward')])
        found = self.reported(slow, '--trust-clocks')
        self.assertEqual([f['key'] for f in found['findings']], ['stage:1'])
        self.assertFalse(found['findings'][0]['priced'])  # backwards may have hidden any of it

    def test_cells_that_last_no_time(self):
        zero = self.changed('zero', self.made('whole'), lambda rows: [{**r, 'duration': '0'} if r['stage'] == '2' else r for r in rows])
        reported = self.reported(zero)
        self.assertEqual(reported['findings'], [])
        self.assertIn('192 of 768 forwards and backwards have zero duration', reported['why_not'])

    def test_a_part_of_a_split_schedule_is_not_judged(self):
        path = self.made('dualpipe', schedule='dualpipe')
        self.assertEqual(self.reported(path)['findings'], [])
        self.assertEqual(self.reported(path, '--ranks', '0,3')['findings'], [])


class Numbers(Doubts):
    def test_an_absurd_duration_is_named_and_short(self):
        def huge(rows):
            # In the last step: before it, what is still under way when the next step is done is left out.
            at = max(i for i, row in enumerate(rows) if row['step'] == '5' and row['optype'] == 'forward-compute')
            rows[at] = {**rows[at], 'duration': '1000000000'}
            return rows
        found = self.reported(self.changed('huge', self.made('whole'), huge))['findings'][0]
        self.assertEqual((found['id'], found['value']), ('step.outlier', '> 1 000 000×'))
        self.assertRegex(found['detail_en'], r'In this step, [FB]\d+ of rank \d has a recorded duration of 11.574.days')
        self.assertNotIn('warm-up', found['detail_en'])

    def test_the_rows_of_a_diff_add_up(self):
        a, b = self.made('a'), self.made('b', '--fault', 'slow-stage:2,1.3', '--seed', 9)
        reported = json.loads(run('diff', a, b, '--format', 'json', '-q', check=0).out)
        self.assertEqual(sum(t['effect_ns'] for t in reported['changes']), reported['change_ns'])

    def test_names_and_a_share_do_not_mix(self):
        err = run('report', self.made('well'), '--fail-on', '3%,stage.slow', '-o', self.dir / 'r.html', check=2).err
        self.assertIn('mixes them', err)
        self.assertIn('in two calls', err)


class PartsOfARun(Doubts):
    def test_waiting_for_a_replica_that_was_left_out_is_no_fault(self):
        path = self.made('two', '--dp', 2, '--reduce', 3, '--optimizer', 5, '--fault', 'slow-rank:6,1.4')
        self.assertEqual(self.reported(path)['findings'][0]['id'], 'rank.slow')
        reported = self.reported(path, '--ranks', '0-3')
        self.assertEqual(reported['findings'], [])
        self.assertIn('Only 1 of 2 replicas was read', reported['note_en'])
        self.assertIn('2 个副本中只读取了 1 个', reported['note_zh'])
        self.assertIn('grads-reduce-scatter', reported['closing_en'])
        self.assertEqual(reported['offers'], [])
        self.assertIn('only 1 of 2 replicas was read', run('analyze', 'waterfall', path, '--ranks', '0-3', check=0).err)

    def test_a_collective_of_one_replica_may_wait_for_others(self):
        path = self.made('one', '--dp', 2, '--reduce', 60)
        alone = self.changed('alone', path, lambda rows: [r for r in rows if r['dp_rank'] == '0'])
        found = self.reported(alone)['findings'][0]
        self.assertEqual(found['id'], 'tail.exposed')
        self.assertIn('waits for them are included', found['detail_en'])

    def test_the_first_log_is_missing(self):
        path = self.made('logs', '--optimizer', 8, how=())
        (path / 'workerlog.0').unlink()
        for words in ([], ['--stages', 4]):
            reported = self.reported(path, *words)
            self.assertIn('stages 1 to 3 of 4', reported['run_en'], words)
            self.assertEqual(reported['findings'], [], words)
        # The user knows better.
        self.assertIn('3 stages', self.reported(path, '--stages', 3)['run_en'])

    def test_a_replica_without_the_first_one(self):
        path = self.made('logs', '--dp', 2, '--optimizer', 8, how=())
        for rank in range(4):
            (path / f'workerlog.{rank}').unlink()
        self.assertIn('Only 1 of 2 replicas was read', self.reported(path)['note_en'])


class BehindAnotherCause(Doubts):
    def test_a_slow_stage_beside_a_slower_rank_is_reported(self):
        path = self.made('pair', '--dp', 2, '--micro-batches', 8, '--steps', 12, '--reduce', 3, '--fault', 'slow-stage:1,1.3', '--fault', 'slow-rank:6,1.4')
        rank, stage = self.reported(path)['findings']
        self.assertEqual((rank['id'], stage['id'], stage['key']), ('rank.slow', 'stage.slow', 'stage:1'))
        self.assertIn('fix the other findings first', stage['title_en'])
        self.assertRegex(stage['detail_en'], r'after they are fixed, it saves [\d.]+.ms \(\d\.\d.%\)')
        # Its price is what it costs as long as the rank is slow.
        alone = self.made('rank', '--dp', 2, '--micro-batches', 8, '--steps', 12, '--reduce', 3, '--fault', 'slow-rank:6,1.4')
        both, without = self.reported(path), self.reported(alone)
        self.assertAlmostEqual(stage['lost_ns'], both['step_ns'] - without['step_ns'], delta=0.005 * both['step_ns'])
        self.assertLess(rank['saving_ns'] + stage['lost_ns'], both['lost_ns'])


    def test_what_comes_up_behind_both_is_reported_too(self):
        slow = dict(dp=2, steps=12, jitter=0.03, cost=lambda st, d, s, k, mb: (1.25 if s in (0, 3) else 1) * (1.3 if (d, s) == (1, 2) else 1))
        reported = self.reported(Planted(**slow).write(self.dir / 'three.csv'))
        found = {f['id']: f for f in reported['findings']}
        self.assertEqual(set(found), {'rank.slow', 'stage.slow'})
        self.assertEqual(keys_of(found['stage.slow']), {'stage:0', 'stage:3'})
        self.assertIn('is the sum of these parts', reported['closing_en'])


class OneDirection(Doubts):
    """A delay of one direction in some steps does not look like a clock that was set."""
    def test_a_link_slow_in_some_steps_sets_no_clock(self):
        for source, to in ((1, 2), (2, 1)):
            for dp in (1, 2):
                run_of = Planted(dp=dp, steps=12, jitter=0.03, message=lambda st, d, a, b, mb, k: 8 if (a, b) == (source, to) and 4 <= st <= 6 else 0)
                path = run_of.write(self.dir / f'link{source}{dp}.csv')
                with self.subTest(source=source, dp=dp):
                    self.assertNotIn('set in mid-run', run('explain', path, check=0).err)
                    found = self.reported(path)['findings'][0]
                    self.assertEqual(found['id'], 'link.slow')
                    self.assertIn(f'from stage {source} to stage {to}', found['title_en'])
                    self.assertIn('slow in 3 of 12 steps', found['detail_en'])

    def test_a_host_late_in_some_steps_sets_no_clock(self):
        path = Planted(dp=2, steps=12, jitter=0.03, pause=lambda st, d, s, k, mb: 4 if s == 2 and 4 <= st <= 6 else 0).write(self.dir / 'late.csv')
        self.assertNotIn('set in mid-run', run('explain', path, check=0).err)


class RealJobs(Doubts):
    @needs_shared
    def test_waiting_for_replicas_is_explained(self):
        first = self.reported(SHARED / 'pipeline_ops/bytedance/trace-SE.csv.gz')['findings'][0]
        self.assertEqual(first['id'], 'sequence.long')
        # The sum of all waits for the last replica equals the saving of an even distribution of sequences, within a
        # tenth.
        self.assertAlmostEqual(first['saving_share'], 0.237, delta=0.024)
        self.assertIn('Replicas spend 23.7 % of each step waiting', first['detail_en'].replace('\u202f', ' '))
        self.assertIn('等待的', first['detail_zh'])

    def balance(self, job):
        """The slow stage's finding, and the split that what-if finds."""
        slow = next(f for f in self.reported(job)['findings'] if f['id'] == 'stage.slow')
        fixes = next(t for t in json.loads(run('what-if', job, '--format', 'json', '-q', check=0).out)['tables'] if t['name'] == 'fixes')
        return slow, next(r for r in fixes['rows'] if r['fix'] == 'balance')

    def test_a_head_that_layers_cannot_lighten(self):
        job = self.dir / 'head'
        run('simulate', '1f1b', '--format', 'cells', '--stages', 4, '--micro-batches', 16, '--steps', 4, '--cost', '8,16', '--fault', 'heavy-head:3', '-o', job, check=0)
        slow, balance = self.balance(job)
        self.assertIn('split the output head, or', slow['title_en'])
        # A step of explain lasts until the next one starts, one of what-if until its work ends: the saving is the same.
        self.assertAlmostEqual(slow['saving_ns'] / balance['saving_ns'], 1, delta=0.01)
        # One layer stays with the head; the others spread, since many splits take as long.
        layers = [int(n) for n in balance['what'].split(' → ')[1].split(', ')]
        self.assertEqual((layers[-1], sum(layers)), (1, 32))
        self.assertLessEqual(max(layers) - min(layers[:-1]), 1)

    @needs_shared
    def test_a_head_whose_rank_gets_fewer_layers_in_its_other_chunks(self):
        slow, balance = self.balance(SHARED / 'pipeline_ops/megatronapp')
        self.assertIn('chunk 3 (the last)', slow['title_en'])
        self.assertIn('move layers off it, or', slow['title_en'])
        layers = [int(n) for n in balance['what'].split(' → ')[1].split(', ')]
        self.assertEqual(sum(layers), 8 * 16)
        ranks = [sum(layers[rank::4]) for rank in range(4)]
        self.assertLess(ranks[3], min(ranks[:3]) - 8)
        self.assertGreater(balance['saving_share'], 0.1)


if __name__ == '__main__':
    unittest.main()
