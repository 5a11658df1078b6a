"""Execution traces beside the frames of a profile, as HTA has them: nodes by id, and columns of what they say. `stageline.open` reads such
files with their profiles, without pandas (docs/formats/chakra.md)."""
import gzip
import json

from ..configs.config import logger
from ..utils.utils import normalize_path

EXECUTION_TRACE_SUPPORTED_EVENTS = ['cpu_op', 'user_annotation']
_COLUMNS = {'op_schema': 'op_schema', 'input_shapes': 'input_shapes', 'input_types': 'input_types', 'output_shapes': 'output_shapes',
            'output_types': 'output_types', 'et_node_name': 'name'}


class Node:
    """A node, whatever its file's schema: 1.0 has its facts side by side, 1.1 in `inputs`, `outputs` and `attrs`."""

    def __init__(self, raw):
        said = {**raw, **{a['name']: a.get('value') for a in raw.get('attrs', ())}}
        self.name, self.id, self.parent_id = said['name'], said['id'], said.get('parent', said.get('ctrl_deps'))
        self.rf_id, self.seq_id, self.scope, self.tid = (said.get(key) for key in ('rf_id', 'seq_id', 'scope', 'tid'))
        self.fw_parent, self.fw_tid, self.op_schema = said.get('fw_parent'), said.get('fw_tid'), said.get('op_schema', '')
        for side in ('input', 'output'):
            values = said.get(f'{side}s', [])
            nested = values if isinstance(values, dict) else {}
            setattr(self, f'{side}s', nested.get('values', values))
            setattr(self, f'{side}_shapes', nested.get('shapes', said.get(f'{side}_shapes', [])))
            setattr(self, f'{side}_types', nested.get('types', said.get(f'{side}_types', [])))


class ExecutionTrace:
    def __init__(self, *args, **kwargs):
        raw = args[0] if args else kwargs.get('json', {})
        self.schema = raw.get('schema')
        self.nodes = {node['id']: Node(node) for node in raw.get('nodes', ())}


def load_execution_trace(et_file):
    with (gzip.open if str(et_file).endswith('gz') else open)(normalize_path(et_file), 'rb') as file:
        return ExecutionTrace(json.load(file))


def correlate_execution_trace(trace, rank, et):
    """Gives the frame of the rank the column et_node: the node with the event's External id."""
    frame = trace.get_trace(rank)
    ids = [node.rf_id for node in et.nodes.values()
           if node.rf_id is not None and not any(f'execution_trace|{what}' in node.name for what in ('thread', 'process'))]
    if not ids or not (frame['external_id'].min() <= min(ids) and frame['external_id'].max() >= max(ids)):
        logger.error('the execution trace and the profile do not overlap: nothing of them is linked')
        return
    places = trace.symbol_table.get_sym_id_map()
    linked = frame['cat'].isin([places.get(kind) for kind in EXECUTION_TRACE_SUPPORTED_EVENTS])
    nodes = {node.rf_id: at for at, node in et.nodes.items()}
    frame.loc[linked, 'et_node'] = frame.loc[linked, 'external_id'].map(nodes)


def add_et_column(trace_df, et, column):
    """Adds what the nodes say: op_schema, input_shapes, input_types, output_shapes, output_types or et_node_name."""
    if 'et_node' not in trace_df:
        logger.error('there is no column et_node: correlate_execution_trace() makes it')
    elif column not in _COLUMNS:
        logger.error('no column %s; there are %s', column, ', '.join(_COLUMNS))
    else:
        known = {at: getattr(node, _COLUMNS[column]) for at, node in et.nodes.items()}
        trace_df[column] = [known.get(at, float('nan')) for at in trace_df['et_node']]
