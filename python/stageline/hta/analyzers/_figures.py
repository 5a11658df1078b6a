"""HTA's figures, of the frames that the questions return: the same kinds, data and titles, drawn by plotly."""
import warnings


def _plotly():
    """plotly's express and graph_objects; None, and a warning, where it is not installed."""
    try:
        import plotly.express as express
        import plotly.graph_objects as objects
    except ImportError:
        warnings.warn('plotly is not installed: the frame comes without its figures (pip install stageline[hta], or visualize=False)',
                      stacklevel=5)
        return None, None
    return express, objects


def _bar(frame, title, renderer=None, layout=None, **how):
    px, _ = _plotly()
    if px is None:
        return
    figure = px.bar(frame, title=title, **how)
    figure.update_layout(**(layout or {}))
    figure.show(**({'renderer': renderer} if renderer else {}))


def temporal_breakdown(frame):
    shares = frame.assign(**{name: frame[f'{name}_pctg'] / 100 for name in ('idle_time', 'compute_time', 'non_compute_time')})
    _bar(shares, 'Temporal breakdown across ranks', x='rank', y=['idle_time', 'compute_time', 'non_compute_time'], labels={'rank': 'Rank'},
         layout={'yaxis_tickformat': '.2%', 'yaxis_title': 'Percentage', 'legend_title': 'Time Breakdown'})


def comm_comp_overlap(frame):
    shares = frame.assign(comp_comm_overlap_ratio=frame['comp_comm_overlap_pctg'] / 100)
    _bar(shares, 'Computation-Communication Overlap', x='rank', y='comp_comm_overlap_ratio',
         labels={'rank': 'Rank', 'comp_comm_overlap_ratio': 'Computation-Communication Overlap Percentage'},
         layout={'yaxis_tickformat': '.2%'})


def idle_time_breakdown(frame, shares):
    """One figure a rank; streams are categories, not numbers. The answer's shares are rounded, the figure's are not."""
    whole = frame.groupby(['rank', 'stream'])['idle_time'].transform('sum')
    frame = frame.assign(idle_time_ratio=(frame['idle_time'] / whole).fillna(0))
    for rank, own in frame.groupby('rank', sort=False):
        layout = {'yaxis_tickformat': '.2%', 'yaxis_title': 'Percentage'} if shares else {'yaxis_title': 'Idle time (us)'}
        _bar(own.assign(stream=own['stream'].astype(str)), f'Idle time breakdown on rank {rank} per CUDA stream', x='stream',
             y='idle_time_ratio' if shares else 'idle_time', color='idle_category', hover_data=['idle_time', 'idle_time_ratio'],
             layout={**layout, 'legend_title': 'Idle Time Breakdown'})


def _pies_by_rank(frame, title, renderer):
    px, go = _plotly()
    if px is None:
        return
    from plotly.subplots import make_subplots
    ranks = frame['rank'].unique().tolist()
    rows = (len(ranks) + 1) // 2
    figure = make_subplots(rows=rows, cols=2, specs=[[{'type': 'domain'}, {'type': 'domain'}]] * rows)
    for place, rank in enumerate(ranks):
        own = frame[frame['rank'] == rank]
        figure.add_trace(go.Pie(labels=own['name'], values=own['sum (us)'], title=f'Rank {rank}', automargin=False), place // 2 + 1, place % 2 + 1)
    figure.update_layout(title_text=title, margin={'l': 50, 'r': 50, 'b': 50, 't': 50}, showlegend=True, height=int(400 * (1 + len(ranks) / 2)),
                         legend={'yanchor': 'bottom', 'y': -0.1, 'xanchor': 'left', 'x': 0})
    figure.show(**({'renderer': renderer} if renderer else {}))


def _means_by_rank(frame, title, renderer):
    """The mean of each name on each rank, with its least and greatest."""
    for name in frame['name'].unique():
        if name == 'others':
            continue
        own = frame[frame['name'] == name]
        _bar(own, title.format(name=name), renderer, x='rank', y='mean (us)', labels={'rank': 'Rank', 'mean (us)': 'Mean Duration (us)'},
             error_y=own['max (us)'] - own['mean (us)'], error_y_minus=own['mean (us)'] - own['min (us)'],
             layout={'xaxis': {'tickmode': 'linear', 'tick0': 0, 'dtick': 1}})


def kernel_breakdown(types, kernels, renderer):
    """A pie of the kinds, and for each kind a pie a rank and the means of its kernels."""
    px, _ = _plotly()
    if px is None:
        return
    figure = px.pie(types[types['percentage'] > 0], values='percentage', names='kernel_type', height=500, title='Kernel Type Percentage Across All Ranks')
    figure.update_layout(margin={'l': 50, 'r': 50, 'b': 50, 't': 50}, showlegend=True, legend={'yanchor': 'bottom', 'y': -0.4, 'xanchor': 'left', 'x': 0})
    figure.show(**({'renderer': renderer} if renderer else {}))
    for kind in kernels['kernel_type'].unique():
        own = kernels[kernels['kernel_type'] == kind]
        _pies_by_rank(own, f'Kernel type "{kind}" - kernel distribution on each rank', renderer)
        _means_by_rank(own, f'Kernel type "{kind}" - {{name}}', renderer)


def annotation_breakdown(frame, renderer):
    _pies_by_rank(frame, 'User annotation distribution on each rank', renderer)
    _means_by_rank(frame, 'User annotation = {name}', renderer)


def launch_stats(rank, frame, runtime_cutoff, launch_delay_cutoff):
    """Histograms of kernels that are shorter than their call, of long calls, and of long delays."""
    px, _ = _plotly()
    if px is None:
        return
    calls = {'cpu_duration': 'Cuda Runtime Event Duration (us)'}
    short = frame[(frame['cpu_duration'] <= runtime_cutoff) & (frame['gpu_duration'] < frame['cpu_duration'])]
    px.histogram(short, x='cpu_duration', labels=calls, title=f'Short GPU kernels (gpu op duration < cpu op duration) on rank {rank}').show()
    px.histogram(frame[frame['cpu_duration'] > runtime_cutoff], x='cpu_duration', nbins=300, labels=calls,
                 title=f'Runtime Event Duration Outliers (duration > {runtime_cutoff} us)  on rank {rank}').show()
    px.histogram(frame[frame['launch_delay'] > launch_delay_cutoff], x='launch_delay', nbins=300,
                 labels={'launch_delay': 'Launch Delay (us)'},
                 title=f'Launch Delay Outliers (duration > {launch_delay_cutoff} us) on rank {rank}').show()


def aten_op_kernels(rank, frame):
    _, go = _plotly()
    if go is None:
        return
    columns = {'ATen Operation': 'aten_op_name', 'Kernel Sequence': 'kernel_sequence', 'Occurrence Count': 'occurrence_count',
               'Average ATen Op Launch Delay (us)': 'avg_aten_op_launch_delay', 'Average Runtime Delay (us)': 'avg_runtime_delay'}
    figure = go.Figure(data=[go.Table(header={'values': list(columns)},
                                      cells={'values': [frame[c] for c in columns.values()], 'height': 30, 'align': 'left'})])
    figure.update_layout(title=f'ATen Operations, Associated Kernels, ATen and Runtime Delays for Rank {rank}', width=1500, height=1500,
                         autosize=True, margin={'l': 10, 'r': 10, 't': 40, 'b': 10})
    figure.show()


def kernel_sequences(frame, rank, top_k):
    """The most frequent sequences; one kernel a line in what the mouse shows."""
    top_k = min(top_k, len(frame))
    shown = frame[:top_k].assign(pattern=frame['pattern'][:top_k].str.replace('|', '<br>', regex=False))
    px, _ = _plotly()
    if px is None:
        return
    figure = px.bar(shown, x=shown.index, y='count', hover_data=['pattern', 'count'], title=f'Top {top_k} frequent patterns for rank {rank}',
                    labels={'x': 'Pattern Index', 'count': 'Pattern Count'})
    figure.update_xaxes(type='category')
    figure.show()


def stragglers(metric, column, steps):
    """The metric of each rank and step; the red ones are late."""
    _bar(metric, 'Potential Stragglers', x='rank', y=column, facet_col='iteration' if steps > 1 else None, color='is_straggler',
         color_discrete_map={'Yes': 'red', 'No': 'blue'}, width=300 * steps)


def memory_totals(frame, device):
    px, _ = _plotly()
    if px is None:
        return
    gib = frame.assign(**{'Allocated Memory': frame['total_allocated'] / 2**30, 'Reserved Memory': frame['total_reserved'] / 2**30})
    figure = px.line(gib, x='ms', y=['Allocated Memory', 'Reserved Memory'], title=f'Memory Usage Timeline (device {device})')
    figure.update_layout(xaxis_title='Time (ms)', yaxis_title='Memory (GB)', hovermode='x unified')
    figure.show()


def memory_categories(frame, kinds, device):
    px, _ = _plotly()
    if px is None:
        return
    gib = frame.sort_values('ts', kind='stable')[['ms', *kinds]].ffill()
    gib[kinds] /= 2**30
    figure = px.area(gib, x='ms', y=kinds, title=f'Memory breakdown - device {device}')
    figure.update_layout(xaxis_title='Time (ms)', yaxis_title='Memory (GB)', legend_title='Memory type')
    figure.show()
