"""The older timeline shows device rows."""
from ..common._plotly import px
from ..common.timeline import _simplify_name as _simplified


def _get_unique_values(df, column):
    """Returns the values of a column, ascending, without those below 0."""
    if column not in df.columns:
        raise ValueError(f'the frame has no column {column}')
    return sorted(v for v in df[column].unique().tolist() if v >= 0)


def _simplify_name(name):
    return _simplified(name)


def prepare_timeline_gpu_events(df, symbol_table, ranks=None, iterations=None, streams=None, duration_threshold=1000):
    """Device rows of ranks, steps and streams with task, label, start and end of bars; short ones last duration_threshold µs."""
    import pandas
    missing = {'rank', 'iteration', 'stream', 'name', 'cat', 'ts', 'dur'} - set(df.columns)
    if missing:
        raise ValueError(f'the columns {sorted(missing)} are missing')
    rows = df[df['stream'].ge(0)]
    for column, wanted in (('rank', ranks), ('iteration', iterations), ('stream', streams)):
        rows = rows[rows[column].isin(_get_unique_values(df, column) if wanted is None else wanted)]
    rows = rows.copy()
    texts = symbol_table.get_sym_table()
    rows['label'] = [_simplify_name(texts[i]) for i in rows['name']]
    rows['task'] = [f'rank {r} stream {s}' for r, s in zip(rows['rank'], rows['stream'])]
    rows['calibrated_start_global'] = pandas.to_datetime(rows['ts'], unit='us')
    rows['calibrated_end_global'] = pandas.to_datetime(rows['ts'] + rows['dur'].clip(lower=duration_threshold), unit='us')
    return rows.sort_values(['rank', 'stream', 'ts'])


def plot_timeline(title, events, ranks=None):
    """Shows the bars, of some ranks where they are named."""
    missing = {'calibrated_start_global', 'calibrated_end_global', 'task', 'label'} - set(events.columns)
    if missing:
        raise ValueError(f'the columns {sorted(missing)} are missing: prepare_timeline_gpu_events makes them')
    if ranks is not None and 'rank' in events.columns:
        events = events[events['rank'].isin(ranks)]
    figure = px.timeline(events, x_start='calibrated_start_global', x_end='calibrated_end_global', y='task', color='label', title=title)
    figure.show()


def plot_timeline_gpu_kernels(title, df, symbol_table, ranks=None, iterations=None, streams=None, duration_threshold=1000):
    plot_timeline(title, prepare_timeline_gpu_events(df, symbol_table, ranks, iterations, streams, duration_threshold), ranks)


def plot_timeline_gpu_kernels_from_trace(title, trace_data, ranks=None, iterations=None, streams=None, duration_threshold=1000):
    import pandas
    frames = [frame.assign(rank=rank) for rank, frame in trace_data.get_all_traces().items()]
    plot_timeline_gpu_kernels(title, pandas.concat(frames), trace_data.symbol_table, ranks, iterations, streams, duration_threshold)
