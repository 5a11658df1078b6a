"""Megatron-Core on one GPU with made-up data: its schedule without a pipeline, four micro-batches, ten steps. Prints how many forwards and backwards ran."""
import functools
import os

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig

STEPS, MICRO_BATCHES, BATCH, LENGTH, WORDS = 10, 4, 8, 64, 128

for name, value in (('RANK', '0'), ('WORLD_SIZE', '1'), ('LOCAL_RANK', '0'), ('MASTER_ADDR', '127.0.0.1'), ('MASTER_PORT', '29518')):
    os.environ.setdefault(name, value)
torch.cuda.set_device(0)
torch.distributed.init_process_group('nccl')
parallel_state.initialize_model_parallel(1, 1)
model_parallel_cuda_manual_seed(1)
config = TransformerConfig(num_layers=2, hidden_size=64, num_attention_heads=4, use_cpu_initialization=True, pipeline_dtype=torch.float32)
model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(), vocab_size=WORDS, max_sequence_length=LENGTH).cuda()
optimizer = torch.optim.Adam(model.parameters())


def forward_step(data, network):
    tokens = next(data)
    positions = torch.arange(LENGTH, device='cuda').expand(BATCH, LENGTH)
    mask = torch.ones(1, 1, LENGTH, LENGTH, device='cuda').triu(1).bool()
    return network(tokens, positions, mask, labels=tokens), functools.partial(lambda out: (out.float().mean(), {}))


run = get_forward_backward_func()
for _ in range(STEPS):
    optimizer.zero_grad()
    batches = iter([torch.randint(WORDS, (BATCH, LENGTH), device='cuda') for _ in range(MICRO_BATCHES)])
    run(forward_step_func=forward_step, data_iterator=batches, model=model, num_microbatches=MICRO_BATCHES, seq_length=LENGTH, micro_batch_size=BATCH,
        decoder_seq_length=LENGTH, forward_only=False)
    optimizer.step()
torch.cuda.synchronize()
torch.distributed.destroy_process_group()
print(STEPS * MICRO_BATCHES * 2)
