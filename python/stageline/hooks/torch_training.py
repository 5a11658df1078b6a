"""Records training without a pipeline on torch: DDP, FSDP, and the libraries on top of them (Trainer, Accelerate,
Lightning, torchtitan, ZeRO).

    data wait   DataLoader's next()                                      L, of the training step that uses the batch
    forward     of the wrapped model (DDP, FSDP, DeepSpeedEngine), or the Trainer's call around it; the outermost counts       F
    backward    torch.autograd.backward                                   B
    optimizer   torch's hooks around Optimizer.step (torch_pipelining)    O, after which a forward begins the next step
    collectives torch.distributed's calls and the waits for them          C on the thread: it stands still so long
    DDP's own   are C++: the reducer's logger says when they began and ended; on a CPU, where its times are the host's.
                C on a lane of its own, and on the thread what was waited for them after the last gradient was there

A step of a pipeline (run.training_step) switches all of this off but the data wait: its hooks say more. Evaluation (eval(), no_grad) is not recorded.
"""
import sys
import time
import weakref

from .. import record
from ..record import _core
from . import run

_FORWARD, _BACKWARD, _COLLECTIVE = 1, 2, 3  # levels: of calls within calls only the outermost is a range
_step = {'over': False, 'micro_batch': 0, 'reduced': False}
_fetched = []  # (begin, end) of batches since the last forward or backward
_MOST_FETCHED = 4096
_models = weakref.WeakSet()  # DDP models whose forward ran in this step; 'reduced': there are some, which costs less to ask
_works = weakref.WeakKeyDictionary()  # a work → what it is, until it is waited for; the program alone keeps it, and with it its tensors
_lanes = {}


def _torch():
    return sys.modules['torch']


def _place():
    distributed = sys.modules.get('torch.distributed')
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return {'stage': 0, 'pp': 1}
    return {'stage': 0, 'pp': 1, 'dp_rank': distributed.get_rank(), 'dp': distributed.get_world_size()}


def _work_begins():
    """Before a forward or backward of training: begins the recording, the step; says what was waited for its batches."""
    if not run.state['tried'] or _step['over']:
        if not run.start(_place):
            return False
        _step.update(over=False, micro_batch=0)
        run.next_step()
        run.know_devices()
    elif not record.recording():
        return False
    _say_fetched(True)
    return True


def _say_fetched(training):
    """Records the waits for the batches of the step that begins, also of a pipeline's; those of an evaluation are forgotten."""
    now = time.monotonic_ns()
    for begin, end in _fetched if training else ():
        _core.past(now - begin, now - end, 'L', _step['micro_batch'], 0, 0, 'data wait')
    _fetched.clear()


run.when_step_begins.append(_say_fetched)


def step_is_over():
    """An optimizer has stepped: the next forward begins another step, however many optimizers there are."""
    _step['over'] = run.state['tried']


def _forward(model):
    if not _torch().is_grad_enabled() or not getattr(model, 'training', True):
        _say_fetched(False)
        return None
    return ('F', _step['micro_batch'], 0) if _work_begins() else None


def _backward():
    return ('B', _step['micro_batch'], 0) if _work_begins() else None


def _backward_done(_):
    if _step['reduced']:
        _step['reduced'] = False
        for model in list(_models):
            _reduced(model)
        _models.clear()
    _step['micro_batch'] += 1


def autograd(module):
    run.wrap(module, 'backward', '', _backward, _backward_done, run.PLAIN, _BACKWARD)


def _note_model(model):
    if run.state['tried'] and model.device_type == 'cpu' and model.require_backward_grad_sync and _torch().is_grad_enabled():
        if not hasattr(model, '_stageline_seen'):
            model._stageline_seen = True
            model._set_ddp_runtime_logging_sample_rate(1)  # times of every iteration, not of one in a hundred
        _models.add(model)
        _step['reduced'] = True


def _reduced(model):
    """Records the work of DDP's reducer in the backward that has just ended."""
    model.logger.set_runtime_stats_and_log()
    said = model._get_ddp_logging_data()
    begin, end, computed = (said.get(key, 0) for key in ('backward_comm_time_start', 'backward_comm_time_end', 'backward_compute_time_end'))
    if not 0 < begin <= end:
        return
    size = sum(int(part) for part in (said.get('rebuilt_bucket_sizes') or said.get('bucket_sizes') or '').split(',') if part.strip().isdigit())
    if 'collectives' not in _lanes:
        _lanes['collectives'] = record.lane(name='collectives')
    now = time.time_ns()
    name = f'all_reduce of gradients {_group_text(model.process_group)}'
    number = _step['micro_batch']
    _core.past(now - begin, now - end, 'C', number, 0, _lanes['collectives'], name, None, None, size)
    if computed < end:  # the thread had nothing left to compute and waited in backward
        _core.past(now - max(begin, computed), now - end, 'C', number, 0, 0, f'wait for {name}', None, None, None)


def data_parallel(module):
    model = module.DistributedDataParallel
    run.wrap(model, 'forward', 'self', _forward, None, run.PLAIN, _FORWARD)
    run.wrap(model, '_pre_forward', 'self', _note_model, None, run.PLAIN)


def fully_sharded(module):
    run.wrap(module.FullyShardedDataParallel, 'forward', 'self', _forward, None, run.PLAIN, _FORWARD)


_roots = {}  # id of a root's state → the range of its forward


def _root_begins(state, module):
    if state._state_ctx.iter_forward_root is not None:  # a child of the root whose forward runs
        return
    for left in _roots.values():  # a forward that failed
        left.end()
    _roots.clear()
    said = _forward(module)
    if said:
        _roots[id(state)] = run.job(*said).begin()


def _root_ends(_, state):
    if state._state_ctx.iter_forward_root is None and id(state) in _roots:
        _roots.pop(id(state)).end()


def fully_shard(module):
    """FSDP2 has no class of its own for the model: its states hang in the modules' hooks, and one of them is the root."""
    state = module.FSDPState
    run.wrap(state, '_root_pre_forward', 'self module', _root_begins, None, run.PLAIN)
    # There is nothing to record before it; `after` needs a range, so it has its own wrapper.
    function = vars(state)['_post_forward']
    if not hasattr(function, 'stageline_wrapped'):
        def marked(self, *args, **kwargs):
            result = function(self, *args, **kwargs)
            if _roots:
                try:
                    _root_ends(result, self)
                except Exception as error:
                    run.complain('FSDPState._post_forward', error)
            return result
        marked.__name__, marked.__qualname__, marked.stageline_wrapped = function.__name__, function.__qualname__, function
        state._post_forward = marked


def engine(module):
    run.wrap(module.DeepSpeedEngine, 'forward', 'self', _forward, None, run.PLAIN, _FORWARD)


def trainer(module):
    run.wrap(module.Trainer, 'compute_loss', 'model', _forward, None, run.PLAIN, _FORWARD)


def lightning(module):
    run.wrap(module.Strategy, 'training_step', '', lambda: _forward(None), None, run.PLAIN, _FORWARD)


def loaders(module):
    for owner in [c for c in vars(module).values() if isinstance(c, type) and '__next__' in vars(c) and c.__module__ == module.__name__]:
        _wrap_next(owner)


def _wrap_next(owner):
    function = vars(owner)['__next__']
    if hasattr(function, 'stageline_wrapped'):
        return

    def marked(self):
        begin = time.monotonic_ns()
        batch = function(self)
        if len(_fetched) < _MOST_FETCHED:
            _fetched.append((begin, time.monotonic_ns()))
        return batch

    marked.__name__, marked.__qualname__, marked.stageline_wrapped = '__next__', function.__qualname__, function
    owner.__next__ = marked


_COLLECTIVES = ('all_reduce', 'all_reduce_coalesced', 'all_gather', 'all_gather_single', 'all_gather_into_tensor', '_all_gather_base',
                'all_gather_coalesced', 'all_gather_object', 'reduce_scatter', 'reduce_scatter_single', 'reduce_scatter_tensor',
                '_reduce_scatter_base', 'all_to_all', 'all_to_all_single', 'broadcast', 'broadcast_object_list', 'reduce', 'gather',
                'gather_object', 'scatter', 'scatter_object_list', 'barrier', 'monitored_barrier')
_texts = {}  # (collective, id of a group) → its name


def _group_text(group):
    """"(default_pg, 4 ranks)": which ranks take part."""
    distributed = _torch().distributed
    group = group if group is not None else distributed.group.WORLD
    return f'({getattr(group, "group_desc", None) or getattr(group, "group_name", "group")}, {group.size()} ranks)'


def _size(value):
    if isinstance(value, (list, tuple)):
        return sum(_size(one) for one in value[:4096])
    return value.numel() * value.element_size() if hasattr(value, 'element_size') else 0


def _collective(name):
    def job_of(first, second, group):
        if not run.state['tried']:
            return None
        key = name, id(group)
        text = _texts.get(key)
        if text is None:
            text = _texts[key] = f'{name} {_group_text(group)}'
        return 'C', _step['micro_batch'], 0, None, text, None, None, max(_size(first), _size(second)) or None

    def done(work, first, second, group):
        if hasattr(work, 'wait'):
            _works[work] = _texts.get((name, id(group)))
    return job_of, done


def _wait(work):
    known = _works.pop(work, None)
    return known and ('C', _step['micro_batch'], 0, None, f'wait for {known}')


def collectives(module):
    """torch.distributed takes the names over when it is imported, which is later; where it was before, they are put there too."""
    whole = sys.modules.get('torch.distributed')
    for name in _COLLECTIVES:
        plain = vars(module).get(name)
        if plain is not None and run.wrap(module, name, 'tensor|input_tensor|input|obj tensor_list|output_tensor|output|input_list group',
                                          *_collective(name), run.PLAIN, _COLLECTIVE):
            if whole is not None and vars(whole).get(name) is plain:
                setattr(whole, name, vars(module)[name])
    run.wrap(module.Work, 'wait', ((0, 'self'),), _wait, None, run.PLAIN, _COLLECTIVE)


def compiled(module):
    """torch.compile(model): what is called is its own module, and what it calls is compiled without us."""
    run.wrap(module.OptimizedModule, '__call__', 'self', _forward, None, run.PLAIN, _FORWARD)
