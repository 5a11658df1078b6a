#!/usr/bin/env python3
"""Profiles of XLA (*.xplane.pb) as JAX, TensorFlow and PyTorch/XLA write them, small and with planted facts.

    xplane.py [--kind gpu|tpu|cpu] [--devices 2] [--steps 3] [--epoch] -o FILE

Kind gpu has a thread with a StepTraceAnnotation per step, launches by correlation id, kernels and copies on streams, an
all-reduce, and the lines that XProf derives. Kind tpu has XLA Ops nested in a loop, a collective with its bytes, Steps
on the device alone. Kind cpu has XLA's ops on threads of the host, connected by producer and consumer ids, with a
region that never ends. --epoch uses times as TensorFlow 2.4.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from protobuf import field  # noqa: E402

START_NS = 1_795_382_536_872_912_899


class Plane:
    def __init__(self, name, plane_id=0):
        self.name, self.id, self.lines, self.stats, self.events, self.own = name, plane_id, [], {}, {}, b''
        self.meta = {}

    def stat_id(self, name):
        return self.stats.setdefault(name, len(self.stats) + 1)

    def stat(self, name, value):
        body = field(1, self.stat_id(name))
        if isinstance(value, tuple):  # a reference to a text
            body += field(7, self.stat_id(value[0]))
        elif isinstance(value, float):
            body += field(2, value)
        elif isinstance(value, bytes):
            body += field(6, value)
        else:
            body += field(5 if isinstance(value, str) else 4, value)
        return body

    def name_event(self, name, **constants):
        """Stats that all events of a name share: an HLO's flops, category, bytes."""
        self.events.setdefault(name, len(self.events) + 1)
        self.meta[name] = constants

    def line(self, line_id, name, events, timestamp_ns=0, display=None):
        """events: (name, start ps, duration ps or None, {stat: value})"""
        body = field(1, line_id) + field(2, name) + field(3, timestamp_ns)
        for event_name, start, dur, stats in events:
            event = field(1, self.events.setdefault(event_name, len(self.events) + 1))
            if start is not None:
                event += field(2, start)
            else:
                event += field(5, 7)  # num_occurrences
            if dur is not None:
                event += field(3, dur)
            for key, value in stats.items():
                event += field(4, self.stat(key, value))
            body += field(4, event)
        if display:
            body += field(11, display)
        self.lines.append(body)

    def set(self, name, value):
        self.own += field(6, self.stat(name, value))

    def bytes(self):
        metas = b''
        for name, at in self.events.items():
            meta = field(1, at) + field(2, name)
            for key, value in self.meta.get(name, {}).items():
                meta += field(5, self.stat(key, value))
            metas += field(4, field(1, at) + field(2, meta))
        out = (field(1, self.id) if self.id else b'') + field(2, self.name)
        for line in self.lines:
            out += field(3, line)
        out += metas
        for name, at in self.stats.items():
            out += field(5, field(1, at) + field(2, field(1, at) + field(2, name)))
        return out + self.own


def space(planes, host='host0', errors=(), warnings=(), dated=True):
    if dated:
        task = Plane('Task Environment')
        task.set('profile_start_time', START_NS)
        task.set('profile_stop_time', START_NS + 10_000_000)
        planes = [*planes, task]
    out = b''.join(field(1, plane.bytes()) for plane in planes)
    return out + b''.join(field(2, e) for e in errors) + b''.join(field(3, w) for w in warnings) + (field(4, host) if host else b'')


US = 1_000_000  # picoseconds


def gpu(devices=2, steps=3, epoch=False):
    ts = START_NS if epoch else 5000
    host = Plane('/host:CPU', 1)
    host.set('process_id', 4242)
    events, planes, corr = [], [], 100
    work = {d: ([], [], [], []) for d in range(devices)}  # compute, copies, Steps, XLA Ops
    for step in range(steps):
        at = (100 + step * 1000) * US
        events.append(('train', at, 900 * US, {'_r': 1, 'step_num': step}))
        events.append(('$train.py:31 step', at + 5 * US, 880 * US, {}))
        events.append(('forward#micro_batch=%d,stage=0#' % step, at + 10 * US, 300 * US, {}))
        events.append(('PjitFunction(step)', at + 20 * US, 200 * US, {}))
        for d in range(devices):
            compute, copies, marks, ops = work[d]
            for k, (name, begin, dur) in enumerate((('fusion_%d' % d, 60, 200), ('gemm_fp16_tn', 270, 150), ('ncclDevKernel_AllReduce_Sum_bf16_RING_LL', 430, 100))):
                corr += 1
                events.append(('cuLaunchKernel', at + (30 + 20 * k + 5 * d) * US, 3 * US, {'correlation_id': corr}))
                compute.append((name, at + begin * US + 500 * d, dur * US, {
                    'correlation_id': corr, 'hlo_op': (('all-reduce.%d' if k == 2 else 'fusion.%d') % k,), 'hlo_module': ('jit_step',),
                    'kernel_details': 'regs:32 static_shared:1024 dynamic_shared:0 grid:8,1,1 block:256,1,1 occ_pct:75'}))
                ops.append(('fusion.%d' % k, at + begin * US, dur * US, {}))
            corr += 1
            events.append(('cuMemcpyHtoDAsync', at + (120 + 5 * d) * US, 4 * US, {'correlation_id': corr}))
            copies.append(('MemcpyH2D', at + 540 * US, 40 * US, {'correlation_id': corr, 'memcpy_details': 'kind_src:pinned kind_dst:device size:4096 dest:%d async:1' % d}))
            marks.append((str(step), at + 50 * US, 600 * US, {'group_id': step}))
    host.line(-2646881467886733550, 'python', events, ts, 'python')
    planes.append(host)
    for d in range(devices):
        plane = Plane('/device:GPU:%d' % d, 10 + d)
        plane.set('device_type_string', 'NVIDIA H100 80GB HBM3')
        compute, copies, marks, ops = work[d]
        plane.line(7, 'Stream #7(Compute)', compute, ts)
        plane.line(16, 'Stream #16(MemcpyH2D)', copies, ts)
        plane.line(-1, 'Steps', marks, ts)
        plane.line(-3, 'XLA Ops', ops, ts)
        planes.append(plane)
    return planes


def tpu(devices=2, steps=3):
    planes = []
    for d in range(devices):
        plane = Plane('/device:TPU:%d' % d, 20 + d)
        plane.set('device_type_string', 'TPU v5 lite')
        plane.name_event('while.1', hlo_category='while')
        plane.name_event('fusion.7', hlo_category='convolution fusion', flops=1_000_000, bytes_accessed=4096)
        plane.name_event('all-reduce.3', hlo_category='all-reduce', bytes_accessed=65_536)
        marks, modules, ops = [], [], []
        for step in range(steps):
            at = (50 + step * 500) * US
            marks.append((str(step), at, 400 * US, {'group_id': step}))
            modules.append(('jit_step(4)', at + 10 * US, 380 * US, {'run_id': step}))
            ops.append(('while.1', at + 20 * US, 300 * US, {}))
            for k in range(3):
                ops.append(('fusion.7', at + (30 + 80 * k) * US, 70 * US + 500, {'device_offset_ps': at + (30 + 80 * k) * US, 'device_duration_ps': 70 * US + 500}))
            ops.append(('all-reduce.3', at + 330 * US, 40 * US, {}))
        plane.line(1, 'Steps', marks, 3000)
        plane.line(2, 'XLA Modules', modules, 3000)
        plane.line(3, 'XLA Ops', ops, 3000)
        planes.append(plane)
    return planes


def program(name, operations):
    """Returns an HloProto with one computation: {operation: opcode}."""
    body = b''.join(field(2, field(1, operation) + field(2, opcode)) for operation, opcode in operations.items())
    return field(1, field(1, name) + field(3, field(1, 'main') + body))


def host_and_program(main, pool, lanes, hlo, **facts):
    """The planes of a host with a thread of Python and one of a pool, and of the program that it ran."""
    host = Plane('/host:CPU')
    host.set('process_id', 77)
    for (number, name), events in zip(lanes, (main, pool)):
        host.line(number, name, events, 4867)
    meta = Plane('/host:metadata')
    for name, value in facts.items():
        meta.set(name, value)
    meta.name_event('jit_step(4)', **{'Hlo Proto': hlo})
    return [host, meta]


def communicating(operation, opcode, steps=3):
    """A host whose pool runs a product and an operation of any name; its program alone says what the operation is."""
    main, pool = [], []
    for step in range(steps):
        at = (100 + step * 1000) * US
        main.append(('train', at, 800 * US, {'_r': 1, 'step_num': step}))
        for name, start, dur in (('dot.1', 20, 180), (operation, 210, 580)):
            pool.append((name, at + start * US, dur * US, {'hlo_op': (name,), 'hlo_module': ('jit_step',), 'device_ordinal': 0}))
    hlo = program('jit_step', {'dot.1': 'dot', operation: opcode})
    return host_and_program(main, pool, [(1, 'python'), (2, 'pool')], hlo)


def cpu(steps=2):
    main, pool = [], []
    for step in range(steps):
        at = (100 + step * 1000) * US
        main.append(('train', at, 800 * US, {'_r': 1, 'step_num': step}))
        main.append(('PjitFunction(step)', at + 10 * US, 90 * US, {}))
        main.append(('ThreadpoolListener::Record', at + 60 * US, None, {'_pt': 15, '_p': step + 1, '_src': ('threadpool_listener.cc',)}))
        main.append(('Await', at + 700 * US, 10 * US, {'_src': ('client.cc',)}))
        pool.append(('ThreadpoolListener::StartRegion', at + 120 * US, None, {'_ct': 15, '_c': step + 1}))
        pool.append(('dot.1', at + 130 * US, 400 * US, {'hlo_op': ('dot.1',), 'hlo_module': ('jit_step',), 'device_ordinal': 0, '_pt': 0, '_p': 900 + step}))
        pool.append(('end: dot.1', at + 531 * US, 1 * US, {'_ct': 0, '_c': 900 + step}))
    main.append(('sums', None, None, {}))
    lanes = [(5387615081405032937, 'python'), (-551782670668545557, 'tf_XLAPjRtCpuClient/-551782670668545557')]
    return host_and_program(main, pool, lanes, bytes(300), jax_version='0.10.2')


def make(path, kind='gpu', devices=2, steps=3, epoch=False, **more):
    planes = gpu(devices, steps, epoch) if kind == 'gpu' else tpu(devices, steps) if kind == 'tpu' else cpu(steps)
    pathlib.Path(path).write_bytes(space(planes, **more))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--kind', choices=('gpu', 'tpu', 'cpu'), default='gpu')
    parser.add_argument('--devices', type=int, default=2)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--epoch', action='store_true')
    parser.add_argument('-o', '--output', required=True)
    args = parser.parse_args()
    make(args.output, args.kind, args.devices, args.steps, args.epoch)
