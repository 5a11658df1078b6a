#!/usr/bin/env python3
"""./dev compare --record runs DeepSpeed as released, on two processes over gloo. It records ZeRO 1, 2 and 3 by the
hooks of training, and the pipeline engine by its own hooks.

zero.py [VERSION…]     exit 1 when what is recorded differs from what ran

The source package is fetched by pip without what it depends on, and put on the path as it is. A version that cannot be fetched or does not run here is skipped.
"""
import sys

from recorded_jobs import Versions, ended_badly, fetch, fetch_source, kinds_differ, run, torchrun

VERSIONS = ['0.19.8']
NEEDS = ['einops', 'hjson', 'msgpack', 'ninja', 'packaging', 'psutil', 'py-cpuinfo', 'pydantic', 'pydantic-core', 'typing-extensions', 'annotated-types',
         'typing-inspection', 'tqdm']
STEPS, RANKS, ACCUMULATED, MICRO_BATCHES = 8, 2, 2, 4
PROGRAM = f'''
import sys, torch, deepspeed
way = sys.argv[1]
deepspeed.init_distributed('gloo')
torch.manual_seed(1)
optimizer = {{'type': 'Adam', 'params': {{'lr': 1e-3, 'torch_adam': True}}}}
if way == 'pipeline':
    from deepspeed.pipe import PipelineModule
    network = PipelineModule(layers=[torch.nn.Linear(64, 64) for _ in range(4)], num_stages={RANKS}, loss_fn=torch.nn.functional.mse_loss)
    engine, _, _, _ = deepspeed.initialize(model=network, model_parameters=list(network.parameters()), config={{
        'train_batch_size': 8 * {MICRO_BATCHES}, 'train_micro_batch_size_per_gpu': 8, 'optimizer': optimizer}})
    def batches():
        while True:
            yield torch.randn(8, 64), torch.randn(8, 64)
    data = batches()
    for _ in range({STEPS}):
        engine.train_batch(data_iter=data)
else:
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    samples = 8 * {STEPS * RANKS * ACCUMULATED}
    engine, _, loader, _ = deepspeed.initialize(model=network, model_parameters=network.parameters(),
        training_data=torch.utils.data.TensorDataset(torch.randn(samples, 64), torch.randn(samples, 1)), config={{
        'train_batch_size': 8 * {RANKS * ACCUMULATED}, 'train_micro_batch_size_per_gpu': 8, 'gradient_accumulation_steps': {ACCUMULATED},
        'zero_optimization': {{'stage': int(way)}}, 'optimizer': optimizer}})
    for x, y in loader:
        engine.backward(torch.nn.functional.mse_loss(engine(x), y))
        engine.step()
torch.distributed.barrier()
print('ran', flush=True)
torch.distributed.destroy_process_group()
'''


def expected(way):
    """How many of each kind a rank has in every step."""
    if way != 'pipeline':
        return lambda rank: {'F': ACCUMULATED, 'B': ACCUMULATED, 'O': 1}
    messages = ({'SF': MICRO_BATCHES, 'RB': MICRO_BATCHES}, {'RF': MICRO_BATCHES, 'SB': MICRO_BATCHES})
    return lambda rank: {'F': MICRO_BATCHES, 'B': MICRO_BATCHES, 'O': 1, **messages[rank]}


def compare(score, python, version, folder):
    source = fetch_source(python, folder, 'deepspeed', version)
    if not source or not fetch(python, folder / 'needs', *NEEDS):
        score.skip(version, 'it cannot be fetched here')
        return
    (folder / 'job.py').write_text(PROGRAM)
    for way in ('1', '2', '3', 'pipeline'):
        what = f'{version}, {"pipeline engine" if way == "pipeline" else f"ZeRO {way}"}'
        done = run(torchrun(python, RANKS, folder / 'job.py', way), folder / f'rec{way}', [source, folder / 'needs'], DS_ACCELERATOR='cpu',
                   TORCH_EXTENSIONS_DIR=folder / 'extensions')  # it compiles one, once
        if done.stdout.count('ran') != RANKS:
            score.skip(what, f'it does not run here: {done.stderr.strip()[-300:]}')
        else:
            score.check(what, ended_badly(done) or kinds_differ(folder / f'rec{way}', RANKS, STEPS, expected(way), () if way == 'pipeline' else ('C',)))


if __name__ == '__main__':
    sys.exit(Versions('DeepSpeed', VERSIONS).each(compare))
