import os

_virtual = [None]


def get_pipeline_model_parallel_group():
    return 'pp'


def get_pipeline_model_parallel_rank():
    return int(os.environ['RANK'])


def get_tensor_model_parallel_world_size():
    return 1


def get_virtual_pipeline_model_parallel_rank():
    return _virtual[0]


def set_virtual_pipeline_model_parallel_rank(rank):
    _virtual[0] = rank
