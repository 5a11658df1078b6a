"""Pipelines as Kineto traces: 1F1B on GPUs with NCCL messages, and the shape of DeepSeek's published DualPipe profile.

  python3 tests/gen/kineto.py --shape pipeline -o DIR [--notes none|actions|numbers|megatron] [--ranks 4] [--micro-batches 8] [--dp 1]
  python3 tests/gen/kineto.py --shape dualpipe -o DIR

pipeline: every rank runs torch's Schedule1F1B. Sends alone and receives alone are their own kernels. A fused pair (the
send forward with the receive of a gradient, and the other way round) is one kernel of a coalesced group, without
collective arguments. A message kernel lasts from its own start until its peer has arrived and the bytes are complete:
its duration includes the waiting. The host runs ahead; backward launches come from the autograd thread. `notes` chooses
the annotations: none, torch's `PP:2F0`, `Forward 3`, or only Megatron's Python frames.

dualpipe: one rank, one micro-batch pair overlapped (`1F1B`), named parts of a layer with the phase in brackets, and
kernels of DeepEP that no NCCL name covers. "External id" is equal to the correlation (torch 1.13 to 2.2).

truth.json next to the traces contains per rank and step the order of cells ("F0", "B0", …) and the cell of each kernel.
"""
import gzip
import json
import os
import random

HOST, DEVICE = 'host', 'device'
GEMM = 'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas'
P2P = 'ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)'
RELU = 'void at::native::vectorized_elementwise_kernel<4, at::native::relu_functor, std::array<char*, 2ul> >(int, at::native::relu_functor)'
NS_BASE = 1_759_321_026_000_000_000
LAYERS, HOST_US, TRANSFER_US = 3, 6, 40
FORWARD_US, BACKWARD_US = 120, 115  # of a layer's gemm; backward has two


def batches_1f1b(stage, stages, count):
    """Returns the work of Schedule1F1B on a stage, in order: ('F'|'B', micro-batch) and (description, [(send|recv,
    direction, micro-batch)])."""
    first, last, out = stage == 0, stage == stages - 1, []

    def messages(name, *parts):
        ops = [p for p in parts if not (first and p[:2] in (('recv', 'F'), ('send', 'B'))
                                        or last and p[:2] in (('send', 'F'), ('recv', 'B')))]
        if ops:
            out.append((name, ops))

    warm = min(count, stages - stage)
    for f in range(warm):
        messages('fwd_recv', ('recv', 'F', f))
        out.append(('F', f))
        if f != warm - 1:
            messages('fwd_send', ('send', 'F', f))
    f = warm
    for b in range(count):
        if b <= count - warm:
            messages('fwd_send_bwd_recv', ('send', 'F', f - 1), ('recv', 'B', b))
        else:
            messages('bwd_recv', ('recv', 'B', b))
        out.append(('B', b))
        if f < count:
            messages('bwd_send_fwd_recv', ('send', 'B', b), ('recv', 'F', f))
            out.append(('F', f))
            f += 1
        else:
            messages('bwd_send', ('send', 'B', b))
    return out


class Rank:
    """One rank's events. Host times are final at once; device work is placed when every rank's is known."""

    def __init__(self, options, rank):
        self.o, self.rank = options, rank
        self.stage, self.replica = rank // options.dp, rank % options.dp
        self.pid, self.main, self.autograd = 3000 + rank, 3000 + rank, 3100 + rank
        self.t, self.tid = 1_000_000, self.main
        self.correlation, self.external, self.sequence, self.flow, self.frame = 0, 0, 0, 0, 0
        self.events, self.work, self.seqs, self.order, self.frames = [], [], {}, [], []
        self.random = random.Random(options.seed * 1009 + rank)

    def global_rank(self, stage):
        return stage * self.o.dp + self.replica

    def emit(self, **event):
        self.events.append(event)
        return event

    # ---- host ----------------------------------------------------------------------------------------------------------

    def open(self, cat, name, **args):
        self.external += 1
        event = self.emit(ph='X', cat=cat, name=name, pid=self.pid, tid=self.tid, ts=self.t, dur=0,
                          args={'External id': self.external, 'Record function id': 0, **args})
        self.t += 1500
        return event

    def close(self, event):
        self.t += 800
        event['dur'] = self.t - event['ts']

    def enter(self, name):
        if self.o.notes != 'megatron':
            return None
        self.frame += 1
        event = self.emit(ph='X', cat='python_function', name=name, pid=self.pid, tid=self.tid, ts=self.t, dur=0,
                          args={'Python parent id': self.frames[-1]['args']['Python id'] if self.frames else None,
                                'Python id': self.frame})
        self.frames.append(event)
        self.t += 500
        return event

    def leave(self, event):
        if event:
            self.frames.pop()
            self.close(event)

    def launch(self, name, stream, micros, cell, messages=(), facts=None):
        self.correlation += 1
        call = self.emit(ph='X', cat='cuda_runtime', name='cudaLaunchKernelExC' if messages else 'cudaLaunchKernel', pid=self.pid,
                         tid=self.tid, ts=self.t, dur=4000, args={'External id': self.external, 'cbid': 211,
                                                                  'correlation': self.correlation})
        self.emit(ph='s', id=self.correlation, cat='ac2g', name='ac2g', pid=self.pid, tid=self.tid, ts=self.t)
        self.t += 4500 + int(self.random.random() * 1500)
        self.work.append({'name': name, 'stream': stream, 'launched': call['ts'] + 4000, 'ns': int(micros * 1000), 'cell': cell,
                          'messages': list(messages), 'correlation': self.correlation, 'external': self.external,
                          'facts': facts or {}, 'start': None, 'end': None})

    def layer(self, micro_batch, cell):
        self.sequence += 1
        self.flow += 1
        self.seqs.setdefault(micro_batch, []).append((self.sequence, self.flow))
        outer = self.open('cpu_op', 'aten::linear')
        self.emit(ph='s', id=self.flow, cat='fwdbwd', name='fwdbwd', pid=self.pid, tid=self.tid, ts=self.t)
        op = self.open('cpu_op', 'aten::addmm', **{'Sequence number': self.sequence, 'Fwd thread id': 0})
        self.launch(GEMM, 7, FORWARD_US * self.pace(), cell)
        self.close(op)
        self.close(outer)
        relu = self.open('cpu_op', 'aten::relu')
        self.launch(RELU, 7, 8, cell)
        self.close(relu)

    def pace(self):
        return 0.95 + 0.1 * self.random.random()

    def forward(self, micro_batch):
        frame = self.enter('megatron/core/pipeline_parallel/schedules.py(310): forward_step')
        for _ in range(LAYERS):
            self.layer(micro_batch, f'F{micro_batch}')
        self.leave(frame)

    def backward(self, micro_batch):
        frame = self.enter('megatron/core/pipeline_parallel/schedules.py(449): backward_step')
        run = self.enter('<built-in method run_backward of torch._C._EngineBase object at 0x7f0012345678>')
        self.tid, self.t = self.autograd, self.t + 12_000
        for sequence, flow in reversed(self.seqs.pop(micro_batch)):
            numbers = {'Sequence number': sequence, 'Fwd thread id': 1}
            outer = self.open('cpu_op', 'autograd::engine::evaluate_function: AddmmBackward0', **numbers)
            self.emit(ph='f', id=flow, cat='fwdbwd', name='fwdbwd', pid=self.pid, tid=self.tid, ts=self.t, bp='e')
            node = self.open('cpu_op', 'AddmmBackward0', **numbers)
            for _ in range(2):
                op = self.open('cpu_op', 'aten::mm')
                self.launch(GEMM, 7, BACKWARD_US * self.pace(), f'B{micro_batch}')
                self.close(op)
            self.close(node)
            self.close(outer)
        self.tid, self.t = self.main, self.t + 12_000
        self.leave(run)
        self.leave(frame)

    def message(self, name, ops):
        """One batch: alone it is a send or a receive of its own; mixed, a coalesced group whose kernel says nothing."""
        frames = {'fwd_recv': 'recv_forward', 'fwd_send': 'send_forward', 'fwd_send_bwd_recv': 'send_forward_recv_backward',
                  'bwd_send_fwd_recv': 'send_backward_recv_forward', 'bwd_recv': 'recv_backward', 'bwd_send': 'send_backward'}
        frame = self.enter(f'megatron/core/pipeline_parallel/p2p_communication.py(500): {frames[name]}')
        mixed = len({what for what, _, _ in ops}) > 1
        stages, made = self.o.ranks // self.o.dp, []
        for what, direction, micro_batch in ops:
            other = self.stage + (1 if (what == 'send') == (direction == 'F') else -1)
            peer = self.global_rank(other)
            ends = (self.stage, other) if what == 'send' else (other, self.stage)
            c10d = self.open('cpu_op', 'c10d::send' if what == 'send' else 'c10d::recv_')
            facts = {'Collective name': what, 'In msg nelems': 1 << 20, 'Out msg nelems': 1 << 20, 'Group size': stages,
                     'dtype': 'BFloat16', 'In split size': '[]', 'Out split size': '[]', 'Process Group Name': str(self.replica + 1),
                     'Process Group Description': 'mesh_pp',
                     'Process Group Ranks': str([self.global_rank(s) for s in range(stages)]),
                     'Src Rank': peer if what == 'recv' else self.rank, 'Dst Rank': peer if what == 'send' else self.rank}
            params = self.open('cpu_op', 'record_param_comms', **facts, Rank=other)
            label = f'nccl:send {ends[0]}->{ends[1]}' if what == 'send' else f'nccl:recv {ends[1]}<-{ends[0]}'
            note = self.open('user_annotation', label)
            made.append((what, direction, micro_batch, min(self.stage, other)))
            if not mixed:
                self.launch(P2P, 20, TRANSFER_US, f'{what}{direction}{micro_batch}', made, facts)
                made = []
            self.close(note)
            self.close(params)
            self.close(c10d)
        if mixed:
            note = self.open('user_annotation', 'nccl:coalesced')
            cell = '+'.join(f'{what}{direction}{micro_batch}' for what, direction, micro_batch in ops)
            self.launch(P2P, 20, TRANSFER_US, cell, made)
            self.close(note)
        self.leave(frame)

    def step(self, number):
        step = self.open('user_annotation', f'ProfilerStep#{number}')
        outer = self.enter('megatron/core/pipeline_parallel/schedules.py(2000): forward_backward_pipelining_without_interleaving')
        order, begin = [], len(self.work)
        stages = self.o.ranks // self.o.dp
        for what, item in batches_1f1b(self.stage, stages, self.o.micro_batches):
            if what in ('F', 'B'):
                label = (f'PP:{self.stage}{what}{item}' if self.o.notes == 'actions' else
                         f'{"Forward" if what == "F" else "Backward"} {item}' if self.o.notes == 'numbers' else '')
                note = self.open('user_annotation', label) if label else None
                (self.forward if what == 'F' else self.backward)(item)
                if note:
                    self.close(note)
                order.append(f'{what}{item}')
            else:
                labels = [f'PP:{self.stage}{kind.upper()}_{direction}{mb}' for kind, direction, mb in item]
                note = self.open('user_annotation', '+'.join(labels)) if self.o.notes == 'actions' and len(labels) == 1 else None
                self.message(what, item)
                if note:
                    self.close(note)
        self.leave(outer)
        optimizer = self.open('user_annotation', 'Optimizer.step#AdamW.step')
        op = self.open('cpu_op', 'aten::_fused_adamw_')
        self.launch('multi_tensor_apply_kernel', 7, 60, 'O')
        self.close(op)
        self.close(optimizer)
        self.order.append({'step': number, 'order': order, 'work': [begin, len(self.work)]})
        self.drain = (self.emit(ph='X', cat='cuda_runtime', name='cudaDeviceSynchronize', pid=self.pid, tid=self.tid, ts=self.t,
                                dur=5000, args={'cbid': 165}), step)


# ---- the device -----------------------------------------------------------------------------------------------------------


def place(ranks):
    """Starts and ends of all device work: streams keep their order, compute waits for the receives before it, a send for the
    compute before it, and a message ends when both ends have begun and the bytes are through."""
    partner = {}
    for rank in ranks:
        rank.next, rank.ends = {}, {}
        for i, item in enumerate(rank.work):
            for what, direction, micro_batch, lower in item['messages']:
                partner[rank.replica, lower, direction, micro_batch, what, item['step']] = item
    todo = [(rank, [i for i, item in enumerate(rank.work) if item['end'] is None]) for rank in ranks]
    moved = True
    while moved:
        moved = False
        for rank, left in todo:
            keep = []
            for i in left:
                item = rank.work[i]
                if item['start'] is None:
                    before = [w for w in rank.work[max(0, i - 40):i] if w['stream'] == item['stream'] or
                              bool(w['messages']) != bool(item['messages'])]
                    if all(w['end'] is not None or (w['stream'] != item['stream'] and w['messages'] and
                                                    not any(m[0] == 'recv' for m in w['messages'])) for w in before):
                        waits = [w['end'] for w in before if w['end'] is not None and
                                 (w['stream'] == item['stream'] or not w['messages'] or any(m[0] == 'recv' for m in w['messages']))]
                        item['start'] = max([item['launched'] + 3000, *(t + 1000 for t in waits)])
                        moved = True
                if item['start'] is not None and item['end'] is None:
                    others = [partner[rank.replica, lower, direction, mb, 'recv' if what == 'send' else 'send', item['step']]
                              for what, direction, mb, lower in item['messages']]
                    if all(o['start'] is not None for o in others):
                        item['end'] = max([item['start'], *(o['start'] for o in others)]) + item['ns']
                        moved = True
                if item['end'] is None:
                    keep.append(i)
            left[:] = keep
    assert not any(left for _, left in todo), 'the simulated ranks wait for each other'


def finish_step(ranks, number):
    for rank in ranks:
        for item in rank.work:
            item.setdefault('step', number)
    place(ranks)
    for rank in ranks:
        sync, step = rank.drain
        done = max(item['end'] for item in rank.work)
        sync['dur'] = max(5000, done + 2000 - sync['ts'])
        rank.t = sync['ts'] + sync['dur'] + 2000
        rank.close(step)


def device_events(rank):
    for item in rank.work:
        args = {'queued': 0, 'device': rank.rank % 8, 'context': 1, 'stream': item['stream'], 'correlation': item['correlation'],
                'External id': item['external'], 'registers per thread': 96, 'shared memory': 0, 'blocks per SM': 1.5, 'warps per SM': 12.0,
                'grid': [132, 1, 1], 'block': [256, 1, 1], 'est. achieved occupancy %': 19, **item['facts']}
        yield {'ph': 'X', 'cat': 'kernel', 'name': item['name'], 'pid': rank.rank % 8, 'tid': item['stream'], 'ts': item['start'],
               'dur': item['end'] - item['start'], 'args': args}
        yield {'ph': 'f', 'id': item['correlation'], 'cat': 'ac2g', 'name': 'ac2g', 'pid': rank.rank % 8, 'tid': item['stream'],
               'ts': item['start'], 'bp': 'e'}


# ---- files ------------------------------------------------------------------------------------------------------------


def microseconds(ns):
    return f'{ns // 1000}.{ns % 1000:03d}'


def printed(event):
    times = f'"ts": {microseconds(event["ts"])}' + (f', "dur": {microseconds(event["dur"])}' if 'dur' in event else '')
    rest = json.dumps({key: value for key, value in event.items() if key not in ('ts', 'dur')})
    return f'  {rest[:-1]}, {times}}}'


def write_trace(path, meta, events, packed):
    head = ',\n  '.join(f'{json.dumps(key)}: {json.dumps(value)}' for key, value in meta.items())
    text = f'{{\n  {head},\n  "traceEvents": [\n' + ',\n'.join(map(printed, events)) + '\n  ]\n}\n'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if packed:
        path += '.gz'
        with gzip.GzipFile(path, 'wb', compresslevel=6, mtime=0) as file:
            file.write(text.encode())
    else:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
    return path, len(text)


def span(begin, end):
    return {'ph': 'X', 'cat': 'Trace', 'name': 'PyTorch Profiler (0)', 'pid': 'Spans', 'tid': 'PyTorch Profiler', 'ts': begin,
            'dur': end - begin, 'args': {'Op count': 0}}


def generate_pipeline(options):
    if options.ranks % options.dp or options.ranks // options.dp < 2 or options.micro_batches < options.ranks // options.dp:
        raise SystemExit('--shape pipeline wants --ranks as stages (2 or more) times --dp, and as many --micro-batches as stages')
    ranks = [Rank(options, r) for r in range(options.ranks)]
    for number in range(options.first_step, options.first_step + options.steps):
        for rank in ranks:
            rank.step(number)
        finish_step(ranks, number)
    stages, written = options.ranks // options.dp, []
    groups = [{'pg_name': '0', 'pg_desc': 'default_pg', 'backend_config': 'cuda:nccl', 'pg_size': options.ranks,
               'ranks': list(range(options.ranks))}]
    groups += [{'pg_name': str(d + 1), 'pg_desc': 'mesh_pp', 'backend_config': 'cuda:nccl', 'pg_size': stages,
                'ranks': [s * options.dp + d for s in range(stages)]} for d in range(options.dp)]
    for rank in ranks:
        own = [g for g in groups if rank.rank in g['ranks']]
        meta = {'schemaVersion': 1, 'deviceProperties': [], 'cupti_version': 26, 'with_stack': int(options.notes == 'megatron'),
                'distributedInfo': {'backend': 'nccl', 'rank': rank.rank, 'world_size': options.ranks, 'pg_count': len(own),
                                    'pg_config': own, 'nccl_version': '2.26.2'},
                'displayTimeUnit': 'ms',  # a clock that is off moves the zero that stamps count from
                'baseTimeNanoseconds': NS_BASE + int(options.skew_ms.get(rank.rank, 0) * 1e6)}
        path, size = write_trace(os.path.join(options.out, f'rank-{rank.rank}.pt.trace.json'), meta,
                                 [*rank.events, *device_events(rank), span(900_000, rank.t)], options.format == 'gz')
        written.append((rank.rank, path, len(rank.events) + 2 * len(rank.work), size))
    truth = {'stages': stages, 'micro_batches': options.micro_batches, 'stage_of_rank': [rank.stage for rank in ranks],
             'order': [[step['order'] for step in rank.order] for rank in ranks],
             'cells': [[cell_times(rank, step) for step in rank.order] for rank in ranks]}
    with open(os.path.join(options.out, 'truth.json'), 'w', encoding='utf-8') as file:
        json.dump(truth, file)
    return written


def cell_times(rank, step):
    """Returns for every cell of a step: first start and last end of its kernels, in ns since the epoch."""
    times = {}
    for item in rank.work[slice(*step['work'])]:
        if item['cell'][0] in 'FB':
            begin, end = times.get(item['cell'], (item['start'], item['end']))
            times[item['cell']] = (min(begin, item['start']), max(end, item['end']))
    return {cell: [NS_BASE + begin, NS_BASE + end] for cell, (begin, end) in times.items()}


def generate_dualpipe(options):
    """Annotations of one rank of an expert-parallel model: forward parts of one micro-batch between backward parts of another."""
    options.dp, options.notes = 1, 'none'
    rank = Rank(options, 0)
    parts = [('attn(F)', 'compute', 90), ('dispatch(F)', 'deep_ep::internode::dispatch<false, 8, 4096>', 70),
             ('mlp(B)', 'compute', 130), ('mlp(W)', 'compute', 60), ('combine(F)', 'deep_ep::internode::combine<false, 8, 4096>', 75),
             ('mlp(F)', 'compute', 80), ('dispatch(B)', 'void deep_ep::internode::dispatch<true, 8, 4096>', 70),
             ('attn(B)', 'compute', 110), ('attn(W)', 'compute', 40), ('combine(B)', 'void deep_ep::intranode::combine<8, 768>', 72)]
    for number in range(options.first_step, options.first_step + options.steps):
        step = rank.open('user_annotation', f'ProfilerStep#{number}')
        for _ in range(4):
            pair = rank.open('user_annotation', '1F1B')
            for name, what, micros in parts:
                note = rank.open('user_annotation', name)
                op = rank.open('cpu_op', 'aten::mm' if what == 'compute' else 'MoEFunction')
                rank.launch(GEMM if what == 'compute' else what + '(int4*, float*, long*, int)', 7 if what == 'compute' else 33,
                            micros * rank.pace(), name)
                rank.close(op)
                rank.close(note)
            rank.close(pair)
        rank.drain = (rank.emit(ph='X', cat='cuda_runtime', name='cudaDeviceSynchronize', pid=rank.pid, tid=rank.main, ts=rank.t,
                                dur=5000, args={'cbid': 165}), step)
        for item in rank.work:  # two streams that do not wait for each other
            if item['end'] is None:
                free = max([w['end'] for w in rank.work if w['end'] is not None and w['stream'] == item['stream']], default=0)
                item['start'] = max(item['launched'] + 3000, free + 1000)
                item['end'] = item['start'] + item['ns']
                item['external'] = item['correlation']
        finish_step([rank], number)
    calls = [e for e in rank.events if e.get('cat') == 'cuda_runtime' and 'correlation' in e['args']]
    for call in calls:
        call['args']['External id'] = call['args']['correlation']
    meta = {'schemaVersion': 1, 'deviceProperties': [], 'distributedInfo': {'backend': 'nccl', 'rank': 0, 'world_size': 2048}}
    path, size = write_trace(os.path.join(options.out, 'train.json'), meta,
                             [*rank.events, *device_events(rank), span(900_000, rank.t)], options.format == 'gz')
    return [(0, path, len(rank.events) + 2 * len(rank.work), size)]
