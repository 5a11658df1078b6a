"""One slice with all that is known of it, and who called whom. The engine says the parents; here is the way along them."""
import json

from ._words import _usage

_COLUMNS = ('id', 'rank', 'name', 'category', 'class', 'start_ns', 'dur_ns', 'lane', 'stream', 'step', 'parent_id', 'launch_id', 'correlation',
            'file_index')


class Slice:
    """Holds a slice: the columns of slices() as attributes (kernel_class for class), and its relations."""

    def __init__(self, trace, row):
        self._trace = trace
        self.__dict__.update({'kernel_class' if c == 'class' else c: v for c, v in zip(_COLUMNS, row)})

    @property
    def end_ns(self):
        return self.start_ns + self.dur_ns

    @property
    def event(self):
        """The event as the source has it, fetched from the file now. Raises BadInput where the file changed since, Unavailable where
        the source keeps no positions."""
        return json.loads(self._trace._run.source_text(self.id), strict=False)

    @property
    def args(self):
        """The event's arguments."""
        return self.event.get('args') or {}

    def _other(self, place):
        return None if place is None else self._trace.slice(place)

    @property
    def parent(self):
        """The slice around it; of device work the operator that owns it."""
        return self._other(self.parent_id)

    @property
    def launch(self):
        """Of device work the call that launched it."""
        return self._other(self.launch_id)

    @property
    def children(self):
        """Returns the slices that it called, in the order of calls."""
        return [self._trace.slice(i) for i in self._trace.calls(self.rank).children(self.id)]

    @property
    def kernels(self):
        """Device work that it and what it called launched."""
        return [self._trace.slice(i) for i in self._trace.calls(self.rank).kernels(self.id)]

    @property
    def stack(self):
        """From the outermost call to this slice."""
        return [self._trace.slice(i) for i in reversed(self._trace.calls(self.rank).path_to_root(self.id))]

    def __eq__(self, other):
        return isinstance(other, Slice) and (self._trace, self.id) == (other._trace, other.id)

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f'Slice({self.name!r}, rank {self.rank}, {self.lane!r}, {self.dur_ns:,} ns)'


class CallGraph:
    """Who called whom on a rank: questions by id, the column of slices(). It is made once, of two columns."""

    def __init__(self, trace, rank):
        from .filters import f
        self._trace, self.rank = trace, rank
        table = trace.slices(where=f.rank == rank, columns=['id', 'parent_id', 'start_ns', 'dur_ns', 'class'])
        ids, parents, starts, durations, kinds = (table[c] for c in ('id', 'parent_id', 'start_ns', 'dur_ns', 'class'))
        self._parent = dict(zip(ids, parents))
        self._device = {i for i, kind in zip(ids, kinds) if kind is not None}
        self._children = {}
        for i, parent, _, _ in sorted(zip(ids, parents, starts, durations), key=lambda row: (row[2], -row[3], row[0])):
            self._children.setdefault(parent, []).append(i)

    def _known(self, place):
        if place not in self._parent:
            raise _usage(f'rank {self.rank} has no slice {place}', 'find(name) gives one, slices() lists all')
        return place

    def roots(self):
        """Ids of slices that nothing called."""
        return list(self._children.get(None, ()))

    def parent(self, place):
        """The id of what called it; None of a root."""
        return self._parent[self._known(place)]

    def children(self, place):
        """Ids of what it called and of the device work it owns, by start."""
        return list(self._children.get(self._known(place), ()))

    def path_to_root(self, place):
        """Ids from the slice to its outermost call, both included."""
        path = [self._known(place)]
        while self._parent[path[-1]] is not None:
            path.append(self._parent[path[-1]])
        return path

    def subtree(self, place):
        """Ids of the slice and all below it, callers before what they called."""
        out, work = [], [self._known(place)]
        while work:
            at = work.pop()
            out.append(at)
            work.extend(reversed(self._children.get(at, ())))
        return out

    def leaves(self, place):
        """Ids below the slice (or it) that called nothing."""
        return [i for i in self.subtree(place) if i not in self._children]

    def kernels(self, place):
        """Ids of device work below the slice."""
        return [i for i in self.subtree(place) if i in self._device]

    def find(self, name, nth=0):
        """The id of the nth slice of this name by start; negative numbers count from the end. Raises UsageError without one."""
        from .filters import f
        table = self._trace.slices(where=(f.rank == self.rank) & (f.name == name), columns=['id', 'start_ns'])
        found = [i for _, i in sorted(zip(table['start_ns'], table['id']))]
        if not -len(found) <= nth < len(found):
            raise _usage(f'rank {self.rank} has {len(found)} slices named {name!r}, not one at place {nth}', '')
        return found[nth]

    def table(self):
        """The engine's call graph of the rank: depth, height, own time, device work below."""
        return self._trace.analyze('call-graph')

    def __len__(self):
        return len(self._parent)

    def __repr__(self):
        return f'CallGraph(rank {self.rank}: {len(self)} slices, {len(self.roots())} roots)'
