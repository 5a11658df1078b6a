"""Memory over time from the allocations in a trace (`profile_memory=True`), and by category of what allocated. HTA has these questions on
its main branch, after release 0.6.1. Here `ts` is in ns from the run's first slice, so `ms` is what it says."""
import re

from . import _figures

_BEFORE = 'allocated_before_profile'
_QUERY = """SELECT time_ns AS ts, device_type, device AS device_id, address AS addr, bytes AS bytes_delta,
  allocated_bytes AS total_allocated, reserved_bytes AS total_reserved, op_id FROM memory ORDER BY time_ns, rowid"""


def classify_torchtitan_calls(mem_event):
    """The category of an allocation by the names around it, for transformers trained with FSDP: pass, then what of it."""
    name = mem_event['stack_name'].lower()
    parts = [next((p for p in ('backward', 'forward', 'optimizer') if p in name), 'unknown')]
    parts += ['loss'] * ('loss' in name)
    parts += ['layer'] * bool(re.search(r'optimizedmodule_\d', name))
    parts += ['fsdp_parameters'] * ('shard' in name)
    parts += ['activation'] * ('forward' in name and 'checkpoint' in name)
    parts += ['embedding'] * ('embedding' in name)
    parts += ['output'] * ('rmsnorm_0' in name or ('linear_0' in name and 'transformer_0' in name))
    parts += ['details'] * ('backward' in name and ('call' in name or 'aten' in name))
    return ':'.join(parts if len(parts) > 1 else [*parts, 'unknown'])


class MemoryAnalysis:
    """The questions of memory about the files of a Trace, one rank at a time; without `rank` the first one."""

    def __init__(self, t):
        self.t = t

    def _events(self, rank, stacks=False):
        """One row an allocation or release, in order of time, numbered from 0; with `stacks`, stack_name and alloc_or_dealloc_id too."""
        import stageline
        files = self.t.trace_files
        if not files:
            raise ValueError('No ranks found in trace')
        rank = min(files) if rank is None else rank
        with stageline.open([files[rank]], file_ranks=[rank], align='never', cells='off', progress=False) as run:
            events = run.sql(_QUERY).to_pandas(categories=False)
            if stacks:
                events['stack_name'] = self._stacks(events, run)
                events['alloc_or_dealloc_id'] = self._partners(events).astype('float64')
        return events.drop(columns='op_id')

    @staticmethod
    def _stacks(events, run):
        """Names from the outermost slice around each event to the operator that it is of; '' where there is none."""
        slices = run.sql('SELECT id, parent_id, name FROM slices WHERE lane_kind = \'host\'').to_pandas(categories=False)
        parents = dict(zip(slices['id'], slices['parent_id']))
        names = dict(zip(slices['id'], slices['name']))
        known = {}

        def stack(at):
            path = []
            while at in names and at not in known:
                path.append(at)
                at = parents[at]
            text = known.get(at, '')
            for one in reversed(path):
                text = known[one] = f'{text};{names[one]}' if text else names[one]
            return text
        return [stack(at) for at in events['op_id']]

    @staticmethod
    def _partners(events):
        """The release of an allocation and the allocation of a release: the next of that size at its address and device."""
        import pandas
        partners, live = [float('nan')] * len(events), {}
        for index, device, address, size in zip(events.index, events['device_id'], events['addr'], events['bytes_delta']):
            if size > 0:
                live[device, address, size] = index
            elif (at := live.pop((device, address, -size), None)) is not None:
                partners[index], partners[at] = at, index
        return pandas.Series(partners, events.index)

    def get_memory_timeline(self, rank=None, visualize=True, device=None):
        """A frame of allocations and releases with the totals after each; `device` keeps those of one device."""
        events = self._events(rank)
        if device is not None:
            events = events[events['device_id'] == device]
        if visualize:
            for number, own in events.groupby('device_id'):
                _figures.memory_totals(own.assign(ms=own['ts'] / 1e6), number)
        return events

    def get_classified_memory_timelines(self, rank=None, classification_func=None, visualize=True):
        """({device: bytes of each category over time}, {device: events with their category}). A release has the category of its allocation; what
        was allocated before the recording is a category of its own."""
        import pandas
        classify = classification_func or classify_torchtitan_calls
        events = self._events(rank, stacks=True)
        timelines, classified = {}, {}
        for device, own in events.groupby('device_id'):
            own = self._with_start(own, events['ts'].min() - 1, events.index.max() + 1)
            kinds = [_BEFORE if row['stack_name'] == _BEFORE else classify(row) for _, row in own.iterrows()]
            kinds = dict(zip(own.index, kinds))
            own['stack_type'] = [kinds[i] if size >= 0 else kinds.get(at, _BEFORE)
                                 for i, size, at in zip(own.index, own['bytes_delta'], own['alloc_or_dealloc_id'])]
            classified[device] = own
            timelines[device] = pandas.concat([self._curve(kind, of) for kind, of in own.groupby('stack_type')])
            timelines[device]['ms'] = timelines[device]['ts'] / 1e6
            if visualize:
                _figures.memory_categories(timelines[device], list(own['stack_type'].unique()), device)
        return timelines, classified

    @staticmethod
    def _with_start(own, ts, index):
        """The events after a row for all that was allocated before the first one."""
        import pandas
        first = own.iloc[0].copy()
        first['total_allocated'] -= first['bytes_delta']
        first['bytes_delta'], first['ts'], first['addr'] = first['total_allocated'], ts, -1
        first['stack_name'], first['alloc_or_dealloc_id'] = _BEFORE, float('nan')
        return pandas.concat([first.to_frame(index).T.astype(own.dtypes.to_dict()), own])

    @staticmethod
    def _curve(kind, of):
        """The category's bytes, with a row just before each event, so that a plot has steps and no slopes."""
        import pandas
        real = of[['ts', 'bytes_delta', 'stack_name', 'alloc_or_dealloc_id', 'stack_type']].assign(is_plotting_event_only=False)
        curve = pandas.concat([real.assign(ts=real['ts'] - 1, bytes_delta=0, is_plotting_event_only=True), real])
        curve = curve.sort_values('ts', kind='stable')
        return curve.assign(**{kind: curve['bytes_delta'].cumsum(), 'category': kind})
