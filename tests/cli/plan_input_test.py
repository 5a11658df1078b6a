"""`plan` with descriptions and flags that it must refuse: strangers' bytes, so this runs under sanitizers."""
import json
import resource
import unittest

import plan_test
from plan_test import LLAMA
from support import Case, run


class PlanInput(Case):
    model, ask = plan_test.Plan.model, plan_test.Plan.ask

    def test_choices_sums_and_sizes(self):
        path = self.model(LLAMA)
        for flags in (['--framework', 'jax'], ['--attention', 'x'], ['--optimizer', 'x'], ['--split', '8,8,8,9', '--pp', '4'], ['--from', path]):
            self.assertEqual(run('plan', path, '--gpus', 8, *flags).returncode, 2, flags)
        huge = self.model({**LLAMA, 'model_type': 'qwen3_moe', 'num_experts': 10**8, 'num_experts_per_tok': 2, 'moe_intermediate_size': 10**8})
        refused = run('plan', huge, '--gpus', 16)
        self.assertEqual(refused.returncode, 2)
        self.assertIn('config.json: more than 10^15 parameters', refused.err)
        # A table without rows has its head, and the memory that is named is enough.
        path = self.model(LLAMA)
        nothing = run('plan', path, '--gpus', 1, '--memory', '8GiB', '--format', 'csv')
        self.assertEqual((nothing.returncode, nothing.out.count('\n')), (1, 1))
        named = run('plan', path, '--gpus', 1, '--memory', '8GiB').out.split('With --memory ')[1].split()[0]
        self.assertEqual(run('plan', path, '--gpus', 1, '--memory', named).returncode, 0, named)

    def test_what_cannot_be_is_said(self):
        path = self.model(LLAMA)
        self.assertIn('--memory 0GiB is not a size', run('plan', path, '--gpus', 8, '--memory', '0GiB', check=2).err)
        self.assertIn('from 1 to 1000000000\n', run('plan', self.model({**LLAMA, 'hidden_size': 0}), '--gpus', 8, check=2).err)
        path = self.model(LLAMA)
        heavy = run('plan', path, '--gpus', 16, '--memory', '80GiB', '--pp', 16, '--schedule', '1f1b', '--split', '0*15,32', check=1).out
        self.assertRegex(heavy, 'Nothing fits. .* stage 15 needs 1[0-9.]+ GiB of 80.0')
        many = run('plan', path, '--gpus', 16, '--memory', '80GiB', '--pp', 16, '--micro-batches', 10**6, check=1).out
        self.assertIn('The budget was not enough', many)

    def test_thousands_of_stages_and_layers_need_no_gigabyte(self):
        deep = self.model({**LLAMA, 'num_hidden_layers': 20000})
        flags = '--gpus 4096 --pp 4096 --memory 400GiB --schedule 1f1b --micro-batches 64 --budget 1s --json'.split()
        found = json.loads(run('plan', deep, *flags, check=0).out)
        self.assertEqual(len(found['plans'][0]['stages']), 4096)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1_000_000)  # KiB

    def test_hostile_descriptions_are_refused_in_a_sentence(self):
        def refused(value, words):
            out = run('plan', self.model(value), '--gpus', 8, '--memory', '80GiB')
            self.assertEqual(out.returncode, 2, (value, out))
            self.assertIn(words, out.err)
        for key in ('hidden_size', 'num_hidden_layers', 'num_attention_heads', 'intermediate_size', 'vocab_size'):
            refused({k: v for k, v in LLAMA.items() if k != key}, key)
            for bad in (-1, 0, 10**12, 1.5, 'many', [], {}):
                refused({**LLAMA, key: bad}, key)
        refused({**LLAMA, 'model_type': 'mamba'}, 'mamba')
        refused('[]', 'JSON')
        refused('{"hidden_size": 1', 'JSON')
        refused('', 'config.json')
        refused({**LLAMA, 'num_experts': 8}, 'num_experts_per_tok')
        refused({**LLAMA, 'layers': []}, 'layers')
        refused({**LLAMA, 'layers': [{'kind': 'mamba', 'count': 10**12, 'params': 1, 'act_bytes_per_token': 1, 'flops_per_token': 1}]}, 'count')
        refused({**LLAMA, 'layers': [{'kind': 'mamba', 'count': 4}]}, 'params')
        nested = {'model_type': 'llava', 'text_config': LLAMA, 'vision_config': {}}
        self.assertIn('llava', self.ask(nested, '--gpus', 8, '--memory', '80GiB')['basis']['notes'][0])
        custom = {**LLAMA, 'layers': [{'kind': 'dense', 'count': 8}, {'kind': 'mamba', 'count': 8, 'params': 10**8,
                                                                     'act_bytes_per_token': 10**5, 'flops_per_token': 6 * 10**8}]}
        self.assertEqual(self.ask(custom, '--gpus', 8, '--memory', '80GiB')['model']['layers'], 16)

    def test_keys_that_are_misspelt_or_of_another_shape(self):
        megatron = {'hidden_size': 1024, 'num_attention_heads': 16, 'ffn_hidden_size': 4096, 'vocab_size': 32000, 'num_layers': 8}
        self.assertEqual(self.ask(megatron, '--gpus', 8, '--memory', '80GiB')['model']['layers'], 8)
        for value, words in (
                ({**LLAMA, 'layers': 5}, 'layers is no list'), ({**LLAMA, 'layers': [5]}, 'no object'), ({**LLAMA, 'moe': 5}, 'moe'),
                ({**megatron, 'moe': 5}, 'moe is no object'), ({**megatron, 'mla': []}, 'mla is no object'),
                ({**megatron, 'moe': {'num_experts': 8, 'moe_router_topkk': 2}}, 'did you mean moe_router_topk'),
                ({**megatron, 'moe': {'num_experts': 8, 'moe_layer_freq': [1, 0]}}, 'moe_layer_freq has 2 layers'),
                ({**megatron, 'swiglu': 'yes'}, 'swiglu is neither'), ({**LLAMA, 'tie_word_embeddings': 3}, 'tie_word_embeddings is neither'),
                ({**{k: v for k, v in LLAMA.items() if k != 'num_key_value_heads'}, 'num_key_value_head': 8}, 'did you mean num_key_value_heads'),
                ({**LLAMA, 'layers': [{'kind': 'dense', 'coutn': 4}]}, 'did you mean count'),
                ({**LLAMA, 'layers': [{'kind': 'dense', 'params': 4}]}, '"params"')):
            out = run('plan', self.model(value), '--gpus', 8)
            self.assertEqual(out.returncode, 2, value)
            self.assertIn(words, out.err)
        # A config has many keys of no effect here.
        many = {**LLAMA, 'attention_dropout': 0.0, 'rope_theta': 5e5, 'torch_dtype': 'bfloat16', 'qk_head_dim': 192, 'v_head_dim': 128, 'n_ctx': 1}
        self.assertEqual(run('plan', self.model(many), '--gpus', 8).returncode, 0)

    def test_the_place_of_broken_json(self):
        for text, place in (('{"hidden_size": 4096,\n "num_layers" 3}', 'config.json:2: column 15'), ('{"a": [1, 2,, 3]}', 'config.json:1: column 13'),
                            ('{"a": "b\n"}', 'config.json:1: column 7'), ('{"a": 1} x', 'config.json:1: column 10'), ('', 'config.json:1: column 1'),
                            ('{"a": nul}', 'config.json:1: column 7')):
            self.assertIn(place, run('plan', self.model(text), '--gpus', 8).err, text)
        self.assertIn('hw.json:1: column 17', run('plan', self.model(LLAMA), '--gpus', 8, '--hardware', self.model('{"bf16_tflops": }', 'hw.json')).err)

    def test_files_of_hardware(self):
        good = {'base': 'B200', 'name': 'mine', 'bf16_tflops': 2000, 'hbm_gb': 192, 'gemm': 0.5, 'fp8_tflops': 0}
        flags = lambda value: ['plan', self.model(LLAMA), '--gpus', 8, '--hardware', self.model(value, 'hw.json')]
        self.assertEqual(run(*flags(good)).returncode, 0)
        for key, bad in (('bf16_tflops', '989'), ('bf16_tflops', True), ('bf16_tflops', [1]), ('bf16_tflops', 0), ('bf16_tflops', -1), ('hbm_gb', 0),
                         ('gemm', 1.5), ('base', 'H900'), ('base', 5), ('name', 5), ('bf16_tflop', 5), ('link_share', 2), ('intra_ns', -1)):
            out = run(*flags({**good, key: bad}))
            self.assertEqual(out.returncode, 2, (key, bad))
            self.assertIn(key, out.err)
        self.assertEqual(run(*flags('[]')).returncode, 2)
        # Times that would not fit into 64 bits.
        for key in ('bf16_tflops', 'hbm_tb_s'):
            out = run(*flags({key: 1e-300}))
            self.assertEqual(out.returncode, 2, key)
            self.assertIn('years', out.err)

    def test_flags_that_would_do_nothing(self):
        path = self.model(LLAMA)
        for flags in (['--ep', 2], ['--etp', 2], ['--moe-imbalance', 2], ['--capacity-factor', 2], ['--layers', 32], ['--model', path],
                      ['--global-batch', 8, '--global-tokens', 4096], ['--emit', 'megatron', '--json'], ['--split', '8*4', '--pp', 4, '--budget', '1s'],
                      ['--measured', 'tp2'], ['--measured', 'tp2 q3=5ms'], ['--measured', 'tp2=0ms']):
            self.assertEqual(run('plan', path, '--gpus', 8, *flags).returncode, 2, flags)

    def test_wrong_flags(self):
        path = self.model(LLAMA)
        for flags in (['--memory', '80'], ['--memory', 'much'], ['--tp', '0'], ['--tp', 'x'], ['--schedule', 'nothing'], ['--hardware', 'nothing'],
                      ['--split', '3,x'], ['--recompute', '1,2'], ['--mfu', '7'], ['--grad-dtype', 'int3'], ['--tp', '7']):
            self.assertEqual(run('plan', path, '--gpus', 8, *flags).returncode, 2, flags)
        self.assertEqual(run('plan', path).returncode, 2)
        self.assertEqual(run('plan').returncode, 2)


if __name__ == '__main__':
    unittest.main()
