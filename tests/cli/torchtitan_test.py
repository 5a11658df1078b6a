"""torchtitan's structured logs: exact lengths, steps and tags, tasks in lanes, sources with equal ranks, permuted and damaged lines."""
import csv
import io
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import torchtitan
from support import SHARED, Case, flaws, info, needs_shared, run

SAMPLES = SHARED / 'sources' / 'logs'


def rows(path, query):
    return list(csv.DictReader(io.StringIO(run('sql', path, query, '--format', 'csv', '-q', check=0).out)))


def spans(path):
    return sorted((int(r['rank']), r['name'], int(r['start_ns']), int(r['dur_ns'])) for r in rows(path, "SELECT rank, name, start_ns, dur_ns FROM slices WHERE name NOT LIKE 'ProfilerStep%'"))


class TorchtitanTest(Case):
    def test_spans_have_the_lengths_that_their_ends_say(self):
        made = torchtitan.write(self.dir / 'run')
        got = spans(made)
        first = min(start for _, _, start, _ in got)
        want = [(log.rank, *span) for log in torchtitan.run() for span in log.spans]
        origin = min(start for _, _, start, _ in want)
        failed = [s for s in got if s[1] == 'eval']
        self.assertEqual(len(failed), 2)  # the end of what failed is where it failed
        self.assertEqual(sorted((rank, name, start - first, dur) for rank, name, start, dur in got if name != 'eval'),
                         sorted((rank, name, start - origin, dur) for rank, name, start, dur in want))
        about = info(made)
        self.assertEqual((about['format'], about['ranks']), ('torchtitan', 2))
        self.assertEqual(flaws(about)['torchtitan.tagged_step']['count'], 1)
        self.assertEqual([r['n'] for r in rows(made, 'SELECT count(*) AS n FROM steps')], ['6'])
        self.assertFalse([d for d in about['diagnostics'] if d['severity'] == 'loss'])

    def test_no_advice_for_a_profiler_that_was_not_used(self):
        said = run('explain', torchtitan.write(self.dir / 'run'), check=0).out
        self.assertIn('No device work was recorded', said)
        self.assertNotIn('ProfilerActivity', said)

    def test_overlapping_tasks_have_lanes_of_their_own(self):
        made = torchtitan.write(self.dir / 'rl', rl=True)
        about = info(made)
        self.assertEqual(about['ranks'], 3)  # two trainers, and a generator that is rank 0 too
        self.assertEqual(flaws(about)['torchtitan.ranks_of_sources']['count'], 3)
        lanes = rows(made, "SELECT rank, name, count(DISTINCT lane) AS lanes, count(*) AS n FROM slices WHERE name IN ('generate', 'engine_loop') GROUP BY name")
        self.assertEqual({(r['name'], r['lanes'], r['n']) for r in lanes}, {('generate', '3', '6'), ('engine_loop', '1', '2')})

    def rl_run(self, name, wait_us, sync_us):
        """Two trainers whose step waits for a batch, trains, and sends its weights."""
        (self.dir / name).mkdir(exist_ok=True)
        for rank in range(2):
            log = torchtitan.Log('trainer', rank, 6000 + rank)

            def spans(step, lengths):
                for name, us in lengths:  # with gaps, since a span is longer than its whole microseconds
                    log.at += 2
                    log.span(name, step, 0 if isinstance(us, list) else us, lambda us=us: spans(step, us if isinstance(us, list) else []))
                    log.at += 2

            for step in range(1, 13):
                spans(step, [('step', [('wait_for_training_batch', wait_us + 100 * (step % 3)), ('forward_backward', [('model_forward', 10_000), ('model_backward', 20_000)]),
                                       ('optim_step', 5000), ('push_model_state_dict', sync_us), ('other', 1000)])])
            (self.dir / name / log.name()).write_text(log.text())
        return self.dir / name

    def test_explain_and_diff_know_the_phases_of_a_step(self):
        fast, slow = self.rl_run('fast', 5_000, 4_000), self.rl_run('slow', 25_000, 4_000)
        told = json.loads(run('explain', slow, '--format', 'json', check=0).out)
        parts = {p['id']: p['share'] for p in told['parts']}
        step = 25_100 + 35_000 + 4_000 + 1000
        for part, us in (('phase-train', 35_000), ('phase-wait', 25_100), ('phase-sync', 4_000)):
            self.assertAlmostEqual(parts[part], us / step, delta=0.01, msg=part)
        self.assertAlmostEqual(sum(parts.values()), 1, places=6)
        waits = next(f for f in told['findings'] if f['id'] == 'phase.wait')
        self.assertEqual((waits['title_en'], bool(waits['title_zh'])), ('Training waits for rollouts', True))
        self.assertNotIn('phase.wait', [f['id'] for f in json.loads(run('explain', self.rl_run('none', 100, 4000), '--format', 'json', check=0).out)['findings']])
        apart = json.loads(run('diff', fast, slow, '--format', 'json').out)
        self.assertTrue(apart['beyond_noise'])
        first = self.groups(apart)[0]
        self.assertEqual((first['kind'], round(first['effect_ns'] / 1e6)), ('phase-wait', 20))
        sync = json.loads(run('diff', fast, self.rl_run('sync', 5_000, 14_000), '--format', 'json').out)
        items = next(t['rows'] for t in sync['tables'] if t['name'] == 'items')
        self.assertEqual((self.groups(sync)[0]['kind'], [(i['part'], i['name'], i['sure']) for i in items]), ('phase-sync', [('phase-sync', 'push_model_state_dict', 'yes')]))

    def groups(self, apart):
        return sorted(next(t['rows'] for t in apart['tables'] if t['name'] == 'groups'), key=lambda g: -abs(g['effect_ns']))

    def test_a_rank_without_a_log_is_named(self):
        made = torchtitan.write(self.dir / 'run', ranks=3)
        self.assertNotIn('torchtitan.missing_ranks', flaws(info(made)))
        (made / torchtitan.run(ranks=3)[1].name()).unlink()
        self.assertIn('training without a log: 1', flaws(info(made))['torchtitan.missing_ranks']['message'])

    def test_the_order_of_files_and_lines_does_not_matter(self):
        draw = random.Random(5)
        want = spans(torchtitan.write(self.dir / 'run'))
        logs = torchtitan.run()
        for copy in range(8):
            folder = self.dir / f'copy{copy}'
            folder.mkdir()
            lines = [line for log in logs for line in log.lines]
            draw.shuffle(lines)
            for k in range(draw.randint(1, 2)):  # processes may share a file
                (folder / f'{draw.randrange(10**6)}.jsonl').write_text('')
            for log, name in zip(logs, draw.sample(['b.jsonl', 'a.jsonl'], 2)):
                (folder / name).write_text('\n'.join(line for line in lines if line in set(log.lines)) + '\n')
            self.assertEqual(spans(folder), want)
        together = self.dir / 'together.jsonl'
        together.write_text(''.join(log.text() for log in logs))
        self.assertEqual(spans(together), want)

    def test_a_profile_beside_the_logs_is_read_by_its_own_reader(self):
        made = torchtitan.write(self.dir / 'out' / 'structured_logs')
        traces = self.dir / 'out' / 'profiling'
        traces.mkdir()
        (traces / 'rank0_trace.json').write_text(json.dumps({'schemaVersion': 1, 'traceEvents': [
            {'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::mm', 'pid': 1, 'tid': 1, 'ts': 1000.0, 'dur': 5.0},
            {'ph': 'X', 'cat': 'user_annotation', 'name': 'ProfilerStep#3', 'pid': 1, 'tid': 1, 'ts': 999.0, 'dur': 9.0}]}))
        self.assertEqual(info(self.dir / 'out')['format'], 'kineto')
        self.assertEqual(info(made)['format'], 'torchtitan')

    def test_damage_is_counted(self):
        text = torchtitan.trainer(0).text()
        path = self.dir / 'a.jsonl'
        path.write_text(text[:-200])
        self.assertEqual(info(path)['format'], 'torchtitan')
        lines = text.splitlines()
        good = json.loads(lines[2])
        bad = [{**good, 'time_us': '1e30'}, {**good, 'time_us': 10**25}, {**good, 'log_type_name': 7}, {**good, 'step_tags': 'x'}, {**good, 'log_type_name': 'optim_end', 'value': 1e300}]
        path.write_text('\n'.join([*lines, *map(json.dumps, bad), '{"x": 1}', 'word']) + '\n')
        said = flaws(info(path))
        self.assertEqual(said['torchtitan.bad_line']['count'], 4)
        self.assertEqual(said['torchtitan.unmatched_end']['count'], 1)
        path.write_text(lines[0] + '\n')
        self.assertIn('no span', run('info', path, check=2).err)
        data = text.encode()
        for at in range(1, len(data), 2111):
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
            self.assertIn(run('info', path).returncode, (0, 2))

    @needs_shared
    def test_recorded_logs_agree_with_what_was_measured_inside(self):
        truth = json.loads((SAMPLES / 'torchtitan.truth.json').read_text())['spans']
        got = {}
        for r in rows(SAMPLES / 'torchtitan', 'SELECT s.rank AS rank, t.step AS step, s.name AS name, sum(s.dur_ns) AS ns FROM slices s JOIN steps t ON s.rank = t.rank AND '
                      's.start_ns >= t.start_ns AND s.end_ns <= t.end_ns GROUP BY 1, 2, 3'):
            got[int(r['rank']), int(r['step']), r['name']] = int(r['ns'])
        for one in truth:
            for name, ms in one.items():
                if name not in ('rank', 'step'):
                    # Two spans a step, each some 30 µs of the logger itself longer than what it encloses.
                    self.assertAlmostEqual(got[one['rank'], one['step'], name] / 1e6, ms, delta=0.5, msg=(one['rank'], one['step'], name))
        self.assertEqual(info(SAMPLES / 'torchtitan_rl')['ranks'], 3)


if __name__ == '__main__':
    unittest.main()
