"""The memory timeline that torch's memory profiler writes (.raw.json.gz): docs/analyses/memory-timeline.md."""
import enum

_CATEGORIES = ['Parameter', 'Optimizer state', 'Input', 'Temporary', 'Activation', 'Gradient', 'Autograd detail', 'Unknown']


class Category(enum.Enum):
    """Names the use of memory."""
    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


class MemoryAnalysis:
    """Bytes by category over time, summed by the engine."""

    def __init__(self, path):
        self.path = path

    def _process_raw_events(self):
        """(times, sizes): at each change the bytes of the eight categories."""
        from stageline import _engine
        frames, _, _ = _engine.analyze(None, None, [str(self.path)], 'memory-timeline', ['--compat=hta'])
        from stageline import Table
        table = next(t for t in map(Table, frames) if t.name == 'memory-timeline')
        sizes = [[float(v) for v in row] for row in zip(*(table[c.name] for c in table.columns[:8]))]
        return table['ts'], sizes

    def plot_memory_timeline(self, save_graph=False):
        """Stacked GiB over ms: shown, or written to images/memory_plot.png."""
        import plotly.graph_objects as go
        times, sizes = self._process_raw_events()
        figure = go.Figure()
        for place, name in enumerate(_CATEGORIES):
            figure.add_trace(go.Scatter(x=[t / 1e6 for t in times], y=[row[place] / 2**30 for row in sizes], name=name, stackgroup='all'))
        figure.update_layout(title='Memory by category', xaxis_title='ms', yaxis_title='GiB')
        if not save_graph:
            return figure.show()
        import os

        from .common._plotly import write_figure
        os.makedirs('images', exist_ok=True)
        return write_figure(figure, 'images/memory_plot.png')
