"""Hooks that record pipelines of frameworks, without a change in the program.

    from stageline import hooks
    hooks.install()          # before or after the framework is imported; `stageline record -- COMMAND` does it by itself

When a module of HOOKS is imported (or was), the functions in it that run the schedule's jobs are wrapped. Recording begins with the
first training step, so that processes without one (launchers, data loaders) write no file. Evaluation is not recorded.

Nothing here may break the program: what goes wrong in a hook is said once on stderr, and the framework's function runs as it is.
"""
import importlib
import sys

from . import run

# module whose import is waited for → (module of ours, function in it)
HOOKS = {
    'torch.distributed.pipelining.stage': ('torch_pipelining', 'stages'),
    'torch.distributed.pipelining.schedules': ('torch_pipelining', 'schedules'),
    'torch.optim.optimizer': ('torch_pipelining', 'optimizers'),
    'torch.autograd': ('torch_training', 'autograd'),
    'torch.distributed.distributed_c10d': ('torch_training', 'collectives'),
    'torch.nn.parallel.distributed': ('torch_training', 'data_parallel'),
    'torch.distributed.fsdp.fully_sharded_data_parallel': ('torch_training', 'fully_sharded'),
    'torch.distributed.fsdp._fully_shard._fsdp_state': ('torch_training', 'fully_shard'),
    'torch._dynamo.eval_frame': ('torch_training', 'compiled'),
    'torch.utils.data.dataloader': ('torch_training', 'loaders'),
    'torchdata.stateful_dataloader.stateful_dataloader': ('torch_training', 'loaders'),
    'deepspeed.runtime.engine': ('torch_training', 'engine'),
    'transformers.trainer': ('torch_training', 'trainer'),
    'lightning.pytorch.strategies.strategy': ('torch_training', 'lightning'),
    'pytorch_lightning.strategies.strategy': ('torch_training', 'lightning'),
    'megatron.core.pipeline_parallel.schedules': ('megatron', 'schedules'),
    'megatron.core.pipeline_parallel.combined_1f1b': ('megatron', 'combined'),
    'megatron.core.pipeline_parallel.p2p_communication': ('megatron', 'messages'),
    'mindspeed.core.pipeline_parallel.dualpipev.dualpipev_schedules': ('megatron', 'dualpipev'),
    'mindspeed.core.pipeline_parallel.fb_overlap.vpp_schedules': ('megatron', 'overlap'),
    'mindspeed.core.transformer.moe.moe_feature.fb_overlap.vpp_schedules': ('megatron', 'overlap'),
    'deepspeed.runtime.pipe.engine': ('deepspeed', 'engine'),
    'paddle.distributed.fleet.meta_parallel.pipeline_parallel': ('paddle', 'pipeline'),
}


def _apply(name):
    ours, function = HOOKS[name]
    try:
        getattr(importlib.import_module(f'{__name__}.{ours}'), function)(sys.modules[name])
    except Exception as error:
        print(f'stageline: {name} is not recorded: {type(error).__name__}: {error}', file=sys.stderr)


class _Loader:
    """The module's own loader, with the hook after it. Gives itself up as soon as the module is there."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _apply(module.__name__)


class _Finder:
    """First on sys.meta_path: asks the others, and wraps the loader of what is waited for."""

    def find_spec(self, name, path=None, target=None):
        if name not in HOOKS:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, 'find_spec', None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                if hasattr(spec.loader, 'exec_module'):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None

    def invalidate_caches(self):
        pass


_finder = _Finder()


def install():
    """Waits for the frameworks' modules; those that are there are hooked now. Once is enough, more do nothing."""
    if _finder in sys.meta_path:
        return
    sys.meta_path.insert(0, _finder)
    run.allow(run.PLAIN, True)
    for name in HOOKS:
        if name in sys.modules:
            _apply(name)
