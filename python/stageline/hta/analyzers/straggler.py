"""Which ranks begin the collective that waits for all of them late."""
from ..common._row_links import STEP_NAME
from . import _figures

_SHARE_OF_STEP = 0.01  # shorter collectives are not looked at
_METRIC = 'normalized_start_time'


def extract_iteration_info(trace):
    """One row a step and rank: rank, iter, ts, dur, end."""
    import pandas
    texts, parts = trace.symbol_table.get_sym_table(), []
    for rank, frame in trace.get_all_traces().items():
        numbers = {i: int(found.group(1)) for i in frame['name'].unique() for found in [STEP_NAME.match(texts[i])] if found}
        steps = frame[frame['name'].isin(numbers)]
        parts.append(pandas.DataFrame({'rank': rank, 'iter': steps['name'].map(numbers), 'ts': steps['ts'], 'dur': steps['dur'],
                                       'end': steps['ts'] + steps['dur']}))
    return pandas.concat(parts, ignore_index=True)


def _late_starts(df, symbol_table):
    """The last long collective of each rank and step, of the name whose time differs most among ranks, and when it began in steps."""
    begin = df['ts'].min()
    step = ((df['ts'] + df['dur']).max() - begin) / df.loc[df['iteration'].ge(0), 'iteration'].nunique()
    collectives = [i for text, i in symbol_table.get_sym_id_map().items() if text.startswith('ncclKernel')]
    long = df[df['stream'].gt(0) & df['iteration'].gt(0) & df['dur'].ge(step * _SHARE_OF_STEP) & df['name'].isin(collectives)]
    last = long.groupby(['rank', 'stream', 'iteration', 'name'], as_index=False).last()
    last[_METRIC], last['duration'] = (last['ts'] - begin) / step, last['dur'] / step
    spread = last.groupby(['stream', 'iteration', 'name'])['duration'].std().groupby(['stream', 'name']).mean()
    stream, name = spread.idxmax()
    return long, last[last['stream'].eq(stream) & last['name'].eq(name)]


def find_stragglers_with_late_start_comm_kernels(df, symbol_table, n_stragglers=2, visualize=False):
    """A series by rank: in how many steps it was among the n that begin last. `df` has the rows of ranks and steps, with rank."""
    long, last = _late_starts(df, symbol_table)
    n_stragglers = max(1, n_stragglers)
    thresholds = last.groupby('iteration')[_METRIC].transform(lambda v: v.sort_values(ascending=False).iloc[n_stragglers - 1])
    late = last[_METRIC] >= thresholds
    if visualize:
        from .timeline import plot_timeline_gpu_kernels
        ranks = sorted(df['rank'].unique().tolist())
        plot_timeline_gpu_kernels(f'Timeline of Communication Kernels Longer Than {100 * _SHARE_OF_STEP:.2f}% of Iteration Time\n', long,
                                  symbol_table, ranks=ranks, duration_threshold=2000)
        steps = sorted(i for i in df['iteration'].unique().tolist() if i >= 0)
        plot_timeline_gpu_kernels(f'Timeline of Candidate Kernels (Iterations={steps})', last, symbol_table, ranks=ranks)
        _figures.stragglers(last[['rank', 'iteration', _METRIC]].assign(is_straggler=late.map({True: 'Yes', False: 'No'})), _METRIC,
                            last['iteration'].nunique())
    return late.astype(int).groupby(last['rank']).sum().rename('is_straggler')
