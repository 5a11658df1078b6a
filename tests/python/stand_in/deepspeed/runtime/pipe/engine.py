import os
import time
from types import MethodType

import torch  # noqa: F401
from torch.optim import Optimizer

from . import schedule


class Grid:
    def __init__(self):
        self.pp_group = list(range(int(os.environ['WORLD_SIZE'])))


class PipelineEngine:
    def __init__(self, micro_batches):
        self.stage_id, self.num_stages, self.micro_batches = int(os.environ['RANK']), int(os.environ['WORLD_SIZE']), micro_batches
        self.grid, self.optimizer = Grid(), Optimizer()

    def _exec_optimizer_step(self, lr_kwargs=None):
        self.optimizer.step()

    def _exec_load_micro_batch(self, buffer_id):
        time.sleep(0.0002)

    def _exec_forward_pass(self, buffer_id):
        time.sleep(0.001)

    def _exec_backward_pass(self, buffer_id):
        time.sleep(0.001)

    def _exec_send_activations(self, buffer_id):
        time.sleep(0.0002)

    def _exec_recv_grads(self, buffer_id):
        time.sleep(0.0002)

    _INSTRUCTION_MAP = {
        schedule.OptimizerStep: _exec_optimizer_step,
        schedule.LoadMicroBatch: _exec_load_micro_batch,
        schedule.ForwardPass: _exec_forward_pass,
        schedule.BackwardPass: _exec_backward_pass,
        schedule.SendActivation: _exec_send_activations,
        schedule.RecvGrad: _exec_recv_grads,
    }

    def train_batch(self, data_iter=None):
        """1F1B with as many buffers as are in flight."""
        buffers = max(2, min(self.num_stages - self.stage_id, self.micro_batches))
        ahead = min(self.num_stages - self.stage_id - 1, self.micro_batches)
        commands = []

        def forward(i):
            buffer = i % buffers
            commands.extend([schedule.LoadMicroBatch(buffer_id=buffer), schedule.ForwardPass(buffer_id=buffer),
                             schedule.SendActivation(buffer_id=buffer)])

        for i in range(ahead):
            forward(i)
        for i in range(self.micro_batches):
            if i + ahead < self.micro_batches:
                forward(i + ahead)
            commands.extend([schedule.RecvGrad(buffer_id=i % buffers), schedule.BackwardPass(buffer_id=i % buffers)])
        commands.append(schedule.OptimizerStep())
        self._exec_schedule([commands])

    def _exec_schedule(self, pipe_schedule):
        for step_cmds in pipe_schedule:
            for cmd in step_cmds:
                self._exec_instr = MethodType(self._INSTRUCTION_MAP[type(cmd)], self)
                self._exec_instr(**cmd.kwargs)
