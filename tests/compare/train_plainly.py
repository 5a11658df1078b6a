"""Training without a pipeline as users write it, for torchrun: what training.py records. Knows nothing of recording.

  train_plainly.py WAY [FAULT]

WAY    ddp, fsdp2 (torch alone), trainer (transformers), accelerate, lightning: the same small model over gloo on the CPU
FAULT  data       every batch takes 40 ms to make, on all ranks
       straggler  rank 1 computes 30 ms longer in each forward
       pause      rank 0 stands still for 400 ms after steps 7 and 15
       wire       gradients are five times the work: one wide layer that few rows go through
"""
import sys
import time

import torch
import torch.distributed as dist

WAY, FAULT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ''
STEPS, BATCH, SIZE = 20, 32, 256


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * BATCH * dist.get_world_size()

    def __getitem__(self, index):
        if FAULT == 'data':
            time.sleep(0.04 / BATCH)
        row = torch.full((SIZE,), index / 1000.0)
        return {'x': row, 'labels': torch.tensor(index % 10)}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        wide = 4096 if FAULT == 'wire' else SIZE
        self.body = torch.nn.Sequential(torch.nn.Linear(SIZE, wide), torch.nn.ReLU(), torch.nn.Linear(wide, SIZE), torch.nn.ReLU())
        self.head = torch.nn.Linear(SIZE, 10)

    def forward(self, x, labels=None):
        if FAULT == 'straggler' and dist.get_rank() == 1:
            time.sleep(0.03)
        else:
            time.sleep(0.01)  # what a device would compute meanwhile
        logits = self.head(self.body(x))
        loss = torch.nn.functional.cross_entropy(logits, labels)
        return {'loss': loss, 'logits': logits}


def between(step):
    if FAULT == 'pause' and dist.get_rank() == 0 and step in (7, 15):
        time.sleep(0.4)


def loader():
    rows = Rows()
    sampler = torch.utils.data.DistributedSampler(rows, shuffle=False)
    return torch.utils.data.DataLoader(rows, batch_size=BATCH, sampler=sampler)


def loop(model, optimizer, batches, backward=lambda loss: loss.backward()):
    for step, batch in enumerate(batches):
        loss = model(**batch)['loss']
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        between(step)


def ddp():
    dist.init_process_group('gloo')
    model = torch.nn.parallel.DistributedDataParallel(Model(), bucket_cap_mb=1)
    loop(model, torch.optim.AdamW(model.parameters(), lr=1e-3), loader())


def fsdp2():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    dist.init_process_group('gloo')
    mesh = init_device_mesh('cpu', (dist.get_world_size(),), mesh_dim_names=('dp',))
    model = Model()
    fully_shard(model.body, mesh=mesh)
    fully_shard(model, mesh=mesh)
    loop(model, torch.optim.AdamW(model.parameters(), lr=1e-3), loader())


def accelerate():
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    model = Model()
    model, optimizer, batches = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3),
                                                    torch.utils.data.DataLoader(Rows(), batch_size=BATCH))
    loop(model, optimizer, batches, accelerator.backward)


def trainer():
    import tempfile
    import transformers

    class Between(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            between(state.global_step - 1)
    with tempfile.TemporaryDirectory() as folder:
        options = transformers.TrainingArguments(folder, per_device_train_batch_size=BATCH, max_steps=STEPS, use_cpu=True, report_to='none',
                                                 save_strategy='no', logging_strategy='no', disable_tqdm=True, ddp_backend='gloo')
        transformers.Trainer(Model(), options, train_dataset=Rows(), callbacks=[Between()]).train()


def lightning():
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, index):
            return self.model(**batch)['loss']

        def on_train_batch_end(self, outputs, batch, index):
            between(index)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

        def train_dataloader(self):
            return loader()
    pl.Trainer(max_epochs=1, accelerator='cpu', devices=int(__import__('os').environ['WORLD_SIZE']), strategy='ddp', logger=False,
               enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False).fit(Module())


if __name__ == '__main__':
    torch.manual_seed(0)
    {'ddp': ddp, 'fsdp2': fsdp2, 'trainer': trainer, 'accelerate': accelerate, 'lightning': lightning}[WAY]()
    if dist.is_initialized():
        dist.destroy_process_group()
