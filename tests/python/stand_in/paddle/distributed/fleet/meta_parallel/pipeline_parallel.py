import os
import time

import paddle  # noqa: F401


class Group:
    def __init__(self):
        self.ranks = list(range(int(os.environ['PADDLE_TRAINERS_NUM'])))


class PipelineParallel:
    def __init__(self, micro_batches, chunks=1):
        self.stage_id = self.global_rank = int(os.environ['PADDLE_TRAINER_ID'])
        self.pp_group, self.accumulate_steps = Group(), micro_batches
        self.num_stages = len(self.pp_group.ranks)
        self._virtual_pp_world_size, self._virtual_pp_rank = (None, None) if chunks == 1 else (chunks, 0)

    def _forward_step(self, input_tensor, micro_dataset, chunk_id=None, step_id=None):
        time.sleep(0.001)

    def _backward_step(self, input_tensor, output_tensor, output_tensor_grad, chunk_id=None, step_id=None, overlap_schedule_mode=False):
        time.sleep(0.001)

    def forward_backward_pipeline(self, data, scaler=None, forward_only=False):
        ahead = min(self.num_stages - self.stage_id - 1, self.accumulate_steps)
        for i in range(ahead):
            self._forward_step(None, data, step_id=i)
        for i in range(self.accumulate_steps):
            if i + ahead < self.accumulate_steps:
                self._forward_step(None, data, step_id=i + ahead)
            self._backward_step(None, None, None, step_id=i)

    def train_batch(self, data, optimizer=None, lr_scheduler=None, scaler=None):
        return self.forward_backward_pipeline(data, scaler)

    def eval_batch(self, data, compute_loss=False):
        for _ in range(self.accumulate_steps):
            self._forward_step(None, data)


class PipelineParallelWithInterleaveFthenB(PipelineParallel):
    def forward_backward_pipeline(self, data, scaler=None, forward_only=False):
        for kind, chunks in ((self._forward_step, (0, 1)), (self._backward_step, (1, 0))):
            for chunk in chunks:
                self._virtual_pp_rank = chunk
                for i in range(self.accumulate_steps):
                    if kind == self._forward_step:
                        kind(None, data, chunk_id=chunk, step_id=i)
                    elif not forward_only:
                        kind(None, None, None, step_id=i)
