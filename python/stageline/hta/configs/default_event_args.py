"""Arguments of Kineto's events that can become columns."""
from .default_values import AttributeSpec, EventArgs, ValueType, YamlVersion

_INT, _FLOAT, _STRING, _OBJECT = ValueType.Int, ValueType.Float, ValueType.String, ValueType.Object
_FIRST = YamlVersion(1, 0, 0)

# Each key has (column, the argument in the file, type, value of events without it), as in HTA 0.6.1. Its 'info::name' would
# overwrite the names of rows, so that one is arg_name here.
_LISTED = {
    'index::ev_idx': ('ev_idx', 'Ev Idx', _INT, -1), 'index::external_id': ('external_id', 'External id', _INT, -1),
    'index::python_id': ('python_id', 'Python id', _INT, -1), 'index::python_parent_id': ('python_parent_id', 'Python parent id', _INT, -1),
    'cpu_op::concrete_inputs': ('concrete_inputs', 'Concrete Inputs', _OBJECT, '[]'),
    'cpu_op::fwd_thread': ('fwd_thread_id', 'Fwd thread id', _INT, -1), 'cpu_op::input_dims': ('input_dims', 'Input Dims', _OBJECT, '-1'),
    'cpu_op::input_type': ('input_type', 'Input type', _OBJECT, '-1'), 'cpu_op::input_strides': ('input_strides', 'Input Strides', _OBJECT, '-1'),
    'cpu_op::sequence_number': ('sequence', 'Sequence number', _INT, -1),
    'cpu_op::kernel_backend': ('kernel_backend', 'kernel_backend', _STRING, ''), 'cpu_op::kernel_hash': ('kernel_hash', 'kernel_hash', _STRING, ''),
    'correlation::cbid': ('cbid', 'cbid', _INT, -1), 'correlation::cpu_gpu': ('correlation', 'correlation', _INT, -1),
    'sm::blocks': ('blocks_per_sm', 'blocks per SM', _OBJECT, '[]'), 'sm::occupancy': ('est_occupancy', 'est. achieved occupancy %', _INT, -1),
    'sm::warps': ('warps_per_sm', 'warps per SM', _FLOAT, 0.0),
    'data::bytes': ('bytes', 'bytes', _INT, -1), 'data::bandwidth': ('memory_bw_gbps', 'memory bandwidth (GB/s)', _FLOAT, 0.0),
    'cuda::context': ('context', 'context', _INT, -1), 'cuda::device': ('device', 'device', _INT, -1), 'cuda::stream': ('stream', 'stream', _INT, -1),
    'kernel::queued': ('queued', 'queued', _INT, -1), 'kernel::shared_memory': ('shared_memory', 'shared memory', _INT, -1),
    'threads::block': ('block', 'block', _OBJECT, '[]'), 'threads::grid': ('grid', 'grid', _OBJECT, '[]'),
    'threads::registers': ('registers_per_thread', 'registers per thread', _INT, -1),
    'cuda_sync::stream': ('wait_on_stream', 'wait_on_stream', _INT, -1),
    'cuda_sync::event': ('wait_on_cuda_event_record_corr_id', 'wait_on_cuda_event_record_corr_id', _INT, -1),
    'inference::batch_id': ('batch_id', 'batchId', _STRING, ''), 'inference::batch_size': ('batch_size', 'batchSize', _INT, -1),
    'info::finished': ('finished', 'finished', _STRING, ''),
    'info::labels': ('labels', 'labels', _STRING, ''), 'info::name': ('arg_name', 'name', _STRING, ''),
    'info::op_count': ('op_count', 'Op count', _INT, -1), 'info::sort_index': ('sort_index', 'sort_index', _INT, -1),
    'nccl::collective_name': ('collective_name', 'Collective name', _STRING, ''), 'nccl::in_msg_nelems': ('in_msg_nelems', 'In msg nelems', _INT, 0),
    'nccl::in_msg_size': ('in_msg_size', 'In msg size', _INT, 0), 'nccl::out_msg_size': ('out_msg_size', 'Out msg size', _INT, 0),
    'nccl::input_tensors_start': ('input_tensors_start', 'Input Tensors start', _OBJECT, '[]'),
    'nccl::output_tensors_start': ('output_tensors_start', 'Output Tensors start', _OBJECT, '[]'), 'nccl::seq': ('seq_num', 'Seq', _INT, -1),
    'nccl::out_msg_nelems': ('out_msg_nelems', 'Out msg nelems', _INT, 0), 'nccl::dtype': ('msg_dtype', 'dtype', _STRING, ''),
    'nccl::group_size': ('group_size', 'Group size', _INT, 0), 'nccl::rank': ('process_rank', 'Rank', _INT, -1),
    'nccl::in_split_size': ('in_split_size', 'In split size', _OBJECT, '[]'), 'nccl::out_split_size': ('out_split_size', 'Out split size', _OBJECT, '[]'),
    'nccl::process_group_name': ('process_group_name', 'Process Group Name', _STRING, ''),
    'nccl::process_group_desc': ('process_group_desc', 'Process Group Description', _STRING, ''),
    'nccl::process_group_ranks': ('process_group_ranks', 'Process Group Ranks', _OBJECT, '[]'),
}
_MINIMUM = ['cuda::stream', 'correlation::cpu_gpu']
_BANDWIDTH = ['data::bytes', 'data::bandwidth']
_SYNC = ['cuda_sync::stream', 'cuda_sync::event']
_SHAPES = ['cpu_op::input_dims', 'cpu_op::input_type', 'cpu_op::input_strides']
INDEX_KEYS = ['index::ev_idx', 'index::external_id', 'index::python_id', 'index::python_parent_id']
_INFO = ['info::labels', 'info::name', 'info::op_count', 'info::sort_index']
_COMMUNICATION = ['nccl::collective_name', 'nccl::in_msg_nelems', 'nccl::out_msg_nelems', 'nccl::dtype', 'nccl::group_size', 'nccl::rank',
                  'nccl::in_split_size', 'nccl::out_split_size']
_TRITON = ['cpu_op::kernel_backend', 'cpu_op::kernel_hash']
_INDEX_DEFAULT = ['index::external_id', 'index::python_id', 'index::python_parent_id']


def event_args(available):
    """The lists over a table of arguments; keys that the table lacks are left out."""
    def of(*lists):
        return [available[key] for keys in lists for key in keys if key in available]
    return EventArgs(AVAILABLE_ARGS=available, ARGS_INPUT_SHAPE=of(_SHAPES), ARGS_BANDWIDTH=of(_BANDWIDTH), ARGS_SYNC=of(_SYNC),
                     ARGS_MINIMUM=of(_MINIMUM), ARGS_COMPLETE=list({spec.name: spec for spec in available.values()}.values()), ARGS_INFO=of(_INFO),
                     ARGS_COMMUNICATION=of(_COMMUNICATION), ARGS_TRITON_KERNELS=of(_TRITON),
                     ARGS_DEFAULT=of(_MINIMUM, _BANDWIDTH, _SYNC, _SHAPES, _INDEX_DEFAULT, _COMMUNICATION))


DEFAULT_EVENT_ARGS = event_args({key: AttributeSpec(*values, _FIRST) for key, values in _LISTED.items()})
