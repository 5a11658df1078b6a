"""stageline plan as a user sees it: forms, bytes of other tools, prices that come back, refusals, and plans from simulated runs."""
import csv
import json
import re
import unittest

from support import SHARED, Case, needs_shared, run

LLAMA = {'model_type': 'llama', 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8,
         'intermediate_size': 14336, 'vocab_size': 128256}


def rows(name):
    with open(SHARED / 'planner' / name) as file:
        return list(csv.DictReader(line for line in file if not line.startswith('#')))


class Plan(Case):
    def model(self, value, name='config.json'):
        path = self.dir / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def ask(self, model, *flags, check=0):
        path = model if not isinstance(model, (dict, str)) else self.model(model)
        return json.loads(run('plan', path, '--json', *flags, check=check).out)

    def test_forms_agree(self):
        path = self.model(LLAMA)
        flags = ['--gpus', 16, '--memory', '80GiB', '--seq', 8192, '--global-batch', 64, '--top', 3]
        found = self.ask(path, *flags)
        self.assertEqual(found['schema'], 'stageline-plan-1')
        self.assertEqual(found['model']['parameters'], 8030261248)
        steps = [plan['step_ns'] for plan in found['plans']]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual(len(steps), 3)
        text = run('plan', path, *flags, check=0).out
        self.assertIn('What to type for ', text)
        best = found['plans'][0]
        self.assertIn(f'tp {best["tp"]} · pp {best["pp"]} · dp {best["dp"]}', text)
        table = list(csv.DictReader(run('plan', path, *flags, '--format', 'csv', check=0).out.splitlines()))
        self.assertEqual([int(row['step_ns']) for row in table], steps)
        self.assertIn('每步', run('plan', path, *flags, '--lang', 'zh', check=0).out)
        for plan in found['plans']:
            for stage in plan['stages']:
                parts = ('parameters', 'gradients', 'optimizer', 'activations', 'recompute', 'head', 'scratch', 'transient', 'other')
                self.assertAlmostEqual(sum(stage[part] for part in parts), stage['peak'], delta=len(parts))
            self.assertLessEqual(plan['needed_bytes'], 80 << 30)
            self.assertGreaterEqual(plan['gap'], 0)

    def test_the_same_answer_with_any_number_of_threads(self):
        flags = ['--gpus', 64, '--memory', '80GiB', '--seq', 8192, '--global-batch', 256, '--framework', 'torchtitan']
        first = self.ask(LLAMA, *flags, '--threads', 1)
        self.assertEqual(first, self.ask(LLAMA, *flags, '--threads', 2))
        self.assertEqual(first, self.ask(LLAMA, *flags, '--threads', 2))

    def test_a_plan_prices_itself_again(self):
        flags = ['--gpus', 16, '--memory', '50GiB', '--seq', 8192, '--global-batch', 64]
        for framework in ('any', 'megatron', 'torchtitan', 'paddle'):
            best = self.ask(LLAMA, *flags, '--framework', framework, '--pp', '4,8', '--recompute', 'full')['plans'][0]
            again = self.ask(LLAMA, *flags, '--framework', framework, '--recompute', ','.join(str(r['layers']) for r in best['recompute']),
                             '--split', ','.join(map(str, best['layers'])), *[word for key, flag in (
                                 ('tp', 'tp'), ('pp', 'pp'), ('micro_batch_size', 'micro-batch-size'), ('chunks', 'chunks'),
                                 ('schedule', 'schedule')) for word in (f'--{flag}', best[key])])['plans'][0]
            for key in ('step_ns', 'span_ns', 'peak_bytes', 'stages', 'layers', 'recompute'):
                self.assertEqual(best[key], again[key], (framework, key))

    def test_more_memory_is_never_slower_and_a_plan_fits_what_it_needs(self):
        flags = ['--gpus', 8, '--seq', 8192, '--global-batch', 32, '--pp', '2,4', '--schedule', '1f1b']
        last = None
        for gib in (24, 30, 40, 60, 80):
            found = self.ask(LLAMA, *flags, '--memory', f'{gib}GiB', check=None)
            if not found['plans']:
                self.assertIsNone(last)
                continue
            best = found['plans'][0]
            if last is not None:
                self.assertLessEqual(best['step_ns'], last)
            last = best['step_ns']
            same = self.ask(LLAMA, *flags, '--memory', f'{best["needed_bytes"] + 1}B')['plans'][0]
            self.assertEqual(same['step_ns'], best['step_ns'])
        self.assertIsNotNone(last)

    def test_recompute_none_is_among_auto(self):
        flags = ['--gpus', 16, '--memory', '80GiB', '--seq', 8192, '--global-batch', 64]
        self.assertLessEqual(self.ask(LLAMA, *flags)['plans'][0]['step_ns'],
                             self.ask(LLAMA, *flags, '--recompute', 'none')['plans'][0]['step_ns'])

    def test_nothing_fits_says_why_in_bytes(self):
        flags = ['--gpus', 4, '--memory', '20GiB', '--seq', 8192, '--global-batch', 8]
        found = self.ask(LLAMA, *flags, check=1)
        why = found['infeasible']
        self.assertEqual(found['plans'], [])
        self.assertGreater(why['excess_bytes'], 0)
        self.assertTrue(why['fixes'])
        for fix in why['fixes']:
            self.assertLessEqual(fix['needed'], 20 << 30)
        text = run('plan', self.model(LLAMA), *flags, check=1).out
        self.assertIn('Nothing fits', text)
        self.assertIn(f'With {why["fixes"][0]["change"]} it fits', text)

    def test_emit(self):
        flags = ['--gpus', 64, '--memory', '80GiB', '--seq', 8192, '--global-batch', 64, '--pp', 8, '--schedule', '1f1b']
        for framework, words in (('megatron', '--pipeline-model-parallel-size 8'), ('mindspeed', '--pipeline-model-parallel-size 8'),
                                 ('torchtitan', 'pipeline_parallel_degree 8'), ('paddle', 'seg_method=[0'), ('deepspeed', 'partition_method')):
            text = run('plan', self.model(LLAMA), *flags, '--framework', framework, '--emit', framework, check=0).out
            self.assertIn(words, text, framework)
            self.assertTrue(text.startswith('# '), framework)
        found = self.ask(LLAMA, *flags, '--framework', 'megatron')['plans'][0]
        layout = re.search(r'layout "([^"]*)"', found['emit']['megatron'])
        if layout:
            self.assertEqual(layout[1].count('|') > 0, True)
        self.assertEqual(run('plan', self.model(LLAMA), *flags, '--emit', 'nothing').returncode, 2)

    @needs_shared
    def test_other_tools_to_the_byte(self):
        models = json.loads((SHARED / 'planner' / 'models.json').read_text())['megatron']
        for tool in ('megatron', 'bridge'):
            for row in rows(f'{tool}_estimator.csv')[::4]:
                sizes = ['--tp', row['tp'], '--pp', row['pp'], '--cp', row['cp'], '--ep', row['ep'], '--etp', row['etp'], '--gpus', row['world'],
                         '--seq', row['seq'], '--micro-batch-size', row['mbs'], '--micro-batches', row['m'],
                         '--optimizer', 'distributed' if row['distopt'] == '1' else 'replicated',
                         '--schedule', 'vpp' if int(row['vp']) else '1f1b', '--compare', '--framework', 'megatron']
                if int(row['vp']):
                    sizes += ['--chunks', row['vp']]
                found = self.ask(models[row['model']], *sizes)['compare'][tool]
                for key, value in found.items():
                    self.assertEqual(value, int(row[key]), (tool, row['case'], key))

    @needs_shared
    def test_measured_memory(self):
        models = json.loads((SHARED / 'planner' / 'models.json').read_text())['huggingface']
        for row in rows('measured_b200.csv'):
            model = {**models[row['model']], 'num_hidden_layers': int(row['layers'])}
            model.pop('num_nextn_predict_layers', None)
            if 'first_k_dense_replace' in model:
                model['first_k_dense_replace'] = 1
            found = self.ask(model, '--gpus', 8, *[word for key in ('tp', 'pp', 'cp', 'ep', 'seq') for word in (f'--{key}', row[key])],
                             '--micro-batch-size', row['mbs'], '--micro-batches', row['m'], '--schedule', '1f1b',
                             '--split', f'{int(row["layers"]) // int(row["pp"])}*{row["pp"]}')
            peak = found['plans'][0]['stages'][int(row['stage'])]['peak'] / 2**20
            self.assertAlmostEqual(peak / float(row['max_allocated_mib']), 1, delta=float(row['tolerance']))

    @needs_shared
    def test_the_published_layout_of_llama_405b(self):
        models = json.loads((SHARED / 'planner' / 'models.json').read_text())['huggingface']
        found = self.ask(models['llama3-405b'], '--gpus', 16384, '--memory', '79.6GiB', '--seq', 8192, '--global-batch', 2048,
                         '--optimizer', 'zero2', '--hardware', 'H100-SXM', '--top', 10)
        self.assertIn((8, 16, 128), [(p['tp'], p['pp'], p['dp']) for p in found['plans']])


class FromRun(Case):
    def simulate(self, name, schedule, *flags):
        run('simulate', schedule, '--format', 'cells', *flags, '-o', self.dir / name, check=0)
        return self.dir / name

    def plans(self, path, *flags):
        return json.loads(run('plan', '--from', path, '--json', *flags, check=0).out)['plans']

    def step(self, path):
        found = json.loads(run('what-if', path, '--json', check=0).out)
        return next(t['rows'] for t in found['tables'] if t['name'] == 'what-if-base')[0]['recorded_ns']

    def close(self, predicted, simulated):
        self.assertLess(abs(predicted / simulated - 1), 0.01, (predicted, simulated))

    def test_its_own_configuration_comes_back(self):
        for schedule, chunks in (('1f1b', 1), ('zb-h1', 1), ('vpp', 2), ('zb-v', 2)):
            path = self.simulate(schedule, schedule, '--stages', 4, '--micro-batches', 8, '--steps', 4, '--cost', '10,10,10', '--latency', 0.5)
            layers = 8 * 4 * chunks
            plan = self.plans(path, '--layers', layers, '--schedule', schedule, '--chunks', chunks, '--split', f'8*{4 * chunks}')[0]
            self.close(plan['step_ns'], self.step(path))

    def test_another_schedule_and_number_of_micro_batches(self):
        words = ['--stages', 4, '--steps', 4, '--cost', '10,10,10', '--latency', 0.5]
        path = self.simulate('run', 'zb-h1', *words, '--micro-batches', 8)
        for schedule, m in (('1f1b', 8), ('zb-h1', 16), ('fthenb', 8), ('zb-h2', 12)):
            truth = self.simulate(f'{schedule}-{m}', schedule, *words, '--micro-batches', m)
            plan = self.plans(path, '--layers', 32, '--schedule', schedule, '--split', '8*4', '--micro-batches', m)[0]
            self.close(plan['step_ns'], self.step(truth))

    def test_a_heavy_head_gets_fewer_layers_as_the_simulation_confirms(self):
        words = ['--stages', 4, '--steps', 4, '--micro-batches', 16]
        path = self.simulate('heavy', '1f1b', *words, '--cost', '8,16', '--fault', 'heavy-head:0.5')
        plan = self.plans(path, '--layers', 32, '--schedule', '1f1b')[0]
        self.assertEqual(sum(plan['layers']), 32)
        self.assertLess(plan['layers'][-1], 8)
        # A layer takes 1 and 2 ms, the head 4 and 8: the simulated run whose stages cost what the split says.
        faults = []
        for stage, layers in enumerate(plan['layers']):
            cost = layers + (4 if stage == 3 else 0)
            faults += ['--fault', f'slow-stage:{stage},{cost / 8}'] if cost != 8 else []
        truth = self.simulate('split', '1f1b', *words, '--cost', '8,16', *faults)
        self.close(plan['step_ns'], self.step(truth))

    def test_refusals(self):
        path = self.simulate('run', '1f1b')
        self.assertEqual(run('plan', '--from', path).returncode, 2)
        self.assertEqual(run('plan', '--from', self.dir / 'nothing', '--layers', 32).returncode, 2)
        self.assertEqual(run('plan', '--from', path, '--layers', 3).returncode, 2)


class FittedOrders(Case):
    def fixes(self, *flags):
        run('simulate', '1f1b', '--format', 'cells', '--stages', 4, '--micro-batches', 16, '--steps', 4, '--cost', '10,20', *flags,
            '-o', self.dir / 'run', check=0)
        found = json.loads(run('what-if', self.dir / 'run', '--json', check=0).out)
        return next(t['rows'] for t in found['tables'] if t['name'] == 'fixes')

    def test_a_slow_link_is_offered_one_more_micro_batch_in_flight(self):
        row = next(r for r in self.fixes('--messages', '--fault', 'slow-link:1,2,+10ms', '--fault', 'slow-link:2,1,+10ms')
                   if r['fix'] == 'more-in-flight')
        self.assertLess(abs(row['step_ns'] / 590e6 - 1), 0.01)

    def test_a_healthy_run_is_not(self):
        self.assertNotIn('more-in-flight', [r['fix'] for r in self.fixes('--messages', '--jitter', 0.02)])


if __name__ == '__main__':
    unittest.main()
