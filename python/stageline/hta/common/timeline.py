"""Rows of frames as bars over time."""
import dataclasses
import enum
import re

from ..configs.config import logger
from ._plotly import px, to_html, write_figure
from .trace_df import find_events_by_name_patterns_using_decoded_names, find_events_by_name_patterns_using_symbol_table

AnnotationStreamID = 0
REQUIRED_COLUMNS_FOR_CPU_GPU_ALIGNMENT = {'index', 'stream', 'ts', 'dur', 'name', 'first_kernel_start', 'kernel_span', 'num_kernels'}


class PlotFormat(enum.Enum):
    HTML = 'html'
    Inline = 'inline'
    File = 'file'


class EventType(enum.Enum):
    GPUEvents = 0
    CPUEvents = 1
    AllEvents = 2


@dataclasses.dataclass
class TimelinePlotSetting:
    """Defines the rows of the picture and how they are drawn. With auto_detect the frame decides what varies. Times are
    µs."""
    auto_detect: bool = True
    event_type: EventType = EventType.GPUEvents
    multi_ranks: bool = False
    multi_traces: bool = False
    multi_streams: bool = True
    x_start_column: str = 'calibrated_start_global'
    x_end_column: str = 'calibrated_end_global'
    task_column: str = 'task'
    color_column: str = 'name'
    task_height: int = 30
    amplify_short_events: bool = True
    short_events_display_duration: int = 1000
    use_global_time: bool = False
    plot_format: PlotFormat = PlotFormat.Inline
    compress_threads: bool = True


DefaultTimelinePlotSetting = TimelinePlotSetting()
DefaultHoverColumns = ['dur', 'name', 'cat', 'ts']


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


def get_fig_title_from_fig_name(fig_name, sep=r'\s+|_+|-+'):
    return ' '.join(part.capitalize() for part in re.split(sep, fig_name or 'untitled_figure') if part)


def get_fig_name_from_fig_title(title):
    return re.sub(r'\s+', '_', (title or 'Untitled Figure').strip()).lower()


def _check_timeline_input(events, setting):
    """Returns true if the frame has what a picture needs."""
    if events is None or events.empty:
        logger.warning('there is no row to draw')
        return False
    missing = {setting.x_start_column, setting.x_end_column, setting.task_column, setting.color_column} - set(events.columns)
    if missing:
        logger.warning('the columns %s are missing: prepare_timeline_events makes them', sorted(missing))
    return not missing


def auto_detect_setting(events, setting):
    """The setting as the frame wants it, in place; nothing without auto_detect."""
    if not setting.auto_detect:
        return
    def several(column):  # noqa: E306
        return column in events.columns and bool(events[column].nunique() > 1)
    setting.multi_ranks, setting.multi_traces, setting.multi_streams = several('rank'), several('trace'), several('stream')
    host = events['stream'].eq(-1) if 'stream' in events.columns else None
    setting.event_type = (EventType.CPUEvents if host is None or host.all() else EventType.AllEvents if host.any() else EventType.GPUEvents)


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


def align_module_with_kernels(events_df, module_list, sym_table=None, include_original_cpu_events=False):
    """Device rows, and calls whose names the patterns match once more where their kernels ran, on stream 0."""
    import pandas
    missing = REQUIRED_COLUMNS_FOR_CPU_GPU_ALIGNMENT - set(events_df.columns)
    if missing:
        raise ValueError(f'the columns {sorted(missing)} are missing: CallGraph adds them')
    if sym_table is not None:
        chosen = find_events_by_name_patterns_using_symbol_table(events_df, module_list, sym_table)
    else:
        column = next((c for c in ('s_name', 'name') if c in events_df.columns and events_df[c].dtype.kind not in 'iuf'), None)
        if column is None:
            raise ValueError('neither name nor s_name holds texts: give the symbol table, or decode the names first')
        chosen = find_events_by_name_patterns_using_decoded_names(events_df, module_list, column)
    modules = events_df[events_df['index'].isin(chosen) & events_df['stream'].lt(0) & events_df['num_kernels'].gt(0)].copy()
    modules['ts'], modules['dur'], modules['stream'] = modules['first_kernel_start'], modules['kernel_span'], AnnotationStreamID
    parts = [events_df[events_df['stream'].ge(0)], modules]
    if include_original_cpu_events:
        parts.append(events_df[events_df['index'].isin(chosen) & events_df['stream'].lt(0)])
    return pandas.concat(parts).sort_values('ts', kind='stable')


def prepare_timeline_events(df, setting=DefaultTimelinePlotSetting, symbol_table=None, hover_columns=None):
    """The frame with task, start and end of bars; an empty one where columns are missing."""
    import pandas
    missing = {'name', 'ts', 'dur', 'stream'} - set(df.columns)
    if df.empty or missing:
        logger.error('no row, or columns missing: %s', sorted(missing))
        return pandas.DataFrame()
    auto_detect_setting(df, setting)
    wanted = {*(hover_columns or DefaultHoverColumns), 'name', 'ts', 'dur', 'stream', 'trace', 'rank', 'tid', 'depth'}
    events = df[[c for c in df.columns if c in wanted]].copy()
    if symbol_table is not None:
        shown = [_simplify_name(text) for text in symbol_table.get_sym_table()]
        for column in {'name', 'cat'} & set(events.columns):
            events[column] = events[column].map(lambda i: shown[i])
    begin = events['ts'].min()
    events['ts'] = events['ts'] - begin
    drawn = events['dur'].clip(lower=setting.short_events_display_duration) if setting.amplify_short_events else events['dur']
    for column, times in ((setting.x_start_column, events['ts']), (setting.x_end_column, events['ts'] + drawn)):
        events[column] = pandas.to_datetime(times + begin, unit='us') if setting.use_global_time else times
    events[setting.task_column] = _set_task_names(events, setting)
    return events.sort_values(_get_sort_columns(events, setting), kind='stable')


def plot_events_timeline(title, events, setting=DefaultTimelinePlotSetting, hover_columns=None, output_image_path=None):
    """The picture: shown, as HTML where the setting says so, and in a file where one is named. None where there is nothing to draw."""
    import pandas
    if not _check_timeline_input(events, setting):
        return None
    drawn = events.copy()
    for column in (setting.x_start_column, setting.x_end_column):
        if drawn[column].dtype.kind != 'M':
            drawn[column] = pandas.to_datetime(drawn[column], unit='us')
    tasks = sorted(drawn[setting.task_column].unique())
    figure = px.timeline(drawn, x_start=setting.x_start_column, x_end=setting.x_end_column, y=setting.task_column, color=setting.color_column,
                         hover_data=[c for c in hover_columns or DefaultHoverColumns if c in drawn.columns],
                         category_orders={setting.task_column: tasks}, title=title,
                         height=50 + (80 if len(tasks) < 20 else setting.task_height) * len(tasks))
    if output_image_path:
        write_figure(figure, output_image_path)
    if setting.plot_format == PlotFormat.HTML:
        return to_html(figure, include_plotlyjs='cdn')
    if setting.plot_format == PlotFormat.Inline:
        figure.show()
    return None


class Timeline:
    """A frame's rows, filtered, as a picture."""

    def __init__(self, timeline_events, symbol_table, filter_func=None, setting=DefaultTimelinePlotSetting, hover_columns=None):
        self.timeline_events, self.symbol_table, self.setting = timeline_events, symbol_table, setting
        self.hover_columns = hover_columns or DefaultHoverColumns
        self.prepare(filter_func)

    def prepare(self, filter_func=None):
        """Makes bars of the rows; once."""
        if self.is_timeline_events(self.timeline_events, self.setting):
            return
        rows = self.timeline_events if filter_func is None else filter_func(self.timeline_events, self.symbol_table)
        self.timeline_events = prepare_timeline_events(rows, symbol_table=self.symbol_table, setting=self.setting)

    @staticmethod
    def is_timeline_events(df, setting):
        return {setting.task_column, setting.x_start_column, setting.x_end_column} <= set(df.columns)

    def plot(self, title, save_path=None):
        plot_events_timeline(title, self.timeline_events, setting=self.setting, hover_columns=self.hover_columns, output_image_path=save_path)
