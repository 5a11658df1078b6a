"""stageline plan as a user sees it: forms, bytes of other tools, prices that come back, refusals, and plans from simulated runs."""
import contextlib
import csv
import gzip
import json
import pathlib
import re
import struct
import sys
import unittest
import urllib.parse

for room in ('gen', 'server'):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / room))
import kineto
from mcp_test import Client
from serving import Server
from support import SHARED, Case, needs_shared, page_answer, run

LLAMA = {'model_type': 'llama', 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8,
         'intermediate_size': 14336, 'vocab_size': 128256}


def rows(name):
    with open(SHARED / 'planner' / name) as file:
        return list(csv.DictReader(line for line in file if not line.startswith('#')))


@contextlib.contextmanager
def serving(path):
    """Answers of a server of this run: their status, and their JSON or the header of their columns."""
    server = Server(str(path), '--port', '0', '--quiet')
    assert server.wait_ready() == 'ready'

    def get(target, parameters):
        status, headers, body = server.get(target + '?' + urllib.parse.urlencode(parameters))
        if headers['content-type'].startswith('application/octet-stream'):
            body = body[4:4 + struct.unpack_from('<I', body)[0]]
        return status, json.loads(body)
    try:
        yield get
    finally:
        assert server.stop() == 0


class Asking(Case):
    def model(self, value, name='config.json'):
        path = self.dir / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def ask(self, model, *flags, check=0):
        path = model if not isinstance(model, (dict, str)) else self.model(model)
        return json.loads(run('plan', path, '--json', *flags, check=check).out)


class Plan(Asking):
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

    def test_no_plan_beats_the_front(self):
        found = self.ask(LLAMA, '--gpus', 64, '--memory', '80GiB', '--seq', 8192, '--global-batch', 512, '--pareto')
        front = [(p['peak_bytes'], p['step_ns']) for p in found['pareto']]
        self.assertGreater(len(front), 3)
        for peak, step in front + [(p['peak_bytes'], p['step_ns']) for p in found['plans']]:
            self.assertTrue(any(f[0] <= peak and f[1] <= step for f in front), (peak, step))
        self.assertEqual(front, sorted(front))
        self.assertEqual([s for _, s in front], sorted((s for _, s in front), reverse=True))
        self.assertTrue(any(s['flips_at'] for s in found['sensitivity']))

    def test_what_is_not_checked_is_said(self):
        path = self.model(LLAMA)
        second = lambda *flags: run('plan', path, '--gpus', 16, *flags, check=0).out.split('\n')[1]
        self.assertIn('--memory', second())
        self.assertNotIn('--memory', second('--memory', '80GiB'))
        self.assertNotIn('--memory', second('--hardware', 'H100-SXM'))

    def test_one_stage_has_no_schedule(self):
        flags = ['--gpus', 8, '--pp', 1, '--tp', 2]
        self.assertIsNone(self.ask(LLAMA, *flags)['plans'][0]['schedule'])
        self.assertNotIn('1f1b', run('plan', self.model(LLAMA), *flags, check=0).out)

    def test_torchtitan_shards_all_states(self):
        flags = ['--gpus', 32, '--framework', 'torchtitan', '--memory', '80GiB', '--seq', 4096, '--tp', 2]
        for pp in (1, 4):
            plan = self.ask(LLAMA, *flags, '--pp', pp)['plans'][0]
            stage = plan['stages'][0]
            shards = 16 // pp
            # Shards are fp32; with a pipeline the parameters stay whole in bf16 and the gradients in fp32.
            ratio = (4 / shards + 2) / (8 / shards) if pp > 1 else 4 / 8
            self.assertAlmostEqual(stage['parameters'] / stage['optimizer'], ratio, places=6)
            self.assertIn(f'--parallelism.data_parallel_shard_degree {shards}', plan['emit']['torchtitan'])
        self.assertIn('FSDP', run('plan', self.model(LLAMA), *flags, check=0).out)
        self.assertNotIn('FSDP', run('plan', self.model(LLAMA), *flags, '--optimizer', 'zero3', check=0).out.split('\n')[2])
        moe = {**LLAMA, 'model_type': 'qwen3_moe', 'num_experts': 8, 'num_experts_per_tok': 2, 'moe_intermediate_size': 2048}
        self.assertIn('--parallelism.expert_parallel_degree 4', self.ask(moe, *flags, '--pp', 2, '--ep', 4)['plans'][0]['emit']['torchtitan'])

    def test_a_small_budget_says_what_it_leaves(self):
        deep = {**LLAMA, 'num_hidden_layers': 20000}
        found = self.ask(deep, '--gpus', 64, '--memory', '9000GiB', '--global-batch', 64, '--budget', '100ms')['searched']
        self.assertFalse(found['complete'])
        self.assertLess(found['configurations'], found['of'])
        self.assertGreater(found['gap'], 0)
        self.assertIn('was not enough', run('plan', self.model(deep), '--gpus', 64, '--memory', '9000GiB', '--global-batch', 64, '--budget', '100ms', check=0).out)

    @needs_shared
    def test_measured_steps_set_the_scale(self):
        models = json.loads((SHARED / 'planner' / 'models.json').read_text())['huggingface']
        cases = {}
        for row in rows('measured_step_b200.csv'):
            cases.setdefault(tuple(row[k] for k in ('model', 'layers', 'tp', 'pp', 'cp', 'ep', 'seq')), {})[int(row['m'])] = row
        def predict(row, measured, m):
            model = {**models[row['model']], 'num_hidden_layers': int(row['layers'])}
            model.pop('num_nextn_predict_layers', None)
            if 'first_k_dense_replace' in model:
                model['first_k_dense_replace'] = 1
            flags = [word for key in ('tp', 'pp', 'cp', 'seq', *(['ep'] if 'deepseek' in row['model'] else [])) for word in (f'--{key}', row[key])]
            return self.ask(model, '--gpus', 8, '--hardware', 'B200', *flags, '--micro-batch-size', row['mbs'], '--micro-batches', m, '--schedule', '1f1b',
                            '--memory', '1000GiB', '--split', f'{int(row["layers"]) // int(row["pp"])}*{row["pp"]}', '--measured', measured)['plans'][0]
        def measured(row):
            return ' '.join(k + row[k] for k in ('tp', 'pp', 'cp', 'ep', 'dp', 'mbs', 'm')) + f'={row["step_ms"]}ms'
        tried = 0
        for at in cases.values():
            if set(at) >= {4, 8, 32}:
                tried += 1
                plan = predict(at[32], measured(at[4]) + ',' + measured(at[8]), 32)
                self.assertAlmostEqual(plan['step_ns'] / 1e6 / float(at[32]['step_ms']), 1, delta=0.08, msg=at[32]['case'])
        self.assertGreater(tried, 8)
        # From one layout the order of the others, where they differ by more than a tenth, for the same sequences.
        for model in {key[0] for key in cases if 'llama' in key[0]}:
            others = [at for key, at in cases.items() if key[0] == model and set(at) >= {4, 8, 32}]
            base = next(at for at in others if at[8]['tp'] == '2')
            pairs = [(float(at[8]['step_ms']) / int(at[8]['dp']), predict(at[8], measured(base[8]), 8)['step_ns'] / int(at[8]['dp'])) for at in others]
            for truth, guess in pairs:
                for other_truth, other_guess in pairs:
                    if truth > 1.1 * other_truth:
                        self.assertGreater(guess, other_guess, model)

    @needs_shared
    def test_other_tools_to_the_byte(self):
        models = json.loads((SHARED / 'planner' / 'models.json').read_text())['megatron']
        for tool in ('megatron', 'bridge'):
            for row in rows(f'{tool}_estimator.csv')[::4]:
                sizes = [*(['--ep', row['ep'], '--etp', row['etp']] if 'moe' in models[row['model']] else []),
                         '--tp', row['tp'], '--pp', row['pp'], '--cp', row['cp'], '--gpus', row['world'],
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
        run('simulate', schedule, '--format', 'cells', *flags, '--force', '-o', self.dir / name, check=0)
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

    def test_a_slow_rank_makes_no_layer_dear(self):
        words = ['--stages', 4, '--steps', 4, '--micro-batches', 16, '--cost', '8,16']
        healthy, slow = self.simulate('healthy', '1f1b', *words), self.simulate('slow', '1f1b', *words, '--fault', 'slow-stage:2,1.5')
        flags = ['--layers', 32, '--schedule', '1f1b', '--split', '8*4']
        found = json.loads(run('plan', '--from', slow, '--json', *flags, check=0).out)
        self.assertEqual([s['stage'] for s in found['basis']['slow_stages']], [2])
        self.assertAlmostEqual(found['basis']['slow_stages'][0]['longer'], 0.5, delta=0.02)
        layer = found['basis']['parts'][0]
        self.assertAlmostEqual(layer['forward_ns'] / 1e6, 1, delta=0.01)
        self.assertAlmostEqual((layer['input_ns'] + layer['weight_ns']) / 1e6, 2, delta=0.02)
        self.close(found['plans'][0]['step_ns'], self.step(healthy))
        self.assertIn('its rank is slow', run('plan', '--from', slow, *flags, check=0).out)
        self.assertEqual(json.loads(run('plan', '--from', healthy, '--json', *flags, check=0).out)['basis']['slow_stages'], [])

    def test_the_layers_prices_come_back(self):
        path = self.simulate('priced', '1f1b', '--stages', 4, '--steps', 4, '--micro-batches', 8, '--cost', '8,16', '--fault', 'heavy-head:0.5')
        parts = {p['of']: p for p in json.loads(run('plan', '--from', path, '--layers', 32, '--json', check=0).out)['basis']['parts']}
        self.assertAlmostEqual(parts['layer']['forward_ns'] / 1e6, 1, delta=0.01)
        self.assertAlmostEqual(parts['head']['forward_ns'] / 1e6, 4, delta=0.04)
        self.assertAlmostEqual((parts['head']['input_ns'] + parts['head']['weight_ns']) / 1e6, 8, delta=0.08)

    def test_the_error_covers_the_truth(self):
        words = ['--stages', 4, '--micro-batches', 8, '--cost', '8,16', '--jitter', 0.1]
        path = self.simulate('some', '1f1b', *words, '--steps', 6, '--seed', 1)
        plan = self.plans(path, '--layers', 32, '--schedule', '1f1b', '--split', '8*4')[0]
        truth = self.step(self.simulate('many', '1f1b', *words, '--steps', 60, '--seed', 2))
        self.assertGreater(plan['step_se_ns'], 0)
        self.assertLess(abs(plan['step_ns'] - truth), 3 * plan['step_se_ns'])

    def test_refusals(self):
        path = self.simulate('run', '1f1b')
        self.assertEqual(run('plan', '--from', path).returncode, 2)
        self.assertEqual(run('plan', '--from', self.dir / 'nothing', '--layers', 32).returncode, 2)
        self.assertEqual(run('plan', '--from', path, '--layers', 3).returncode, 2)


class FittedOrders(Case):
    def fixes(self, *flags):
        run('simulate', '1f1b', '--format', 'cells', '--stages', 4, '--micro-batches', 16, '--steps', 4, '--cost', '10,20', *flags,
            '--force', '-o', self.dir / 'run', check=0)
        found = json.loads(run('what-if', self.dir / 'run', '--json', check=0).out)
        return next(t['rows'] for t in found['tables'] if t['name'] == 'fixes')

    def test_a_slow_link_is_offered_one_more_micro_batch_in_flight(self):
        row = next(r for r in self.fixes('--messages', '--fault', 'slow-link:1,2,+10ms', '--fault', 'slow-link:2,1,+10ms')
                   if r['fix'] == 'more-in-flight')
        self.assertLess(abs(row['step_ns'] / 590e6 - 1), 0.01)

    def test_a_healthy_run_is_not(self):
        self.assertNotIn('more-in-flight', [r['fix'] for r in self.fixes('--messages', '--jitter', 0.02)])
        self.assertNotIn('in flight', run('explain', self.dir / 'run', check=0).out)

    def test_the_finding_about_the_link_says_it_too(self):
        (self.dir / 'config.json').write_text(json.dumps(LLAMA))
        row = next(r for r in self.fixes('--messages', '--fault', 'slow-link:1,2,+10ms', '--fault', 'slow-link:2,1,+10ms')
                   if r['fix'] == 'more-in-flight')
        for flags, known in (([], False), (['--model', self.dir / 'config.json', '--seq', 8192], True)):
            found = json.loads(run('explain', self.dir / 'run', '--json', *flags, check=0).out)
            link = next(f for f in found['findings'] if f['id'] == 'link.slow')
            self.assertIn('Until the link is repaired', link['detail_en'])
            self.assertIn(row['what'], link['detail_en'])
            self.assertIn('pipeline_parallel_schedule_csv', link['detail_en'])
            self.assertEqual('GiB' in link['detail_en'], known)


class Picture(Asking):
    SMALL = {**LLAMA, 'num_hidden_layers': 8}
    FLAGS = ['--gpus', 8, '--memory', '80GiB', '--seq', 8192, '--global-batch', 16, '--pp', 4, '--tp', 1, '--schedule', '1f1b', '--micro-batch-size', 1]

    def drawn(self, name, *flags, check=0):
        run('plan', self.model(self.SMALL), *self.FLAGS, *flags, '-o', self.dir / name, check=check)
        return (self.dir / name).read_bytes()

    def boxes(self, svg, colour):
        """Heights of the bars' pieces of this colour, the tallest first."""
        rgb = ','.join(f'{int(colour[i:i + 2], 16) / 255 * 100:.6f}'.rstrip('0').rstrip('.') + '%' for i in (0, 2, 4))
        boxes = [[float(n) for n in re.findall(r'-?[0-9.]+', path)] for path in re.findall(rf'fill:rgb\({rgb}\);[^>]* d="([^"]*)"', svg)]
        return sorted((max(box[1::2]) - min(box[1::2]) for box in boxes if max(box[::2]) - min(box[::2]) > 12.5), reverse=True)  # the legend's are 12 wide

    def test_every_kind_of_file(self):
        svg = self.drawn('plan.svg')
        self.assertEqual(svg, self.drawn('again.svg'))
        self.assertNotEqual(svg, self.drawn('dark.svg', '--dark'))
        self.assertIn('tp 1 · pp 4 · dp 2, 1f1b', re.search('<title>(.*?)</title>', svg.decode())[1])
        self.assertIn('每步', re.search('<title>(.*?)</title>', self.drawn('zh.svg', '--lang', 'zh').decode())[1])
        self.assertEqual(self.drawn('plan.png')[:8], b'\x89PNG\r\n\x1a\n')
        self.assertEqual(self.drawn('plan.pdf')[:5], b'%PDF-')
        self.assertEqual(self.drawn('any', '--to', 'svg'), svg)
        self.drawn('plan.html')
        found = self.ask(self.model(self.SMALL), *self.FLAGS, '--pareto')
        self.assertEqual(page_answer(self.dir / 'plan.html', 'plan'), found)
        self.assertTrue(page_answer(self.dir / 'plan.html', 'run')['file']['plan'])

    def test_bars_are_to_scale(self):
        plan = self.ask(self.model(self.SMALL), *self.FLAGS)['plans'][0]
        svg = self.drawn('plan.svg').decode()
        heights = self.boxes(svg, '806633')  # the optimizer's ochre
        sizes = sorted((stage['optimizer'] for stage in plan['stages']), reverse=True)
        for height, size in zip(heights, sizes, strict=True):
            self.assertAlmostEqual(height / heights[0], size / sizes[0], delta=0.01)

    def test_what_does_not_fit_is_drawn_too(self):
        flags = ['--memory', '9GiB']
        svg = self.drawn('small.svg', *flags, check=1).decode()
        self.assertIn('Does not fit', re.search('<title>(.*?)</title>', svg)[1])

    def test_a_run_without_a_model_has_no_bars(self):
        run('simulate', '1f1b', '--format', 'cells', '-o', self.dir / 'run', check=0)
        run('plan', '--from', self.dir / 'run', '--layers', 32, '--schedule', '1f1b', '-o', self.dir / 'run.svg', check=0)
        self.assertEqual(self.boxes((self.dir / 'run.svg').read_text(), '806633'), [])

    def test_refusals(self):
        for flags in (['--json'], ['--format', 'csv'], ['--emit', 'megatron'], ['--width', 3], ['--to', 'csv']):
            run('plan', self.model(self.SMALL), *self.FLAGS, *flags, '-o', self.dir / 'no.svg', check=2)
            self.assertFalse((self.dir / 'no.svg').exists())


class Bytes(Asking):
    """Bytes of other commands are the planner's."""
    KNOWN = ['--seq', 8192, '--micro-batch-size', 1]

    def setUp(self):
        super().setUp()
        self.path = self.model(LLAMA)
        self.run_ = self.dir / 'run'
        run('simulate', '1f1b', '--format', 'cells', '--stages', 4, '--dp', 2, '--micro-batches', 8, '--steps', 4, '--fault', 'heavy-head:0.8',
            '-o', self.run_, check=0)

    def plan(self, schedule='1f1b', split='8*4', m=8, chunks=1):
        return self.ask(self.path, '--pp', 4, '--dp', 2, '--tp', 1, '--schedule', schedule, '--chunks', chunks, '--split', split, '--recompute', 'none',
                        '--micro-batches', m, *self.KNOWN)['plans'][0]

    def fixes(self, *flags, check=0):
        found = json.loads(run('what-if', self.run_, '--json', '--model', self.path, *self.KNOWN, *flags, check=check).out)
        return next(t['rows'] for t in found['tables'] if t['name'] == 'fixes'), found

    def test_schedule_prints_the_planners_bytes(self):
        for schedule, chunks, split in (('1f1b', 1, '8*4'), ('1f1b', 1, '9,9,8,6'), ('vpp', 2, '4*8'), ('zb-h1', 1, '8*4')):
            found = json.loads(run('schedule', schedule, '--stages', 4, '--micro-batches', 8, '--chunks', chunks, '--model', self.path, '--dp', 2,
                                   '--split', split, *self.KNOWN, '--format', 'json', check=0).out)
            totals = [row['total_gib'] for row in found['stage_bytes']['rows']]
            for total, stage in zip(totals, self.plan(schedule, split, chunks=chunks)['stages'], strict=True):
                self.assertAlmostEqual(total * 2**30 / stage['peak'], 1, delta=1e-6)
        self.assertIn('activations', run('schedule', '1f1b', '--model', self.path, check=0).out)
        self.assertIsNone(json.loads(run('schedule', '1f1b', '--format', 'json', check=0).out)['stage_bytes'])
        for flags in (['--model', self.path, '--split', '8,8'], ['--memory', '80GiB'], ['--model', self.path, '--memory', '80'],
                      ['--model', self.path, '--optimizer', 'none']):
            run('schedule', '1f1b', *flags, check=2)

    def test_options_say_what_they_need(self):
        rows, _ = self.fixes('--more-memory')
        now = f'{self.plan()["peak_bytes"] / 2**30:.1f} GiB'
        priced = 0
        for row in rows:
            if row['fix'] in ('schedule', 'micro-batches', 'balance'):
                self.assertIn(f'memory at most {now}', row['assumption'])
                priced += 1
            elif row['fix'] in ('links', 'launch', 'worker', 'jitter'):
                self.assertNotIn('GiB', row['assumption'])
        self.assertGreater(priced, 2)

    def test_what_needs_more_is_not_offered(self):
        everything, _ = self.fixes('--more-memory')
        needs = {}
        for row in everything:
            if found := re.search(r'then ([0-9.]+) GiB', row['assumption']):
                needs[row['what']] = float(found[1])
        few, limited = self.fixes('--memory', f'{self.plan()["needed_bytes"] / 2**30 + 1:.2f}GiB')
        offered = {row['what'] for row in few}
        limit = (self.plan()['needed_bytes'] / 2**30 + 1) / (self.plan()['needed_bytes'] / self.plan()['peak_bytes'])
        gone = {name for name, need in needs.items() if need > limit + 2}
        self.assertTrue(gone)
        self.assertFalse(gone & offered)
        self.assertGreater(limited['over_memory'], 0)
        many, _ = self.fixes('--memory', '4000GiB')
        orders = [{row['what'] for row in rows if row['fix'] == 'schedule'} for rows in (few, many)]
        self.assertLess(orders[0], orders[1])
        # The split that is offered is the best of those that fit.
        self.assertNotEqual(*([row['what'] for row in rows if row['fix'] == 'balance'] for rows in (few, many)))
        run('what-if', self.run_, '--memory', '80GiB', check=2)

    def test_moved_layers_say_the_models_split(self):
        found = json.loads(run('explain', self.run_, '--json', '--model', self.path, *self.KNOWN, check=0).out)
        stage = next(f for f in found['findings'] if f['id'] == 'stage.slow')
        self.assertIn('assuming 8, 8, 8, 8 today', stage['detail_en'])
        self.assertIn(f'memory at most {self.plan()["peak_bytes"] / 2**30:.1f} GiB', stage['detail_en'])


    def test_the_page_offers_what_the_command_offers(self):
        with serving(self.run_) as get:
            asked = {'model': self.path.read_text(), 'seq': 8192, 'micro_batch_size': 1}
            for memory in ('30GiB', f'{self.plan()["needed_bytes"] / 2**30 + 1:.2f}GiB', '4000GiB', ''):
                limit = ['--memory', memory] if memory else []
                rows, found = self.fixes(*limit)
                status, answer = get('/api/pipeline/fixes', {**asked, 'memory': memory})
                self.assertEqual(status, 200, answer)
                self.assertEqual([(fix['id'], fix['name'], fix['saving_ns'], fix['assumes']) for fix in answer['fixes']],
                                 [(row['fix'], row['what'], row['saving_ns'], row['assumption']) for row in rows])
                self.assertEqual(answer['over_memory'], found['over_memory'])
                self.assertEqual('does not fit' in answer['bytes'], memory == '30GiB')
            # A change that is asked for is estimated, and says that it does not fit.
            limit = {**asked, 'memory': f'{self.plan()["needed_bytes"] / 2**30 + 1:.2f}GiB', 'schedule': 'fthenb'}
            own = next(row for row in self.fixes('--memory', limit['memory'], '--schedule', 'fthenb')[0] if row['fix'] == 'own')
            self.assertIn('does not fit', own['assumption'])
            _, answer = get('/api/pipeline/what-if', limit)
            self.assertTrue(own['assumption'].endswith(answer['bytes']), answer['bytes'])
            # The options have other numbers within a memory.
            for at, fix in enumerate(get('/api/pipeline/fixes', {**asked, 'memory': '4000GiB'})[1]['fixes']):
                self.assertEqual(get('/api/pipeline/what-if', {**asked, 'memory': '4000GiB', 'fix': at})[1]['saving_ns'], fix['saving_ns'])
            for odd in ({'memory': '80GiB'}, {**asked, 'memory': '80'}, {'model': '{}'}, {'model': 'no'}, {**asked, 'seq': 0}, {**asked, 'tp': 'x'}):
                for path in ('/api/pipeline/fixes', '/api/pipeline/what-if'):
                    status, answer = get(path, odd)
                    self.assertEqual((status >= 400, bool(answer['error'])), (True, True), odd)


class MeasuredMemory(Asking):
    """A run whose profiler counted memory: its peaks are beside the model's, and what is beyond the model stays in every plan."""
    FLAGS = ['--layers', 32, '--seq', 4096, '--micro-batch-size', 1]
    BEYOND = (700 << 20, 0, 300 << 20, -(200 << 20))

    def setUp(self):
        super().setUp()
        self.path, self.job = self.model(LLAMA), self.dir / 'job'
        kineto.generate(['-o', str(self.job), *'--shape pipeline --notes actions --ranks 4 --micro-batches 8 --events 3000 --steps 3'.split()])

    def plan(self, *flags):
        return json.loads(run('plan', '--from', self.job, '--model', self.path, *self.FLAGS, '--schedule', '1f1b', *flags, '--json', check=0).out)

    def count_memory(self, peaks):
        for rank, peak in enumerate(peaks):
            path = next(self.job.glob(f'rank-{rank}.*'))
            with gzip.open(path, 'rt') as file:
                trace = json.load(file)
            first = next(e for e in trace['traceEvents'] if e.get('cat') == 'cpu_op')
            for number, (total, device) in enumerate(((peak // 2, 1), (peak, 1), (peak // 3, 1), (4 * peak, 0))):
                trace['traceEvents'].append({'ph': 'i', 's': 't', 'name': '[memory]', 'cat': 'cpu_instant_event', 'pid': first['pid'], 'tid': first['tid'],
                                             'ts': first['ts'] + number, 'args': {'Bytes': 512, 'Addr': 4096 * number, 'Device Type': device,
                                                                                  'Device Id': 0 if device else -1, 'Total Allocated': total, 'Total Reserved': total}})
            with gzip.open(path, 'wt') as file:
                json.dump(trace, file)

    def test_what_was_measured_beyond_the_model_is_added(self):
        before = self.plan('--split', '8*4')
        self.assertEqual(before['basis']['memory'], [])
        of_model = [stage['peak'] for stage in before['plans'][0]['stages']]
        self.count_memory([peak + more for peak, more in zip(of_model, self.BEYOND)])
        found = self.plan('--split', '8*4')
        self.assertEqual([s['measured_bytes'] - s['model_bytes'] for s in found['basis']['memory']], list(self.BEYOND))
        self.assertEqual([s['model_bytes'] for s in found['basis']['memory']], of_model)
        for stage, more, peak in zip(found['plans'][0]['stages'], self.BEYOND, of_model):
            self.assertEqual((stage['other'], stage['peak']), (more, peak + more))
        # Another split has the same beyond; another number of stages has none.
        other = self.plan('--split', '9,9,8,6')['plans'][0]
        self.assertEqual([stage['other'] for stage in other['stages']], list(self.BEYOND))
        self.assertEqual({stage['other'] for stage in self.plan('--pp', 2, '--split', '16*2')['plans'][0]['stages']}, {0})
        most = f'The run measured at most {(of_model[0] + self.BEYOND[0]) / 2**30:.1f} GiB on stage 0; the model says {of_model[0] / 2**30:.1f} GiB'
        self.assertIn(most, run('plan', '--from', self.job, '--model', self.path, *self.FLAGS, check=0).out)
        asked = ['what-if', self.job, '--model', self.path, '--seq', 4096]
        answer = json.loads(run(*asked, '--json', check=0).out)
        rows = next(t['rows'] for t in answer['tables'] if t['name'] == 'memory')
        for row, more in zip(rows, self.BEYOND, strict=True):
            self.assertAlmostEqual(row['beyond_gib'], more / 2**30, delta=1e-8)
        self.assertIn(most, answer['sentence'])
        self.assertIn('运行实测显存最多', answer['sentence_zh'])
        options = ' '.join(row['assumption'] for t in answer['tables'] if t['name'] == 'fixes' for row in t['rows'])
        self.assertIn(f'memory at most {(of_model[0] + self.BEYOND[0]) / 2**30:.1f} GiB on stage 0 now', options)

    def test_the_server_and_agents_add_it_too(self):
        peaks = [stage['peak'] for stage in self.plan('--split', '8*4')['plans'][0]['stages']]
        self.count_memory([peak + more for peak, more in zip(peaks, self.BEYOND)])
        own = self.plan('--split', '9,9,8,6', '--memory', '80GiB')
        self.assertEqual([stage['other'] for stage in own['plans'][0]['stages']], list(self.BEYOND))
        text = self.path.read_text()
        asked = {'times': 'run', 'model': text, 'layers': 32, 'seq': 4096, 'micro_batch_size': 1, 'schedule': '1f1b', 'split': '9,9,8,6', 'memory': '80GiB'}
        with serving(self.job) as get:
            status, answer = get('/api/plan', asked)
            self.assertEqual((status, answer['plans'], answer['basis']['memory']), (200, own['plans'], own['basis']['memory']))
            known = {'model': text, 'seq': 4096, 'micro_batch_size': 1}
            self.assertIn(f'{(peaks[0] + self.BEYOND[0]) / 2**30:.1f} GiB on stage 0', get('/api/pipeline/fixes', known)[1]['bytes'])
        client = Client('--root', self.dir)
        trace = client.call('open', paths=[str(self.job)])[0]['trace']
        answer, wrong = client.call('plan', trace=trace, model=str(self.path), layers='32', seq=4096, micro_batch_size='1', schedule='1f1b', split='9,9,8,6',
                                    memory='80GiB')
        client.close()
        self.assertFalse(wrong, answer)
        self.assertEqual((answer['plans'], answer['basis']['memory']), (own['plans'], own['basis']['memory']))


if __name__ == '__main__':
    unittest.main()
