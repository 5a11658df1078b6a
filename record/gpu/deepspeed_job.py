"""DeepSpeed's pipeline engine on one GPU: one stage, four micro-batches, ten steps. Prints how many forwards and backwards ran."""
import os

import torch

STEPS, MICRO_BATCHES, BATCH, WIDTH = 10, 4, 8, 256

for name, value in (('RANK', '0'), ('WORLD_SIZE', '1'), ('LOCAL_RANK', '0'), ('MASTER_ADDR', '127.0.0.1'), ('MASTER_PORT', '29519')):
    os.environ.setdefault(name, value)
import deepspeed  # noqa: E402  after its variables
from deepspeed.pipe import PipelineModule  # noqa: E402

deepspeed.init_distributed()
network = PipelineModule(layers=[torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)], num_stages=1, loss_fn=torch.nn.functional.mse_loss)
engine, _, _, _ = deepspeed.initialize(model=network, model_parameters=list(network.parameters()), config={
    'train_batch_size': BATCH * MICRO_BATCHES, 'train_micro_batch_size_per_gpu': BATCH, 'optimizer': {'type': 'Adam', 'params': {'lr': 1e-3, 'torch_adam': True}}})


def batches():
    while True:
        yield torch.randn(BATCH, WIDTH, device=engine.device), torch.randn(BATCH, WIDTH, device=engine.device)


data = batches()
for _ in range(STEPS):
    engine.train_batch(data_iter=data)
torch.distributed.destroy_process_group()
print(STEPS * MICRO_BATCHES * 2)
