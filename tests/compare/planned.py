#!/usr/bin/env python3
"""./dev compare --planned: what `plan --emit` prints, read by the frameworks' own parsers as released.

planned.py     exit 1 when a parser refuses it, or reads another split than the plan has

megatron-core has the parser of --pipeline-model-parallel-layout and the checked configuration; the parser of the other flags is
megatron.training, which is not released as a package, so flags are matched with the fields of the configuration by name. torchtitan
has its whole command line. Wheels are fetched by pip without what they depend on. A package that cannot be fetched or imported is skipped.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

from recorded_jobs import BIN, fetch, rivals

MODELS = {
    'llama-8b': {'model_type': 'llama', 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8,
                 'intermediate_size': 14336, 'vocab_size': 128256},
    'llama-405b': {'model_type': 'llama', 'hidden_size': 16384, 'num_hidden_layers': 126, 'num_attention_heads': 128, 'num_key_value_heads': 8,
                   'intermediate_size': 53248, 'vocab_size': 128256},
    'mixtral': {'model_type': 'mixtral', 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8,
                'intermediate_size': 14336, 'vocab_size': 32000, 'num_local_experts': 8, 'num_experts_per_tok': 2},
    'deepseek': {'model_type': 'deepseek_v3', 'hidden_size': 7168, 'num_hidden_layers': 61, 'num_attention_heads': 128, 'num_key_value_heads': 128,
                 'intermediate_size': 18432, 'moe_intermediate_size': 2048, 'vocab_size': 129280, 'n_routed_experts': 256,
                 'num_experts_per_tok': 8, 'n_shared_experts': 1, 'first_k_dense_replace': 3, 'q_lora_rank': 1536, 'kv_lora_rank': 512,
                 'qk_nope_head_dim': 128, 'qk_rope_head_dim': 64, 'v_head_dim': 128, 'num_nextn_predict_layers': 1},
}
# Questions about every model: plain pipelines, chunks, little memory, and splits that are not even.
ASKED = {'free': (), 'pipeline': ('--pp', '8'), 'chunks': ('--pp', '4', '--schedule', 'vpp', '--chunks', '2'), 'tight': ('--pp', '8', '--memory', '50GiB')}
MEGATRON = '''
import dataclasses, json, sys
import torch, torch._inductor.ir, torch._inductor.lowering
from unittest.mock import MagicMock
sys.modules.update({name: MagicMock(__version__='3.5.0') for name in ('triton', 'triton.language')})
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout as Layout
from megatron.core.transformer.enums import LayerType
from megatron.core.transformer.transformer_config import TransformerConfig
fields = {f.name for f in dataclasses.fields(TransformerConfig)}
answers = []
for case in json.load(sys.stdin):
    answer = {}
    try:
        flags = case['flags']
        if 'pipeline_model_parallel_layout' in flags:
            layout = Layout.from_str(flags['pipeline_model_parallel_layout'], case['pp'])
            layout.validate_layer_layout(case['layers'], case['mtp'] or None)
            answer['split'] = [layout.layout[r][v].count(LayerType.decoder) for v in range(layout.virtual_pipeline_model_parallel_size) for r in range(case['pp'])]
        known = {k: v for k, v in flags.items() if k in fields}
        answer['unknown'] = sorted(set(flags) - fields)
        if flags.get('num_virtual_stages_per_pipeline_rank'):
            known['virtual_pipeline_model_parallel_size'] = flags['num_virtual_stages_per_pipeline_rank']
        if case['mtp']: known['mtp_num_layers'] = case['mtp']
        TransformerConfig(num_layers=case['layers'], hidden_size=case['hidden'], num_attention_heads=case['heads'], pipeline_dtype=torch.bfloat16,
                          bf16=True, **case['more'], **known)
    except Exception as error:
        answer['wrong'] = f'{type(error).__name__}: {error}'
    answers.append(answer)
print(json.dumps(answers))
'''
TITAN = '''
import json, math, sys
import torch._utils
from unittest.mock import MagicMock
torch._utils._get_available_device_type = lambda: 'cpu'
for absent in ('datasets', 'datasets.distributed', 'tokenizers', 'torchtitan.models.moe.kernels', 'torch.utils.tensorboard'):
    sys.modules[absent] = MagicMock()
from torchtitan.config import ConfigManager
from torchtitan.distributed.pipeline_parallel import generate_llm_fqn_per_model_part as generate
answers = []
for case in json.load(sys.stdin):
    answer = {}
    try:
        config = ConfigManager().parse_args(case['flags'])
        p = config.parallelism
        answer['degrees'] = [p.tensor_parallel_degree, p.context_parallel_degree, p.pipeline_parallel_degree,
                             p.data_parallel_shard_degree * p.data_parallel_replicate_degree]
        answer['schedule'] = p.pipeline_parallel_schedule
        answer['recompute'] = config.activation_checkpoint.mode
        answer['parts'] = p.module_fqns_per_model_part
        per_stage, first, last = p.pipeline_parallel_layers_per_stage, p.pipeline_parallel_first_stage_less_layers, p.pipeline_parallel_last_stage_less_layers
        if answer['parts'] is None and case['pp'] > 1 and per_stage is not None:
            stages = math.ceil((case['layers'] + first + last) / per_stage)
            answer['parts'] = generate(stages, case['layers'], first, last)
    except (Exception, SystemExit) as error:
        answer['wrong'] = f'{type(error).__name__}: {error}'
    answers.append(answer)
print(json.dumps(answers))
'''


class Score:
    def __init__(self):
        self.good = self.bad = self.skipped = 0

    def check(self, name, wrong):
        self.good, self.bad = self.good + (not wrong), self.bad + bool(wrong)
        if wrong:
            print(f'{name}: {wrong}')

    def skip(self, name, why):
        self.skipped += 1
        print(f'skipped: {name}, {why}')


def plans(folder, framework):
    """(name, model, plan) of every question that the framework can be told."""
    for name, model in MODELS.items():
        path = folder / f'{name}.json'
        path.write_text(json.dumps(model))
        for asked, flags in ASKED.items():
            done = subprocess.run([BIN, 'plan', path, '--gpus', '256', '--memory', '80GiB', '--seq', '4096', '--global-batch', '512', '--budget', '1s', '--top', '3',
                                   '--framework', framework, '--json', *flags], capture_output=True, text=True)
            if done.returncode > 1:
                sys.exit(f'{name}, {asked}: {done.stderr}')
            for plan in json.loads(done.stdout)['plans']:
                if framework in plan['emit']:
                    yield f'{name}, {asked}, plan {plan["rank"]}', model, plan


def words(text):
    """The flags of what is typed, without comments."""
    return shlex.split(text, comments=True)


# The names that megatron.training gives to arguments of another name.
DESTINATIONS = {'microbatch_group_size_per_virtual_pipeline_stage': 'microbatch_group_size_per_vp_stage'}


def megatron_flags(text):
    """{field: value}; a flag without a value is True, numbers are numbers, several values are a list."""
    found = {}
    name = None
    for word in words(text):
        if word.startswith('--'):
            name = word[2:].replace('-', '_')
            found[name] = True
        else:
            value = int(word) if word.isdigit() else word
            found[name] = value if found[name] is True else [*(found[name] if isinstance(found[name], list) else [found[name]]), value]
    found.update({DESTINATIONS[flag]: found.pop(flag) for flag in DESTINATIONS if flag in found})
    if isinstance(found.get('recompute_modules'), str):
        found['recompute_modules'] = [found['recompute_modules']]
    return found


def ask(python, site, program, cases):
    done = subprocess.run([python, '-c', program], input=json.dumps(cases), capture_output=True, text=True, cwd=site,
                          env={'PYTHONPATH': str(site), 'PATH': '/usr/bin:/bin', 'HOME': '/tmp'})
    if done.returncode:
        return done.stderr.strip()[-400:]
    return json.loads(done.stdout.splitlines()[-1])


# Arguments of megatron.training that no field of the configuration has: of the data, the optimizer and the split by numbers.
TRAINING = {'micro_batch_size', 'global_batch_size', 'use_distributed_optimizer', 'num_virtual_stages_per_pipeline_rank'}


def compare_megatron(score, python, folder, version):
    if not fetch(python, folder / version, f'megatron-core=={version}', 'packaging'):
        return score.skip(f'megatron-core {version}', 'it cannot be fetched here')
    found = list(plans(folder, 'megatron'))
    cases = []
    for name, model, plan in found:
        more = {}
        if 'num_local_experts' in model or 'n_routed_experts' in model:
            more = {'num_moe_experts': model.get('num_local_experts') or model['n_routed_experts'], 'add_bias_linear': False, 'moe_token_dispatcher_type': 'alltoall'}
        if 'kv_lora_rank' in model:
            more['multi_latent_attention'] = True
        cases.append({'flags': megatron_flags(plan['emit']['megatron']), 'pp': plan['pp'], 'layers': model['num_hidden_layers'],
                      'mtp': model.get('num_nextn_predict_layers', 0), 'hidden': model['hidden_size'], 'heads': model['num_attention_heads'], 'more': more})
    answers = ask(python, folder / version, MEGATRON, cases)
    if isinstance(answers, str):
        return score.skip(f'megatron-core {version}', f'it does not run here: {answers}')
    for (name, _, plan), case, answer in zip(found, cases, answers):
        unknown = set(answer.get('unknown', ())) - TRAINING
        split = answer.get('split')
        wrong = answer.get('wrong') or (unknown and f'no field {sorted(unknown)}')
        if not wrong and split is not None and split != [sum(s) if isinstance(s, list) else s for s in plan['layers']]:
            wrong = f'{split} instead of {plan["layers"]}'
        if not wrong and split is None and len(set(plan['layers'])) > 1:
            wrong = 'the split is not even and no layout is written'
        score.check(f'megatron-core {version}, {name}', wrong)


def compare_titan(score, python, folder, version):
    needs = ['torchdata', 'tyro', 'docstring-parser', 'typeguard', 'tomli', 'einops', 'pillow']
    if not fetch(python, folder / f'titan-{version}', f'torchtitan=={version}', *needs):
        return score.skip(f'torchtitan {version}', 'it cannot be fetched here')
    found = [x for x in plans(folder, 'torchtitan')]
    cases = []
    for _, model, plan in found:
        flags, parts = [], None
        for line in plan['emit']['torchtitan'].splitlines():
            if line.startswith('module_fqns_per_model_part = '):
                parts = json.loads(line.split(' = ')[1])
            else:
                flags += words(line)
        # The name of a part's list is a setting of its file, not a flag.
        if parts:
            config = folder / f'part{len(cases)}.toml'
            config.write_text('[parallelism]\nmodule_fqns_per_model_part = ' + json.dumps(parts) + '\n')
            flags = ['--job.config_file', str(config), *flags]
        cases.append({'flags': flags, 'pp': plan['pp'], 'layers': model['num_hidden_layers']})
    answers = ask(python, folder / f'titan-{version}', TITAN, cases)
    if isinstance(answers, str):
        return score.skip(f'torchtitan {version}', f'it does not run here: {answers}')
    for (name, _, plan), answer in zip(found, answers):
        wrong = answer.get('wrong')
        if not wrong and answer['degrees'] != [plan['tp'], plan['cp'], plan['pp'], plan['dp']]:
            wrong = f'degrees {answer["degrees"]}'
        if not wrong and plan['pp'] > 1:
            read = [sum(part.startswith('layers.') for part in stage) for stage in answer['parts'] or []]
            if read != plan['layers']:
                wrong = f'{read} instead of {plan["layers"]}'
        score.check(f'torchtitan {version}, {name}', wrong)


def main():
    python = rivals.find_torch()
    score = Score()
    if not python:
        print('skipped: torch cannot be installed here')
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for version in ('0.14.0', '0.16.1'):
            compare_megatron(score, python, folder, version)
        compare_titan(score, python, folder, '0.2.2')
    print(f'planned: {score.good} read as planned, {score.bad} otherwise, {score.skipped} skipped')
    return score.bad > 0


if __name__ == '__main__':
    sys.exit(main())
