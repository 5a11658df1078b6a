#!/usr/bin/env python3
"""./dev compare --record: DeepSpeed as released, on two processes over gloo: ZeRO 1, 2 and 3 by the hooks of training, its pipeline engine by its own.

zero.py [VERSION…]     exit 1 when what is recorded differs from what ran

The source package is fetched by pip without what it depends on, and put on the path as it is. A version that cannot be fetched or does not run here is skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.setdefault('STAGELINE_BIN', str(ROOT / 'build/dev/stageline'))).resolve()
PACKAGE = os.environ.get('STAGELINE_PACKAGE') or str(BIN.parent / 'python')
sys.path[:0] = [str(ROOT / 'bench')]
import rival as rivals  # noqa: E402

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


def pip(python, *arguments, **more):
    return subprocess.run([python, '-m', 'pip', *arguments, '--quiet', '--disable-pip-version-check', '--no-deps'], capture_output=True, **more).returncode == 0


def fetch(python, version, folder):
    if not pip(python, 'download', '--no-binary', 'deepspeed', '--no-build-isolation', f'deepspeed=={version}', '-d', str(folder), env={**os.environ, 'DS_BUILD_OPS': '0'}):
        return None
    if not pip(python, 'install', '--target', str(folder / 'needs'), *NEEDS):
        return None
    with tarfile.open(next(folder.glob('deepspeed-*.tar.gz'))) as archive:
        archive.extractall(folder, filter='data')
    return f'{folder / f"deepspeed-{version}"}:{folder / "needs"}'


def expected(way):
    """How many of each kind a rank has in every step."""
    if way == 'pipeline':
        return {0: {'F': MICRO_BATCHES, 'B': MICRO_BATCHES, 'O': 1, 'SF': MICRO_BATCHES, 'RB': MICRO_BATCHES},
                1: {'F': MICRO_BATCHES, 'B': MICRO_BATCHES, 'O': 1, 'RF': MICRO_BATCHES, 'SB': MICRO_BATCHES}}
    return {rank: {'F': ACCUMULATED, 'B': ACCUMULATED, 'O': 1} for rank in range(RANKS)}


def flaw_of(way, folder):
    """What of the recording is not as it ran; "": nothing."""
    query = ('select rank, step, kind, count(*) from cells group by 1, 2, 3')
    rows = json.loads(subprocess.run([BIN, 'sql', folder, query, '--format', 'json', '--rows', '0'], capture_output=True, text=True, check=True).stdout)['rows']
    found = {(rank, step, kind): count for rank, step, kind, count in rows}
    steps = sorted({step for _, step, _ in found})
    if steps != list(range(STEPS)):
        return f'steps {steps}'
    for rank, kinds in expected(way).items():
        for step in range(STEPS):
            for kind, count in kinds.items():
                if found.get((rank, step, kind), 0) != count:
                    return f'rank {rank}, step {step}: {found.get((rank, step, kind), 0)} {kind}, {count} ran'
            if way != 'pipeline' and not found.get((rank, step, 'C')):
                return f'rank {rank}, step {step}: no collective'
    return ''


def main():
    python = rivals.find_torch()
    if not python:
        print('skipped: DeepSpeed, torch cannot be installed here')
        return 0
    passed = failed = skipped = 0
    for version in sys.argv[1:] or VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            path = fetch(python, version, folder)
            if not path:
                print(f'DeepSpeed {version}: skipped, it cannot be fetched here')
                skipped += 1
                continue
            (folder / 'job.py').write_text(PROGRAM)
            for number, way in enumerate(('1', '2', '3', 'pipeline')):
                name = f'DeepSpeed {version}, {"pipeline engine" if way == "pipeline" else f"ZeRO {way}"}'
                environment = {k: v for k, v in os.environ.items() if not k.startswith('STAGELINE_')}
                environment.update(PYTHONPATH=os.pathsep.join(filter(None, [path, os.environ.get('PYTHONPATH')])), DS_ACCELERATOR='cpu', OMP_NUM_THREADS='1', GLOO_SOCKET_IFNAME='lo',
                                   STAGELINE_PACKAGE=PACKAGE)
                done = subprocess.run([BIN, 'record', '-o', folder / f'rec{way}', '--', python, '-m', 'torch.distributed.run', '--nproc-per-node', str(RANKS), '--master-port',
                                       str(29610 + number), folder / 'job.py', way], env=environment, capture_output=True, text=True, timeout=900)
                if done.stdout.count('ran') != RANKS:
                    print(f'{name}: skipped, it does not run here: {done.stderr.strip()[-300:]}')
                    skipped += 1
                    continue
                flaw = flaw_of(way, folder / f'rec{way}')
                print(f'{name}: {flaw or "recorded as it ran"}', flush=True)
                passed += not flaw
                failed += bool(flaw)
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
