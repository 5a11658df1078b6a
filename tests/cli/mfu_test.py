"""Utilisation of FLOPs: planned operators and times give every number; models give those of other programs' own counts."""
import csv
import json
import unittest

from support import SHARED, Case, needs_shared, run

H100 = {'bf16': 989.4e12, 'fp8': 1978.9e12, 'fp32': 66.9e12}
BF16, FP8 = 'c10::BFloat16', 'c10::Float8_e4m3fn'
LLAMA = {'model_type': 'llama', 'hidden_size': 64, 'intermediate_size': 128, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'num_hidden_layers': 3,
         'vocab_size': 1000}
COMMUNICATION = SHARED / 'communication'


def by_hand(tokens, length):
    """Forward and backward of LLAMA: three layers of attention (4 heads, 2 of keys and values, of 16) and a gated MLP."""
    weights = 3 * (64 * 16 * (4 + 2 * 2) + 64 * 64 + 3 * 64 * 128) + 64 * 1000
    pairs = tokens // length * length * (length + 1) // 2
    return 3 * (2 * weights * tokens + 3 * 2 * 4 * (16 + 16) * pairs)


class Trace:
    """One rank: operators in a row, each with one kernel of that many µs."""

    def __init__(self, rank, world, device='NVIDIA H100 80GB HBM3'):
        self.events, self.at, self.number = [], 1000.0, 0
        self.top = {'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': device}], 'record_shapes': 1,
                    'distributedInfo': {'backend': 'nccl', 'rank': rank, 'world_size': world}}
        self.rank = rank

    def op(self, name, dims, types, us, values=(), kernel='sm90_xmma_gemm_bf16bf16_bf16f32', inner=None):
        self.number += 1
        inputs = {'Input Dims': dims, 'Input type': types, 'Concrete Inputs': list(values) or [''] * len(dims), 'External id': self.number}
        self.span('cpu_op', name, self.at, 10, 1, inputs)
        if inner:
            self.span('cpu_op', inner, self.at + 1, 8, 1, inputs)
        self.span('cuda_runtime', 'cudaLaunchKernel', self.at + 2, 3, 1, {'correlation': self.number})
        self.kernel(kernel, us)

    def kernel(self, name, us, category='kernel'):
        self.span(category, name, self.at + 6, us, 7, {'device': 0, 'stream': 7, 'correlation': self.number}, 0)
        self.at += us + 20

    def span(self, category, name, at, us, thread, args, process=1):
        self.events.append({'ph': 'X', 'cat': category, 'name': name, 'pid': process, 'tid': thread, 'ts': at, 'dur': us, 'args': args})

    def step(self, number, plan, us):
        began = self.at
        self.at += 5
        plan(self)
        self.span('user_annotation', f'ProfilerStep#{number}', began, us, 1, {})
        self.at = began + us + 10

    def write(self, folder):
        folder.mkdir(exist_ok=True)
        (folder / f'rank-{self.rank}.pt.trace.json').write_text(json.dumps({**self.top, 'traceEvents': self.events}))


def usual(trace):
    trace.op('aten::addmm', [[4096], [8192, 4096], [4096, 4096], [], []], [BF16] * 3, 500, inner='aten::mm')
    trace.op('aten::_scaled_mm', [[8192, 4096], [4096, 4096], [], []], [FP8, FP8, 'float', 'float'], 200)
    trace.op('flash_attn::_flash_attn_varlen_forward', [[8192, 32, 128]] + [[8192, 8, 128]] * 2 + [[3], [3]], [BF16] * 3 + ['int', 'int'], 300,
             ['', '', '', '', '', '6144', '6144', '0.', '0.1', 'True', '-1', '-1'], 'flash_fwd_kernel')
    trace.op('aten::add', [[8192, 4096]] * 2, [BF16] * 2, 40, kernel='vectorized_elementwise_kernel')
    trace.kernel('ncclDevKernel_AllReduce_Sum_bf16_RING_LL', 60)
    trace.kernel('Memcpy DtoD (Device -> Device)', 20, 'gpu_memcpy')


MM = 2 * 8192 * 4096 * 4096
PACKED = 2 * 32 * 256 * (6144 * 6145 // 2 + 2048 * 2049 // 2)  # two sequences, the longer of 6 144: nothing is left open


class MfuTest(Case):
    def trace(self, world=2, plan=usual, us=2000, **how):
        for rank in range(2):
            trace = Trace(rank, world, **how)
            trace.step(3, plan, us + 100 * rank)
            trace.write(self.dir / 'trace')
        return self.dir / 'trace'

    def ask(self, table, *options, path=None):
        out = run('analyze', 'mfu', path or self.dir / 'trace', '--format', 'json', '--table', table, *options, check=0)
        answer = json.loads(out.out)
        self.notes = json.dumps(answer)
        self.text = out.err
        return next(t['rows'] for t in answer['tables'] if t['name'] == table)

    def model(self, config=LLAMA, length=4096, batch=10):
        path = self.dir / 'config.json'
        path.write_text(json.dumps(config))
        return ['--model', path, '--seq', str(length), '--global-batch', str(batch)]

    def test_flops_of_operators_by_their_precision(self):
        self.trace()
        rows = self.ask('mfu-ranks')
        self.assertEqual([(r['rank'], r['step'], r['step_ns']) for r in rows], [(0, 3, 2_000_000), (1, 3, 2_100_000)])
        self.assertEqual((rows[0]['matrix_ns'], rows[0]['told_ns']), (1_000_000, 1_000_000))
        self.assertEqual((rows[0]['flops_least'], rows[0]['flops_most']), (2 * MM + PACKED,) * 2)
        peak = (MM + PACKED) / H100['bf16'] + MM / H100['fp8']
        self.assertAlmostEqual(rows[0]['hfu_least'], peak / 2e-3, 9)
        operators = self.ask('mfu-operators')
        self.assertEqual([(r['operator'], r['precision'], r['calls']) for r in operators if r['rank'] == 0],
                         [('aten::addmm', 'BF16', 1), ('flash_attn::_flash_attn_varlen_forward', 'BF16', 1), ('aten::_scaled_mm', 'FP8', 1)])
        self.assertAlmostEqual(operators[0]['peak_share'], MM / H100['bf16'] / 500e-6, 9)

    def test_unknown_lengths_give_bounds(self):
        def packed(trace):
            trace.op('flash_attn::_flash_attn_varlen_forward', [[100, 2, 8]] * 3 + [[4], [4]], [BF16] * 3 + ['int', 'int'], 300,
                     ['', '', '', '', '', '60', '60', '0.', '0.1', 'True', '-1', '-1'], 'flash_fwd_kernel')
        self.trace(plan=packed)
        row = self.ask('mfu-ranks')[0]
        pair = lambda n: n * (n + 1) // 2
        self.assertEqual((row['told_ns'], row['counted_share']), (0, 0))
        self.assertEqual(row['flops_least'], 2 * 2 * 16 * (pair(60) + 2 * pair(20)))
        self.assertEqual(row['flops_most'], 2 * 2 * 16 * (pair(60) + pair(39) + pair(1)))

    def test_losses_add_up_to_one(self):
        self.trace()
        for options in ([], self.model()):
            for row in self.ask('mfu-losses', *options):
                shares = [row[k] for k in ('mfu', 'recompute', 'at_peak', 'slow_kernels', 'other', 'communication', 'rest', 'idle')]
                self.assertAlmostEqual(sum(x for x in shares if x is not None), 1, 12)
                self.assertTrue(all(x >= 0 for x in shares if x is not None), row)
                whole = row['step_ns'] / 1000
                for part, us in (('other', 40), ('communication', 60), ('rest', 20), ('idle', whole - 1120)):
                    self.assertAlmostEqual(row[part], us / whole, 9)
                self.assertEqual(row['at_peak'] is None, bool(options))

    def test_model_flops_over_all_devices_of_the_job(self):
        self.trace(world=4)
        tokens = 4096 * 10
        row, = self.ask('mfu', *self.model())
        self.assertEqual((row['step_ns'], row['tokens'], row['model_flops'], row['against']), (2_100_000, tokens, by_hand(tokens, 4096), 'BF16'))
        self.assertAlmostEqual(row['mfu'], by_hand(tokens, 4096) / (4 * 2.1e-3 * H100['bf16']), 9)
        given, = self.ask('mfu', *self.model(), '--peak-tflops', 'bf16=2000')
        self.assertAlmostEqual(given['mfu'], row['mfu'] * 989.4 / 2000, 9)

    def test_above_the_peak_is_refused_with_a_reason(self):
        self.trace(plan=lambda t: t.op('aten::mm', [[64, 32], [32, 16]], [BF16] * 2, 100))
        row, = self.ask('mfu', *self.model(batch=100_000))
        self.assertIsNone(row['mfu'])
        self.assertRegex(row['refused'], r'^\d+\.\d\s%$')
        self.assertIn('aten::mm [[64, 32], [32, 16]]', self.text + self.notes)
        # Matrices with fewer bits may be faster than the 16-bit peak, which MFU compares with.
        self.trace(plan=lambda t: t.op('aten::_scaled_mm', [[8192, 4096], [4096, 4096]], [FP8] * 2, 200))
        wanted = 1.3 * 2 * 2.1e-3 * H100['bf16']
        batch = round(wanted / by_hand(4096, 4096))
        row, = self.ask('mfu', *self.model(batch=batch))
        self.assertAlmostEqual(row['mfu'], 1.3, 2)
        self.trace(plan=lambda t: t.op('aten::mm', [[8192, 4096], [4096, 4096]], [BF16] * 2, 100))  # at most 278 µs
        self.assertIsNone(self.ask('mfu-ranks', '--peak-tflops', '10')[0]['hfu_least'])

    def test_no_peak_is_assumed(self):
        self.trace(device='NVIDIA H100 80GB HBM3 MIG 1g.10gb')
        row, = self.ask('mfu', *self.model())
        self.assertEqual((row['mfu'], row['min_hfu'], row['against']), (None, None, ''))
        self.assertEqual(self.ask('mfu-peaks'), [])

    def test_hostile_descriptions(self):
        self.trace()
        for config in ({}, {'num_hidden_layers': 0}, {'num_hidden_layers': 10**12}, {'model_type': 'unheard'}, {'hidden_size': 'x'}, {'layer_types': ['full_attention']},
                       {'layer_types': ['rings'] * 3}, {'hidden_size': None}):
            out = run('analyze', 'mfu', self.dir / 'trace', *self.model({**LLAMA, **config} if config else {}))
            self.assertEqual(out.returncode, 2, config)
            self.assertIn('stageline: ', out.err)
        megatron = {'hidden_size': 64, 'num_attention_heads': 4, 'ffn_hidden_size': 128, 'padded_vocab_size': 1000, 'num_layers': 3, 'hybrid_layer_pattern': 'M*D'}
        out = run('analyze', 'mfu', self.dir / 'trace', *self.model({**megatron, 'hybrid_layer_pattern': 'ME'}))
        self.assertIn('num_experts is missing', out.err)
        self.ask('mfu', *self.model(megatron))
        self.assertIn('layers D', self.text + self.notes)


@needs_shared
class ModelsTest(Case):
    """Other programs' counts, and those of published models."""

    def setUp(self):
        super().setUp()
        trace = Trace(0, 1)
        trace.step(1, lambda t: t.op('aten::mm', [[64, 32], [32, 16]], [BF16] * 2, 100), 1000)
        trace.write(self.dir / 'trace')

    def formulas(self, config, lengths, batch):
        path = self.dir / 'model.json'
        path.write_text(json.dumps(config))
        out = run('analyze', 'mfu', self.dir / 'trace', '--format', 'json', '--table', 'mfu-formulas', '--model', path, '--seq', lengths,
                  '--global-batch', str(batch), check=0)
        return {row['formula']: row['flops'] for row in json.loads(out.out)['tables'][0]['rows']}

    def test_megatrons_own_count(self):
        # 35 lengths with the sum and the squares of the packed case.
        packed = [915] * 14 + [914] * 15 + [584, 1246, 913, 917, 902, 926]
        with open(COMMUNICATION / 'megatron.csv') as file:
            for row in csv.DictReader(line for line in file if not line.startswith('#')):
                arguments = json.loads(row['arguments'])
                lengths, batch = str(arguments['seq_length']), row['batch']
                if row['squares']:
                    lengths, batch = ','.join(map(str, packed)), 1
                    self.assertEqual((sum(packed), sum(x * x for x in packed)), (int(row['tokens']), int(row['squares'])))
                with self.subTest(row['case']):
                    self.assertAlmostEqual(self.formulas(arguments, lengths, batch)['megatron'] / float(row['flops']), 1, 12)

    def test_published_models(self):
        models = json.loads((COMMUNICATION / 'flops_models.json').read_text())['huggingface']
        with open(COMMUNICATION / 'flops.csv') as file:
            for row in csv.DictReader(line for line in file if not line.startswith('#')):
                length = int(row['seq'])
                got = self.formulas(models[row['model']]['config'], row['seq'], 1)
                with self.subTest(f'{row["model"]} {length}'):
                    self.assertAlmostEqual(got['stageline'] / length / float(row['ours']), 1, 9)
                    for formula, column in (('torchtitan', 'torchtitan'), ('hf', 'hf_trainer'), ('verl', 'verl'), ('maxtext', 'maxtext')):
                        if row[column]:
                            self.assertAlmostEqual(got[formula] / length / float(row[column]), 1, 8)


if __name__ == '__main__':
    unittest.main()
