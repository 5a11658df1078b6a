#!/usr/bin/env python3
"""./dev compare --record: the hooks against released versions of megatron-core: is every function there that they wait for, and wrapped?

megatron.py [VERSION…]     exit 1 when a version lacks something, or its schedule without a pipeline is recorded otherwise than it ran

The wheels are fetched by pip without what they depend on; they are imported, with stand-ins for what a CPU does not have, in the Python that
has torch. A version that cannot be fetched or imported here is skipped.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.setdefault('STAGELINE_BIN', str(ROOT / 'build/dev/stageline'))).resolve()
sys.path[:0] = [str(ROOT / 'bench'), str(ROOT / 'tests/torch')]
import rival as rivals  # noqa: E402

VERSIONS = ['0.10.0', '0.12.1', '0.14.0', '0.16.0']
PROGRAM = '''
import os, sys
import torch
from stageline import hooks, record
hooks.install()
os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='0', RANK='0', WORLD_SIZE='1')
torch.distributed.init_process_group('gloo', init_method='file://' + sys.argv[1], rank=0, world_size=1)
torch.cuda.current_device = lambda: 'cpu'
torch.Tensor.cuda = lambda self, *a, **k: self
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import p2p_communication, schedules
wanted = [(schedules, n) for n in ('forward_step', 'backward_step', 'forward_backward_no_pipelining', 'forward_backward_pipelining_with_interleaving',
                                   'forward_backward_pipelining_without_interleaving')]
owner = getattr(p2p_communication, 'P2PCommunicator', p2p_communication)
wanted += [(owner, n) for n in ('recv_forward', 'recv_backward', 'send_forward', 'send_backward', 'send_forward_recv_backward',
                                'send_backward_recv_forward', 'send_forward_recv_forward', 'send_backward_recv_backward',
                                'send_forward_backward_recv_forward_backward')]
if 'combined_1f1b' in dir(sys.modules['megatron.core.pipeline_parallel']):
    from megatron.core.pipeline_parallel import combined_1f1b
    wanted.append((combined_1f1b, 'combined_forward_backward_step'))
missing = [n for o, n in wanted if not hasattr(getattr(o, n, None), 'stageline_wrapped')]
print('missing', missing)
parallel_state.initialize_model_parallel()
from megatron.core import ModelParallelConfig
from megatron.core.enums import ModelType
class Config(ModelParallelConfig):
    def __getattr__(self, name):  # what only a transformer's configuration has: off
        if name.startswith('__'):
            raise AttributeError(name)
        return None
class Model(torch.nn.Module):
    model_type = ModelType.encoder_or_decoder
    def __init__(self):
        super().__init__()
        self.config = Config(pipeline_dtype=torch.float32)
        self.layer = torch.nn.Linear(8, 8)
        self.input = None
    def set_input_tensor(self, tensor):
        self.input = tensor
    def forward(self, x):
        return self.layer(x)
def step(data, model):
    output = model(next(data))
    return output, lambda out: (out.sum(), {'loss': out.sum().detach()})
class OnCpu(torch.overrides.TorchFunctionMode):  # tensors that the schedule makes on the GPU
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if 'cuda' in str(kwargs.get('device', '')):
            kwargs['device'] = 'cpu'
        return function(*args, **kwargs)
model = Model()
run = schedules.get_forward_backward_func()
with OnCpu():
    for _ in range(2):
        run(forward_step_func=step, data_iterator=iter(torch.randn(4, 2, 8)), model=[model], num_microbatches=4, seq_length=8, micro_batch_size=2)
print('ran')
'''


def fetch(python, version, folder):
    done = subprocess.run([python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--target', folder,
                           f'megatron-core=={version}'], capture_output=True, text=True)
    return done.returncode == 0


def main():
    python = rivals.find_torch()
    if not python:
        print('skipped: megatron-core, torch cannot be installed here')
        return 0
    passed = failed = skipped = 0
    for version in sys.argv[1:] or VERSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            if not fetch(python, version, folder / 'site'):
                print(f'megatron-core {version}: skipped, it cannot be fetched here')
                skipped += 1
                continue
            environment = {k: v for k, v in os.environ.items() if not k.startswith('STAGELINE_')}
            environment.update(PYTHONPATH=f'{BIN.parent / "python"}:{folder / "site"}', STAGELINE_DIR=str(folder / 'rec'), OMP_NUM_THREADS='1',
                               GLOO_SOCKET_IFNAME='lo')
            done = subprocess.run([python, '-c', PROGRAM, str(folder / 'store')], env=environment, capture_output=True, text=True, timeout=600)
            if 'missing' not in done.stdout:
                print(f'megatron-core {version}: skipped, it cannot be imported here: {done.stderr.strip()[-300:]}')
                skipped += 1
                continue
            if 'missing []' not in done.stdout:
                print(f'megatron-core {version}: {done.stdout.strip()}')
                failed += 1
                continue
            if 'ran' not in done.stdout:
                print(f'megatron-core {version}: all wrapped; its schedule does not run here: {done.stderr.strip()[-300:]}')
                passed += 1
                continue
            rows = subprocess.run([BIN, 'export', folder / 'rec', '--to', 'csv', '-o', '-'], capture_output=True, text=True).stdout.splitlines()
            cells = [tuple(row.split(',')[k] for k in (0, 5, 7)) for row in rows[1:] if row.split(',')[5] in 'FB']
            expected = [(str(s), kind, str(mb)) for s in range(2) for mb in range(4) for kind in 'FB']
            good = cells == expected
            print(f'megatron-core {version}: all wrapped; {"its cells are what it ran" if good else f"cells {cells}"}', flush=True)
            passed += good
            failed += not good
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
