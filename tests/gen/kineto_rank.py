"""One simulated rank: a host clock, device streams that work in order, and the text of every event as Kineto prints it.

Times are whole nanoseconds. Text is made during the simulation. For values known later (the duration of an operator
when it ends, the end of a collective when every rank has arrived) a place is reserved in the list."""
import random
import re

from kineto_plan import collective_args

CBID = {'cudaLaunchKernel': 211, 'cudaLaunchKernelExC': 430, 'cuLaunchKernel': 307, 'cudaMemcpyAsync': 41, 'cudaMemsetAsync': 51,
        'cudaEventRecord': 135, 'cudaStreamWaitEvent': 147, 'cudaStreamIsCapturing': 317, 'cudaStreamSynchronize': 131,
        'cudaGraphLaunch': 311, 'cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags': 251}
HIP = {'cudaLaunchKernel': 'hipLaunchKernel', 'cudaLaunchKernelExC': 'hipExtLaunchKernel', 'cuLaunchKernel': 'hipModuleLaunchKernel',
       'cudaMemcpyAsync': 'hipMemcpyAsync', 'cudaMemsetAsync': 'hipMemsetAsync', 'cudaEventRecord': 'hipEventRecord',
       'cudaStreamWaitEvent': 'hipStreamWaitEvent', 'cudaStreamIsCapturing': 'hipStreamIsCapturing',
       'cudaStreamSynchronize': 'hipStreamSynchronize', 'cudaGraphLaunch': 'hipGraphLaunch',
       'cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags': 'hipPointerGetAttribute'}
OLD_CATEGORIES = {'cpu_op': 'Operator', 'user_annotation': 'Operator', 'kernel': 'Kernel', 'gpu_memcpy': 'Memcpy',
                  'gpu_memset': 'Memset', 'cuda_runtime': 'Runtime', 'cuda_driver': 'Runtime', 'python_function': 'Python'}
OPEN, END, FRAME, ENDFRAME, CALL, WORK, GRAPH, REDUCE, ALLOC, FREE, HOST, WAIT_REDUCES, DRAIN = range(13)
NS_BASE = 1759300074 * 10**9  # the quarter (7 889 238 s) that times of the ns era count from
NS_START = 2400000 * 10**9    # of the capture, after it
US_START = {'us': 1669783687352244000, 'old': 1623142623460016000}


class Rank:
    def __init__(self, options, rank, plan_class):
        o, self.o, self.rank = options, options, rank
        self.random = random.Random(f'{o.seed}:{rank}')
        self.plan_class = plan_class
        self.old, self.micros = o.era == 'old', o.era != 'ns'
        amd = o.vendor == 'amd'
        self.streams = {'compute': 0, 'comm': 3, 'copy': 2} if amd else {'compute': 7, 'comm': 20, 'copy': 24}
        self.device = rank % o.gpus
        self.pid = 100000 + 1000 * rank
        self.main, self.autograd = self.pid, self.pid + 433
        self.reduce_name = 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)'
        if o.old_nccl or self.micros:
            self.reduce_name = 'ncclKernel_AllReduce_RING_LL_Sum_bf16(ncclDevComm*, unsigned long, ncclWork*)'
        if amd:
            self.reduce_name = 'ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)'
        self.t = (US_START[o.era] if self.micros else NS_START) + int(o.skew_ms.get(rank, 0) * 1e6) + self.random.randrange(100_000)
        self.begin = self.t
        self.free = dict.fromkeys(self.streams.values(), 0)
        self.slow = o.slow.get(rank, 1.0)
        self.correlation, self.external, self.event, self.sequence, self.reduce_seq = 1000 + 37 * rank, 1, 0, 0, 0
        self.links, self.flow_id, self.last_link = [], 0, (0, 0)
        self.frame_id, self.memory_index, self.allocated, self.addresses = 0, 0, 0, []
        self.ops, self.memory, self.frames, self.activity, self.annotations = [], [], [], [], []
        self.pending, self.reduces_end, self.recorded = [], 0, 0  # recorded: correlation of the last cudaEventRecord
        self.programs = {}

    # ---- text -------------------------------------------------------------------------------------------------------

    def when(self, ns):
        if self.micros:
            return str(ns // 1000)
        text = str(ns)
        return text[:-3] + '.' + text[-3:]

    def span(self, start, dur):
        """`dur` as printed; the whole microseconds of older versions are differences of whole microseconds."""
        if self.micros:
            return str((start + dur) // 1000 - start // 1000)
        return f'{dur // 1000}.{dur % 1000:03}'

    def head(self, category, name, pid, tid):
        if self.old:
            tid = f'"stream {tid}"' if pid == self.device else f'"{tid}"'
            return '  {\n    "ph": "X", "cat": "%s", \n    "name": "%s", "pid": %s, "tid": %s,\n    "ts": ' % (
                OLD_CATEGORIES.get(category, category), name, pid, tid)
        return '  {\n    "ph": "X", "cat": "%s", "name": "%s", "pid": %s, "tid": %s,\n    "ts": ' % (category, name, pid, tid)

    def slice(self, head, start, dur, args):
        return f'{head}{self.when(start)}, "dur": {self.span(start, dur)},\n    "args": {{\n      {args}\n    }}\n  }}'

    def flow(self, phase, number, category, pid, tid, ns):
        name = category
        if self.old:
            category, name = ('async', 'launch') if category == 'ac2g' else ('fwd_bwd_correlation', 'fwd_bwd')
            if pid == self.device:
                tid = f'"stream {tid}"'
        end = ', "bp": "e"' if phase == 'f' else ''
        return (f'  {{\n    "ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid}, "ts": {self.when(ns)},\n'
                f'    "cat": "{category}", "name": "{name}"{end}\n  }}')

    # ---- programs: what the plan says, with all text that does not change prepared -------------------------------------

    def compile(self, instructions, tid):
        out, r = [], self.random
        for kind, *rest in instructions:
            if kind == 'open':
                category, name, args, micros, link = rest
                out.append((OPEN, self.head(category, name, self.pid, tid), args, int(micros * 700), int(micros * 600), link,
                            name if category == 'user_annotation' else None))
            elif kind == 'end':
                out.append((END, int(rest[0] * 700), int(rest[0] * 600)))
            elif kind == 'frame':
                module = re.fullmatch(r'nn\.Module: \w+_(\d+)', rest[0])
                out.append((FRAME, self.head('python_function', rest[0], self.pid, tid),
                            f'"Python module id": {module[1]}, ' if module else ''))
            elif kind == 'endframe':
                out.append((ENDFRAME,))
            elif kind == 'call':
                out.append((CALL, *self.call_text(rest[0], tid), int(rest[1] * 1000), tid, rest[0]))
            elif kind in ('kernel', 'triton'):
                launch = 'cudaLaunchKernel' if kind == 'kernel' else 'cuLaunchKernel'
                out.append(self.work('kernel', rest[0], launch, 'compute', int(rest[1] * 1000 * self.slow), self.kernel_args(r), tid))
            elif kind == 'copy':
                name, size, stream, rate = rest
                memset = name.startswith('Memset')
                dur = max(900, int(size / rate) + 900)
                text = '"bytes": %d, "memory bandwidth (GB/s)": %r' % (size, size / dur)
                out.append(self.work('gpu_memset' if memset else 'gpu_memcpy', name,
                                     'cudaMemsetAsync' if memset else 'cudaMemcpyAsync', stream, dur, text, tid))
            elif kind == 'graph':
                names, micros = rest
                heads = [self.head('kernel', name, self.device, self.streams['compute']) for name in names]
                dur = int(micros * 1000 * self.slow)
                out.append((GRAPH, *self.call_text('cudaGraphLaunch', tid), tid, heads, self.kernel_args(r), dur))
            elif kind == 'reduce':
                out.append((REDUCE, *self.call_text('cudaLaunchKernelExC', tid), tid, rest[0],
                            self.head('kernel', self.reduce_name, self.device, self.streams['comm']), self.kernel_args(r)))
            else:
                code = {'alloc': ALLOC, 'free': FREE, 'host': HOST, 'wait_reduces': WAIT_REDUCES, 'drain': DRAIN}[kind]
                out.append((code, tid, *rest))
        return out

    def call_text(self, name, tid):
        """Head and first arguments of a runtime call."""
        category = 'cuda_driver' if name.startswith('cu') and not name.startswith('cuda') else 'cuda_runtime'
        number = CBID[name]
        if self.o.vendor == 'amd':
            return self.head('cuda_runtime', HIP[name], self.pid, tid), '"cid": %d, "correlation": ' % number
        return self.head(category, name, self.pid, tid), '     "cbid": %d, "correlation": ' % number

    def work(self, category, name, launch, stream, dur, args, tid):
        number = self.streams[stream]
        return (WORK, *self.call_text(launch, tid), tid, self.head(category, name, self.device, number), number, dur, args)

    def kernel_args(self, r):
        grid, block = r.choice((108, 216, 432, 1024, 4096)), r.choice((128, 256, 512))
        if self.o.vendor == 'amd':
            return '"kind": "Dispatch Kernel", "grid": [%d, 1, 1], "block": [%d, 1, 1]' % (grid, block)
        return ('"registers per thread": %d,      "shared memory": %d,      "blocks per SM": %.6f,      "warps per SM": %.6f,      '
                '"grid": [%d, 1, 1],      "block": [%d, 1, 1],      "est. achieved occupancy %%": %d'
                % (r.choice((32, 64, 96, 168)), r.choice((0, 16384, 98304)), grid / 108, grid * block / 32 / 108, grid, block,
                   r.randint(1, 100)))

    def device_args(self, external, correlation, stream, kernel, rest):
        queued = '"queued": 0, ' if kernel and self.o.vendor == 'nvidia' else ''
        key = 'external id' if self.old else 'External id'
        first = f'"{key}": {external},      ' if external is not None else ''
        return (f'{first}{queued}"device": {self.device}, "context": 1,      "stream": {stream}, "correlation": {correlation},      {rest}')

    def prepared(self, name, instructions, tid):
        program = self.programs.get(name)
        if program is None:
            program = self.programs[name] = self.compile(instructions(), tid)
        return program

    # ---- the simulation -------------------------------------------------------------------------------------------------

    def call(self, head, args, tid, dur, external, launches):
        """One runtime call on the current thread: its correlation and start."""
        self.correlation = correlation = self.correlation + 1
        start = self.t
        if self.micros:
            external = correlation  # torch 1.13 to 2.2: rows of the device side do not point at their operator
        if self.old:
            args = f'{args}{correlation},\n      "external id": {external}, "external ts": {self.when(start)}'
        else:
            args = f'"External id": {external}, {args}{correlation}'
        activity = self.activity
        activity.append(f'{head}{self.when(start)}, "dur": {self.span(start, dur)},\n    "args": {{\n      {args}\n    }}\n  }}')
        activity.append(self.flow('s' if launches else 'f', correlation, 'ac2g', self.pid, tid, start))
        self.t = start + dur + 400 + int(1000 * self.random.random())
        return correlation, start

    def device_work(self, head, args, stream, start, dur, correlation, spans):
        activity = self.activity
        activity.append(f'{head}{self.when(start)}, "dur": {self.span(start, dur)},\n    "args": {{\n      {args}\n    }}\n  }}')
        activity.append(self.flow('f', correlation, 'ac2g', self.device, stream, start))
        self.free[stream] = end = start + dur
        for _, _, streams in spans:
            seen = streams.get(stream)
            if seen is None:
                streams[stream] = [start, end]
            else:
                seen[1] = end

    def play(self, program):
        """Runs one program from self.t on."""
        random_ = self.random.random
        free, micros = self.free, self.micros
        open_ops, open_frames, spans = [], [], self.spans
        for ins in program:
            kind = ins[0]
            if kind == OPEN:
                _, head, args, base, spread, link, note = ins
                self.external += 1
                if link:
                    args += self.linked(link, head)
                open_ops.append((len(self.ops), head, args, self.t, self.external, self.event, note))
                self.ops.append(None)
                self.event += 1
                if note:
                    spans.append((note, self.external, {}))
                self.t += base + int(spread * random_())
            elif kind == END:
                slot, head, args, start, external, event, note = open_ops.pop()
                self.t += ins[1] + int(ins[2] * random_())
                dur = self.t - start
                text = self.op_args(external, event, args)
                self.ops[slot] = (f'{head}{self.when(start)}, "dur": {self.span(start, dur)},\n    "args": {{\n      {text}\n    }}\n  }}')
                if note:
                    self.annotate(spans.pop())
            elif kind == WORK:
                _, call_head, call_args, tid, head, stream, dur, rest = ins
                external = open_ops[-1][4] if open_ops else None
                correlation, start = self.call(call_head, call_args, tid, 3000 + int(4000 * random_()), external, True)
                begin = max(start + 4500 + int(6000 * random_()), free[stream] + 900 + int(900 * random_()))
                args = self.device_args(correlation if micros else external, correlation, stream, 'kernel"' in head[:40], rest)
                self.device_work(head, args, stream, begin, int(dur * (0.9 + 0.2 * random_())), correlation, spans)
            elif kind == CALL:
                _, head, args, dur, tid, name = ins
                correlation, start = self.call(head, args, tid, dur + int(dur * random_()), open_ops[-1][4], False)
                if name == 'cudaEventRecord':
                    self.recorded = correlation
                elif name == 'cudaStreamWaitEvent':
                    self.stream_wait('comm', 'compute', start, correlation, open_ops[-1][4])
            elif kind == FRAME:
                self.frame_id += 1
                parent = open_frames[-1][1] if open_frames else self.outer_frame
                open_frames.append((len(self.frames), self.frame_id, parent, ins[1], ins[2], self.t))
                self.frames.append(None)
                self.t += 600 + int(800 * random_())
            elif kind == ENDFRAME:
                slot, number, parent, head, module, start = open_frames.pop()
                self.t += 300
                self.frames[slot] = self.slice(head, start, self.t - start, '"Python parent id": %s, "Python id": %d, %s"Ev Idx": %d' % (
                    parent, number, module, 30_000_000 + number))
            elif kind == GRAPH:
                _, head, args, tid, heads, rest, dur = ins
                correlation, start = self.call(head, args, tid, 9000 + int(9000 * random_()), open_ops[-1][4], True)
                stream = self.streams['compute']
                begin = max(start + 8000, free[stream] + 1500)
                text = self.device_args(correlation if micros else None, correlation, stream, True, rest)
                for kernel in heads:
                    self.device_work(kernel, text, stream, begin, int(dur * (0.9 + 0.2 * random_())), correlation, spans)
                    begin = free[stream] + 300 + int(600 * random_())
            elif kind == REDUCE:
                _, call_head, call_args, tid, elements, head, rest = ins
                external = open_ops[-1][4]
                correlation, start = self.call(call_head, call_args, tid, 6000 + int(5000 * random_()), external, True)
                ready = max(start + 6000, free[self.streams['compute']] + 1500)
                slot = len(self.activity)
                self.activity += [None, None]
                self.pending.append((ready, slot, correlation, external, elements, head, rest))
            elif kind == ALLOC:
                self.allocate(ins[1], ins[2])
            elif kind == FREE:
                self.release(ins[1])
            elif kind == HOST:
                self.t += 150_000 + int(150_000 * random_()) + self.host_delay
            elif kind == WAIT_REDUCES:
                correlation, start = self.call(*self.call_text('cudaStreamWaitEvent', ins[1]), ins[1], 900, open_ops[-1][4], False)
                compute = self.streams['compute']
                self.stream_wait('compute', 'comm', start, correlation, open_ops[-1][4])
                free[compute] = max(free[compute], self.reduces_end)
            elif kind == DRAIN:
                compute = self.streams['compute']
                wait = max(1500, free[compute] + 2000 - self.t)
                correlation, start = self.call(*self.call_text('cudaStreamSynchronize', ins[1]), ins[1], wait, open_ops[-1][4], False)
                if self.o.sync:
                    self.sync_row('Stream Sync', compute, start + 500, wait - 1000, correlation, open_ops[-1][4], '')

    def linked(self, link, head):
        """Arguments of an operator that belongs to a forward-backward pair, and the arrow itself."""
        if link == 'reduce':
            self.reduce_seq += 1
            return '' if self.micros else f'"Seq": {self.reduce_seq}, '
        if link == 'forward':
            self.sequence += 1
            self.flow_id += 1
            self.links.append((self.sequence, self.flow_id))
            self.ops.append(self.flow('s', self.flow_id, 'fwdbwd', self.pid, self.main, self.t))
            return f'"Sequence number": {self.sequence}, "Fwd thread id": 0, '
        if link == 'backward':
            self.last_link = self.links.pop() if self.links else (0, 0)
            self.ops.append(self.flow('f', self.last_link[1], 'fwdbwd', self.pid, self.autograd, self.t))
        return f'"Sequence number": {self.last_link[0]}, "Fwd thread id": 1, '

    def annotate(self, span):
        """The device's side of an annotation: first to last work launched under it, on each stream."""
        name, external, streams = span
        if self.old or not self.o.device_annotations:
            return
        for stream, (start, end) in streams.items():
            self.annotations.append(self.slice(self.head('gpu_user_annotation', name, self.device, stream), start, end - start,
                                               f'"External id": {external}'))

    def stream_wait(self, waiting, awaited, start, correlation, external):
        """Stream `waiting` waits for the event last recorded, on stream `awaited`."""
        if self.o.sync and self.recorded:
            facts = (f'"wait_on_stream": {self.streams[awaited]}, "wait_on_cuda_event_record_corr_id": {self.recorded}, '
                     '"wait_on_cuda_event_id": 1,\n      ')
            self.sync_row('Stream Wait Event', self.streams[waiting], start + 200, 600, correlation, external, facts)

    def sync_row(self, name, stream, start, dur, correlation, external, facts):
        self.activity.append(self.slice(
            self.head('cuda_sync', name, self.device, stream), start, dur,
            f'"External id": {external},\n      "cuda_sync_kind": "{name}",\n      {facts}"stream": {stream}, '
            f'"correlation": {correlation},\n      "device": {self.device}, "context": 1'))

    def allocate(self, tid, size):
        address = 139926520725504 + self.memory_index * 2097152
        self.addresses.append((address, size))
        self.memory_row(tid, address, size)

    def release(self, tid):
        if self.addresses:
            address, size = self.addresses.pop()
            self.memory_row(tid, address, -size)

    def memory_row(self, tid, address, size):
        self.memory_index += 1
        if not self.o.memory:
            return
        self.allocated += size
        category = '' if self.old else '"cat": "cpu_instant_event", '
        self.memory.append(
            f'  {{\n    "ph": "i", {category}"s": "t", "name": "[memory]",\n    "pid": {self.pid}, "tid": {tid},\n    "ts": '
            f'{self.when(self.t)},\n    "args": {{\n      "Total Reserved": {max(self.allocated, 1 << 33)}, "Total Allocated": '
            f'{self.allocated}, "Bytes": {size}, "Addr": {address}, "Device Id": {self.device}, "Device Type": 1, "Ev Idx": '
            f'{20_000_000 + self.memory_index}\n    }}\n  }}')

    # ---- a step -----------------------------------------------------------------------------------------------------------

    def forward_backward(self, index, layers):
        """Up to the end of backward. Returns when this rank is ready for each collective of the step."""
        o, plan = self.o, self.plan_class(self.o)
        self.spans, self.outer_frame, self.pending = [], 'null', []
        self.host_delay = o.host_delay.get(self.rank, 0) if index % o.fault_every == 0 else 0
        self.step = self.begin_note(f'ProfilerStep#{o.first_step + index}')
        self.play(self.prepared('load', plan.load, self.main))
        forward = self.begin_note('DistributedDataParallel.forward')
        for layer in range(layers):
            self.play(self.prepared(('forward', layer % 16), lambda n=layer: plan.forward(n), self.main))
        self.t += 3000
        self.end_note(forward)
        self.t += 20_000  # the engine wakes its thread
        outer, self.spans = self.spans, []  # annotations are known by thread
        for layer in reversed(range(layers)):
            self.play(self.prepared(('backward', layer % 16), lambda n=layer: plan.backward(n), self.autograd))
            if o.ranks > 1 and layer % max(1, o.bucket) == 0:
                self.play(self.prepared('bucket', lambda: plan.bucket(6_637_568), self.autograd))
        self.spans = outer
        self.t += 12_000
        return [entry[0] for entry in self.pending]

    def begin_note(self, name):
        """An annotation of the main thread over several programs; its place among the operators is reserved."""
        self.external += 1
        note = (len(self.ops), self.head('user_annotation', name, self.pid, self.main), self.t, self.external, self.event)
        self.event += 1
        self.ops.append(None)
        self.spans.append((name, self.external, {}))
        return note

    def end_note(self, note):
        slot, head, start, external, event = note
        self.ops[slot] = self.slice(head, start, self.t - start, self.op_args(external, event, ''))
        self.annotate(self.spans.pop())

    def op_args(self, external, event, more):
        if self.old:
            rest = ',\n      ' + more.rstrip(', ') if more else ''
            return f'"Device": {self.pid}, "External id": {external},\n      "Trace name": "PyTorch Profiler", "Trace iteration": 0 {rest}'
        if self.micros:
            return f'"External id": {external},{more}"Ev Idx": {event}'
        return f'"External id": {external},"Record function id": 0, {more}"Ev Idx": {event}'

    def finish_step(self, index, layers, starts, ends):
        """Starts and ends of the step's collectives on this rank are known: the optimizer, and the end of the step."""
        stream = self.streams['comm']
        seq = self.reduce_seq - len(self.pending)
        for (_, slot, correlation, external, elements, head, rest), start, end in zip(self.pending, starts, ends):
            seq += 1
            facts = '' if self.micros else ', ' + collective_args(self.o, elements) + f'"Seq": {seq}'
            args = self.device_args(correlation if self.micros else external, correlation, stream, True, rest + facts)
            self.activity[slot] = self.slice(head, start, end - start, args)
            self.activity[slot + 1] = self.flow('f', correlation, 'ac2g', self.device, stream, start)
            if not self.old and self.o.device_annotations:
                self.annotations.append(self.slice(self.head('gpu_user_annotation', 'nccl:all_reduce', self.device, stream), start,
                                                   end - start, f'"External id": {external}'))
            self.free[stream] = self.reduces_end = end
        plan = self.plan_class(self.o)
        self.play(self.prepared('optimizer', lambda: plan.optimizer(layers), self.main))
        if index % 2 == 0 or self.o.sync:
            self.play(self.prepared('item', plan.item, self.main))
        self.t += 9000
        self.end_note(self.step)
        self.t += 25_000
