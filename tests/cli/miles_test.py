"""miles' dashboard: phases of ranks, trajectories, and the one trajectory for which training waits."""
import csv
import io
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import miles
import torchtitan
from support import SHARED, Case, flaws, info, needs_shared, run

SAMPLE = SHARED / 'sources' / 'logs' / 'miles' / 'dashboard'


def rows(path, query):
    return list(csv.DictReader(io.StringIO(run('sql', path, query, '--format', 'csv', '-q', check=0).out)))


def explained(path):
    return json.loads(run('explain', path, '--format', 'json', check=0).out)


def tail_of(told):
    return next((f for f in told['findings'] if f['id'] == 'rollout.tail'), None)


def share_of(told, part):
    return next((p['share'] for p in told['parts'] if p['id'] == part), 0)


class MilesTest(Case):
    def made(self, name='run', **how):
        board = miles.Dashboard(**how)
        return board, board.write(self.dir / name)

    def test_phases_and_trajectories_are_what_the_lines_say(self):
        board, path = self.made(ranks=3)
        about = info(path)
        self.assertEqual((about['format'], about['ranks']), ('miles', 4))
        self.assertFalse([d for d in about['diagnostics'] if d['severity'] == 'loss'])
        self.assertEqual(flaws(about)['miles.open_phase']['count'], 1)
        first = min(p['t0'] for p in board.phases)
        got = sorted((int(r['rank']), r['name'], int(r['start_ns']), int(r['dur_ns'])) for r in rows(path, "SELECT rank, name, start_ns, dur_ns FROM slices WHERE name NOT LIKE 'ProfilerStep%'"))
        ns = lambda s: round((s - int(first)) * 1e6) * 1000  # whole µs are written
        want = [(rank, p['name'], ns(p['t0']) - ns(first), ns(p['t1']) - ns(p['t0'])) for p in board.phases if p['t1'] > 0
                for rank in ([3] if p['role'] != 'train' else p['gpus'])]
        ends = {e['sample_index']: e['ts'] for e in board.events if e['kind'] == 'attempt_end'}
        want += [(3, f'trajectory {e["sample_index"]}', ns(e['ts']) - ns(first), ns(ends[e['sample_index']]) - ns(e['ts'])) for e in board.events if e['kind'] == 'attempt_start']
        self.assertEqual(got, sorted(want))
        steps = rows(path, 'SELECT step, count(*) AS n FROM steps GROUP BY step')
        self.assertEqual([(r['step'], r['n']) for r in steps], [(str(k), '3') for k in range(4)])

    def test_one_long_trajectory_is_named_with_its_cost(self):
        board, path = self.made()
        told = explained(path)
        tail = tail_of(told)
        step, name, alone = max(board.tails, key=lambda t: t[2])
        self.assertEqual((tail['step'], tail['places']), (step, [{'kind': 'ranks', 'ranks': [4]}]))
        self.assertIn(f'“{name}” of rank 4', tail['detail_en'])
        self.assertIn(f'runs alone for the last {alone / 1e9:.1f}\u202fs', tail['detail_en'])
        # The last step ends with the sync of the weights, and the others where the next one begins.
        lengths = board.lengths_ns[:-1] + [board.lengths_ns[-1] - 100_000_000]
        share = sum(t[2] for t in board.tails) / sum(lengths)
        self.assertAlmostEqual(tail['lost_share'], share, places=6)
        self.assertAlmostEqual(share_of(told, 'phase-tail'), share, places=6)
        self.assertAlmostEqual(sum(p['share'] for p in told['parts']), 1, places=6)
        self.assertIn('Training waits for one long trajectory', run('explain', path, check=0).out)
        self.assertIn('训练在等待一条过长的轨迹', run('explain', path, '--lang', 'zh', check=0).out)

    def test_the_cost_is_what_the_run_would_be_shorter_without_it(self):
        _, path = self.made(steps=8, long_step='all', long_s=5)
        _, without = self.made('without', steps=8, long_s=0)
        apart = json.loads(run('diff', without, path, '--format', 'json').out)
        groups = {g['kind']: g['effect_ns'] for g in next(t['rows'] for t in apart['tables'] if t['name'] == 'groups')}
        self.assertEqual(round(groups['phase-tail'] / 1e6), 5000)
        self.assertLess(abs(groups.get('phase-wait', 0)), 1e6)

    def test_it_is_not_said_where_nobody_waits_for_it(self):
        _, path = self.made('async', asynchronous=True)  # training got its batch before the last trajectory ended
        told = explained(path)
        self.assertIsNone(tail_of(told))
        self.assertEqual(share_of(told, 'phase-tail'), 0)
        board, path = self.made('one')  # one after the other: none waits for another
        at = board.events[0]['ts']
        for k in range(0, len(board.events), 4):
            for event, later in zip(board.events[k:k + 4], (0, 0, 2, 2)):
                event['ts'] = at + later
            at += 2.5
        board.write(path)
        self.assertIsNone(tail_of(explained(path)))
        (path / 'trajectories.jsonl').unlink()  # nothing says how long each takes
        told = explained(path)
        self.assertIsNone(tail_of(told))
        self.assertGreater(share_of(told, 'phase-wait'), 0.3)

    def test_the_same_from_torchtitan_s_tasks(self):
        folder = self.dir / 'titan'
        folder.mkdir()
        generator = torchtitan.Log('generator', 0, 6200)
        trainer = torchtitan.Log('trainer', 0, 6000)
        for step in range(1, 6):
            began = generator.at = trainer.at
            for k in range(3):
                generator.begin('generate', step, f'Task-{3 * step + k}')
            for k, ms in enumerate((20, 30, 70)):
                generator.at = began + ms * 1000
                generator.end('generate', step, ms * 1000, f'Task-{3 * step + k}')
            trainer.begin('train_step', step)
            trainer.span('wait_for_training_batch', step, 72_000)
            trainer.span('forward_backward', step, 28_000)
            trainer.end('train_step', step, trainer.at - began)
            trainer.at += 10
        for log in (generator, trainer):
            (folder / log.name()).write_text(log.text())
        told = explained(folder)
        self.assertAlmostEqual(share_of(told, 'phase-tail'), 0.4, delta=0.001)
        self.assertAlmostEqual(tail_of(told)['lost_share'], 0.4, delta=0.001)
        self.assertIn('runs alone for the last 40.0\u202fms', tail_of(told)['detail_en'])

    def test_the_order_of_files_and_lines_does_not_matter(self):
        board, path = self.made()
        want = rows(path, 'SELECT rank, name, start_ns, dur_ns FROM slices ORDER BY 1, 3, 4, 2')
        draw = random.Random(7)
        for copy in range(6):
            folder = self.dir / f'copy{copy}'
            lines = [json.dumps(row) + '\n' for row in board.phases + board.events]
            draw.shuffle(lines)
            cut = draw.randint(0, len(lines))
            folder.mkdir()
            for name, some in (('a.jsonl', lines[:cut]), ('b.jsonl', lines[cut:])):
                (folder / name).write_text(''.join(some))
            self.assertEqual(rows(folder, 'SELECT rank, name, start_ns, dur_ns FROM slices ORDER BY 1, 3, 4, 2'), want, copy)

    def test_damage_is_counted(self):
        board, path = self.made()
        text = (path / 'phases/20260914_10.jsonl').read_text()
        log = self.dir / 'phases.jsonl'
        phase = next(p for p in board.phases if p['t1'] > 0 and p['role'] == 'train')
        bad = [{**phase, 't0': 'x'}, {**phase, 't0': 1e40}, {**phase, 't1': phase['t0'] - 1}, {**phase, 'name': ''}, {**phase, 'rank': 10**12}, {'x': 1}]
        log.write_text(text + ''.join(json.dumps(row) + '\n' for row in bad))
        said = flaws(info(log))
        self.assertEqual(said['miles.bad_line']['count'], len(bad))
        events = self.dir / 'events.jsonl'
        events.write_text(''.join(json.dumps(e) + '\n' for e in board.events[:-1]))  # one trajectory has no end
        self.assertEqual(flaws(info(events))['miles.unmatched_event']['count'], 1)
        events.write_text(json.dumps(board.events[0]) + '\n')
        self.assertIn('no whole trajectory', run('info', events, check=2).err)
        data = text.encode()
        for at in range(1, len(data), 997):
            log.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
            self.assertIn(run('info', log).returncode, (0, 2))

    @needs_shared
    def test_the_sample(self):
        told = explained(SAMPLE)
        events = [json.loads(line) for line in (SAMPLE / 'trajectories.jsonl').read_text().splitlines()]
        tails = []
        for step in range(4):
            ends = sorted((e['ts'], e['sample_index']) for e in events if e['kind'] == 'attempt_end' and e['weight_version'] == str(step))
            tails.append((ends[-1][0] - ends[-2][0], step, ends[-1][1]))
        alone, step, sample = max(tails)
        self.assertEqual(step, 2)
        tail = tail_of(told)
        self.assertEqual(tail['step'], 2)
        self.assertIn(f'“trajectory {sample}”', tail['detail_en'])
        self.assertIn(f'runs alone for the last {alone:.2f}\u202fs', tail['detail_en'])
        about = info(SAMPLE)
        self.assertEqual(flaws(about)['miles.open_phase']['count'], 1)
        self.assertFalse([d for d in about['diagnostics'] if d['severity'] == 'loss'])
        slow = next(f for f in told['findings'] if f['id'] == 'step.outlier')
        self.assertEqual(slow['step'], 2)


if __name__ == '__main__':
    unittest.main()
