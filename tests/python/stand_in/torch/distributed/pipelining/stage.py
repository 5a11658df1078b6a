import time


class _PipelineStageBase:
    def __init__(self, stage_index, num_stages, group_rank, group_size):
        self.stage_index, self.num_stages, self.group_rank, self.group_size = stage_index, num_stages, group_rank, group_size
        self.group, self.has_backward = None, True
        self.stage_index_to_group_rank = {i: i % group_size for i in range(num_stages)}

    def forward_one_chunk(self, fwd_chunk_id, args, kwargs=None, save_forward_output=True):
        time.sleep(0.001)
        if args == 'fail':
            raise ValueError('forward failed')

    def backward_one_chunk(self, bwd_chunk_id, loss=None, full_backward=True, last_backward=False):
        time.sleep(0.001)

    def backward_weight_one_chunk(self, bwd_chunk_id, last_backward=False):
        time.sleep(0.001)


class PipelineStage(_PipelineStageBase):
    pass
