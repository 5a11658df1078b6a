"""Traces of Megatron's pipeline schedules with Python frames (with_stack=True), as two or more ranks record them.

  ranks = make(stages=2, chunks=2, micro_batches=4, steps=3, device=False)   →  [events of rank 0, …]

Every forward and backward starts `gap` µs after its input came and its rank is free: nothing is late, no send blocks. On
gloo, c10d::send and c10d::recv_ return at once and gloo:recv lasts until the message is there; on a device, one SendRecv
kernel per receive does. Messages to rank 1 come `rendezvous` µs after their receive was posted, or later. Without `fused` sends and receives are calls of their own. Frames of messages are there at the pipeline's ends too, and do nothing, as Megatron's do.
"""

SCHEDULES = 'megatron/core/pipeline_parallel/schedules.py'
P2P = 'megatron/core/pipeline_parallel/p2p_communication.py(700): '


def order(stages, chunks, micro_batches, rank):
    total = micro_batches * chunks

    def forward(k):
        group = k // (stages * chunks)
        return k % (stages * chunks) // stages, group * stages + k % stages

    if chunks == 1:
        warm = min(total, stages - rank - 1)
        forward = lambda k: (0, k)
    else:
        warm = min(total, (stages - rank - 1) * 2 + (chunks - 1) * stages)
    out = [('F', *forward(k)) for k in range(warm)]
    backward = lambda k: (chunks - 1 - forward(k)[0], forward(k)[1])
    for k in range(total - warm):
        out += [('F', *forward(warm + k)), ('B', *backward(k))]
    return out + [('B', *backward(k)) for k in range(total - warm, total)]


def make(stages=2, chunks=1, micro_batches=4, steps=3, device=False, forward=2000, backward=4000, message=1000, gap=10, rendezvous=0, fused=True):
    last = stages * chunks - 1

    def source(kind, rank, chunk, mb):  # what a cell waits for
        place = chunk * stages + rank
        if kind == 'F':
            return None if place == 0 else ('F', (place - 1) % stages, (place - 1) // stages, mb)
        return ('F', rank, chunk, mb) if place == last else ('B', (place + 1) % stages, (place + 1) // stages, mb)

    cells, begin = [], 0.0
    for step in range(steps):
        end, free, at = {}, [begin] * stages, [0] * stages
        orders = [order(stages, chunks, micro_batches, r) for r in range(stages)]
        while any(at[r] < len(orders[r]) for r in range(stages)):
            for r in range(stages):
                if at[r] == len(orders[r]):
                    continue
                kind, chunk, mb = orders[r][at[r]]
                needs = source(kind, r, chunk, mb)
                if needs and needs not in end:
                    continue
                arrives = end[needs] + message if needs and needs[1] != r else None
                if arrives and r == 1:
                    arrives = max(arrives, free[r] + rendezvous)
                start = max(free[r], arrives or 0, end[needs] if needs else 0) + gap
                end[kind, r, chunk, mb] = free[r] = start + (forward if kind == 'F' else backward)
                cells.append({'step': step, 'rank': r, 'kind': kind, 'chunk': chunk, 'mb': mb, 'start': start, 'end': free[r], 'arrives': arrives,
                              'posted': (end[orders[r][at[r] - 1][0], r, *orders[r][at[r] - 1][1:]] if at[r] else begin)})
                at[r] += 1
        begin = max(free) + 200
    return [events_of(rank, cells, stages, chunks, device, fused) for rank in range(stages)], cells


def events_of(rank, cells, stages, chunks, device, fused=True):
    pid, events, number = 100 + rank, [], [0]

    def x(cat, name, start, end, tid=pid, pid=pid, **args):
        number[0] += 1
        events.append({'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid, 'ts': round(start, 3), 'dur': round(end - start, 3),
                       'args': {**({'Python id': number[0]} if cat == 'python_function' else {}), **args}})

    last = stages * chunks - 1
    for step in sorted({c['step'] for c in cells}):
        all_cells = [c for c in cells if c['step'] == step]
        first, final = min(c['start'] for c in all_cells) - 60, max(c['end'] for c in all_cells) + 60
        x('user_annotation', f'ProfilerStep#{step}', first, final)
        name = 'with_interleaving' if chunks > 1 else 'without_interleaving'
        x('python_function', f'{SCHEDULES}(900): forward_backward_pipelining_{name}', first + 1, final - 1)
    own = [c for c in cells if c['rank'] == rank]
    for k, c in enumerate(own):
        before = own[k - 1] if k and own[k - 1]['step'] == c['step'] else None
        place = c['chunk'] * stages + rank
        sends = before and ((before['kind'] == 'F' and before['chunk'] * stages + rank < last) or (before['kind'] == 'B' and before['chunk'] * stages + rank > 0))
        receives = c['arrives'] is not None
        # The call between two cells: what it is named after need not happen.
        if chunks > 1:
            call = 'send_forward_backward_recv_forward_backward'
        elif before is None:
            call = 'recv_forward'
        else:
            call = {'FF': 'send_forward_recv_forward', 'FB': 'send_forward_recv_backward', 'BF': 'send_backward_recv_forward',
                    'BB': 'send_backward_recv_backward'}[before['kind'] + c['kind']]
        at, until = c['posted'] + 0.5, c['start'] - 2
        if not fused and not device:
            way = {'F': 'forward', 'B': 'backward'}
            if sends:
                x('python_function', P2P + 'send_' + way[before['kind']], at, at + 3.1)
            if receives:
                x('python_function', P2P + 'recv_' + way[c['kind']], at + 3.15, max(until, at + 5))
        elif not device or receives:
            x('python_function', P2P + call, at, max(until, at + 1) if not device else at + 2)
        if device and receives:
            corr = 10_000 + number[0]
            x('cuda_runtime', 'cudaLaunchKernel', at + 0.5, at + 1, correlation=corr)
            x('kernel', 'ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)', at + 2, max(c['arrives'], at + 4), 24, 0, correlation=corr, stream=24, device=0)
        if not device and sends:
            x('cpu_op', 'c10d::send', at + 1, at + 2)
            x('user_annotation', 'gloo:send', at + 1.5, at + 3)
        if not device and receives:
            x('cpu_op', 'c10d::recv_', at + 3.2, at + 4)
            x('user_annotation', 'gloo:recv', at + 3.6, max(c['arrives'], at + 4.5))
        frame = f'{SCHEDULES}(311): forward_step' if c['kind'] == 'F' else f'{SCHEDULES}(446): backward_step'
        if device:
            corr = 10_000 + number[0]
            x('python_function', frame, c['start'] - 1.8, c['start'] - 0.2)
            x('cuda_runtime', 'cudaLaunchKernel', c['start'] - 1.5, c['start'] - 0.5, correlation=corr)
            x('kernel', 'gemm', c['start'], c['end'], 7, 0, correlation=corr, stream=7, device=0)
        else:
            x('python_function', frame, c['start'], c['end'])
            x('cpu_op', 'aten::mm', c['start'] + 0.2, c['end'] - 0.2)
    return events
