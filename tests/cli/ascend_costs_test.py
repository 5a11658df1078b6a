"""Ascend profiles with one planted cost each: the finding that names it, its price against the run without it, and what is said beside it."""
import contextlib
import csv
import json
import sqlite3
import sys
import unittest

from support import SOURCE, Case, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import ascend_costs as gen  # noqa: E402

# plant: finding, what a step takes longer than without it (µs)
COSTS = {'aicpu': ('compute.aicpu', 2000), 'few-cores': ('compute.few_cores', 2400 * (1 - 6 / 24)),
         'half-cores': ('compute.few_cores', gen.PRODUCTS * gen.PRODUCT_US / 2), 'collector': ('host.collector', 10_000),
         'compile': ('host.blocked', 10_000), 'changing': ('host.blocked', 10_000), 'allocator': ('host.allocator', 9000), 'busy': ('host.busy', 8000)}


class AscendCostsTest(Case):
    def make(self, plant):
        if not (self.dir / plant).exists():
            gen.write(self.dir / plant, plant)
        return self.dir / plant

    def findings(self, plant):
        return json.loads(run('explain', self.make(plant), '--json', '-q', check=0).out)['findings']

    def rows(self, analysis, table, *options):
        out = run('analyze', analysis, self.dir / 'flops', '--format', 'csv', '--table', table, '-q', *options, check=0).out
        return list(csv.DictReader(out.splitlines()))

    def test_each_cost_is_found_at_its_price_and_nothing_without_it(self):
        self.assertEqual(self.findings('none'), [])
        for plant, (finding, us) in COSTS.items():
            with self.subTest(plant):
                first = self.findings(plant)[0]
                self.assertEqual(first['id'], finding)
                self.assertAlmostEqual(first['lost_ns'] / 1000 / us, 1, delta=0.03)

    def test_unaligned_sizes_that_take_longer_are_found(self):
        found = [x for x in self.findings('unaligned') if x['id'] == 'comm.unaligned']
        self.assertEqual(len(found), 1)
        self.assertAlmostEqual(found[0]['lost_ns'] / 1000 / (gen.PRODUCTS / 4 * gen.LONGER_US), 1, delta=0.05)
        self.assertNotIn('comm.unaligned', [x['id'] for x in self.findings('aligned')])

    def test_products_of_odd_axes_are_found_where_they_are_slower_for_their_work(self):
        found = [x for x in self.findings('slow-axes') if x['id'] == 'compute.misaligned']
        self.assertEqual(len(found), 1)
        us = gen.PRODUCTS / 2 * gen.PRODUCT_US * gen.ODD / gen.AXIS * (gen.SLOWER - 1)
        self.assertAlmostEqual(found[0]['lost_ns'] / 1000 / us, 1, delta=0.02)
        self.assertIn('1024,1000;1000,1024', found[0]['title_en'])
        self.assertIn('1.50× as long for the same work', found[0]['detail_en'])
        self.assertIn({'kind': 'operator', 'name': 'aten::mm'}, [{k: p.get(k) for k in ('kind', 'name')} for p in found[0]['places']])
        for plant in ('odd-axes', 'padded', 'none'):
            self.assertNotIn('compute.misaligned', [x['id'] for x in self.findings(plant)], plant)

    def test_latency_of_collectives_that_computing_waits_for_has_a_price(self):
        found = [x for x in self.findings('latency') if x['id'] in ('comm.latency', 'comm.small')]
        self.assertEqual([x['id'] for x in found], ['comm.latency'])
        self.assertAlmostEqual(found[0]['lost_ns'] / 1000 / (gen.PRODUCTS / 2 * gen.LATENCY_US), 1, delta=0.05)
        self.assertIn(f'of which {gen.LATENCY_US}\u202fµs is latency', found[0]['detail_en'])
        for plant in ('no-latency', 'aligned'):
            self.assertNotIn('comm.latency', [x['id'] for x in self.findings(plant)], plant)

    def test_settings_are_reasons_beside_findings(self):
        for plant, said in (('blocking', 'ASCEND_LAUNCH_BLOCKING=1 is set'), ('busy', 'ASCEND_GLOBAL_LOG_LEVEL is below 3'),
                            ('allocator', 'PYTORCH_NPU_ALLOC_CONF does not have expandable_segments:True')):
            for other in ('blocking', 'busy', 'allocator'):
                with self.subTest(said, plant=other):
                    details = ' '.join(x['detail_en'] for x in self.findings(other))
                    (self.assertIn if other == plant else self.assertNotIn)(said, details)

    def test_compilation_says_whether_shapes_change(self):
        changing, fixed = (self.findings(plant)[0]['detail_en'] for plant in ('changing', 'compile'))
        self.assertIn('shapes change from step to step: 1, with most time in MatMulV2.', changing)
        self.assertIn('Keep the shapes of tensors fixed, and install', changing)
        self.assertIn('shapes change from step to step: 0.', fixed)
        self.assertIn("Install the operators' binaries", fixed)

    def test_recorded_flops_count_once_for_all_kernels_of_the_operator(self):
        self.make('flops')
        calls, us = 2 * gen.PRODUCTS, gen.PRODUCT_US + gen.CAST_US
        peak = gen.CORES * gen.MHZ * 8192 / 1e6
        row, = self.rows('roofline', 'roofline')
        self.assertEqual((row['operator'], row['shapes'], row['precision'], row['calls'], row['flops'], row['min_bytes'], row['bound']),
                         ('aten::mm', '4,8;8,16', 'BF16', str(calls), str(calls * gen.FLOPS), '', 'compute'))
        self.assertAlmostEqual(float(row['tflops']), gen.FLOPS / us / 1e6)
        self.assertAlmostEqual(float(row['roof_share']), gen.FLOPS / us / 1e6 / peak, places=4)
        peaks, = self.rows('roofline', 'roofline-peaks')
        self.assertEqual((float(peaks['peak_tflops']), peaks['source']), (round(peak, 4), 'recorded'))
        module, = self.rows('tb-module', 'modules', '--include-last-profiler-step')
        self.assertEqual((module['name'], int(module['device_ns'])), ('Linear', calls * us * 1000))
        self.assertAlmostEqual(float(module['peak_share']), gen.FLOPS / us / 1e6 / peak, places=4)
        use, = self.rows('mfu', 'mfu-operators')
        self.assertEqual((use['module'], use['operator']), ('Linear', 'aten::mm'))

    def test_msprof_gives_each_kernel_all_flops(self):
        self.make('flops')
        rows = self.rows('roofline', 'roofline', '--compat', 'msprof')
        self.assertEqual(len(rows), 2 * 2 * gen.PRODUCTS)
        tflops = {row['kernel_name']: float(row['actual_tflops']) for row in rows}
        self.assertEqual(tflops, {'Cast': gen.FLOPS / gen.CAST_US / 1e6, 'MatMul': gen.FLOPS / gen.PRODUCT_US / 1e6})
        self.assertEqual({row['output_shapes'] for row in rows}, {'4,16'})
        module, = self.rows('tb-module', 'module-totals', '--compat', 'msprof')
        self.assertEqual(module['avg_mfu'], '113.03%,28.26%')

    def test_kernels_are_written_as_the_profiler_does_and_read_back(self):
        folder = self.make('aicpu')
        run('export', folder, '--to', 'kernel-details', '-o', self.dir / 'kernel_details.csv', '-q', check=0)
        rows = list(csv.DictReader((self.dir / 'kernel_details.csv').read_text().splitlines()))
        self.assertEqual(len(rows), 2 * (gen.PRODUCTS + 1))
        self.assertEqual({(row['Type'], row['Accelerator Core'], row['Duration(us)'], row['Block Num']) for row in rows},
                         {('MatMulV2', 'AI_CORE', '400', '24'), ('NonZero', 'AI_CPU', '2000', 'N/A')})
        self.assertEqual([row['Wait Time(us)'] for row in rows[:3]], ['0', '0', '0'])
        out = [run('analyze', 'compute-op-sum', path, '--table', 'compute-ops', '--format', 'csv', '-q', check=0).out
               for path in (folder, self.dir / 'kernel_details.csv')]
        self.assertEqual(*out)

    def items(self, a, b, by):
        out = run('diff', a, b, '--by', by, '--table', 'items', '--format', 'csv', '-q', check=0).out
        return {row['name']: row for row in csv.DictReader(out.splitlines()) if row['part'] == 'compute'}

    def test_two_runs_are_compared_by_class_and_by_module(self):
        none, aicpu, flops = (self.make(plant) for plant in ('none', 'aicpu', 'flops'))
        rows = self.items(none, aicpu, 'class')
        self.assertEqual({name: int(row['effect_ns']) for name, row in rows.items()}, {'matmul': 0, 'other kernels': 2_000_000})
        rows = self.items(none, flops, 'class')
        self.assertEqual({name: int(row['effect_ns']) for name, row in rows.items()},
                         {'matmul': 0, 'cast, copy and transpose': gen.PRODUCTS * gen.CAST_US * 1000})
        rows = self.items(none, flops, 'module')
        product = gen.PRODUCTS * gen.PRODUCT_US * 1000
        self.assertEqual({name: (int(row['a_ns']), int(row['b_ns'])) for name, row in rows.items()},
                         {'outside of modules': (product, 0), 'Linear': (0, product + gen.PRODUCTS * gen.CAST_US * 1000)})
        said = run('diff', none, none, '--by', 'layer', check=2)
        self.assertIn('by operator, class or module', said.err)

    def test_a_run_with_steps_is_compared_as_a_whole_with_one_without(self):
        flops, bare = self.make('flops'), self.dir / 'bare'
        gen.write(bare, 'flops')
        for path in bare.glob('*/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler*.db'):
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                db.execute('DELETE FROM STEP_TIME')
        said = run('diff', flops, bare, '-q', check=0).out
        self.assertIn('only one of the runs has steps, so whole recordings are compared', ' '.join(said.split()))
        row = self.items(flops, bare, 'module')['Linear']
        self.assertEqual({int(row[side]) for side in ('a_ns', 'b_ns')}, {2 * gen.PRODUCTS * (gen.PRODUCT_US + gen.CAST_US) * 1000})

    def test_parts_of_two_runs(self):
        paths = [self.make(plant) for plant in ('none', 'aicpu')]
        out = run('analyze', 'cluster-time-diff', '--control', paths[0], '--test', paths[1], '--format', 'csv', '-q', check=0).out
        rows = {row['part']: row for row in csv.DictReader(out.splitlines())}
        self.assertEqual([(row['control_steps'], row['test_steps']) for row in rows.values()], [('2', '2')] * 5)
        self.assertEqual({part: int(row['diff_ns']) for part, row in rows.items()},
                         {'span': 2_000_000, 'computing': 2_000_000, 'exposed communication': 0, 'exposed copies': 0, 'free': 0})


if __name__ == '__main__':
    unittest.main()
