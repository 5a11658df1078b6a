"""torchtitan's own trainer on a small Llama, on the CPU over gloo, for torchrun: what titan.py records. Knows nothing of recording.

  titan_job.py [--OPTION VALUE]…     torchtitan's options

The trainer, its parallelisms, its loader and its optimizers are torchtitan's. This file adds random tokens, and
functions that a CPU lacks: memory statistics, a barrier that names a GPU, a gloo that multiplies. Packages that only
other data or GPUs need are replaced.
"""
import sys
from unittest.mock import MagicMock

import torch
import torch._utils

# Before torchtitan is imported, which reads both at once.
sys.argv[1:] = ['--model.name', 'own', '--model.flavor', 'tiny', '--training.seq_len', '64', '--metrics.log_freq', '1', '--comm.trace_buf_size', '0',
                '--training.mixed_precision_param', 'float32', '--activation_checkpoint.mode', 'none', *sys.argv[1:]]
torch._utils._get_available_device_type = lambda: 'cpu'
for absent in ('datasets', 'datasets.distributed', 'tokenizers', 'torchtitan.models.moe.kernels', 'torch.utils.tensorboard'):
    sys.modules[absent] = MagicMock()
from torchtitan import train  # noqa: E402
from torchtitan.components import metrics  # noqa: E402
from torchtitan.components.dataloader import ParallelAwareDataloader  # noqa: E402
from torchtitan.models import llama3  # noqa: E402
from torchtitan.protocols.train_spec import register_train_spec  # noqa: E402

WORDS = 2048


class Tokens(torch.utils.data.IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        while True:
            row = torch.randint(0, WORDS, (self.length + 1,))
            yield {'input': row[:-1]}, row[1:]

    def state_dict(self):
        return {}

    def load_state_dict(self, _):
        pass


class NoMemory:
    device_name, device_capacity_gib = 'cpu', 0.0

    def get_peak_stats(self):
        return metrics.DeviceMemStats(0, 0, 0, 0, 0, 0)

    def reset_peak_stats(self):
        pass


def parallelize(model, *arguments, **options):
    made = llama3.parallelize_llama(model, *arguments, **options)
    for module in made.modules():
        if isinstance(module, torch.distributed.fsdp.FSDPModule):
            module.set_force_sum_reduction_for_comms(True)
    return made


def loader(dp_world_size, dp_rank, tokenizer, job_config):
    training = job_config.training
    return ParallelAwareDataloader(Tokens(training.seq_len), dp_rank=dp_rank, dp_world_size=dp_world_size, batch_size=training.local_batch_size)


metrics.build_device_memory_monitor = NoMemory
train.dist_utils.set_pg_timeouts = lambda **_: None
spec = llama3.get_train_spec()
spec.model_args = {'tiny': llama3.TransformerModelArgs(dim=64, n_layers=4, n_heads=4, vocab_size=WORDS)}
spec.parallelize_fn, spec.build_dataloader_fn, spec.build_tokenizer_fn = parallelize, loader, None
register_train_spec('own', spec)
train.main(train.Trainer)
