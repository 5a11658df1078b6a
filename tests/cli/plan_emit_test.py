"""Reads back by this file's parsers the lines that `plan` says to type: the split, the degrees and the micro-batches of the plan. And published orders of memory and time."""
import ast
import json
import re
import unittest

import plan_test
from plan_test import LLAMA
from support import SHARED, Case, needs_shared

DEEP = {**LLAMA, 'num_hidden_layers': 30, 'vocab_size': 256000}
MOE = {**LLAMA, 'model_type': 'qwen3_moe', 'num_experts': 16, 'num_experts_per_tok': 2, 'moe_intermediate_size': 2048}


def option(text, name):
    found = re.search(rf'{re.escape(name)}[ =]("[^"]*"|\S+)', text)
    return found and found[1].strip('"')


def layout_stages(text):
    """Megatron's layout string as the number of layers of each virtual stage."""
    flat = re.sub(r'\(([^()]*)\)(?:\*(\d+))?', lambda m: re.sub(r'(.)\*(\d+)', lambda n: n[1] * int(n[2]), m[1]) * int(m[2] or 1), text)
    flat = re.sub(r'(.)\*(\d+)', lambda m: m[1] * int(m[2]), flat)
    assert flat[0] == 'E' and flat[-1] == 'L' and set(flat) <= set('Et|L'), flat
    return [stage.count('t') for stage in flat.split('|')]


def even(layers, stages):
    return [layers // stages + (s < layers % stages) for s in range(stages)]


def read_back(framework, text, layers):
    """Degrees, micro-batches and split as the framework would take them from these lines."""
    code = '\n'.join(line for line in text.split('\n') if not line.startswith('#'))
    if framework in ('megatron', 'mindspeed'):
        tp, pp, cp, size, batch = (int(option(code, '--' + name)) for name in (
            'tensor-model-parallel-size', 'pipeline-model-parallel-size', 'context-parallel-size', 'micro-batch-size', 'global-batch-size'))
        layout = option(code, '--pipeline-model-parallel-layout')
        chunks = 2 if 'dualpipev' in code else int(option(code, '--num-virtual-stages-per-pipeline-rank') or 1)
        assert layout or layers % (pp * chunks) == 0
        return {'tp': tp, 'pp': pp, 'cp': cp, 'micro_batch_size': size, 'batch': batch,
                'ep': int(option(code, '--expert-model-parallel-size') or 1), 'layers': layout_stages(layout) if layout else even(layers, pp * chunks)}
    if framework == 'torchtitan':
        part = lambda name: int(option(code, '--parallelism.' + name) or 1)
        tp, pp, cp = part('tensor_parallel_degree'), part('pipeline_parallel_degree'), part('context_parallel_degree')
        dp = part('data_parallel_shard_degree') * part('data_parallel_replicate_degree')
        modules = re.search(r'module_fqns_per_model_part = (.*)', code)
        if modules:
            parts = ast.literal_eval(modules[1])
            assert parts[0][0] == 'tok_embeddings' and parts[-1][-2:] == ['norm', 'lm_head']
            names = [name for stage in parts for name in stage if name.startswith('layers.')]
            assert names == [f'layers.{i}' for i in range(layers)]
            split = [sum(name.startswith('layers.') for name in stage) for stage in parts]
        elif pp == 1:
            split = [layers]
        else:
            per, first, last = (int(option(code, '--parallelism.pipeline_parallel_' + name)) for name in (
                'layers_per_stage', 'first_stage_less_layers', 'last_stage_less_layers'))
            split = even(layers + first + last, -(-(layers + first + last) // per))
            split[0] -= first
            split[-1] -= last
        local, batch = (int(option(code, '--training.' + name)) for name in ('local_batch_size', 'global_batch_size'))
        size = int(option(code, '--parallelism.pipeline_parallel_microbatch_size') or local)
        assert local % size == 0 and (pp == 1 or local * dp == batch)
        return {'tp': tp, 'pp': pp, 'cp': cp, 'dp': dp, 'ep': part('expert_parallel_degree'), 'batch': batch,
                'micro_batch_size': size, 'layers': split}
    if framework == 'paddle':
        degrees, sizes = (ast.literal_eval(re.search(name + r' = (\{.*?\})', code)[1]) for name in ('hybrid_configs', 'pipeline_configs'))
        bounds = ast.literal_eval(re.search(r'seg_method=(\[.*?\])', code)[1])
        split = [b - a for a, b in zip(bounds, bounds[1:])]
        split[0] -= 1   # the embedding
        split[-1] -= 2  # the last norm and the head
        dp = degrees['dp_degree'] * degrees['sharding_degree']
        return {'tp': degrees['mp_degree'], 'pp': degrees['pp_degree'], 'cp': degrees['sep_degree'], 'dp': dp, 'layers': split,
                'micro_batch_size': sizes['micro_batch_size'], 'batch': dp * sizes['micro_batch_size'] * sizes['accumulate_steps']}
    pp = int(re.search(r'num_stages=(\d+)', code)[1])
    config = json.loads(code[code.index('{'):])
    return {'pp': pp, 'micro_batch_size': config['train_micro_batch_size_per_gpu'], 'layers': even(layers, pp)}


class Emit(Case):
    model, ask = plan_test.Plan.model, plan_test.Plan.ask

    def test_every_line_reads_back(self):
        read = uneven = 0
        for model in (LLAMA, DEEP, MOE):
            for framework in ('megatron', 'mindspeed', 'torchtitan', 'paddle', 'deepspeed'):
                for flags in (['--pp', 1], ['--pp', 4, '--schedule', '1f1b'], ['--pp', '2,4', '--chunks', 2], ['--pp', 8]):
                    if framework == 'deepspeed' and '--chunks' in flags:
                        continue
                    for plan in self.ask(model, '--gpus', 32, '--memory', '80GiB', '--seq', 4096, '--global-batch', 64, '--framework', framework,
                                         *flags, '--top', 3, '--budget', '1s', check=None)['plans']:
                        text = plan['emit'].get(framework)
                        if text is None:
                            self.assertIsNone(plan['schedule'])  # without a pipeline a plan may need none of its flags
                            continue
                        back = read_back(framework, text, model['num_hidden_layers'])
                        plan['batch'] = plan['micro_batch_size'] * plan['micro_batches'] * plan['dp']
                        self.assertEqual(back, {key: plan[key] for key in back}, text)
                        read += 1
                        uneven += len(set(plan['layers'])) > 1
        self.assertGreater(read, 60)
        self.assertGreater(uneven, 15)


class Published(Case):
    model, ask = plan_test.Plan.model, plan_test.Plan.ask

    def stages(self, schedule, model=LLAMA, **flags):
        words = [word for key, value in flags.items() for word in ('--' + key.replace('_', '-'), value)]
        return self.ask(model, '--pp', 8, '--micro-batches', 32, '--micro-batch-size', 1, '--schedule', schedule, *words)['plans'][0]['stages']

    def test_zero_bubble_and_dualpipe_hold_what_their_papers_say(self):
        split = '4*8'
        plain = max(s['activations'] for s in self.stages('1f1b', split=split))
        self.assertAlmostEqual(max(s['activations'] for s in self.stages('zb-h1', split=split)) / plain, 1, delta=0.1)
        twice = max(s['activations'] for s in self.stages('zb-h2', split=split)) / plain
        self.assertTrue(1.6 <= twice <= 2, twice)
        # DualPipe: p + 1 micro-batches of one stage's layers, and the parameters of two stages.
        both = self.stages('dualpipe', split=split)
        one = self.stages('1f1b', split=split)
        self.assertEqual({sum(s['held']) for s in both}, {9})
        self.assertAlmostEqual(both[3]['parameters'] / one[3]['parameters'], 2, places=6)

    @needs_shared
    def test_interleaving_is_faster_for_the_largest_llama(self):
        model = json.loads((SHARED / 'planner' / 'models.json').read_text())['huggingface']['llama3-405b']
        step = lambda *flags: self.ask(model, '--gpus', 512, '--tp', 8, '--pp', 8, '--framework', 'torchtitan', '--seq', 8192, '--global-batch', 256,
                                       '--micro-batch-size', 1, '--recompute', 'none', *flags)['plans'][0]['step_ns']
        self.assertLess(step('--schedule', 'vpp', '--chunks', 2), step('--schedule', '1f1b'))


if __name__ == '__main__':
    unittest.main()
