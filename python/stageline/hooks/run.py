"""What the hooks of all frameworks share: when recording begins, whose step runs, on which lane a job lies, how a function is wrapped."""
import functools
import inspect
import os
import sys

from .. import record
from ..record import _core
from ..record._drop_in import device_lane  # noqa: F401

_state = {'tried': False, 'step': -1, 'depth': 0, 'training': False, 'stage': None}
_said = set()


def complain(where, error):
    """Once per place."""
    if where not in _said:
        _said.add(where)
        print(f'stageline: {where} is not recorded: {type(error).__name__}: {error}', file=sys.stderr)


def _in_child():
    _state.update(tried=False, training=False, depth=0)


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_in_child)


def pipeline_place(ranks, rank=None):
    """{stage, pp, dp_rank} from the global ranks of this rank's pipeline, in order of stages, as meshes number them.

    Ranks of one pipeline lie `stride` apart; below it are the other dimensions that turn faster, above it those that turn slower."""
    if rank is None:
        rank = sys.modules['torch'].distributed.get_rank()
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    place = {'stage': ranks.index(rank), 'pp': len(ranks)}
    if stride > 0 and all(later - earlier == stride for earlier, later in zip(ranks, ranks[1:])):
        place['dp_rank'] = ranks[0] % stride + ranks[0] // (stride * len(ranks)) * stride
    return place


class training_step:
    """`with training_step(place):` around what runs one step of the schedule; place() → keywords of record.init(), asked once."""

    def __init__(self, place, training=True):
        self.place, self.training = place, training

    def __enter__(self):
        _state['depth'] += 1
        if _state['depth'] > 1:  # one step that calls another: a subclass and its base
            return self
        try:
            _state['training'] = self.training and self._start()
            if _state['training']:
                _state['step'] += 1
                _core.count_step(_state['step'])
        except Exception as error:
            complain('this program', error)
        return self

    def _start(self):
        if not _state['tried']:
            _state['tried'] = True
            try:
                place = self.place() or {}
            except Exception as error:  # not set up as we know it: the reader finds stages itself
                complain('the place of this rank', error)
                place = {}
            if record.recording():  # begun by the program or by NVTX, which do not know the stage: each job says it
                _state['stage'] = place.get('stage')
            else:
                record.init(**place)
        return record.recording()

    def __exit__(self, *_):
        _state['depth'] -= 1
        if _state['depth'] == 0:
            _state['training'] = False
        return False


def in_training():
    """Inside a training step that is recorded."""
    return _state['training']


def started():
    """Recording, between steps too."""
    return _state['tried'] and record.recording()


def job(kind, micro_batch, chunk, lane, name=None):
    """record.job() of this rank's stage."""
    return record.job(kind, micro_batch, chunk, lane, name=name, stage=_state['stage'])


def wrap(owner, attribute, job_of, after=None):
    """Replaces owner.attribute (function, method, class method) by one whose calls are ranges. False: none there, or wrapped already.

    job_of(arguments) → a record.job(), or None to let the call alone. arguments: by parameter name. after(arguments, result): once it is
    done."""
    raw = inspect.getattr_static(owner, attribute, None)
    kind = type(raw) if isinstance(raw, (classmethod, staticmethod)) else None
    function = raw.__func__ if kind else raw
    if function is None or hasattr(function, 'stageline_wrapped'):
        return False
    marked = _marked(function, f'{getattr(owner, "__name__", owner)}.{attribute}', job_of, after)
    setattr(owner, attribute, kind(marked) if kind else marked)
    return True


def wrapped(function, where, job_of):
    """The same of a function that is not an attribute."""
    return function if hasattr(function, 'stageline_wrapped') else _marked(function, where, job_of, None)


def _marked(function, where, job_of, after):
    signature = inspect.signature(function)

    @functools.wraps(function)
    def marked(*args, **kwargs):
        if not _state['training']:
            return function(*args, **kwargs)
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:  # a wrong call: it fails in its own words
            return function(*args, **kwargs)
        try:
            job = job_of(arguments)
        except Exception as error:
            complain(where, error)
            job = None
        if job is None:
            return function(*args, **kwargs)
        with job:
            result = function(*args, **kwargs)
        if after is not None:
            try:
                after(arguments, result)
            except Exception as error:
                complain(where, error)
        return result

    marked.stageline_wrapped = function
    return marked


def wrap_step(owner, attribute, place_of, trains=None):
    """Makes calls of owner.attribute training steps. place_of(arguments), trains(arguments) → keywords of init(), whether it is training."""
    function = vars(owner).get(attribute)
    if not callable(function) or hasattr(function, 'stageline_wrapped'):
        return False
    signature = inspect.signature(function)

    @functools.wraps(function)
    def marked(*args, **kwargs):
        try:
            arguments = signature.bind(*args, **kwargs).arguments
            training = trains is None or trains(arguments)
        except TypeError:
            return function(*args, **kwargs)
        with training_step(lambda: place_of(arguments), training):
            return function(*args, **kwargs)

    marked.stageline_wrapped = function
    setattr(owner, attribute, marked)
    return True
