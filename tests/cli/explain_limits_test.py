"""stageline explain where a run is not whole, has no steps, is short, or is slow everywhere: what may be said, and what may not."""
import csv
import json
import random
import sys
import unittest

from support import SHARED, SOURCE, Case, needs_shared, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import fill_drain  # noqa: E402

RUN = ['--stages', 4, '--micro-batches', 8, '--jitter', 0.02]
RECORDED = SOURCE / 'tests/torch/recorded/pipelines'


class Limits(Case):
    def made(self, name, *words, schedule='1f1b', how=('--format', 'cells')):
        run('simulate', schedule, *RUN, *how, *words, '--force', '-o', self.dir / name, '-q', check=0)
        return self.dir / name

    def reported(self, *words):
        return json.loads(run('explain', *words, '--format', 'json', '-q', check=0).out)

    def rows(self, path):
        with open(path / 'cells.csv', encoding='utf-8') as file:
            return list(csv.DictReader(file))

    def written(self, name, rows, columns=None):
        path = self.dir / f'{name}.csv'
        with open(path, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, columns or list(rows[0]), extrasaction='ignore')
            writer.writeheader()
            writer.writerows(rows)
        return path


class OneTransfer(Limits):
    def test_a_part_of_the_run_is_said_once_and_in_plain_words(self):
        whole = self.made('two', '--dp', 2)
        hole = self.written('hole', [r for r in self.rows(whole) if r['rank'] != '7'])
        reported = self.reported(hole)
        self.assertIn('7 of the 8 stages of all pipelines', reported['run_en'])
        self.assertNotIn('replicas', reported['run_en'])
        end = self.written('end', [r for r in self.rows(whole) if r['stage'] != '3'])
        done = run('report', end, '-o', self.dir / 'end.html', check=0)
        self.assertEqual(done.err.count('only stages 0 to 2 of 4'), 1, done.err)

    def test_whole_layers_that_win_more_than_the_even_spread_say_why(self):
        heavy = self.reported(self.made('heavy', '--stages', 2, '--chunks', 2, '--fault', 'slow-stage:1,1.9', schedule='vpp'))
        stage = next(f for f in heavy['findings'] if f['id'] == 'stage.slow')
        self.assertIn('That is more than an even spread saves', stage['detail_en'])

    def test_receives_that_begin_with_their_sends_hide_no_fault(self):
        # Some recorders stamp a message only while its bytes move: the receiver's waiting is in no row.
        for fault, cause in [('slow-stage:1,1.3', 'stage.slow'), ('late-launch:2,2ms', 'rank.late_launch')]:
            path = self.made('m', '--messages', '--latency', 0.3, '--steps', 6, '--fault', fault)
            rows = self.rows(path)
            for row in rows:
                if row['optype'].endswith('recv') and float(row['duration']) > 0.0003:
                    row['start_ts'] = f"{float(row['start_ts']) + float(row['duration']) - 0.0003:.7f}"
                    row['duration'] = '0.0003'
            with self.subTest(fault=fault):
                first, moved = self.reported(path)['findings'][0], self.reported(self.written('moved', rows))['findings'][0]
                self.assertEqual((first['id'], moved['id']), (cause, cause))
                self.assertAlmostEqual(first['saving_share'], moved['saving_share'], delta=0.05 * first['saving_share'])


    def test_an_order_left_on_any_stage_is_found_with_messages_as_without(self):
        for stage in (0, 1, 2):
            with self.subTest(stage=stage):
                fault = ('--fault', f'wrong-order:{stage}')
                plain = self.reported(self.made('plain', *fault))['findings'][0]
                recorded = self.reported(self.made('recorded', '--messages', *fault))['findings'][0]
                self.assertEqual((plain['id'], recorded['id']), ('schedule.order', 'schedule.order'))
                self.assertAlmostEqual(plain['saving_share'], recorded['saving_share'], delta=0.05 * plain['saving_share'])


class PartOfARun(Limits):
    def test_ranks_left_out_are_nobodys_fault(self):
        for form, how in {'plain': ('--format', 'cells'), 'messages': ('--format', 'cells', '--messages'), 'paddle': ()}.items():
            path = self.made(form, how=how)
            for ranks, part in [('0,1,3', 'stages 0, 1 and 3 of 4'), ('0', 'stage 0 of 4'), ('1', 'stage 1 of 4'), ('0,2', 'stages 0 and 2 of 4'),
                                ('1,2', 'stages 1 and 2 of 4'), ('0-2', 'stages 0 to 2 of 4')]:
                with self.subTest(form=form, ranks=ranks):
                    found = self.reported(path, '--ranks', ranks)
                    self.assertEqual([f['title_en'] for f in found['findings']], [])
                    self.assertIn(f'Only {part} ', found['note_en'])
                    self.assertIn(part, found['run_en'])
                    self.assertIn('4 级', found['note_zh'])

    def test_it_is_said_wherever_findings_stand(self):
        path = self.made('plain')
        note = 'stages 0, 1 and 3 of 4'
        self.assertIn(note, run('explain', path, '--ranks', '0,1,3', check=0).out)
        self.assertIn('tages 0, 1 and 3 of 4', run('report', path, '--ranks', '0,1,3', '-o', self.dir / 'r.html', check=0).out)
        for analysis in ('stragglers', 'waterfall'):
            self.assertIn(note, run('analyze', analysis, path, '--ranks', '0,1,3', check=0).err)
        workers = run('analyze', 'stragglers', path, '--ranks', '0,1,3', '--table', 'straggler-workers', '--format', 'csv', '-q', check=0).out
        self.assertNotIn('pauses of', workers)
        whole = run('explain', path, check=0)
        self.assertNotIn('Only', whole.out + whole.err)

    def test_a_fault_of_what_was_read_is_still_found(self):
        path = self.made('slow', '--fault', 'gc:30ms,0.05', '--steps', 10)
        self.assertEqual([f['id'] for f in self.reported(path, '--ranks', '0-2')['findings']], ['host.pauses'])

    def test_lost_files(self):
        rows = self.rows(self.made('plain'))
        for stage in range(4):
            with self.subTest(stage=stage):
                found = self.reported(self.written(f'without{stage}', [r for r in rows if r['stage'] != str(stage)]))
                self.assertEqual(found['findings'], [])
                self.assertIn(' of 4', found['run_en'])
                self.assertIn('are not counted as faults', found['note_en'])
        # The last one leaves no gap in the numbers: the warm-up shows it.
        self.assertIn('1F1B with a stage count of 4', found['note_en'])

    def test_a_kind_that_was_not_recorded(self):
        rows = self.rows(self.made('zb', schedule='zb-h1'))
        only_w = self.reported(self.written('w', [r for r in rows if r['optype'] == 'backward-weight-compute']))
        self.assertEqual(only_w['findings'], [])
        self.assertIn('without recorded forwards and backwards', only_w['note_en'])


class Steps(Limits):
    LEAST = ['stage', 'optype', 'start_ts', 'duration', 'mb_id']

    def test_repetition_numbers_them(self):
        path = self.made('slow', '--steps', 4, '--fault', 'slow-stage:2,1.3')
        known = self.reported(path)
        path = self.written('least', self.rows(path), self.LEAST)
        found = self.reported(path)
        self.assertEqual((found['steps'], found['step_ns'] // 1000), (4, known['step_ns'] // 1000))
        self.assertEqual([f['id'] for f in found['findings']], [f['id'] for f in known['findings']])
        self.assertIn('each round was used as a step', run('explain', path, check=0).err)

    def test_where_nothing_tells_them_nothing_is_found(self):
        rows = self.rows(self.made('healthy'))
        for r in rows:  # one more forward of one rank: rounds are not equal any more
            if r['stage'] == '2' and r['step'] == '1' and r['mb_id'] == '3' and r['optype'] == 'forward-compute':
                extra = {**r, 'start_ts': str(float(r['start_ts']) + 0.0001), 'duration': '0.0001'}
        path = self.written('unequal', rows + [extra], self.LEAST)
        reported = run('explain', path, check=0)
        self.assertIn('Write the step of every row', reported.err)
        self.assertNotIn('clocks disagree', reported.out)
        self.assertIn('Causes were not analysed', reported.out)
        found = self.reported(path)
        self.assertEqual([f['id'] for f in found['findings'] if f['lost_ns'] > 0 and f['priced']], [])
        self.assertIn('repeat the same work', found['why_not'])

    def test_two_runs_in_one(self):
        rows = self.rows(self.made('healthy', '--steps', 2))
        path = self.written('twice', rows + rows)
        found = self.reported(path)
        self.assertIn('repeat the same work', found['why_not'])
        self.assertNotIn('150', ''.join(f"{p['share']:.2f}" for p in found['parts']))
        self.assertIn('ranks repeat the same work within one step', run('analyze', 'stragglers', path, check=0).err)

    def test_few_steps_that_differ_are_known(self):
        found = self.reported(self.made('short', '--fault', 'slow-step:1,1.5'))
        self.assertEqual([f['id'] for f in found['findings']], ['step.uneven'])
        self.assertIn('Step 1 takes 1.50× as long as step', found['findings'][0]['title_en'])
        self.assertEqual((found['findings'][0]['key'], found['findings'][0]['step']), ('all', 1))
        self.assertEqual(self.reported(self.made('even'))['findings'], [])

    def test_what_makes_one_of_two_steps_long_is_named(self):
        path = self.made('late', '--steps', 2, '--messages', '--seed', 4, '--fault', 'gc:150ms,0.04,2')
        found = self.reported(path)
        self.assertEqual([f['id'] for f in found['findings']], ['host.pauses'])
        pauses = found['findings'][0]
        self.assertEqual((pauses['places'], pauses['step']), ([{'kind': 'host', 'ranks': [2]}], 1))
        self.assertIn('Rank 2 started two cells 150\u202fms late', pauses['title_en'])
        self.assertAlmostEqual(pauses['lost_ns'] / 1e6, 150, delta=5)  # two pauses of 150 ms over two steps
        self.assertNotIn('within noise', found['closing_en'])  # the cause is reported once

    def test_a_step_that_a_cause_makes_long_is_told_once(self):
        for seed in (2, 4, 7):
            path = self.made('pauses', '--steps', 3, '--messages', '--seed', seed, '--fault', 'gc:60ms,0.12,2')
            with self.subTest(seed=seed):
                self.assertEqual([f['id'] for f in self.reported(path)['findings']], ['host.pauses'])

    def test_few_steps_do_not_deny_what_they_cannot_show(self):
        for steps, said in [(1, 'One step shows no problem. It cannot'), (3, '3 steps show no problem. They cannot')]:
            found = self.reported(self.made(f'few{steps}', '--steps', steps))
            self.assertEqual(found['findings'], [])
            self.assertTrue(found['closing_en'].startswith(said), found['closing_en'])
        self.assertTrue(self.reported(self.made('four', '--steps', 4))['closing_en'].startswith('No problem found'))

    def test_steps_that_were_left_out_are_not_called_healthy(self):
        path = self.made('whole', '--steps', 12)
        hole = self.written('hole', [r for r in self.rows(path) if not (r['rank'] == '2' and r['step'] in ('3', '4'))])
        closing = self.reported(hole)['closing_en']
        self.assertTrue(closing.startswith('The steps that all ranks recorded show no problem. 2 other steps'), closing)


class LongMessages(Limits):
    def late(self, late, steps=2, **words):
        return self.reported(self.written('late', fill_drain.rows(3, 6, steps, jitter=0.03, message_ms=lambda *at: 30 if late(*at) else 0.2, **words)))

    def test_one_long_message_of_a_short_run_is_no_cost_of_every_link(self):
        found = self.late(lambda a, b, step, mb: (a, b, step, mb) == (1, 2, 0, 4))
        self.assertEqual(found['findings'], [])
        self.assertIn('occasional late messages from stage 1 to stage 2', found['closing_en'])

    def test_late_messages_of_two_steps_are_named_by_their_link(self):
        at = {(0, 4), (1, 1), (1, 5)}
        found = self.late(lambda a, b, step, mb: (a, b) == (1, 2) and (step, mb) in at)
        self.assertEqual([(f['id'], f['key']) for f in found['findings']], [('message.tail', 'link:1-2')])

    def test_messages_late_at_one_place_of_most_steps_are_not_lost_packets(self):
        for steps in (2, 6):
            with self.subTest(steps=steps):
                found = self.late(lambda a, b, step, mb: (a, b, mb) == (1, 2, 4), steps)
                self.assertNotIn('message.tail', [f['id'] for f in found['findings']])

    def test_a_late_input_from_a_stage_that_was_not_read_was_not_ready(self):
        rows = fill_drain.rows(3, 4, 6, jitter=0.03, messages=False, message_ms=lambda *at: 800 if at == (0, 1, 1, 3) else 0.2)
        found = self.reported(self.written('lost', [row for row in rows if row['stage'] != 0]))['findings']
        self.assertEqual([f['id'] for f in found], ['step.outlier'])
        self.assertIn('its input came from stage 0, which was not read', found[0]['title_en'])
        self.assertEqual((found[0]['places'][0]['kind'], found[0]['places'][0]['from_stage']), ('link', 0))


class FewSteps(Limits):
    def test_work_that_all_replicas_share_is_one_sample(self):
        # Six replicas whose experts get the same tokens are one sample of a stage, not six.
        for seed in range(8):
            draw = random.Random(seed)
            work = {(stage, mb): max(0.5, draw.gauss(1, 0.25)) for stage in range(4) for mb in range(12)}
            rows = fill_drain.rows(4, 12, 1, lambda stage, step, mb, dp, work=work: work[stage, mb], replicas=6, jitter=0.005, seed=seed)
            with self.subTest(seed=seed):
                self.assertNotIn('stage.slow', [f['id'] for f in self.reported(self.written('shared', rows))['findings']])
        # A factor that one stage has in each cell proves it.
        rows = fill_drain.rows(4, 12, 1, lambda stage, step, mb, dp: 1.25 if stage == 2 else 1, replicas=6, jitter=0.05)
        self.assertIn('stage.slow', [f['id'] for f in self.reported(self.written('own', rows))['findings']])

    def test_a_replica_most_of_whose_ranks_are_slow_is_named_whole(self):
        draw = random.Random(5)
        work = {(stage, step, mb, dp): draw.gauss(1.7 if dp == 2 else 1, 0.15) for stage in range(3) for step in range(2) for mb in range(4) for dp in range(5)}
        work[0, 1, 0, 2] = work[0, 1, 2, 2] = 1.0  # two usual micro-batches, so that this rank alone is within noise
        found = self.reported(self.written('hot', fill_drain.rows(3, 4, 2, lambda *at: work[at], replicas=5)))['findings']
        self.assertEqual(found[0]['places'][0]['kind'], 'replicas')
        self.assertEqual(found[0]['places'][0]['ranks'], [6, 7, 8])


    def test_a_slow_rank_shows_beside_a_warm_up_step(self):
        def work(stage, step, mb, dp):
            return (3 if step == 0 else 1) * (1.4 if (stage, dp) == (1, 2) else 1)
        found = self.reported(self.written('warm', fill_drain.rows(3, 6, 2, work, replicas=4, jitter=0.05)))['findings']
        self.assertEqual({f['key'] for f in found}, {'rank:7', 'all'})
        self.assertIn('Step 0 takes', next(f['title_en'] for f in found if f['key'] == 'all'))

    def test_work_that_varies_proves_no_slow_stage(self):
        # Six steps whose means differ by chance: which of them are long on which stage means nothing.
        for seed in range(20):
            draw = random.Random(seed)
            work = {(stage, step, mb): max(0.4, draw.gauss(1, 0.33)) for stage in range(3) for step in range(6) for mb in range(6)}
            rows = fill_drain.rows(3, 6, 6, lambda stage, step, mb, dp, work=work: work[stage, step, mb], jitter=0.005, seed=seed)
            with self.subTest(seed=seed):
                self.assertNotIn('stage.slow', [f['id'] for f in self.reported(self.written('varies', rows))['findings']])


class LostStage(Limits):
    def test_the_warm_up_shows_a_last_stage_that_was_not_read(self):
        for micro_batches in (4, 6, 7):  # a first stage with few micro-batches runs all of its forwards first
            words = ['--stages', 6, '--micro-batches', micro_batches, '--steps', 6]
            path = self.written('lost', [r for r in self.rows(self.made('whole', *words)) if r['stage'] != '5'])
            found = self.reported(path)
            with self.subTest(micro_batches=micro_batches):
                self.assertIn('stages 0 to 4 of 6', found['run_en'])
                self.assertEqual(found['findings'], [])
        gpipe = self.made('gpipe', '--stages', 5, '--micro-batches', 4, schedule='fthenb')
        self.assertTrue(self.reported(gpipe)['run_en'].startswith('fthenb · 5 stages'))


class LastReplica(Limits):
    WORDS = ['--stages', 2, '--dp', 6, '--micro-batches', 3, '--jitter', 0.03, '--messages', '--reduce', 2, '--fault', 'slow-rank:3,1.16',
             '--fault', 'slow-rank:2,1.13']

    def test_one_step_shows_a_slow_replica_by_its_cells(self):
        # No step to compare with, but six replicas: the wait for this one is its ranks' and no finding of its own.
        for seed in (1, 6):
            with self.subTest(seed=seed):
                found = self.reported(self.made('slow', *self.WORDS, '--steps', 1, '--seed', seed, schedule='fthenb'))['findings']
                self.assertEqual([(f['id'], f['places'][0]['kind'], f['places'][0]['ranks']) for f in found], [('ranks.slow', 'replicas', [2, 3])])

    def test_the_wait_for_a_named_rank_is_counted_once(self):
        words = ['--stages', 3, *self.WORDS[2:6], *self.WORDS[6:8], '--messages', '--reduce', 2, '--fault', 'slow-rank:4,1.16']
        path = self.made('slow', *words, '--steps', 1, '--seed', 6, schedule='fthenb')
        found = {f['id']: f['lost_share'] for f in self.reported(path)['findings']}
        wait = next(p['share'] for p in self.reported(path)['parts'] if p['id'] == 'replicas')
        self.assertLess(sum(found.values()), 1.3 * wait, found)  # the mean wait holds the last replica's own, which is 0


class LateStarts(Limits):
    def test_rare_long_pauses_are_a_collector_at_once(self):
        for seed in (1, 2, 3, 4):
            with self.subTest(seed=seed):
                first = self.reported(self.made('gc', '--steps', 6, '--seed', seed, '--fault', 'gc:50ms,0.03'))['findings'][0]
                self.assertEqual(first['id'], 'host.pauses')
                self.assertIn('garbage collection', first['title_en'])

    def test_short_or_frequent_ones_are_not(self):
        short = self.reported(self.made('short', '--steps', 8, '--fault', 'gc:4ms,0.08'))['findings']
        self.assertEqual([f['id'] for f in short], ['host.pauses'])
        self.assertNotIn('garbage collection', short[0]['title_en'])
        often = self.reported(self.made('often', '--steps', 8, '--fault', 'gc:4ms,0.25'))['findings']
        self.assertEqual([f['id'] for f in often], ['host.late_starts'])
        self.assertIn('on 4 ranks', often[0]['detail_en'])

    def test_a_late_rank_is_no_slow_link(self):
        for form, how in {'plain': (), 'messages': ('--messages',), 'cells': ('--format', 'cells', '--messages')}.items():
            for rank in (1, 2):
                with self.subTest(form=form, rank=rank):
                    words = ['--latency', 0.3, '--steps', 6]
                    late = self.reported(self.made('late', *words, '--fault', f'late-launch:{rank},2ms', how=how))
                    well = self.reported(self.made('well', *words, how=how))
                    self.assertEqual([(f['id'], f['key']) for f in late['findings']], [('rank.late_launch', f'host:{rank}')])
                    lost = late['step_ns'] - well['step_ns']
                    self.assertAlmostEqual(late['findings'][0]['lost_ns'] / lost, 1, delta=0.05)

    def test_one_way_of_a_link_that_clocks_were_tied_by(self):
        # Gaps alone cannot show which of two directions is slow.
        found = self.reported(self.made('link', '--latency', 0.3, '--steps', 6, '--fault', 'slow-link:1,2,+4ms'))['findings']
        self.assertEqual([f['key'] for f in found], ['link:1-2'])
        self.assertIn('between stages 1 and 2', found[0]['title_en'])

    def test_messages_slow_on_all_links(self):
        found = self.reported(self.made('slow', '--latency', 3, '--steps', 6, how=('--messages',)))['findings']
        self.assertEqual([f['id'] for f in found], ['messages.slow'])
        self.assertIn('on every link', found[0]['title_en'])
        self.assertRegex(found[0]['detail_en'], r'(2\.9|3\.0)')

    def test_recorded_pipelines_of_torch(self):
        for name, ids in {'1f1b': {'messages.slow'}, '1f1b-shapes': {'messages.slow'}, '1f1b-two-replicas': {'messages.slow'},
                          'dualpipe-v': {'host.late_starts'}}.items():
            with self.subTest(name=name):
                found = self.reported(RECORDED / name)['findings']
                self.assertLessEqual(ids, {f['id'] for f in found})
                self.assertNotIn('garbage collection', ' '.join(f['title_en'] for f in found))
                self.assertNotIn('rank.late_launch', [f['id'] for f in found])

    def test_ranges_without_an_exchange_are_no_collectives(self):
        # UNSHARD and REDUCE_GRAD of a model that is not sharded: nothing was sent within them.
        kinds = run('sql', RECORDED / 'zbv', 'select distinct kind from cells', '--format', 'csv', '-q', check=0).out.split()
        self.assertIn('SF', kinds)
        self.assertNotIn('C', kinds)

    def test_data_that_a_first_rank_loads_is_between_steps(self):
        # Rank 1 enters its step at once and waits there, while rank 0 loads data.
        for rank, load_us in ((0, 40_000), (1, 100)):
            events = [{'ph': 'M', 'name': 'thread_name', 'pid': 1, 'tid': 1, 'args': {'name': 'main'}}]
            for step in range(6):
                at, add = 1_000_000 + step * 100_000, lambda name, cat, ts, dur, **args: events.append(
                    {'ph': 'X', 'name': name, 'cat': cat, 'pid': 1, 'tid': 1, 'ts': ts, 'dur': dur, 'args': args})
                add(f'ProfilerStep#{step}', 'user_annotation', at, 99_000)
                add('enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__', 'user_annotation', at + 10, load_us)
                add(f'PP:{rank}UNSHARD', 'user_annotation', at + load_us + 20, 15)
                for m in range(2):
                    f, b = at + 40_100 + rank * 5_000 + m * 5_000, at + 60_000 - rank * 6_000 + m * 10_000
                    for name, ts, dur in ((f'PP:{rank}F{m}', f, 4_800), (f'PP:{rank}B{m}', b, 5_800)):
                        add(name, 'user_annotation', ts, dur)
                        add('aten::mm', 'cpu_op', ts + 5, dur - 10)
                    ends = [('SEND_F', f + 4_810), ('RECV_B', b - 60)] if rank == 0 else [('RECV_F', f - 60), ('SEND_B', b + 5_810)]
                    for name, ts in ends:
                        add(f'PP:{rank}{name}{m}', 'user_annotation', ts, 50)
                        add('c10d::send' if 'SEND' in name else 'c10d::recv_', 'cpu_op', ts + 5, 30)
            trace = {'schemaVersion': 1, 'distributedInfo': {'backend': 'gloo', 'rank': rank, 'world_size': 2}, 'traceEvents': events}
            (self.dir / f'rank{rank}.json').write_text(json.dumps(trace), encoding='utf-8')
        found = self.reported(self.dir / 'rank0.json', self.dir / 'rank1.json')
        first = found['findings'][0]
        self.assertEqual((first['id'], first['places'][0]['ranks']), ('between.steps', [0]))
        self.assertIn('DataLoader', first['title_en'])

    @needs_shared
    def test_a_real_job_that_is_late_everywhere(self):
        found = self.reported(SHARED / 'pipeline_ops/megatronapp')['findings']
        # The first step is warm-up; the optimizer was not recorded, and is in the time between steps.
        self.assertEqual([f['id'] for f in found if f['priced']], ['stage.slow', 'step.outlier', 'host.late_starts', 'between.steps'])
        self.assertIn('The optimizer was not recorded', next(f for f in found if f['id'] == 'between.steps')['detail_en'])
        self.assertNotIn('garbage collection:', ' '.join(f['title_en'] for f in found))


class Stages(Limits):
    def test_weight_gradients_that_are_never_delayed(self):
        rows = []
        for r in self.rows(self.made('whole')):
            if r['optype'] != 'backward-compute':
                rows.append(r)
                continue
            half = float(r['duration']) / 2
            rows.append({**r, 'optype': 'backward-input-compute', 'duration': f'{half:.9f}'})
            rows.append({**r, 'optype': 'backward-weight-compute', 'start_ts': f"{float(r['start_ts']) + half:.9f}", 'duration': f'{half:.9f}'})
        reported = self.reported(self.written('split', rows))
        self.assertIn('schedule.undelayed', [f['id'] for f in reported['findings']])
        for schedule in ('zb-h1', 'zb-v', 'interleaved-zb'):
            delayed = self.reported(self.made(schedule, schedule=schedule))
            self.assertNotIn('schedule.undelayed', [f['id'] for f in delayed['findings']])

    def test_halves_of_pairs_are_compared_with_halves(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                path = self.made('dual', '--jitter', 0.05, '--steps', 5, '--seed', seed, schedule='dualpipe')
                self.assertEqual(self.reported(path)['findings'], [])

    def test_a_slow_stage_quotes_a_layout(self):
        first = self.reported(self.made('slow', '--steps', 6, '--fault', 'slow-stage:2,1.3'))['findings'][0]
        self.assertRegex(first['detail_en'], r'--pipeline-model-parallel-layout "Et\*\d')
        self.assertRegex(first['detail_zh'], r'--pipeline-model-parallel-layout "Et\*\d')
        first = self.reported(self.made('logs', '--steps', 6, '--fault', 'slow-stage:2,1.3', how=()))['findings'][0]
        for text in (first['detail_en'], first['detail_zh']):
            self.assertRegex(text, r'seg_method=\[0, \d')
            self.assertNotIn('Megatron', text)

    def test_no_minus_zero(self):
        rows = ['stage,rank,step,kind,start_us,dur_us,mb_id', '0,0,0,F,0,1000,0', '1,1,0,F,999.9,1000,0', '1,1,0,B,2000,1000,0', '0,0,0,B,3000,1000,0']
        path = self.dir / 'early.csv'
        path.write_text('\n'.join(rows) + '\n')
        for command in (['explain', path, '--align', 'never'], ['report', path, '--align', 'never', '-o', self.dir / 'r.html']):
            self.assertNotRegex(run(*command, '--trust-clocks', check=0).out, r'[-−]0\.0\D')


if __name__ == '__main__':
    unittest.main()
