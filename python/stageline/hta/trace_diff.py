"""Two traces operator by operator: counts and times by name."""
import os
import random

from .common._plotly import go, write_figure
from .common.trace import Trace
from .common.types import DeviceType
from .utils.utils import shorten_name


def _chosen(wanted, known, what):
    """A list of ranks or steps; where none is wanted the first."""
    if not known:
        raise ValueError(f'the trace has no {what}')
    if wanted is None:
        return [known[0]]
    wanted = [wanted] if isinstance(wanted, int) else wanted
    if not isinstance(wanted, (list, tuple)) or not all(isinstance(w, int) for w in wanted):
        raise ValueError(f'{what} is a whole number or a list of them, not {wanted!r}')
    missing = [w for w in wanted if w not in known]
    if missing:
        raise ValueError(f'the trace has no {what} {missing[0]}; it has {known}')
    return list(wanted)


class LabeledTrace:
    """A trace as recorded, not aligned and with its last step, and what to call it."""

    def __init__(self, label=None, t=None, trace_dir=None):
        self.label = label or f't{random.randint(0, 10)}'
        if t is None:
            if not trace_dir or not os.path.isdir(trace_dir):
                raise ValueError(f'give a trace or a folder that exists, not {trace_dir!r}')
            t = Trace(trace_dir=trace_dir)
        if not t.is_parsed:
            t.parse_traces()
        self.t = t
        import pandas
        self.iteration_df = pandas.DataFrame([(r, i) for r in t.get_ranks() for i in t.get_iterations(r)], columns=['rank', 'iteration'])

    def ranks(self):
        return self.t.get_ranks()

    def iterations(self):
        return sorted(self.iteration_df['iteration'].unique().tolist())

    def extract_ops(self, rank=None, iteration=None, device_type=DeviceType.ALL):
        """Rows of ranks and steps, with s_name, name and rank."""
        import pandas
        ranks = _chosen(rank, self.ranks(), 'rank')
        steps = _chosen(iteration, self.iterations(), 'iteration')
        texts, parts = self.t.symbol_table.get_sym_table(), []
        for one in ranks:
            frame = self.t.get_trace(one)
            frame = frame[frame['iteration'].isin(steps)]
            if device_type != DeviceType.ALL:
                frame = frame[frame['stream'].eq(-1) == (device_type == DeviceType.CPU)]
            parts.append(frame.assign(rank=one, s_name=[shorten_name(texts[i]) for i in frame['name']], name=[texts[i] for i in frame['name']]))
        return pandas.concat(parts)

    def get_ops_summary(self, ops):
        """name, counts and total_duration."""
        return self._summary(ops, 'name')

    @staticmethod
    def _summary(ops, name):
        made = ops.groupby(name)['dur'].agg(counts='count', total_duration='sum').reset_index()
        return made.rename(columns={name: 'name'})


def _trace_argument_adapter(t, label):
    """A folder, a Trace or a LabeledTrace as the last."""
    if isinstance(t, LabeledTrace):
        return t
    if isinstance(t, str):
        return LabeledTrace(label=label, trace_dir=t)
    if isinstance(t, Trace):
        return LabeledTrace(label=label, t=t)
    raise ValueError(f'{t!r} is neither a folder nor a Trace')


class TraceDiff:
    """All methods are asked of the class."""

    @classmethod
    def compare_traces(cls, control, test, control_rank=None, test_rank=None, control_iteration=None, test_iteration=None,
                       device_type=DeviceType.ALL, use_short_name=False):
        """One row a name: counts and times in both, and what they differ by."""
        sides = [_trace_argument_adapter(control, 'Control'), _trace_argument_adapter(test, 'Test')]
        labels = [s.label for s in sides]
        if labels[0] == labels[1]:
            labels = [f'{labels[0]}_control', f'{labels[1]}_test']
        parts = []
        for side, label, rank, step in zip(sides, labels, (control_rank, test_rank), (control_iteration, test_iteration)):
            made = side._summary(side.extract_ops(rank, step, device_type), 's_name' if use_short_name else 'name').set_index('name')
            parts.append(made.rename(columns={'counts': f'{label}_counts', 'total_duration': f'{label}_total_duration'}))
        both = parts[0].join(parts[1], how='outer').fillna(0).sort_index()
        both['diff_counts'] = both[f'{labels[1]}_counts'] - both[f'{labels[0]}_counts']
        both['diff_duration'] = both[f'{labels[1]}_total_duration'] - both[f'{labels[0]}_total_duration']
        both['counts_change_categories'] = both['diff_counts'].map(lambda d: '+' if d > 0 else '-' if d < 0 else '=')
        return both

    @classmethod
    def ops_diff(cls, control, test, control_rank=None, test_rank=None, control_iteration=None, test_iteration=None, device_type=DeviceType.ALL):
        """Names that are new, gone, more, fewer, as many."""
        both = cls.compare_traces(control, test, control_rank, test_rank, control_iteration, test_iteration, device_type)
        before, after = both.iloc[:, 0], both.iloc[:, 2]
        def names(rows):  # noqa: E306
            return both.index[rows].tolist()
        return {'added': names(before.eq(0)), 'deleted': names(after.eq(0)), 'increased': names(before.gt(0) & after.gt(before)),
                'decreased': names(after.gt(0) & after.lt(before)), 'unchanged': names(after.gt(0) & after.eq(before))}

    @classmethod
    def visualize_counts_diff(cls, df, show_image=True, export_image_path=None):
        cls._draw(df, '_counts', 'diff_counts', 'Counts', show_image, export_image_path)

    @classmethod
    def visualize_duration_diff(cls, df, show_image=True, export_image_path=None):
        cls._draw(df, '_total_duration', 'diff_duration', 'Time (µs)', show_image, export_image_path)

    @staticmethod
    def _draw(df, ending, difference, title, show, path):
        columns = [c for c in df.columns if c.endswith(ending)]
        figure = go.Figure(data=[{'type': 'bar', 'orientation': 'h', 'name': c, 'x': df[c].tolist(), 'y': df.index.tolist()}
                                 for c in [*columns, difference]])
        figure.update_layout(title=title, barmode='group')
        if show:
            figure.show()
        if path:
            write_figure(figure, path)
