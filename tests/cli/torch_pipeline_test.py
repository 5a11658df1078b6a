"""Pipelines in PyTorch profiler traces as a user meets them: rules, options, every output, and traces without a pipeline."""
import csv
import io
import json
import pathlib
import re
import sys
import unittest

from support import Case, flaws, info, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import kineto  # noqa: E402

RECORDED = pathlib.Path(__file__).resolve().parents[1] / 'torch' / 'recorded' / 'pipelines'
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / 'golden' / 'readers'


def cells(*args):
    rows = csv.DictReader(io.StringIO(run('export', *args, '--to', 'csv', '-o', '-', '-q', check=0).out))
    return [row for row in rows]


def labels(rows, rank, step):
    return ' '.join(r['kind'] + r['micro_batch'] for r in rows if (r['rank'], r['step']) == (str(rank), str(step)) and r['kind'] in 'FBIW')


class Waiting(Case):
    def test_time_in_sends_and_receives_is_not_called_unexplained(self):
        for name in ('zbv', 'dualpipe-v', '1f1b', '1f1b-two-replicas'):
            tables = json.loads(run('analyze', 'theory', RECORDED / name, '--align', 'never', '--format', 'json', '-q', check=0).out)['tables']
            loss = {row['part']: row['mean_ns'] for row in tables[0]['rows']}
            self.assertGreater(loss['blocked in messages'] + loss['messages'], 4 * loss['unexplained gaps'], name)
            parts = sum(ns for part, ns in loss.items() if part != 'span')
            self.assertAlmostEqual(parts, loss['span'], delta=10)
        words = run('report', RECORDED / 'zbv', '-o', self.dir / 'zbv.html', '--align', 'never', '--fail-on', 'schedule.late', check=1).out
        self.assertNotIn('Blocking sends and receives', words)  # waiting: asked for by name, no cause of the list
        self.assertNotIn('Unexplained late starts', words)
        self.assertNotIn('rank.slow', run('report', RECORDED / '1f1b-two-replicas', '-o', self.dir / 'two.html', '--align', 'never', check=0).out)


class Cells(Case):
    def test_the_same_run_named_in_three_ways_has_the_same_cells(self):
        named = {}
        for case in ('pipeline', 'numbers', 'megatron'):
            rows = cells(GOLDEN / f'kineto-{case}' / 'input')
            named[case] = [(r['rank'], r['step'], r['kind'], r['micro_batch'], r['start_ns'], r['dur_ns']) for r in rows if r['kind'] in 'FB']
        self.assertEqual(len(named['pipeline']), 24)
        self.assertEqual(named['pipeline'], named['numbers'])
        # Frames cost the host other time than annotations: the same order, not the same instants.
        self.assertEqual([cell[:4] for cell in named['pipeline']], [cell[:4] for cell in named['megatron']])

    def test_the_generator_and_the_program_agree(self):
        folder = self.dir / 'run'
        kineto.generate(['--shape', 'pipeline', '--notes', 'actions', '--ranks', 4, '--micro-batches', 6, '--steps', 2, '-o', folder])
        truth = json.loads((folder / 'truth.json').read_text())
        (folder / 'truth.json').unlink()
        found = info(folder)
        self.assertEqual((found['stages'], found['micro_batches'], found['steps'], found['chunks']), (4, 6, 2, 1))
        self.assertEqual(labels(cells(folder), 0, min(int(r['step']) for r in cells(folder))), 'F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5')
        self.assertTrue(truth)

    def test_every_output_takes_them(self):
        source = GOLDEN / 'kineto-pipeline' / 'input'
        for name in ('out.svg', 'out.png', 'out.pdf', 'out.json', 'out.csv', 'out.pftrace', 'out.sqlite'):
            self.assertIn('cells', run('export', source, '-o', (self.dir / name), check=0).err, name)
        done = run('report', source, '-o', (self.dir / 'out.html'), '--fail-on', 'bubble', check=1)
        # Waiting may be requested by name and does not count as a finding: the report lists the same findings as
        # explain.
        listed = [line for line in run('explain', source, check=0).out.splitlines() if line[:1].isdigit() and '. ' in line[:4]]
        self.assertNotIn('Ranks wait', done.out)
        self.assertEqual([line for line in done.out.splitlines() if line[:1].isdigit() and '. ' in line[:4]], listed)
        both = run('analyze', 'pipeline-summary,temporal-breakdown', source, check=0).out
        self.assertIn('span bubble', both)
        self.assertIn('idle', both)

    def test_cells_do_not_hide_the_profile(self):
        # DeepSeek's shape: its cells fill the time, and the activity of the devices within them is listed separately.
        kineto.generate(['--shape', 'dualpipe', '-o', self.dir / 'pair', '--format', 'json'])
        reported = json.loads(run('explain', self.dir / 'pair' / 'train.json', '--format', 'json', check=0).out)
        self.assertIn('comm', {part['id'] for part in reported['device_parts']})
        self.assertAlmostEqual(sum(part['share'] for part in reported['device_parts']), 1, places=6)
        run('export', self.dir / 'pair' / 'train.json', '-o', self.dir / 'out.pftrace', check=0)
        written = (self.dir / 'out.pftrace').read_bytes()
        for name in (b'F&B', b'deep_ep::internode::dispatch', b'cudaLaunchKernel', b'MoEFunction'):
            self.assertIn(name, written)
        # JSON has the cells alone, and says how many slices it lacks.
        found = info(self.dir / 'pair' / 'train.json')
        said = run('export', self.dir / 'pair' / 'train.json', '-o', self.dir / 'out.json', check=0).err
        beside = int(re.search(r'cells only; (\d+) other slices are not in this file', said.replace('\u202f', ''))[1])
        # A cell has its slice, or shares one with another.
        self.assertTrue(found['slices'] - found['cells'] <= beside < found['slices'], beside)

    def test_without_a_device_nothing_is_said_of_devices_time(self):
        kineto.generate(['--shape', 'pipeline', '--notes', 'actions', '--ranks', 4, '--micro-batches', 6, '-o', self.dir / 'host', '--format', 'json'])
        for path in (self.dir / 'host').glob('*.json'):
            recording = json.loads(path.read_text())
            if 'traceEvents' not in recording:
                continue
            recording['traceEvents'] = [e for e in recording['traceEvents'] if e.get('cat') not in ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation', 'ac2g')]
            path.write_text(json.dumps(recording))
        reported = json.loads(run('explain', self.dir / 'host', '--format', 'json', '-q', check=0).out)
        self.assertEqual(reported['device_parts'], [])
        self.assertAlmostEqual(sum(part['share'] for part in reported['host_parts']), 1, places=6)
        said = run('explain', self.dir / 'host', '-q', check=0).out
        self.assertNotIn('Device time in', said)
        self.assertIn('no device was recorded', said)

    def test_filters_choose_cells_and_slices(self):
        source = GOLDEN / 'kineto-pipeline' / 'input'
        everything = cells(source)
        steps = sorted({r['step'] for r in everything})
        self.assertEqual({r['step'] for r in cells(source, '--steps', steps[1])}, {steps[1]})
        one = cells(source, '--ranks', '1')
        self.assertEqual({r['rank'] for r in one}, {'1'})
        self.assertEqual([r for r in everything if r['rank'] == '1'], one)
        self.assertEqual(info(source, '--ranks', '1')['slices'], info(GOLDEN / 'kineto-pipeline/input/rank-1.pt.trace.json.gz')['slices'])

    def test_off_and_without_a_pipeline_the_trace_is_a_profile(self):
        self.assertEqual(info(GOLDEN / 'kineto-pipeline' / 'input', '--cells', 'off')['cells'], 0)
        plain = info(GOLDEN / 'kineto' / 'input')
        self.assertEqual((plain['cells'], plain['stages']), (0, None))
        run('export', GOLDEN / 'kineto' / 'input', '--to', 'svg', '-o', (self.dir / 'x.svg'), check=0)
        self.assertIn('<title>input</title>', (self.dir / 'x.svg').read_text())
        reported = run('info', GOLDEN / 'kineto' / 'input', '--cells', 'annotations', check=0).out
        self.assertIn('cells.none', reported)


class Rules(Case):
    def test_the_shipped_rules_are_a_file_of_rules(self):
        path = self.write('shipped.rules', run('help', 'cell-rules', check=0).out)
        source = GOLDEN / 'kineto-pipeline' / 'input'
        self.assertEqual(cells(source, '--cell-rules', path), cells(source))

    def test_rules_of_ones_own(self):
        path = self.write('mine.rules', '# the backward is called W\nannotation F PP:{stage}F{mb}\nannotation W PP:{stage}B{mb}\n')
        source = GOLDEN / 'kineto-pipeline' / 'input'
        renamed = [r['kind'] for r in cells(source, '--cell-rules', path) if r['kind'] in 'FBW']
        self.assertEqual(renamed, [{'F': 'F', 'B': 'W'}[r['kind']] for r in cells(source) if r['kind'] in 'FB'])

    def test_a_wrong_rule_says_where(self):
        path = self.write('wrong.rules', 'annotation F a{mb}\n\nannotation Z b\n')
        done = run('info', GOLDEN / 'kineto' / 'input', '--cell-rules', path, check=2)
        self.assertIn('wrong.rules:3', done.err)
        self.assertIn('"Z"', done.err)
        run('info', GOLDEN / 'kineto' / 'input', '--cell-rules', (self.dir / 'none'), check=2)


class Layout(Case):
    def test_options_that_contradict_or_miss_something(self):
        source = GOLDEN / 'kineto-pipeline' / 'input'
        self.assertIn('--pp', run('info', source, '--tp', 2, check=2).err)
        self.assertIn('two numbers', run('info', source, '--pp', 2, '--stages', 4, check=2).err)
        self.assertIn('leaves out tp', run('info', source, '--pp', 2, '--tp', 2, '--order', 'dp-pp', check=2).err)
        run('info', source, '--pp', 2, '--order', 'dp-pp', check=0)
        self.assertIn('--cells is auto, off', run('info', source, '--cells', 'none', check=2).err)
        self.assertEqual(run('info', source, '--pp', 2, '--json', check=0).out, run('info', source, '--stages', 2, '--json', check=0).out)

    def test_an_order_holds_for_every_format(self):
        folder = self.dir / 'logs'
        run('simulate', '1f1b', '--stages', 2, '--dp', 2, '--format', 'cells', '-o', folder, check=0)
        for order, stages in (('tp-dp-pp', ['0', '0', '1', '1']), ('tp-pp-dp', ['0', '1', '0', '1'])):
            rows = cells(folder / 'cells.csv', '--pp', 2, '--dp', 2, '--order', order)
            of_rank = {r['rank']: r['stage'] for r in rows}
            self.assertEqual([of_rank[str(r)] for r in range(4)], stages, order)


if __name__ == '__main__':
    unittest.main()
