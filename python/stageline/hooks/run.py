"""The shared part of the hooks of all frameworks: the start of recording, the owner of the current step, the lane of a
job, the wrapping of a function."""
import functools
import inspect
import os
import sys

from .. import record
from ..record import _core

# The condition for recording a wrapped call: being inside a step of a pipeline, or only that recording goes on
# (optimizers, plain training).
IN_STEP, RECORDING, PLAIN = 0, 1, 2
# stage: what the jobs of this rank must say; None where the recording says it.
state = {'tried': False, 'step': -1, 'depth': 0, 'training': False, 'stage': None}
when_step_begins = []  # each is called with whether the step trains, once it has its number
_reported = set()


def complain(where, error):
    """Once per place."""
    if where not in _reported:
        _reported.add(where)
        print(f'stageline: {where} is not recorded: {type(error).__name__}: {error}', file=sys.stderr)


def allow(switch, on):
    """Switches the calls that were wrapped with it on or off."""
    _core.allow(switch, on)


def _in_child():
    state.update(tried=False, training=False, depth=0)
    allow(IN_STEP, False)


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


def _stream_lane(kind, handle_of, device):
    """A callable: the lane of a device's current stream, by its handle alone where torch can say it without making a Stream object."""
    def lane():
        handle = handle_of()
        return (handle and record._lanes.get((kind, handle))) or record.lane(device.current_stream())
    return lane


def know_devices():
    """Names to the extension the framework whose streams torch's work uses, so that it reads them itself at each
    call."""
    torch = sys.modules.get('torch')
    known = []
    for name in ('cuda', 'npu'):
        device = getattr(torch, name, None)
        if device is None or not hasattr(device, '_initialized'):
            continue
        raw, index = getattr(torch._C, '_cuda_getCurrentRawStream', None), getattr(torch._C, '_cuda_getDevice', None)
        if name == 'cuda' and raw and index:
            kind = record._HIP if getattr(torch.version, 'hip', None) else record._CUDA
            known.append((vars(device), _stream_lane(kind, lambda raw=raw, index=index: raw(index()), device)))
        else:
            known.append((vars(device), lambda device=device: record.lane(device.current_stream())))
    _core.set_devices(known)


class training_step:
    """`with training_step(place):` around what runs one step of the schedule; place() → keywords of record.init(), asked once."""

    def __init__(self, place, training=True):
        self.place, self.training = place, training

    def __enter__(self):
        state['depth'] += 1
        if state['depth'] > 1:  # one step that calls another: a subclass and its base
            return self
        try:
            allow(PLAIN, False)  # the pipeline's own functions say more
            state['training'] = self.training and start(self.place)
            if state['training']:
                next_step()
                know_devices()
            for say in when_step_begins:
                say(state['training'])
            allow(IN_STEP, state['training'])
        except Exception as error:
            complain('this program', error)
        return self

    def __exit__(self, *_):
        state['depth'] -= 1
        if state['depth'] == 0:
            state['training'] = False
            allow(IN_STEP, False)
        return False


def start(place_of):
    """Begins the recording when it is first asked to; True while there is one."""
    if not state['tried']:
        state['tried'] = True
        try:
            place = place_of() or {}
        except Exception as error:  # not set up as we know it: the reader finds stages itself
            complain('the place of this rank', error)
            place = {}
        if record.recording():  # begun by the program or by NVTX, which do not know the stage: each job says it
            state['stage'] = place.get('stage')
            _core.set_stage(-1 if state['stage'] is None else state['stage'])
        else:
            record.init(**place)
        allow(RECORDING, record.recording())
    return record.recording()


def next_step():
    state['step'] += 1
    _core.count_step(state['step'])


def in_training():
    """Inside a training step that is recorded."""
    return state['training']


def started():
    """Recording, between steps too."""
    return state['tried'] and record.recording()


def job(kind, micro_batch=None, chunk=None, name=None, **more):
    """record.job() of this rank's stage, on the current stream of its device."""
    return record.job(kind, micro_batch, chunk, _core.current_lane(), name=name, stage=state['stage'], **more)


def _picks(function, wanted):
    """((position, name[, default]), …) of the parameters `wanted`, for the extension; 'a|b': the first of these that there is.

    A parameter that the function does not have is None."""
    parameters = list(inspect.signature(function).parameters.values())
    found = []
    for name in wanted:
        for place, parameter in enumerate(parameters):
            if parameter.name not in name.split('|'):
                continue
            positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            default = () if parameter.default is parameter.empty else (parameter.default,)
            found.append((place if positional else -1, parameter.name, *default))
            break
        else:
            found.append((-1, name, None))
    return tuple(found)


def wrap(owner, attribute, wanted, job_of, after=None, when=IN_STEP, level=0):
    """Replaces owner.attribute (function, method, class method) by one whose calls are ranges. False: none there, or wrapped already.

    wanted: names of parameters, in one string; or ((position, name), …) where Python cannot ask the function. job_of(*their values) → None to let the call alone, or (kind, micro_batch, chunk, lane, name,
    stage, peer, bytes, sequence), as much of it as is known; no lane: the current stream's. after(result, *values): once it is done.
    level: a call inside another of the same level is a part of it."""
    raw = inspect.getattr_static(owner, attribute, None)
    kind = type(raw) if isinstance(raw, (classmethod, staticmethod)) else None
    function = raw.__func__ if kind else raw
    if function is None or hasattr(function, 'stageline_wrapped'):
        return False
    marked = wrapped(function, f'{getattr(owner, "__name__", owner)}.{attribute}', wanted, job_of, after, when, level)
    setattr(owner, attribute, kind(marked) if kind else marked)
    return True


def wrapped(function, where, wanted, job_of, after=None, when=IN_STEP, level=0):
    """The same of a function that is not an attribute."""
    if hasattr(function, 'stageline_wrapped'):
        return function
    picks = _picks(function, wanted.split()) if isinstance(wanted, str) else wanted
    call = _core.hook(function, job_of, picks, after, lambda error: complain(where, error), when, level).call

    compiling = _compiling() if when == PLAIN else None
    if compiling is None:
        def marked(*args, **kwargs):
            return call(args, kwargs)
    else:  # torch.compile takes the question for a constant, and compiles the function as if we were not there
        def marked(*args, **kwargs):
            if compiling():
                return function(*args, **kwargs)
            return call(args, kwargs)
    marked = functools.wraps(function)(marked)
    marked.stageline_wrapped = function
    return marked


def _compiling():
    """torch's question whether torch.compile is at work; None where this torch has none yet (it is being imported)."""
    def ask():
        compiler = sys.modules.get('torch.compiler')
        return compiler is not None and compiler.is_compiling()
    return ask


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
