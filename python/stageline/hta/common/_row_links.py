"""Adds relations between the rows of one rank's frame, each a column with the partner. They link a call and its device work, a row
and its step, a forward and its backward operator. HTA has these functions in common.trace."""
import re

STEP_NAME = re.compile(r'ProfilerStep\s*#\s*(\d+)')


def gpu_side(frame, symbol_table=None):
    """Returns which rows are a device's: those with a stream and a correlation, and waits, which have no stream."""
    side = frame['stream'].ge(0)
    if 'correlation' in frame.columns:
        side &= frame['correlation'].ge(0)
    if symbol_table is not None:
        waits = [symbol_table.sym_index[n] for n in ('Event Sync', 'Context Sync') if n in symbol_table.sym_index]
        side |= frame['name'].isin(waits)
    return side


def transform_correlation_to_index(df, symbol_table):
    """Adds index_correlation: the index of the last device row of a call, and of the last call of a device row. It is 0
    where the partner is missing, and -1 for rows without a correlation."""
    if 'correlation' not in df.columns:
        return df
    import pandas
    partner = df['correlation'].clip(upper=0).astype('int64')
    side = gpu_side(df, symbol_table)
    known = df['correlation'] != -1
    rows = df.loc[known, ['index', 'correlation']]
    sides = {device: rows[side[known] == device] for device in (False, True)}
    last = {device: own.drop_duplicates('correlation', keep='last').set_index('correlation')['index'] for device, own in sides.items()}
    for device, own in sides.items():
        found = own['correlation'].map(last[not device]).dropna()
        partner.loc[found.index] = found.astype('int64')
    df['index_correlation'] = pandas.to_numeric(partner, downcast='integer')
    return df


def get_cpu_gpu_correlation(df):
    """Returns cpu_index (the call) and gpu_index of each launched row of a device."""
    import pandas
    launched = df[df['stream'].ge(0) & df['index_correlation'].gt(0)]
    return pandas.DataFrame({'cpu_index': launched['index_correlation'].to_numpy(), 'gpu_index': launched['index'].to_numpy()})


def add_iteration(df, symbol_table):
    """Adds iteration, the number of a ProfilerStep. A host row has the step around its start (of several, the last in the
    file), and a device row has its call's."""
    import numpy
    import pandas
    steps = {i: int(found.group(1)) for s, i in symbol_table.sym_index.items() for found in [STEP_NAME.match(s)] if found}
    iteration = pandas.Series(-1.0, index=df.index)
    stream = df['stream']
    operators = symbol_table.sym_index.get('cpu_op', -1)
    host = stream.lt(0) | (stream.eq(0) & df['cat'].eq(operators))
    ts = df['ts'].to_numpy()
    values = numpy.full(len(df), -1.0)
    for row in df.loc[df['name'].isin(list(steps)), ['name', 'ts', 'dur']].itertuples(index=False):
        values[(ts >= row.ts) & (ts < row.ts + row.dur)] = steps[row.name]
    iteration[:] = numpy.where(host, values, numpy.where(stream.eq(0), numpy.nan, -1.0))
    if 'index_correlation' in df.columns:
        device = df[stream.gt(0) & df['index_correlation'].gt(0)]
        by_index = pandas.Series(iteration.to_numpy(), index=df['index']).groupby(level=0).last()
        iteration.loc[device.index] = device['index_correlation'].map(by_index).fillna(-1)
    df['iteration'] = iteration if iteration.isna().any() else pandas.to_numeric(iteration.astype('int64'), downcast='integer')
    return df


def add_fwd_bwd_links(df):
    """Adds, for the two operators that a flow of category fwdbwd joins, fwdbwd_index (the other's index) and fwdbwd: 0 at
    the flow's start, 1 at its end."""
    flows = df[df['cat'] == 'fwdbwd']
    if flows.empty:
        return
    others = df[df['cat'] != 'fwdbwd'].drop_duplicates(['ts', 'tid', 'pid'], keep='last').set_index(['ts', 'tid', 'pid'])['index']
    ends = {}
    for phase, name in (('s', 'start'), ('f', 'end')):
        side = flows[flows['ph'] == phase]
        at = {i: others.get((ts, tid, pid)) for i, ts, tid, pid in zip(side['id'], side['ts'], side['tid'], side['pid'])}
        ends[name] = {i: v for i, v in at.items() if v is not None}
    if not ends['start'] or not ends['end']:
        return
    df['fwdbwd_index'], df['fwdbwd'] = -1, -1
    place = {v: k for k, v in df['index'].items()}
    for i in ends['start'].keys() & ends['end'].keys():
        begin, end = ends['start'][i], ends['end'][i]
        df.loc[place[begin], ['fwdbwd_index', 'fwdbwd']] = [end, 0]
        df.loc[place[end], ['fwdbwd_index', 'fwdbwd']] = [begin, 1]
