#!/usr/bin/env python3
"""Text exports of Ascend profiles, as torch_npu writes them without a database. It is a 1F1B job of p stages and d
replicas whose stages use batched messages (Megatron's default), without markers.

  ascend_text.py OUT --pp 2 --dp 2 --mb 2              the shape of MindStudio Insight's own system-test job
  ascend_text.py OUT --trace-view all                  trace_view.json beside kernel_details.csv
  ascend_text.py OUT --only steps                      nothing but step_trace_time.csv
  ascend_text.py OUT --recompute --send-recv --old     backwards that run forwards again; single messages; old columns

kernel_details.csv of every rank, or of those of --kernels. truth.csv: rank, kind, micro_batch, start_us, end_us.
"""
import argparse
import csv
import json
import os
import sqlite3
import sys
from decimal import Decimal

BASE_US = 1718180918996865           # beyond the values that a double represents to the nanosecond
FORWARD = [('RmsNorm', 3), ('MatMulV2', 30), ('FlashAttentionScore', 40), ('MatMulV2', 20), ('Add', 2), ('RmsNorm', 3),
           ('MatMulV2', 40), ('SwiGlu', 6), ('MatMulV2', 30), ('Add', 2)]
BACKWARD = [('MatMulV2', 60), ('SwiGluGrad', 10), ('MatMulV2', 80), ('RmsNormGrad', 6), ('Add', 3), ('MatMulV2', 40),
            ('FlashAttentionScoreGrad', 90), ('MatMulV2', 60), ('RmsNormGrad', 6), ('Add', 3)]
HEADER = ['Step Id', 'Device_id', 'Model ID', 'Task ID', 'Stream ID', 'Name', 'Type', 'OP State', 'Accelerator Core',
          'Start Time(us)', 'Duration(us)', 'Wait Time(us)', 'Block Dim', 'Mix Block Dim', 'HF32 Eligible',
          'Input Shapes', 'Input Data Types', 'Input Formats']
OLD_HEADER = ['Device_id', 'Name', 'Type', 'Accelerator Core', 'Start Time(us)', 'Duration(us)', 'Wait Time(us)',
              'Block Num', 'Input Shapes']


def group_number(name):
    """The number that stands for a communicator's name: two polynomials of 32 bits."""
    high = low = 0
    for letter in name.encode():
        high = (high * 29 + letter) & 0xffffffff
        low = (low * 131 + letter) & 0xffffffff
    return str(high << 32 | low)


def program(stage, p, m):
    """What one stage does, in order: ('F', k), ('B', k) and messages [(send?, peer stage, kind, k), …]."""
    first, last, out = stage == 0, stage == p - 1, []

    def talk(*messages):
        if messages := [x for x in messages if x]:
            out.append(('X', messages))

    warm = min(p - 1 - stage, m)
    for k in range(warm):
        talk(None if first else (False, stage - 1, 'F', k))
        out.append(('F', k))
        talk(None if last else (True, stage + 1, 'F', k))
    if m > warm:
        talk(None if first else (False, stage - 1, 'F', warm))
    for i in range(m - warm):
        out.append(('F', warm + i))
        talk(*() if last else ((True, stage + 1, 'F', warm + i), (False, stage + 1, 'B', i)))
        out.append(('B', i))
        talk(None if first else (True, stage - 1, 'B', i),
             None if first or warm + i + 1 >= m else (False, stage - 1, 'F', warm + i + 1))
    for k in range(m - warm, m):
        talk(None if last else (False, stage + 1, 'B', k))
        out.append(('B', k))
        talk(None if first else (True, stage - 1, 'B', k))
    return out


def kernels_of(kind, layers, recompute, stage, p):
    """Returns [(type, µs)] of one forward or backward."""
    if kind == 'F':
        head = [('EmbeddingV2', 20)] if stage == 0 else []
        tail = [('MatMulV2', 400), ('LogSoftmaxV2', 60), ('NLLLoss', 10)] if stage == p - 1 else []
        return head + FORWARD * layers + tail
    out = [('NLLLossGrad', 10), ('LogSoftmaxGrad', 60), ('MatMulV2', 800)] if stage == p - 1 else []
    for _ in range(layers):
        out += (FORWARD if recompute else []) + BACKWARD
    return out + ([('EmbeddingDenseGradV2', 40)] if stage == 0 else [])


def run_step(args, start):
    """One step of one replica: per stage [(what, payload, start, end)], in µs."""
    p, m = args.pp, args.mb
    programs = [program(s, p, m) for s in range(p)]
    at, clock, done = [0] * p, [start] * p, [[] for _ in range(p)]
    posted = {}  # (from, to, kind, k) → when each end was ready
    while any(at[s] < len(programs[s]) for s in range(p)):
        for s in range(p):
            while at[s] < len(programs[s]):
                what, payload = programs[s][at[s]]
                if what == 'X':
                    keys = [(s, peer, kind, k) if send else (peer, s, kind, k) for send, peer, kind, k in payload]
                    for key in keys:
                        posted.setdefault(key, {})[s] = clock[s]
                    if any(len(posted[key]) < 2 for key in keys):
                        break
                    end = max(max(posted[key].values()) for key in keys) + 150
                else:
                    times = kernels_of(what, args.layers, args.recompute, s, p)
                    end = clock[s] + sum(us * args.scale for _, us in times) + len(times)
                done[s].append((what, payload, clock[s], end))
                clock[s], at[s] = end, at[s] + 1
    return done


class Rank:
    def __init__(self, args, rank):
        self.args, self.rank = args, rank
        self.stage, self.replica = rank // args.dp, rank % args.dp
        self.pp = [self.replica + s * args.dp for s in range(args.pp)]
        self.dp = [self.stage * args.dp + d for d in range(args.dp)]
        self.pp_name = f'10.0.0.1%eth0_60000_{self.replica}_17081560{rank % args.dp}4257149'
        self.dp_name = f'10.0.0.1%eth0_60000_{self.stage + 8}_17081560{self.stage}9257149'
        self.counts, self.kernels, self.ops, self.truth, self.steps = {}, [], [], [], []

    def kernel(self, step, op_type, start, dur, core='AI_CORE', stream=2, name=None):
        self.kernels.append((step, stream, name or f'aclnn{op_type}_{op_type}_{op_type}', op_type, core, start, dur))

    def operation(self, step, kind, group, p2p, start, dur, links):
        number = group_number(group)
        seq = self.counts[kind, group] = self.counts.get((kind, group), -1) + 1
        name = f'hcom_{kind}__{number[-3:]}_{seq}_1'
        self.ops.append((step, name, number, p2p, start, dur, links))
        self.kernel(step, f'hcom_{kind}_', start, dur, 'COMMUNICATION', 11 if p2p else 12, name)

    def fill(self, step, work):
        begin = end = None
        place = self.stage
        for what, payload, start, stop in work:
            begin = start if begin is None else begin
            end = stop
            if what == 'X':
                links = [(place, peer) if send else (peer, place) for send, peer, _, _ in payload]
                if self.args.send_recv:
                    for (send, *_), link in zip(payload, links):
                        self.operation(step, 'send' if send else 'receive', self.pp_name, True, start, stop - start, [link])
                else:
                    self.operation(step, 'batchSendRecv', self.pp_name, True, start, stop - start, links)
                continue
            at = start
            for op_type, us in kernels_of(what, self.args.layers, self.args.recompute, self.stage, self.args.pp):
                self.kernel(step, op_type, at, us * self.args.scale)
                at += us * self.args.scale + 1
            self.truth.append((self.rank, step, what, payload, start, at - 1))
        if self.args.dp > 1:
            links = [(a, b) for a in range(self.args.dp) for b in range(self.args.dp) if a != b]
            self.operation(step, 'reduceScatter', self.dp_name, False, end + 20, 5000, links)
            end += 5040
        self.kernel(step, 'ApplyAdamWV2', end, 3000)
        self.steps.append((step, begin, end + 3000))
        return end + 3100

    def text(self, us):
        return f'{Decimal(BASE_US) + Decimal(us):.3f}'

    def sums(self, step):
        """Computing, communication not overlapped and what else step_trace_time has: nothing overlaps here."""
        begin, end = next((b, e) for s, b, e in self.steps if s == step)
        busy = sum(k[6] for k in self.kernels if k[0] == step and k[4] != 'COMMUNICATION')
        talk = sum(o[5] for o in self.ops if o[0] == step)
        # Insight's Bubble: the sum of receives. Batched messages are none.
        bubble = sum(o[5] for o in self.ops if o[0] == step and 'receive' in o[1])
        return [busy, talk, 0, talk, end - begin - busy - talk, end - begin - bubble, bubble, talk - bubble, 100]

    def write(self, root):
        args = self.args
        folder = os.path.join(root, f'rank_{self.rank}_ascend_pt')
        out = os.path.join(folder, 'ASCEND_PROFILER_OUTPUT')
        os.makedirs(out, exist_ok=True)
        self.write_steps(out)
        if args.only == 'steps':
            return
        with open(os.path.join(folder, f'profiler_info_{self.rank}.json'), 'w') as f:
            json.dump({'config': {'experimental_config': {'_profiler_level': 'Level2'}}, 'rank_id': self.rank}, f)
        with open(os.path.join(folder, 'profiler_metadata.json'), 'w') as f:
            json.dump(self.metadata(), f, indent=1)
        self.write_communication(out)
        if not args.no_database:
            self.write_database(out)
        chosen = range(args.pp * args.dp) if args.kernels == 'all' else [int(r) for r in args.kernels.split(',') if r]
        if self.rank in chosen:
            self.write_kernels(out)
        if args.trace_view == 'all' or str(self.rank) in args.trace_view.split(','):
            self.write_trace(out)

    def metadata(self):
        args = self.args
        groups = {self.pp_name: {'group_name': 'pp', 'group_rank': self.stage, 'global_ranks': self.pp}}
        if args.dp > 1:
            groups[self.dp_name] = {'group_name': 'dp', 'group_rank': self.replica, 'global_ranks': self.dp}
        sizes = {'tensor_model_parallel_size': 1, 'pipeline_model_parallel_size': args.pp, 'data_parallel_size': args.dp,
                 'context_parallel_size': 1, 'expert_model_parallel_size': 1, 'sequence_parallel': False,
                 'rank': self.rank, 'world_size': args.pp * args.dp}
        return {'distributed_args': json.dumps(sizes), 'parallel_group_info': groups}

    def write_steps(self, out):
        with open(os.path.join(out, 'step_trace_time.csv'), 'w', newline='') as f:
            rows = csv.writer(f)
            rows.writerow(['Device_id', 'Step', 'Computing', 'Communication(Not Overlapped)', 'Overlapped',
                           'Communication', 'Free', 'Stage', 'Bubble',
                           'Communication(Not Overlapped and Exclude Receive)', 'Preparing'])
            for step, _, _ in self.steps:
                rows.writerow([0, step] + [f'{v:.3f}' for v in self.sums(step)])

    def write_kernels(self, out):
        old = self.args.old
        with open(os.path.join(out, 'kernel_details.csv'), 'w', newline='') as f:
            rows = csv.writer(f)
            rows.writerow(OLD_HEADER if old else HEADER)
            for i, (step, stream, name, op_type, core, start, dur) in enumerate(self.kernels):
                talk = core == 'COMMUNICATION'
                shapes = 'N/A' if talk else '"4096,1,1024;1024"'
                time = self.text(start) + '\t'
                rows.writerow([0, name, op_type, core, time, f'{dur:.3f}', '0', 24, shapes] if old else
                              [step, 0, 4294967295, i, stream, name, op_type, 'N/A' if talk else 'dynamic', core, time,
                               f'{dur:.3f}', '0', 0 if talk else 24, 0, 'N/A' if talk else 'NO', shapes,
                               'N/A' if talk else 'DT_BF16;DT_BF16', 'N/A' if talk else 'ND;ND'])

    def times_of(self, op):
        step, name, number, p2p, start, dur, links = op
        size = 8.388608 * len([a for a, b in links if a == self.place(p2p)] or links)
        return {'Start Timestamp(us)': float(self.text(start)), 'Elapse Time(ms)': dur / 1e3, 'Transit Time(ms)': 0.1,
                'Wait Time(ms)': dur / 1e3 - 0.1, 'Synchronization Time(ms)': 0, 'Idle Time(ms)': 0.0,
                'Wait Time Ratio': 0.9, 'Synchronization Time Ratio': 0.0}, size

    def place(self, p2p):
        return self.stage if p2p else self.replica

    def write_communication(self, out):
        times, matrix = {}, {}
        for op in self.ops:
            step, name, number, p2p, _, _, links = op
            kind = 'p2p' if p2p else 'collective'
            info, size = self.times_of(op)
            of_step = times.setdefault(f'step{step}', {'p2p': {}, 'collective': {}})
            of_step[kind][f'{name}@{number}'] = {
                'Communication Time Info': info,
                'Communication Bandwidth Info': {
                    t: {'Transit Size(MB)': size if t in ('HCCS', 'SDMA') else 0, 'Transit Time(ms)': 0.1,
                        'Bandwidth(GB/s)': size / 0.1, 'Large Packet Ratio': 0, 'Size Distribution': {'8.388608': [1, 0.1]}}
                    for t in ('RDMA', 'HCCS', 'PCIE', 'SDMA', 'SIO')}}
            word = name.split('_')[1].lower()
            of_step = matrix.setdefault(f'step{step}', {'p2p': {}, 'collective': {}})
            for which in ('top1', 'middle', 'bottom1', 'total'):
                entry = of_step[kind].setdefault(f'{word}-{which}@{number}', {})
                for a, b in links:
                    link = {'Transport Type': 'HCCS', 'Transit Size(MB)': 8.388608, 'Transit Time(ms)': 0.1,
                            'Bandwidth(GB/s)': 83.886}
                    if which == 'total' and (old := entry.get(f'{a}-{b}')):
                        link['Transit Size(MB)'] += old['Transit Size(MB)']
                        link['Transit Time(ms)'] += old['Transit Time(ms)']
                    entry[f'{a}-{b}'] = link if which == 'total' else dict(link, **{'Op Name': name})
        for of_step in times.values():
            for ops in of_step.values():
                if ops:
                    ops['Total Op Info'] = {'Communication Time Info': {'Elapse Time(ms)': 1}}
        for what, data in (('communication', times), ('communication_matrix', matrix)):
            with open(os.path.join(out, what + '.json'), 'w') as f:
                json.dump(data, f)

    def write_database(self, out):
        path = os.path.join(out, 'analysis.db')
        if os.path.exists(path):
            os.remove(path)
        db = sqlite3.connect(path)
        db.execute('create table StepTraceTime (deviceId INTEGER, step TEXT, computing NUMERIC, '
                   'communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, free NUMERIC, '
                   'stage NUMERIC, bubble NUMERIC, communication_not_overlapped_and_exclude_receive NUMERIC, '
                   'preparing NUMERIC)')
        db.execute('create table CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, '
                   'elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, '
                   'idle_time NUMERIC, step TEXT, type TEXT)')
        for step, _, _ in self.steps:
            db.execute('insert into StepTraceTime values (0,?,?,?,?,?,?,?,?,?,?)', [str(step)] + self.sums(step))
        for op in self.ops:
            info, _ = self.times_of(op)
            db.execute('insert into CommAnalyzerTime values (?,?,?,?,?,?,?,?,?,?)',
                       [op[1], op[2]] + list(info.values())[:6] + [f'step{op[0]}', 'p2p' if op[3] else 'collective'])
        db.commit()
        db.close()

    def write_trace(self, out):
        python, cann, device, talk = 9000 + self.rank, 4097, 4098, 4099
        events = []
        for pid, name in ((python, 'Python'), (cann, 'CANN'), (device, 'Ascend Hardware'), (talk, 'Communication')):
            events.append({'ph': 'M', 'name': 'process_name', 'pid': pid, 'tid': 0, 'args': {'name': name}})
        for tid, name in ((2, 'Stream 2'), (11, 'Stream 11')):
            events.append({'ph': 'M', 'name': 'thread_name', 'pid': device, 'tid': tid, 'args': {'name': name}})
        groups = {self.pp_name: 0, self.dp_name: 2}
        for number, tid in ((0, 0), (1, 2)):
            events.append({'ph': 'M', 'name': 'thread_name', 'pid': talk, 'tid': tid,
                           'args': {'name': f'Group {number} Communication'}})
            events.append({'ph': 'M', 'name': 'thread_name', 'pid': talk, 'tid': tid + 1, 'args': {'name': 'Plane 0'}})

        def slice_(name, pid, tid, start, dur, cat='', **info):
            event = {'ph': 'X', 'name': name, 'pid': pid, 'tid': tid, 'ts': self.text(start), 'dur': float(dur), 'args': info}
            events.append(dict(event, cat=cat) if cat else event)

        def arrow(cat, number, start, end):
            for phase, (pid, tid, us) in (('s', start), ('f', end)):
                events.append({'ph': phase, 'bp': 'e', 'name': cat, 'cat': cat, 'id': str(number), 'pid': pid, 'tid': tid,
                               'ts': self.text(us)})

        for step, begin, end in self.steps:
            slice_(f'ProfilerStep#{step}', python, 1, begin - 50, end - begin, 'cpu_op')
        groups = {group_number(self.pp_name): 0, group_number(self.dp_name): 2}
        number = {o[1]: o for o in self.ops}
        for i, (step, stream, name, op_type, core, start, dur) in enumerate(self.kernels):
            host = start - 30
            slice_(f'aten::{op_type}', python, 1, host, 8, 'cpu_op', **{'Sequence number': i, 'Fwd thread id': 0})
            slice_('Node@launch', cann, 1, host + 2, 4, connection_id=i)
            if core == 'COMMUNICATION':
                pid, tid = talk, groups[number[name][2]]
                slice_(name, pid, tid, start, dur, connection_id=i, data_type='BFP16', count=4194304)
                slice_('Memcpy', pid, tid + 1, start, dur, **{
                    'task type': 'Memcpy', 'src rank': number[name][6][0][0], 'dst rank': number[name][6][0][1],
                    'transport type': 'SDMA', 'size(Byte)': 8388608, 'link type': 'HCCS', 'notify_id': '9', 'stream id': 11})
            else:
                pid, tid = device, stream
                slice_(name, pid, tid, start, dur, **{'Task Type': 'AI_CORE', 'Stream Id': stream, 'connection_id': i})
            arrow('HostToDevice', i << 32, (cann, 1, host + 2), (pid, tid, start))
            arrow('async_npu', i, (python, 1, host), (pid, tid, start))
        slice_('Computing', 4100, 0, 0, 10)
        events.append({'ph': 'M', 'name': 'process_name', 'pid': 4100, 'tid': 0, 'args': {'name': 'Overlap Analysis'}})
        with open(os.path.join(out, 'trace_view.json'), 'w') as f:
            json.dump(events, f)


def generate(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out')
    for name, default in (('pp', 2), ('dp', 2), ('mb', 2), ('layers', 12), ('scale', 30), ('steps', 1),
                          ('first-step', 13)):
        parser.add_argument('--' + name, type=int, default=default)
    parser.add_argument('--kernels', default='all', help='ranks with kernel_details.csv: all, or 0,2')
    parser.add_argument('--trace-view', default='', help='ranks with trace_view.json: all, or 0,2')
    parser.add_argument('--only', choices=['steps'])
    for flag in ('recompute', 'send-recv', 'old', 'no-database'):
        parser.add_argument('--' + flag, action='store_true')
    args = parser.parse_args([str(a) for a in argv])
    ranks = [Rank(args, r) for r in range(args.pp * args.dp)]
    start = 0
    for step in range(args.first_step, args.first_step + args.steps):
        work = run_step(args, start)
        start = max(rank.fill(step, work[rank.stage]) for rank in ranks)
    os.makedirs(args.out, exist_ok=True)
    for rank in ranks:
        rank.write(args.out)
    with open(os.path.join(args.out, 'truth.csv'), 'w', newline='') as f:
        rows = csv.writer(f)
        rows.writerow(['rank', 'step', 'kind', 'micro_batch', 'start_ns', 'end_ns'])
        for rank in ranks:
            rows.writerows([r, step, kind, k, (BASE_US + a) * 1000, (BASE_US + b) * 1000]
                           for r, step, kind, k, a, b in rank.truth)


if __name__ == '__main__':
    generate(sys.argv[1:])
