"""Which cause is named, and whether the advice can be followed: each test has the fault with several numbers."""
import json
import pathlib
import pickle
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import nsys
from reader_faults_test import answer, kineto, launches, x
from support import Case, flaws, info, run

MIB = 1 << 20


def work(out, number, cat, name, launch, start, dur, pid, op='aten::mm', op_us=12, stream=7, **args):
    """A call at `launch` in its operator, and its device work from `start` on."""
    call = 'cudaMemcpyAsync' if cat == 'gpu_memcpy' else 'cudaLaunchKernel'
    out += [x('cpu_op', op, launch - 2, op_us, pid, pid, **{'External id': number}),
            x('cuda_runtime', call, launch, 6, pid, pid, correlation=number, **{'External id': number}),
            x(cat, name, start, dur, 0, stream, stream=stream, device=0, correlation=number, **{'External id': number}, **args)]


def all_reduce(out, number, launch, start, end, pid, seq, ranks):
    work(out, number, 'kernel', 'ncclDevKernel_AllReduce_Sum_bf16', launch, start, end - start, pid, 'c10d::allreduce_', stream=7,
         **{'Collective name': 'allreduce', 'In msg nelems': 4096, 'Out msg nelems': 4096, 'Group size': ranks, 'dtype': 'BFloat16', 'Process Group Name': '0',
            'Process Group Ranks': str(list(range(ranks))), 'Seq': seq})


class Ranks(Case):
    def save(self, ranks):
        for old in self.dir.glob('rank*.json'):
            old.unlink()
        for rank, events in enumerate(ranks):
            self.write(f'rank{rank}.json', kineto(events, distributedInfo={'backend': 'nccl', 'rank': rank, 'world_size': len(ranks)}))
        return self.dir

    def meet(self, rounds, compute, begins, period=4000, transfer=10):
        """Ranks that meet in `rounds` all-reduces: compute[rank] µs of a kernel, begun begins[rank][round] µs after its launch."""
        ranks = len(compute)
        events = [[x('user_annotation', 'ProfilerStep#1', 900, rounds * period + 100, 4000 + r, 4000 + r)] for r in range(ranks)]
        for k in range(rounds):
            at = 1000 + period * k
            free = [at + begins[r][k] + compute[r] for r in range(ranks)]
            end = max(free) + transfer
            for r in range(ranks):
                work(events[r], 10 * k + 1, 'kernel', 'ampere_bf16_s16816gemm', at, at + begins[r][k], compute[r], 4000 + r)
                all_reduce(events[r], 10 * k + 2, at + 20, free[r], end, 4000 + r, k + 1, ranks)
        return self.save(events)

    def test_a_rank_that_begins_late_is_not_called_slow(self):
        for ranks, late, delay, rounds in ((2, 0, 2300, 13), (3, 2, 1700, 20)):
            compute = [84 if r == late else 65 for r in range(ranks)]
            told = answer(self.meet(rounds, compute, [[delay if r == late else 30] * rounds for r in range(ranks)]))
            self.assertNotIn('rank.slow', told['ids'])
            first = next(f for f in told['findings'] if f['id'] == 'rank.late')
            self.assertEqual(first['rank'], late)
            self.assertIn('although the work was launched long before', first['detail_en'])
            self.assertNotIn('clocks', json.dumps(told['findings']))

    def test_a_rank_that_computes_longer_still_is_slow(self):
        for factor in (1.5, 3):
            told = answer(self.meet(12, [800, 800, 800 * factor], [[30] * 12] * 3))
            first = next(f for f in told['findings'] if f['id'] == 'rank.slow')
            self.assertEqual(first['rank'], 2)
            self.assertIn('clocks', first['detail_en'])

    def test_waiting_for_several_ranks_is_no_exposed_communication(self):
        for ranks, others in ((4, (2, 5, 6)), (3, (1, 3))):
            begins = [[30] * 8 for _ in range(ranks)]
            for k in range(8):
                begins[ranks - 1 if k in others else 1][k] = 1500
            share = answer(self.meet(8, [900] * ranks, begins))['share']
            self.assertLess(share['comm'], 1.0)
            self.assertGreater(share['comm-wait'], 100 * (ranks - 1) / ranks * 1470 / 4000 * 0.9)

    def capture(self, starts, rounds, name, before=False):
        """Ranks whose recordings begin at `starts`, in ms, all of them with an all-reduce that ends when the last has begun."""
        end = 1000 * max(starts) + 400
        events = []
        for rank, start in enumerate(starts):
            own, at = [], 1000 * start
            if before and start == max(starts):
                work(own, 9001, 'kernel', 'ampere_bf16_s16816gemm', at - 900, at - 880, 700, 4000 + rank)
            work(own, 1, 'kernel', name, at, at + 10, end - at - 10, 4000 + rank, 'vllm::all_reduce')
            for k in range(rounds):
                at = end + 720 * k
                work(own, 2 * k + 2, 'kernel', 'ampere_bf16_s16816gemm', at + 1, at + 10, 690, 4000 + rank)
                work(own, 2 * k + 3, 'kernel', name, at + 20, at + 701, 14, 4000 + rank, 'vllm::all_reduce')
            events.append(own)
        return self.save(events)

    def test_a_collective_that_was_open_when_the_capture_began_is_no_waiting(self):
        for starts, rounds, name in (((1, 17_460), 60, 'cross_device_reduce_2stage'), ((900, 1, 450, 300), 25, 'ncclDevKernel_AllReduce_Sum_bf16'),
                                     ((1, 2, 3), 40, 'ncclDevKernel_AllReduce_Sum_bf16')):
            with self.subTest(starts=starts):
                folder = self.capture(starts, rounds, name)
                told = answer(folder)
                self.assertGreater(told['share']['compute'], 90)
                self.assertFalse({'comm.waiting', 'rank.late', 'rank.slow'} & set(told['ids']), told['ids'])
                self.assertIn('profile.open_collective', flaws(info(folder)))
        # A rank that recorded work before it came late itself.
        folder = self.capture((1, 900), 30, 'ncclDevKernel_AllReduce_Sum_bf16', before=True)
        self.assertNotIn('profile.open_collective', flaws(info(folder)))
        self.assertLess(answer(folder)['share']['compute'], 60)

    def test_ranks_without_kernels_are_no_peers(self):
        for idle, busy in (([0], [1, 2]), ([0, 1], [2, 3, 4])):
            ranks = []
            for rank in range(len(idle + busy)):
                events = []
                for k in range(20):
                    at = 1000 + 2000 * k
                    if rank in idle:
                        work(events, k + 1, 'gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', at, at + 12, 10, 4000 + rank, 'aten::copy_', bytes=4096)
                    else:
                        work(events, k + 1, 'kernel', 'ampere_bf16_s16816gemm', at, at + 12, 1500, 4000 + rank)
                ranks.append(events)
            self.assertNotIn('rank.slow', answer(self.save(ranks))['ids'])
            for event in ranks[-1]:  # a rank that is slow compared with its peers stays slow; the others are named
                if event['cat'] == 'kernel':
                    event['dur'] = 1900
            slow = [f for f in answer(self.save(ranks))['findings'] if f['id'] == 'rank.slow'][0]
            self.assertEqual(slow['rank'], busy[-1])
            verb = 'ranks without compute are' if len(idle) > 1 else 'rank without compute is'
            self.assertIn(f'{len(idle)} {verb} not compared', slow['detail_en'])


class Advice(Case):
    def test_lost_records_are_no_reason_to_profile_the_device(self):
        for call, count in (('cudaLaunchKernel', 640), ('urEnqueueKernelLaunch', 50), ('hipLaunchKernel', 90)):
            events = [e for e in launches(count, call=call) if e['cat'] != 'kernel']
            told = answer(self.write('rank0.json', kineto(events)))
            self.assertNotIn('ProfilerActivity', told['lead_en'])
            self.assertIn('records were lost', told['lead_en'])
        events = [e for e in launches(40) if e['cat'] == 'cpu_op' or e['cat'] == 'user_annotation']
        self.assertIn('ProfilerActivity.CUDA', answer(self.write('rank0.json', kineto(events)))['lead_en'])

    def slow_operator(self, op, kind, name, op_us):
        events = []
        for k in range(40):
            work(events, k + 1, kind, name, 1000 + 500 * k + op_us - 20, 1000 + 500 * k + op_us, 60, 4001, op, op_us=12)
            events[-3].update(ts=1000 + 500 * k, dur=op_us)
        for k in range(4):
            events += [x('user_annotation', f'ProfilerStep#{k + 1}', 990 + 5000 * k, 5000), x('user_annotation', 'forward', 995 + 5000 * k, 4990)]
        return next(f for f in answer(self.write('rank0.json', kineto(events)))['findings'] if f['id'] == 'host.busy')

    def test_the_model_s_own_operators_move_to_no_other_process(self):
        for op, op_us in (('aten::mm', 430), ('aten::_fused_adamw_', 300)):
            detail = self.slow_operator(op, 'kernel', 'ampere_sgemm_64x64', op_us)['detail_en']
            self.assertIn('Launch fewer, larger kernels', detail)
            self.assertNotIn('another thread', detail)
        self.assertIn('another thread', self.slow_operator('aten::to', 'gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', 400)['detail_en'])

    def test_a_title_has_a_short_name_and_none_that_is_cut(self):
        kernel = 'void at::native::vectorized_elementwise_kernel<' + 'at::native::CUDAFunctor_add<float>, ' * 8 + '4>(int)'
        for op, named in (('my_package.models.' + 'very_long_module.' * 8 + 'Attention.forward', 'very_long_module.Attention.forward'), (kernel, 'void at::native::vectorized_elementwise_kernel'),
                          ('x' * 300, 'forward')):
            found = self.slow_operator(op, 'gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', 400)
            title = found['title_en']
            self.assertLess(len(title), 100)
            self.assertNotIn('…', title)
            self.assertTrue(title.endswith(f': {named}'), title)
            self.assertIn(op[:60], found['detail_en'])

    def report(self, gap_us, mpi=None):
        path = nsys.make(self.dir / 'report.sqlite', ranks=1, steps=0)
        db = sqlite3.connect(path)
        db.execute("DELETE FROM NVTX_EVENTS")
        db.execute("INSERT INTO StringIds VALUES (9001, 'cudaLaunchKernel_v7000'), (9002, 'gemm')")
        if mpi:
            db.execute('CREATE TABLE MPI_P2P_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER)')
            db.execute('INSERT INTO StringIds VALUES (9003, ?)', (mpi,))
        pid, tid = 1 << 48 | 4000 << 24, 1 << 48 | 4000 << 24 | 4000
        for k in range(20):
            at = 1_000_000 + 1000 * k * (gap_us + 100)
            db.execute('INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,9001,0,NULL)', (at, at + 5000, tid, k + 1))
            kernel = (at + 8000, at + 95_000, 0, 1, None, 7, k + 1, pid, 9002, 9002, 32, 4, 1, 1, 128, 1, 1, 0, 1024)
            db.execute(f'INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({",".join("?" * len(kernel))})', kernel)
            if mpi:
                db.execute('INSERT INTO MPI_P2P_EVENTS VALUES (?,?,?,9003)', (at + 7000, at + 1000 * (gap_us + 99), tid))
        db.commit()
        db.close()
        return path

    def test_options_are_those_of_the_profiler_that_recorded(self):
        for gap in (300, 700):
            detail = answer(self.report(gap))['findings'][0]['detail_en']
            self.assertIn('--trace=cuda,osrt,nvtx', detail)
            self.assertNotIn('with_stack', detail)
        idle = launches(40, period=1000)
        self.assertIn('with_stack=True', json.dumps(answer(self.write('rank0.json', kineto([e for e in idle if e['cat'] != 'cpu_op'])))['findings']))

    def test_a_receive_is_waiting(self):
        for gap, call in ((800, 'MPI_Recv'), (400, 'MPI_Waitall'), (500, 'MPI_Sendrecv')):
            first = answer(self.report(gap, call))['findings'][0]
            self.assertEqual(first['id'], 'host.collective')
            self.assertIn(call, first['title_en'])
            self.assertIn('waits there for other ranks', first['detail_en'])
            self.assertNotIn('another thread', first['detail_en'])


class Graphs(Case):
    def test_what_runs_in_whole_graphs_is_unknown(self):
        for count, length, gap in ((40, 4940, 60), (12, 900, 100)):
            path = nsys.make(self.dir / f'graphs{count}.sqlite', ranks=1, steps=0)
            db = sqlite3.connect(path)
            db.execute('DELETE FROM NVTX_EVENTS')
            db.execute('CREATE TABLE IF NOT EXISTS CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, '
                       'greenContextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER)')
            db.execute("INSERT INTO StringIds VALUES (9001, 'cudaGraphLaunch_v10000')")
            pid, tid = 1 << 48 | 4000 << 24, 1 << 48 | 4000 << 24 | 4000
            for k in range(count):
                at = 1_000_000 + 1000 * k * (length + gap)
                db.execute('INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,9001,0,NULL)', (at, at + 9000, tid, k + 1))
                db.execute('INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?,?,0,1,NULL,7,?,?,3,4)', (at + 20_000, at + 20_000 + 1000 * length, k + 1, pid))
            db.commit()
            db.close()
            told = answer(path)
            share = 100 * count * length / (count * length + (count - 1) * gap)
            self.assertAlmostEqual(told['share']['graphs'], share, delta=0.3)
            self.assertNotIn('compute', told['share'])
            text = ' '.join(run('explain', path, check=0).out.split())
            self.assertNotIn('No problem found', text)
            self.assertNotIn('there is little waiting', text)
            self.assertIn('--cuda-graph-trace=node', text)

    def test_the_kernels_of_a_graph_are_one_launch(self):
        for kernels, replays, late in ((1100, 12, 0), (1500, 5, 3000)):
            events = []
            for k in range(replays):
                at = 1000 + 9000 * k
                events += [x('cuda_runtime', 'cudaGraphLaunch', at, 20, correlation=k + 1, **{'External id': k + 1}),
                           x('cuda_runtime', 'cudaStreamSynchronize', at + 25, 8000, correlation=900 + k)]
                events += [x('kernel', f'triton_fused_{i % 7}', at + 30 + late + 3 * i, 2.5, 0, 7, stream=7, device=0, correlation=k + 1) for i in range(kernels)]
            path = self.write('rank0.json', kineto(events))
            self.assertNotIn('launch.full_queue', answer(path)['ids'])
            self.assertNotIn('queue is full', run('explain', path, check=0).out)

    def test_a_wait_after_every_kernel_is_named_early(self):
        for kernel, idle in ((224, 8.3), (180, 7)):
            events, at = [], 1000
            for k in range(300):
                work(events, k + 1, 'kernel', 'advec_cell_kernel', at, at + 6, kernel, 4001)
                events.append(x('cuda_runtime', 'cudaDeviceSynchronize', at + 6.5, kernel, correlation=5000 + k))
                at += kernel + idle
            told = answer(self.write('rank0.json', kineto(events)))
            first = told['findings'][0]
            self.assertEqual(first['id'], 'host.sync')
            self.assertIn('after most of the device', first['detail_en'])
        # A wait in some steps is usual.
        events, at = [], 1000
        for k in range(300):
            work(events, k + 1, 'kernel', 'advec_cell_kernel', at, at + 6, 224, 4001)
            if k % 10 == 9:
                events.append(x('cuda_runtime', 'cudaDeviceSynchronize', at + 6.5, 224, correlation=5000 + k))
                at += 80
            at += 224
        self.assertNotIn('host.sync', answer(self.write('rank0.json', kineto(events)))['ids'])

    def test_annotations_that_count_are_one_cause(self):
        for text in ('step {}: loss {}.{}', 'iteration {} of 60 ({}.{} s)'):
            events = []
            for k in range(60):
                at = 1000 + 1000 * k
                events.append(x('user_annotation', text.format(k, k % 7, k % 10), at, 990))
                work(events, k + 1, 'kernel', 'ampere_bf16_s16816gemm', at + 600, at + 610, 380, 4001, op='aten::mm', op_us=20)
            told = answer(self.write('rank0.json', kineto(events)))
            idle = [f for f in told['findings'] if f['id'].startswith(('host.', 'device.idle', 'launch.'))]
            self.assertEqual(len(idle), 1, [f['title_en'] for f in idle])
            self.assertIn(text.format('#', '#', '#').replace('60', '#'), json.dumps(idle[0]))


class Memory(Case):
    def snapshot(self, free, parts):
        segments, at = [], 0x7F0000000000
        def segment(size, blocks):
            nonlocal at
            segments.append({'device': 0, 'address': at, 'total_size': size, 'stream': 0, 'segment_type': 'large', 'segment_pool_id': (0, 0), 'is_expandable': False, 'frames': [],
                             'allocated_size': sum(s for s, state in blocks if state != 'inactive'), 'active_size': sum(s for s, state in blocks if state != 'inactive'),
                             'blocks': [{'size': s, 'requested_size': s if state != 'inactive' else 0, 'state': state, 'address': at + sum(b[0] for b in blocks[:i])}
                                        for i, (s, state) in enumerate(blocks)]})
            at += size
        for _ in range(free):
            segment(34 * MIB, [(34 * MIB, 'inactive')])
        for _ in range(parts):
            segment(48 * MIB, [(20 * MIB, 'active_allocated'), (28 * MIB, 'inactive')])
        path = self.dir / 'rank0_snapshot.pickle'
        path.write_bytes(pickle.dumps({'segments': segments, 'device_traces': [[]], 'allocator_settings': {}, 'external_annotations': []}))
        return answer(path)

    def test_segments_that_hold_nothing_are_no_fragments(self):
        for free, parts in ((560, 40), (90, 20)):
            told = self.snapshot(free, parts)
            self.assertNotIn('memory.fragmented', told['ids'])
            self.assertIn('is cached in segments that hold nothing', told['lead_en'])
        told = self.snapshot(5, 60)
        self.assertIn('memory.fragmented', told['ids'])
        self.assertTrue(told['findings'][0]['value'].startswith('1.7'))  # 59 pieces of 28 MiB
        self.assertNotIn('is cached in segments', told['lead_en'])


class Windows(Case):
    def steps(self, numbers, extra, period=20_000, kernel=1490):
        """Steps of ten kernels each; `extra`: (launch, dur) of copies that no step launches."""
        events = []
        for k, number in enumerate(numbers):
            at = 1000 + period * (k if number == k + 1 else k + 40)
            events.append(x('user_annotation', f'ProfilerStep#{number}', at, period))
            for i in range(10):
                work(events, 100 * k + i + 1, 'kernel', 'ampere_bf16_s16816gemm', at + 10 + 1990 * i, at + 30 + 1990 * i, kernel, 4001)
        for i, (launch, dur) in enumerate(extra):
            work(events, 9000 + i, 'gpu_memcpy', 'Memcpy HtoD (Pinned -> Device)', launch, launch + 12, dur, 4001, 'aten::copy_', bytes=4096)
        return answer(self.write('rank0.json', kineto(events)))

    def test_work_outside_the_steps_is_not_of_the_steps(self):
        for count, kernel in ((4, 1490), (6, 900)):
            numbers = list(range(1, count + 1))
            alone = self.steps(numbers, [], kernel=kernel)
            self.assertAlmostEqual(alone['share']['compute'], kernel / 2000 * 100, delta=1)
            for launches_us in ([-400_000 - 50 * i for i in range(5)], [900_000 + 50 * i for i in range(5)], [-90_000, 700_000]):
                told = self.steps(numbers, [(at, 12) for at in launches_us], kernel=kernel)
                self.assertAlmostEqual(told['step_ns'], alone['step_ns'], delta=0.01 * alone['step_ns'])
                self.assertAlmostEqual(told['share']['compute'], alone['share']['compute'], delta=0.5)

    def test_steps_that_were_not_recorded_are_no_idle_time(self):
        whole = self.steps([1, 2, 3, 4], [])
        for numbers in ([1, 2, 11, 12], [1, 2, 3, 30, 31]):
            told = self.steps(numbers, [(200_000, 12)])
            self.assertAlmostEqual(told['step_ns'], whole['step_ns'], delta=0.02 * whole['step_ns'])
            self.assertAlmostEqual(told['share']['compute'], whole['share']['compute'], delta=1)

    def test_the_first_call_is_warm_up(self):
        for first_ms, late in ((1340, False), (90, False), (1340, True)):
            events, at = [], 1000
            for k in range(60):
                long = k == (30 if late else 1)
                took = 1000 * first_ms if long else 8
                number = k + 1
                events += [x('cpu_op', 'aten::cudnn_convolution', at, took + 30, **{'External id': number}),
                           x('cuda_runtime', 'cudaFuncGetAttributes', at + 2, took, correlation=9000 + k) if k > 0 else x('cuda_runtime', 'cudaGetDevice', at + 2, 3, correlation=9000),
                           x('cuda_runtime', 'cudaLaunchKernel', at + took + 10, 6, correlation=number, **{'External id': number}),
                           x('kernel', 'ampere_scudnn_128x64', at + took + 20, 900, 0, 7, stream=7, device=0, correlation=number, **{'External id': number})]
                at += took + 950
            first = answer(self.write('rank0.json', kineto(events)))['findings'][0]
            self.assertEqual(first['id'], 'host.blocked')
            check = self.assertNotIn if late else self.assertIn
            check('Profile after warm-up steps; without it the device computes for 9', first['detail_en'])


class Streams(Case):
    def exposed(self, stream, compute):
        events = []
        for k in range(30):
            at, launch = 1000 + 1000 * k, 100 + 30 * k
            work(events, 2 * k + 1, 'kernel', 'ampere_bf16_s16816gemm', launch, at, compute, 4001)
            work(events, 2 * k + 2, 'kernel', 'ncclDevKernel_SendRecv', launch + 15, at + compute + 2, 990 - compute, 4001, 'c10d::alltoall_', stream=stream)
        return next(f for f in answer(self.write('rank0.json', kineto(events)))['findings'] if f['id'] == 'comm.exposed')['detail_en']

    def test_communication_on_the_stream_that_computes_cannot_overlap(self):
        for compute in (550, 800):
            self.assertIn('communicate on another stream', self.exposed(7, compute))
            self.assertIn('Start communication earlier', self.exposed(20, compute))


if __name__ == '__main__':
    unittest.main()
