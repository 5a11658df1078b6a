#!/usr/bin/env python3
"""./dev compare --record: the hooks against released versions of megatron-core: is every function there that they wait for, and wrapped?

megatron.py [VERSION…]     exit 1 when a version lacks something, or its schedule without a pipeline is recorded otherwise than it ran

The wheels are fetched by pip without what they depend on; they are imported, with stand-ins for what a CPU does not have, in the Python that
has torch. A version that cannot be fetched or imported here is skipped.
"""
import sys

from recorded_jobs import BIN, PACKAGE, Versions, fetch, run

VERSIONS = ['0.10.0', '0.12.1', '0.14.0', '0.16.1', '0.17.0', '0.18.0', '0.19.2']
# Wheels of newer versions are for newer Pythons than may be here; what is compiled in them is not asked.
FOR_NEWER_PYTHON = ['--ignore-requires-python', '--only-binary', ':all:', '--python-version', '3.12', '--platform', 'manylinux_2_28_x86_64']
PROGRAM = '''
import os, sys
import torch
from stageline import hooks, record
hooks.install()
os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='0', RANK='0', WORLD_SIZE='1')
torch.distributed.init_process_group('gloo', init_method='file://' + sys.argv[1], rank=0, world_size=1)
torch.cuda.current_device = lambda: 'cpu'
torch.Tensor.cuda = lambda self, *a, **k: self
import importlib.util
if not importlib.util.find_spec('triton'):  # imported by some, called by none; torch's own modules look for it first and do without
    import torch._inductor.ir, torch._inductor.lowering
    from unittest.mock import MagicMock
    sys.modules.update({name: MagicMock(__version__='3.5.0') for name in ('triton', 'triton.language')})
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


def compare(score, python, version, folder):
    wheel = f'megatron-core=={version}'
    if not fetch(python, folder / 'site', wheel) and not fetch(python, folder / 'site', wheel, *FOR_NEWER_PYTHON):
        score.skip(version, 'it cannot be fetched here')
        return
    (folder / 'job.py').write_text(PROGRAM)
    done = run([python, folder / 'job.py', folder / 'store'], path=[PACKAGE, folder / 'site'], STAGELINE_DIR=folder / 'rec')
    if 'missing' not in done.stdout:
        score.skip(version, f'it cannot be imported here: {done.stderr.strip()[-300:]}')
    elif 'missing []' not in done.stdout:
        score.check(version, done.stdout.strip())
    elif 'ran' not in done.stdout:
        score.check(version, '', f'all wrapped; its schedule does not run here: {done.stderr.strip()[-300:]}')
    else:
        rows = run([BIN, 'export', folder / 'rec', '--to', 'csv', '-o', '-']).stdout.splitlines()
        cells = [tuple(row.split(',')[k] for k in (0, 5, 7)) for row in rows[1:] if row.split(',')[5] in 'FB']
        expected = [(str(s), kind, str(mb)) for s in range(2) for mb in range(4) for kind in 'FB']
        score.check(version, '' if cells == expected else f'cells {cells}', 'all wrapped; its cells are what it ran')


if __name__ == '__main__':
    sys.exit(Versions('megatron-core', VERSIONS).each(compare))
