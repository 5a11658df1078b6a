import time


class Logger:
    """The reducer's last data: 2 buckets, reduced from 4 ms ago to 1 ms ago, computed until 3 ms ago."""

    def set_runtime_stats_and_log(self):
        pass


class DistributedDataParallel:
    device_type, require_backward_grad_sync = 'cpu', True

    def __init__(self, module):
        self.module, self.training, self.logger = module, True, Logger()
        self.process_group = None

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def _pre_forward(self, *inputs, **kwargs):
        return inputs, kwargs

    def forward(self, *inputs, **kwargs):
        self._pre_forward(*inputs, **kwargs)
        return self.module(*inputs, **kwargs)

    def _set_ddp_runtime_logging_sample_rate(self, rate):
        assert rate == 1

    def _get_ddp_logging_data(self):
        now = time.time_ns()
        return {'backward_comm_time_start': now - 4_000_000, 'backward_comm_time_end': now - 1_000_000,
                'backward_compute_time_end': now - 3_000_000, 'rebuilt_bucket_sizes': '4096, 1024'}
