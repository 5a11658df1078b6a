"""stageline schedule: names, sizes, orders from files, every form of output."""
import json
import unittest

from support import SHARED, Case, needs_shared, run

NAMES = ['fthenb', '1f1b', 'eager-1f1b', 'vpp', 'vpp-ep-overlap', 'bfs', 'bfs-unreversed', 'zb-h1', 'zb-h1-paddle', 'zb-h2', 'interleaved-zb', 'zb-v',
         'zbvpp', 'dualpipe', 'dualpipe-v', 'dualpipe-v-mindspeed']


def numbers(*args):
    return json.loads(run('schedule', *args, '--format', 'json', check=0).out)


class Schedule(Case):
    def test_all_names_are_there(self):
        listed = [line.split()[0] for line in run('help', 'schedules', check=0).out.splitlines() if line.startswith('  ') and line[2] != ' ']
        self.assertEqual(listed, NAMES)
        for name in NAMES:
            self.assertIn(name, run('schedule', name, check=0).out)
            run('simulate', name, '--steps', 1, '-o', self.dir / name, check=0)

    def test_torch_calls_them_by_its_own_names(self):
        for theirs, ours in (('GPipe', 'fthenb'), ('ScheduleGPipe', 'fthenb'), ('Schedule1F1B', '1f1b'), ('ScheduleInterleaved1F1B', 'vpp'), ('LoopedBFS', 'bfs'),
                             ('ScheduleInterleavedZeroBubble', 'interleaved-zb'), ('ZBVZeroBubble', 'zb-v'), ('ScheduleDualPipeV', 'dualpipe-v')):
            self.assertEqual(run('schedule', theirs, check=0).out, run('schedule', ours, check=0).out, theirs)

    def test_orders_come_back_from_both_forms(self):
        for name in NAMES:
            for form in ('csv', 'torch'):
                if (name, form) == ('dualpipe', 'torch'):
                    self.assertIn('one direction', run('schedule', name, '--format', form, check=2).err)
                    continue
                path = self.dir / f'{name}.{form}'
                run('schedule', name, '--format', form, '-o', path, check=0)
                made, read = numbers(name), numbers('--from-csv', path)
                for key in ('span_ns', 'span_bubble_ns', 'inner_bubble_ns', 'activations', 'layout', 'stages', 'micro_batches'):
                    self.assertEqual(made[key], read[key], (name, form, key))
                self.assertIsNone(read['published'])

    def test_orders_of_paddle_are_read(self):
        def written(name, chunks):
            lines = {}
            rows = run('schedule', name, '--stages', 4, '--micro-batches', 8, *(['--chunks', chunks] if chunks > 1 else []), '--format', 'csv', check=0).out.splitlines()[1:]
            for stage, _, kind, mb, chunk in (row.split(',') for row in rows):
                lines.setdefault(int(stage), []).append(f'{kind.lower()}{mb}' + (f'_vp{chunk}' if chunks > 1 else ''))
            return [';'.join(lines[stage]) + ';' for stage in range(4)]

        for name, chunks in (('1f1b', 1), ('vpp', 2)):
            made = numbers(name, '--stages', 4, '--micro-batches', 8, *(['--chunks', chunks] if chunks > 1 else []))
            for head in ('', 'PipelineParallel stage 0 '):
                path = self.write('order.txt', '\n'.join(head + line for line in written(name, chunks)) + '\n\n')
                read = numbers('--from-csv', path)
                for key in ('span_ns', 'activations', 'layout', 'stages', 'micro_batches'):
                    self.assertEqual(made[key], read[key], (name, head, key))
        for text, word in (('f0;f1;b0;bx;\n', 'not a micro-batch'), ('f0;f1;b0;\n', 'order.txt'), ('f0;b0;\nf0;\n', 'order.txt')):
            self.assertIn(word, run('schedule', '--from-csv', self.write('order.txt', text), check=2).err)

    @needs_shared
    def test_orders_that_paddle_returned(self):
        lines = (SHARED / 'sources/paddle/get_static_scheduler.txt').read_text().splitlines(True)
        for name, chunks in (('PipelineParallel', 1), ('PipelineParallelWithInterleave', 2)):
            path = self.write('order.txt', ''.join(line for line in lines if line.startswith(name + ' ')))
            made = numbers('vpp' if chunks > 1 else '1f1b', '--stages', 4, '--micro-batches', 8, *(['--chunks', chunks] if chunks > 1 else []))
            read = numbers('--from-csv', path)
            self.assertEqual([read[key] for key in ('span_ns', 'activations', 'stages')], [made[key] for key in ('span_ns', 'activations', 'stages')])

    def test_what_a_name_writes(self):
        csv, cells = self.dir / 'order.csv', self.dir / 'cells.csv'
        run('schedule', 'vpp', '-o', csv, check=0)
        self.assertEqual(numbers('--from-csv', csv)['span_ns'], numbers('vpp')['span_ns'])
        self.assertEqual(csv.read_text(), run('schedule', 'vpp', '--format', 'csv', check=0).out)
        run('schedule', 'vpp', '--to', 'csv', '-o', cells, check=0)
        self.assertIn('table of cells', run('schedule', '--from-csv', cells, check=2).err)
        run('schedule', 'vpp', '--format', 'json', '-o', self.dir / 'x.json', check=0)
        self.assertIn('span_ns', json.loads((self.dir / 'x.json').read_text()))
        for words in (['--format', 'text', '-o', self.dir / 'x.svg'], ['--format', 'json', '-o', self.dir / 'x.csv'], ['--format', 'csv', '--to', 'svg']):
            self.assertIn('--format', run('schedule', 'vpp', *words, check=2).err)
            self.assertFalse((self.dir / 'x.svg').exists())
        run('schedule', 'vpp', '-o', self.dir / 'y.svg', check=0)
        self.assertNotIn('in theory', (self.dir / 'y.svg').read_text())

    def test_published_bubbles_say_where_they_do_not_hold(self):
        for words, reason in ((['zb-v', '--stages', 8, '--micro-batches', 8], 'at least 15 micro-batches, here are 8; the order waits 14 ms'),
                              (['zb-h1', '--stages', 8, '--micro-batches', 4], 'at least 8 micro-batches, here are 4; the order waits 11 ms'),
                              (['bfs', '--micro-batches', 2], 'at least 4 micro-batches, here are 2; the order waits 15 ms'),
                              (['vpp', '--micro-batches', 6], 'a multiple of 4 micro-batches, here are 6'),
                              (['1f1b', '--latency', 1], 'without latency')):
            line = next(line for line in run('schedule', *words, check=0).out.splitlines() if line.startswith('published '))
            self.assertIn(reason, line)
            self.assertIs(numbers(*words)['published']['holds'], 'hold' not in line)

    def test_costs_and_latency(self):
        self.assertEqual(numbers('1f1b', '--cost', '1,2')['span_ns'], 33_000_000)
        self.assertEqual(numbers('1f1b', '--cost', '2us,1us,3us')['span_bubble_ns'], 18_000)
        self.assertEqual(numbers('eager-1f1b', '--micro-batches', 16, '--latency', 0.25)['span_bubble_ns'], 10_500_000)
        self.assertEqual(numbers('1f1b', '--micro-batches', 16, '--latency', 0.25)['span_bubble_ns'], 16_000_000)
        whole, saved = (numbers('dualpipe-v', '--cost', cost) for cost in ('1,1,1', '1,1,1,2.5'))
        self.assertLess(saved['span_ns'], whole['span_ns'])
        self.assertEqual(numbers('dualpipe-v-mindspeed', '--micro-batches', 10)['span_bubble_ns'], 12_000_000)
        self.assertEqual(numbers('dualpipe-v-mindspeed', '--micro-batches', 10, '--dw-detach')['span_bubble_ns'], 6_000_000)
        self.assertEqual(numbers('zbvpp')['activations'], 16)

    def test_drawings(self):
        text = run('schedule', '1f1b', '--stages', 2, '--micro-batches', 2, check=0).out
        self.assertIn('rank 0  F0 F1 ······B0─── ···B1───\nrank 1  ···F0 B0─── F1 B1─── ······\n', text)
        self.assertIn('too large', run('schedule', '1f1b', '--stages', 65, '--micro-batches', 65, check=0).out)
        for kind in ('svg', 'png', 'pdf', 'html', 'pftrace'):
            path = self.dir / f'out.{kind}'
            run('schedule', 'dualpipe', '-o', path, check=0)
            self.assertGreater(path.stat().st_size, 1000, kind)
        self.assertIn('\x1b[', run('schedule', '1f1b', '--color', 'always', check=0).out)

    def test_simulated_runs_are_recognised(self):
        for name in NAMES:
            run('simulate', name, '--micro-batches', 12, '--jitter', 0.1, '-o', self.dir / name, check=0)
            found = json.loads(run('info', self.dir / name, '--json', check=0).out)['schedule']
            self.assertEqual((found['name'], found['score'], found['equal_lists']), (name, 1, found['lists']))
            self.assertIn(f'schedule      {name}, 4 stages, 12 micro-batches', run('info', self.dir / name, check=0).out)
            table = run('analyze', 'schedule', self.dir / name, '--table', 'recognition', '--format', 'csv', '-q', check=0).out.splitlines()
            self.assertTrue(table[1].startswith(f'{name},1'), table[1])
            self.assertEqual(len(run('analyze', 'schedule', self.dir / name, '--table', 'divergence', '--format', 'csv', '-q', check=0).out.splitlines()), 1)

    def test_a_word_that_is_command_and_analysis(self):
        text = run('help', 'schedule', check=0).out
        self.assertIn('--from-csv', text)
        self.assertIn('divergence', text)

    def test_what_it_refuses(self):
        (self.dir / 'bad.csv').write_text('stage,index,kind,microbatch,chunk\n0,0,F,0,0\n0,0,F,x,0\n')
        for words, reason in [([], 'which schedule'), (['1f1'], '1f1b'), (['1f1b', '--chunks', 2], 'one chunk'), (['zb-v', '--chunks', 3], 'two chunks'),
                              (['1f1b', '--group', 2], '--group'), (['vpp', '--dw-detach'], 'dualpipe-v-mindspeed'), (['1f1b', '--plan-cost', '1,1,1,1'], 'zbvpp'),
                              (['zbvpp', '--plan-cost', '1,1'], '--plan-cost'), (['zbvpp', '--plan-cost', '0,1,1,1'], 'plan'), (['1f1b', '--cost', '1'], '--cost'),
                              (['1f1b', '--cost', '1,1,1,1,1'], '--cost'), (['1f1b', '--cost', '0,1'], '--cost'), (['1f1b', '--latency', '2h'], '--latency'),
                              (['dualpipe', '--stages', 3], 'even'), (['dualpipe', '--micro-batches', 7], 'even'), (['dualpipe-v', '--micro-batches', 7], 'two micro'),
                              (['1f1b', '--layout', 'v'], '--from-csv'), (['1f1b', '--from-csv', 'x'], 'no schedule'), (['--from-csv', self.dir / 'none'], 'none'),
                              (['--from-csv', self.dir / 'bad.csv'], 'bad.csv:3'), (['--from-csv', self.dir / 'bad.csv', '--stages', 4], 'sizes are in the file'),
                              (['1f1b', '--stages', 4096, '--micro-batches', 65536], '2^23'), (['1f1b', '-o', self.dir / 'x.nothing'], 'x.nothing'),
                              (['vpp', '--micro-batches', 5, '--group', 2], 'deadlocks'), (['1f1b', '--format', 'xml'], '--format')]:
            done = run('schedule', *words, check=2)
            self.assertIn(reason, done.err, words)
            self.assertEqual(done.out, '')


if __name__ == '__main__':
    unittest.main()
