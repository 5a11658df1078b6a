"""Rows of frames as bars over time."""
import dataclasses
import enum
import re

from ..configs.config import logger
from ._plotly import px, to_html
from .trace_df import find_events_by_name_patterns_using_decoded_names, find_events_by_name_patterns_using_symbol_table

AnnotationStreamID = 0
REQUIRED_COLUMNS_FOR_CPU_GPU_ALIGNMENT = {'index', 'stream', 'ts', 'dur', 'name', 'first_kernel_start', 'kernel_span', 'num_kernels'}


class PlotFormat(enum.Enum):
    Notebook = 'notebook'
    HTML = 'html'
    File = 'file'


class EventType(enum.Enum):
    CPUEvents = 'cpu'
    GPUEvents = 'gpu'
    AllEvents = 'all'


@dataclasses.dataclass
class TimelinePlotSetting:
    """Defines the rows of the picture and how they are drawn. With auto_detect the frame decides what varies. Times are
    µs."""
    auto_detect: bool = True
    event_type: EventType = EventType.AllEvents
    multi_traces: bool = False
    multi_ranks: bool = False
    multi_iterations: bool = False
    multi_streams: bool = False
    compress_threads: bool = True
    use_global_time: bool = False
    amplify_short_events: bool = True
    short_events_display_duration: int = 1000
    max_name_length: int = 45
    task_column: str = 'task'
    color_column: str = 'label'
    x_start_column: str = 'calibrated_start_global'
    x_end_column: str = 'calibrated_end_global'
    plot_format: PlotFormat = PlotFormat.Notebook
    task_height: int = 30
    width: int = 1200
    hover_columns: 'list[str]' = dataclasses.field(default_factory=lambda: ['dur', 'name'])


def _simplify_name(name, max_length=45):
    """Without autograd's prefix; what is too long without parameters, and then cut."""
    if name.startswith('autograd::engine::evaluate_function: '):
        name = 'autograd::' + name.split(': ', 1)[1]
    if len(name) <= max_length:
        return name
    if name.startswith('void '):
        name = name[5:]
    depth = 0
    for place, letter in enumerate(name):
        depth += {'<': 1, '>': -1}.get(letter, 0)
        if letter == '(' and depth == 0 and place > 0:
            name = name[:place]
            break
    return name if len(name) <= max_length else name[:max_length - 3] + '...'


def get_fig_title_from_fig_name(fig_name):
    return (fig_name or 'untitled_figure').replace('_', ' ').title()


def get_fig_name_from_fig_title(title):
    return re.sub(r'\s+', '_', (title or 'Untitled Figure').strip()).lower()


def _check_timeline_input(events, setting):
    """Returns true if the frame has what a picture needs."""
    if events is None or events.empty:
        logger.warning('there is no row to draw')
        return False
    missing = {setting.x_start_column, setting.x_end_column, setting.task_column} - set(events.columns)
    if missing:
        logger.warning('the columns %s are missing: prepare_timeline_events makes them', sorted(missing))
    return not missing


def _detect(events, setting):
    """The setting as the frame wants it."""
    def several(column):
        return column in events.columns and events[column].nunique() > 1
    host = events['stream'].lt(0)
    kind = EventType.CPUEvents if host.all() else EventType.GPUEvents if not host.any() else EventType.AllEvents
    return dataclasses.replace(setting, event_type=kind, multi_traces=several('trace'), multi_ranks=several('rank'),
                               multi_iterations=several('iteration'), multi_streams=bool(events.loc[~host, 'stream'].nunique() > 1))


def _compute_label_row(stream):
    return 'cpu events' if stream < 0 else f'gpu stream {int(stream)}'


def _set_task_names(events, setting):
    """Returns the row of the picture for each event."""
    parts = []
    if setting.multi_traces and 'trace' in events.columns:
        parts.append(events['trace'].map(str))
    if setting.multi_ranks and 'rank' in events.columns:
        parts.append(events['rank'].map(lambda r: f'rank {r}'))
    if setting.event_type == EventType.CPUEvents:
        labels = []
        if 'tid' in events.columns and not setting.compress_threads:
            labels.append(events['tid'].map(lambda t: f'cpu thread {t}'))
        if 'depth' in events.columns and not setting.compress_threads:
            labels.append(events['depth'].map(lambda d: f'depth {d}'))
        parts += labels or [events['stream'].map(lambda s: 'cpu events')]
    else:
        parts.append(events['stream'].map(_compute_label_row))
    if not parts:
        raise NotImplementedError('these events have no column that could name rows')
    made = parts[0]
    for part in parts[1:]:
        made = made + ' ' + part
    return made


def _get_sort_columns(events, setting):
    columns = [c for on, c in ((setting.multi_traces, 'trace'), (setting.multi_ranks, 'rank')) if on and c in events.columns]
    if setting.event_type == EventType.CPUEvents:
        columns += [c for c in ('tid', 'depth') if c in events.columns]
    elif 'stream' in events.columns:
        columns.append('stream')
    return [*columns, 'ts']


def align_module_with_kernels(df, module_patterns, sym_table=None, include_original_cpu_events=False):
    """Device rows, and calls whose names the patterns match once more where their kernels ran, on stream 0."""
    import pandas
    missing = REQUIRED_COLUMNS_FOR_CPU_GPU_ALIGNMENT - set(df.columns)
    if missing:
        raise ValueError(f'the columns {sorted(missing)} are missing: CallGraph adds them')
    if sym_table is not None:
        chosen = find_events_by_name_patterns_using_symbol_table(df, module_patterns, sym_table)
    else:
        column = next((c for c in ('s_name', 'name') if c in df.columns and df[c].dtype.kind not in 'iuf'), None)
        if column is None:
            raise ValueError('neither name nor s_name holds texts: give the symbol table, or decode the names first')
        chosen = find_events_by_name_patterns_using_decoded_names(df, module_patterns, column)
    modules = df[df['index'].isin(chosen) & df['stream'].lt(0) & df['num_kernels'].gt(0)].copy()
    modules['ts'], modules['dur'], modules['stream'] = modules['first_kernel_start'], modules['kernel_span'], AnnotationStreamID
    parts = [df[df['stream'].ge(0)], modules]
    if include_original_cpu_events:
        parts.append(df[df['index'].isin(chosen) & df['stream'].lt(0)])
    return pandas.concat(parts).sort_values('ts', kind='stable')


def prepare_timeline_events(df, symbol_table=None, setting=None):
    """The frame with task, label, start and end of bars; an empty one where columns are missing."""
    import pandas
    setting = setting or TimelinePlotSetting()
    missing = {'name', 'ts', 'dur', 'stream'} - set(df.columns)
    if df.empty or missing:
        logger.warning('no row, or columns missing: %s', sorted(missing))
        return pandas.DataFrame()
    if setting.auto_detect:
        setting = _detect(df, setting)
    events = df.sort_values(_get_sort_columns(df, setting), kind='stable').copy()
    if 's_name' in events.columns:
        names = events['s_name']
    elif symbol_table is not None and events['name'].dtype.kind in 'iu':
        names = events['name'].map(lambda i: symbol_table.sym_table[i])
    else:
        names = events['name'].map(str)
    events['name'] = names
    events[setting.color_column] = names.map(lambda n: _simplify_name(n, setting.max_name_length))
    events[setting.task_column] = _set_task_names(events, setting)
    drawn = events['dur'].clip(lower=setting.short_events_display_duration) if setting.amplify_short_events else events['dur']
    start = events['ts'] if setting.use_global_time else events['ts'] - events['ts'].min()
    events[setting.x_start_column], events[setting.x_end_column] = start, start + drawn
    return events


def plot_events_timeline(title, events, setting=None, output_image_path=''):
    """The picture: shown, as HTML, or written to a file. None where there is nothing to draw."""
    import pandas
    setting = setting or TimelinePlotSetting()
    if not _check_timeline_input(events, setting):
        return None
    drawn = events.copy()
    for column in (setting.x_start_column, setting.x_end_column):
        drawn[column] = pandas.to_datetime(drawn[column], unit='us')
    color = setting.color_column if setting.color_column in drawn.columns else 'name' if 'name' in drawn.columns else None
    rows = drawn[setting.task_column].nunique()
    figure = px.timeline(drawn, x_start=setting.x_start_column, x_end=setting.x_end_column, y=setting.task_column, color=color,
                         hover_data=[c for c in setting.hover_columns if c in drawn.columns], title=title, width=setting.width,
                         height=200 + setting.task_height * rows)
    if setting.plot_format == PlotFormat.HTML:
        return to_html(figure)
    if setting.plot_format == PlotFormat.File:
        path = output_image_path or get_fig_name_from_fig_title(title) + '.html'
        figure.write_html(path) if path.endswith('.html') else figure.write_image(path)
        return None
    figure.show()
    return None


class Timeline:
    """A frame's rows, filtered, as a picture."""

    def __init__(self, df, symbol_table=None, filter_func=None, setting=None):
        self.df, self.symbol_table, self.filter_func, self.setting = df, symbol_table, filter_func, setting or TimelinePlotSetting()
        self.timeline_events = self.prepare()

    def prepare(self):
        rows = self.df
        if self.filter_func is not None:
            rows = self.filter_func(rows, self.symbol_table)
        return prepare_timeline_events(rows, self.symbol_table, self.setting)

    @staticmethod
    def is_timeline_events(df, setting):
        return {setting.task_column, setting.x_start_column, setting.x_end_column} <= set(df.columns)

    def plot(self, title='', save_path=''):
        return plot_events_timeline(title, self.timeline_events, setting=self.setting, output_image_path=save_path)
