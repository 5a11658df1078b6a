"""Records of frameworks: their ranges, messages and schedules, logs without a trace, reports of runs with little data."""
import csv
import gzip
import io
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gen'))
import megatron_frames
import perfetto
import xplane
from reader_faults_test import answer, kineto, launches, x
from support import Case, flaws, info, run


def rows(path, query):
    lines = run('sql', path, query, '--format', 'csv', '-q', check=0).out.splitlines()
    return [tuple(line.split(',')) for line in lines[1:]]


class Ranges(Case):
    def test_ranges_are_no_operators(self):
        for step, op, range_name in ((10_000, 1_000, 'train_loop'), (8_000, 2_000, '[pl][profile]run_training_batch')):
            events = []
            for k in range(4):
                events += [x('user_annotation', f'ProfilerStep#{k}', step * k, step), x('cpu_op', 'aten::mm', step * k + 100, op)]
            shares = [answer(self.write('rank0.json', kineto(events + more)))['share'] for more in ([], [x('user_annotation', range_name, 0, 4 * step)])]
            self.assertEqual(shares[0], shares[1])
            self.assertAlmostEqual(shares[0]['compute'], 100 * op / step, delta=0.5)

    def test_a_step_that_is_long_on_several_ranks_names_none(self):
        """Ranks wait for each other: swapping them, or making the others wait too, names no rank by the length alone."""
        def told(*lengths):
            for rank, long in enumerate(lengths):
                events, t = [], 0
                for k in range(6):
                    step = long if k == 3 else 10_000
                    events += [x('user_annotation', f'ProfilerStep#{k}', t, step), x('cpu_op', 'aten::mm', t + 100, step - 200)]
                    t += step
                self.write(f'rank{rank}.json', kineto(events, host_name='vm', distributedInfo={'backend': 'gloo', 'rank': rank, 'world_size': len(lengths)}))
            found = next(f for f in answer(self.dir)['findings'] if f['id'] == 'step.outlier')
            self.assertEqual(found['step'], 3)
            return found['detail_en']
        self.assertIn('long on rank 1;', told(10_000, 40_000, 11_000))
        for lengths in ((39_000, 40_000, 11_000), (40_000, 39_000, 11_000)):
            self.assertIn('long on 2 of 3 ranks, so its length does not show which one delays it;', told(*lengths))

    def test_a_loader_with_worker_processes_is_not_told_to_get_some(self):
        for iterator, advice in (('_SingleProcessDataLoaderIter', 'set num_workers'), ('_MultiProcessingDataLoaderIter', 'raise num_workers')):
            events = []
            for k in range(5):
                events += [x('user_annotation', f'ProfilerStep#{k}', 10_000 * k, 10_000), x('cpu_op', 'aten::mm', 10_000 * k + 5_000, 4_900),
                           x('user_annotation', f'enumerate(DataLoader)#{iterator}.__next__', 10_000 * k + 100, 4_500)]
            found = next(f for f in answer(self.write('rank0.json', kineto(events)))['findings'] if f['id'] == 'input.loading')
            self.assertIn(advice, found['detail_en'] + found['fix_en'])

    def test_a_call_in_flight_takes_no_operator_s_time(self):
        for rank in (0, 1):
            events = []
            for k in range(4):
                events += [x('user_annotation', f'ProfilerStep#{k}', 10_000 * k, 10_000), x('cpu_op', 'aten::mm', 10_000 * k + 1_000, 6_000),
                           x('user_annotation', 'gloo:send' if rank == 0 else 'gloo:recv', 10_000 * k + 500, 8_500)]
            self.write(f'rank{rank}.json', kineto(events, host_name='vm', distributedInfo={'backend': 'gloo', 'rank': rank, 'world_size': 2}))
        share = answer(self.dir)['share']
        self.assertAlmostEqual(share['compute'], 60, delta=0.5)
        self.assertAlmostEqual(share['comm'], 25, delta=0.5)

    def test_a_thread_in_a_call_of_torch_distributed_communicates(self):
        for call, within in (('c10d::recv_', 'gloo:recv'), ('c10d::send', None), ('c10d::barrier', None), ('c10d::monitored_barrier_', None), ('_c10d_functional::all_reduce', None)):
            for rank in (0, 1):
                events = []
                for k in range(3):
                    t = 10_000 * k
                    events += [x('user_annotation', f'ProfilerStep#{k}', t, 10_000), x('cpu_op', 'aten::mm', t, 2_500), x('cpu_op', 'train::Exchange', t + 2_500, 6_500),
                               x('cpu_op', call, t + 3_000, 6_000), x('cpu_op', 'aten::copy_', t + 3_500, 500)]
                    if within:
                        events += [x('user_annotation', within, t + 4_100, 4_500)]
                self.write(f'rank{rank}.json', kineto(events, host_name='vm', distributedInfo={'backend': 'gloo', 'rank': rank, 'world_size': 2}))
            share = answer(self.dir)['share']
            self.assertAlmostEqual(share['compute'], 35, delta=0.5)  # mm, copy_, and the exchange around the call
            self.assertAlmostEqual(share['comm'], 55, delta=0.5)
            table = dict(rows(self.dir, "SELECT DISTINCT name, kind FROM operators__operators"))
            self.assertEqual((table[call], table['train::Exchange']), ('communication', 'operator'))
            steps = rows(self.dir, "SELECT category, time_ns FROM tb_overview__step_averages WHERE rank = 0")
            self.assertEqual(dict(steps)['Communication'], '5500000')

    def test_a_device_that_waits_for_a_host_in_a_message_waits_for_its_peer(self):
        events = []
        for k in range(4):
            t = 10_000 * k
            events += [x('user_annotation', f'ProfilerStep#{k}', t, 10_000), x('user_annotation', 'train', t, 10_000), x('cpu_op', 'c10d::recv_', t, 6_000),
                       *launches(1, kernel=3_900, at=t + 6_000, number=k + 1)]
        found = answer(self.write('rank0.json', kineto(events)))['findings'][0]
        self.assertEqual(found['id'], 'host.collective')
        self.assertIn('waits there for other ranks', found['detail_en'])

    def test_a_range_around_a_step_is_no_work_of_its_host(self):
        events = []
        for k in range(4):
            t = 10_000 * k
            events += [x('user_annotation', f'ProfilerStep#{k}', t, 10_000), x('user_annotation', 'train', t, 10_000),
                       *launches(1, kernel=3_900, at=t + 6_000, number=k + 1)]
        found = answer(self.write('rank0.json', kineto(events)))['findings'][0]
        self.assertEqual(found['id'], 'device.idle')
        self.assertNotIn('train', found['title_en'])

    def test_exposed_work_is_named_where_the_host_sets_the_pace(self):
        """A replay wins nothing without it, for the next step begins when the host begins it."""
        def device(name, call, start, dur, number, op, category='kernel', runtime='cudaLaunchKernel', held=7, **args):
            return [x('cpu_op', op, call - 2, held + 4), x('cuda_runtime', runtime, call, held, correlation=number),
                    x(category, name, start, dur, 0, 7, stream=7, device=0, correlation=number, **args)]
        talks, copies = [], []
        for k in range(4):
            t, n = 4_000 * k, 100 * k
            for events in (talks, copies):
                events.append(x('user_annotation', f'ProfilerStep#{k}', t, 4_000))
            for i in range(3):
                talks += device('sm80_xmma_gemm_bf16', t + 10 + 40 * i, t + 60 + 1_250 * i, 800, n + 2 * i, 'aten::mm')
                talks += device('ncclDevKernel_AllGather_RING_LL', t + 30 + 40 * i, t + 865 + 1_250 * i, 420, n + 2 * i + 1, 'c10d::_allgather_base_')
            copies += device('Memcpy HtoD (Pageable -> Device)', t + 10, t + 40, 700, n, 'aten::copy_', 'gpu_memcpy', 'cudaMemcpyAsync', 600, bytes=2 << 20)
            for i in range(3):
                copies += device('sm80_xmma_gemm_bf16', t + 620 + 20 * i, t + 745 + 1_050 * i, 1_040, n + i + 1, 'aten::mm')
        found = {f['id']: f for f in answer(self.write('talks.json', kineto(talks)))['findings']}
        self.assertIn('on the stream that computes', found['comm.exposed']['detail_en'])
        found = {f['id']: f for f in answer(self.write('copies.json', kineto(copies)))['findings']}
        self.assertNotIn('memory.exposed', found)
        self.assertIn('(17.5', found['copies.pageable']['value'])

    def test_tensorflow_s_operators_are_named_name_and_type(self):
        host = xplane.cpu(steps=2)
        plane = next(p for p in host if 'host:CPU' in p.name) if isinstance(host, list) else host
        plane.line(77, 'tf_Compute/1', [('dense/MatMul:_MklMatMul', 10 * xplane.US, 400 * xplane.US, {})])
        plane.line(78, 'python', [('FunctionRun', 0, 900 * xplane.US, {})])
        path = self.dir / 'vm.xplane.pb'
        path.write_bytes(xplane.space(host if isinstance(host, list) else [host]))
        kinds = dict(rows(path, "SELECT name, category FROM slices WHERE name LIKE '%MatMul:%' OR name = 'FunctionRun'"))
        self.assertEqual(kinds, {'dense/MatMul:_MklMatMul': 'cpu_op', 'FunctionRun': 'user_annotation'})


class Blame(Case):
    def test_on_one_clock_the_last_to_come_is_not_who_waits_least(self):
        for first, late, rest in ((1, 4_500, 22_000), (0, 2_000, 9_000)):  # the late rank's own part lasts longer
            for rank in (0, 1):
                comes = 1_000 + (late if rank != first else 0)
                ends = 1_000 + late + (800 if rank == first else rest)
                events = [x('user_annotation', 'ProfilerStep#1', 0, 40_000, 50 + rank, 50 + rank), x('cpu_op', 'aten::mm', 10, 900, 50 + rank, 50 + rank),
                          x('user_annotation', 'gloo:all_reduce', comes, ends - comes, 50 + rank, 60 + rank)]
                for host in ('vm', f'vm{rank}'):
                    self.write(f'{host[:3]}/rank{rank}.json', kineto(events, host_name=host, distributedInfo={'backend': 'gloo', 'rank': rank, 'world_size': 2}))
            self.assertNotIn(f'Rank {first} waits least', json.dumps(answer(self.dir / 'vm')))
            # On two clocks the trace does not show which rank came last.
            hosts = self.dir / 'hosts'
            hosts.mkdir(exist_ok=True)
            for rank in (0, 1):
                (hosts / f'rank{rank}.json').write_text((self.dir / f'vm{rank}/rank{rank}.json').read_text())
            self.assertNotIn('waits least', json.dumps(answer(hosts)))

    def test_the_operator_of_the_lead_is_of_the_steps(self):
        for outside, wrapper in ((0, False), (90_000, False), (0, True), (90_000, True)):
            events = [x('cpu_op', 'aten::mm', 1000 + 1000 * k, 600, 50, 50) for k in range(8)] + [x('cpu_op', 'aten::add', 1700 + 1000 * k, 200, 50, 50) for k in range(8)]
            events += [x('user_annotation', f'ProfilerStep#{k + 1}', 990 + 4000 * k, 3990, 50, 50) for k in range(2)]
            if outside:
                events.append(x('cpu_op', 'aten::sort', 20_000, outside, 50, 50))
            if wrapper:
                events.append(x('user_annotation', 'whole program', 900, 20_000 + outside, 50, 50))
            told = answer(self.write('one/rank0.json', kineto(events)))
            self.assertIn('aten::mm has the largest self time of all operators (75.0\u202f% of theirs', told['lead_en'])

    def test_time_between_recordings_of_a_rank_was_not_recorded(self):
        """A repeating schedule writes a file for each cycle; a script may record several times, each time with its own numbers of steps."""
        def cycle(at, steps, first, step=10_000, op=8_000):
            events = [x('user_annotation', f'ProfilerStep#{first + k}', at + step * k, step) for k in range(steps)]
            return events + [x('cpu_op', 'aten::mm', at + step * k + 100, op) for k in range(max(steps, 1))] + [x('Trace', 'PyTorch Profiler (0)', at, step * max(steps, 1), 'Spans', 'PyTorch Profiler')]
        for gap in (35_000, 900_000):
            for first, steps in (((2, 7), 3), ((2, 2), 3), ((0, 0), 0)):
                for k, number in enumerate(first):
                    self.write(f'cycles/{k}.json', kineto(cycle(1_000 + k * gap, steps, number), host_name='vm'))
                told = answer(self.dir / 'cycles')
                self.assertIn('(6 steps, 60.0 ms of host time)' if steps else '(20.0 ms of host time)', told['title_en'].replace('\u202f', ' '))
                self.assertAlmostEqual(told['share']['compute'], 80 if steps else 100, delta=0.3)

    def test_recordings_of_one_rank_are_no_ranks(self):
        for lengths in ([10_000] * 9, [10_000] * 4 + [40_000] + [10_000] * 4):
            for k in range(3):
                events, t = [], 1_000 + 500_000 * k
                for step in range(3):
                    length = lengths[3 * k + step]
                    events += [x('user_annotation', f'ProfilerStep#{step}', t, length), x('cpu_op', 'aten::mm', t + 100, length - 200)]
                    t += length
                self.write(f'three/{k}.json', kineto(events, host_name='vm'))
            found = [f for f in answer(self.dir / 'three')['findings'] if f['id'] == 'step.outlier']
            self.assertEqual(len(found), int(40_000 in lengths))
            for finding in found:
                self.assertIn('long on rank 0;', finding['detail_en'])

    def test_a_recording_of_which_nothing_is_left_belongs_to_its_process(self):
        span = x('Trace', 'PyTorch Profiler (0)', 60_000, 30_000, 'Spans', 'PyTorch Profiler')
        name = {'ph': 'M', 'name': 'process_name', 'pid': 4001, 'tid': 0, 'ts': 0, 'args': {'name': 'python'}}
        self.write('both/a.json', kineto([name, x('cpu_op', 'aten::mm', 1_000, 9_000)], host_name='vm'))
        alone = self.write('both/b.json', kineto([name, span], host_name='vm'))
        self.assertEqual(info(self.dir / 'both')['ranks'], 1)
        self.assertNotIn('PyTorch Profiler (0)', run('explain', alone, check=0).out)

    def test_most_of_a_recording_without_an_event_is_named(self):
        """Operators of 8 ms around a minute of nothing; a hole of a third of the recording is not named."""
        for away, told in ((60_000_000, 'of host time, with no event for 60.0 s on end)'), (2_500, '7.47 ms of host time)')):
            events = [x('cpu_op', name, at + 50 * k, 50) for name, at in (('aten::mm', 0), ('aten::relu', 2_500 + away)) for k in range(50)]
            events[-1]['dur'] = 20
            said = ' '.join(run('explain', self.write('rank0.json', kineto(events)), check=0).out.replace('\u202f', ' ').split())
            self.assertIn(told, said)

    def test_gloo_is_no_row_of_zeros_in_the_ledger(self):
        """Communication of the host is not in the tables of the devices', and the answer says so."""
        for r in range(2):
            events = [x('cpu_op', 'c10d::allreduce_', 1_000 * k, 800, 10 + r, 10 + r) for k in range(9)]
            events += [x('user_annotation', 'gloo:all_reduce', 1_000 * k + 50, 700, 10 + r, 11 + r) for k in range(9)]
            self.write(f'gloo/rank{r}.json', kineto(events, distributedInfo={'backend': 'gloo', 'rank': r, 'world_size': 2}))
        said = run('analyze', 'communication', self.dir / 'gloo')
        self.assertEqual(run('analyze', 'communication', self.dir / 'gloo', '--table', 'communication-ranks', '--format', 'csv', '-q').out.count('\n'), 1)
        self.assertIn('communication of gloo or MPI runs on the host', said.out + said.err)

    def test_ranges_that_merely_overlap_lie_in_none(self):
        """Asynchronous ranges: 30 and 30 ms, of which 20 are the same; one of 5 ms lies in the second."""
        ranges = [('first', 0, 30_000), ('second', 10_000, 40_000), ('inner', 32_000, 37_000)]
        for names in (ranges, [(name[::-1], *at) for name, *at in ranges]):
            events = [{'ph': ph, 'cat': 'request', 'name': name, 'id': k, 'pid': 4001, 'tid': 4001, 'ts': at} for k, (name, *ends) in enumerate(names) for ph, at in zip('be', ends)]
            said = run('explain', self.write('async.json', json.dumps({'traceEvents': events})), check=0).out.replace('\u202f', ' ')
            flat = ' '.join(said.split())
            self.assertIn(f'{names[0][0]} (30.0 ms), {names[1][0]} (25.0 ms), {names[2][0]} (5.00 ms)', flat)
            self.assertNotIn('\n\n\n', said)


    def test_a_late_rank_costs_what_each_of_the_others_waits(self):
        step, late = 95_000, 30_000
        for world in (2, 4):
            for wrapped in (False, True):  # a range around the step does not count as work
                for rank in range(world):
                    own, events = late if rank == 1 else 0, []
                    for k in range(5):
                        begin = step * k
                        events += [x('user_annotation', f'ProfilerStep#{k}', begin, step), x('cpu_op', 'aten::mm', begin + own, 60_000)]
                        # The first bucket's calls begin under the work of their ranks, which hides a part of the wait.
                        events += [x('user_annotation', 'gloo:all_reduce', begin + own + at, late - own + 2_000, 9, 60 + at) for at in (45_000, 60_000)]
                        events += [x('user_annotation', 'train_step', begin + 10, step - 20)] if wrapped else []
                    self.write(f'rank{rank}.json', kineto(events, host_name='vm', distributedInfo={'backend': 'gloo', 'rank': rank, 'world_size': world}))
                first = json.loads(run('explain', self.dir, '--format', 'json', '-q', check=0).out)['findings'][0]
                with self.subTest(world=world, wrapped=wrapped):
                    self.assertEqual((first['id'], first['rank'], first['places'][0]['ranks']), ('rank.late', 1, [1]))
                    self.assertAlmostEqual(first['lost_share'], late / step, delta=0.01)


class Pipelines(Case):
    def save(self, ranks, backend):
        for rank, events in enumerate(ranks):
            self.write(f'rank{rank}.pt.trace.json', kineto(events, distributedInfo={'backend': backend, 'rank': rank, 'world_size': len(ranks)}, host_name='vm'))
        return self.dir

    def counts(self, path):
        return {(int(rank), kind): int(n) for rank, kind, n in rows(path, "SELECT rank, kind, count(*) AS n FROM cells WHERE kind IN ('SF', 'RF', 'SB', 'RB') GROUP BY 1, 2")}

    def test_messages_are_those_that_were_sent_and_last_until_they_are_there(self):
        for stages, micro_batches, steps in ((2, 4, 3), (3, 5, 2)):
            ranks, cells = megatron_frames.make(stages=stages, micro_batches=micro_batches, steps=steps)
            path = self.save(ranks, 'gloo')
            want, each = {}, micro_batches * steps
            for rank in range(stages):
                if rank + 1 < stages:
                    want[rank, 'RB'] = each
                if rank > 0:
                    want[rank, 'RF'] = each
            got = self.counts(path)
            self.assertEqual({key: n for key, n in got.items() if key[1] in ('RF', 'RB')}, want)
            self.assertFalse({(0, 'RF'), (0, 'SB'), (stages - 1, 'SF'), (stages - 1, 'RB')} & set(got))
            told = answer(path)
            self.assertEqual([f for f in told['findings'] if f['id'] in ('launch.late', 'start.late')], [])
            self.assertNotIn('Messages were not recorded', json.dumps(told))
            late = [cell for cell in rows(path, "SELECT end_ns FROM cells WHERE kind = 'RF'")]
            arrivals = sorted(round(1000 * c['arrives']) for c in cells if c['kind'] == 'F' and c['arrives'])
            base = min(int(end) for end, in late) - arrivals[0]
            ends = {int(end) - base for end, in late}
            self.assertGreaterEqual(len(ends & set(arrivals)), steps)  # the others were posted after the message had come

    def test_a_rank_whose_receives_still_run_is_not_late(self):
        for stages, micro_batches, after in ((3, 7, 900), (4, 9, 1300)):
            ranks, _ = megatron_frames.make(stages, micro_batches=micro_batches, steps=4, forward=300, backward=400, message=100, rendezvous=after, fused=False)
            told = answer(self.save(ranks, 'gloo'))
            self.assertNotIn('rank.late_launch', {f['id'] for f in told['findings']})
            self.assertNotIn('Its inputs are ready', json.dumps(told))

    def test_the_interleaved_schedule_is_numbered_by_its_order(self):
        for stages, chunks, micro_batches in ((2, 2, 4), (2, 3, 4), (4, 2, 8)):
            for device in (True, False):
                ranks, cells = megatron_frames.make(stages, chunks, micro_batches, steps=3, device=device)
                path = self.save(ranks, 'nccl' if device else 'gloo')
                self.assertIn('cells.numbered.interleaved' if 'cells.numbered.interleaved' in flaws(info(path)) else 'cells.numbered', flaws(info(path)))
                got = rows(path, "SELECT rank, kind, chunk, micro_batch FROM cells WHERE kind IN ('F', 'B') AND step = 1 ORDER BY rank, start_ns")
                want = [(str(c['rank']), c['kind'], str(c['chunk']), str(c['mb'])) for c in sorted(cells, key=lambda c: (c['rank'], c['start'])) if c['step'] == 1]
                self.assertEqual(got, want)
                told = answer(path)
                self.assertEqual([f['title_en'] if 'title_en' in f else f['id'] for f in told['findings'] if f.get('saving_share', 0) > 0.02], [])
                for old in self.dir.glob('rank*'):
                    old.unlink()

    def test_where_nothing_links_cells_no_cause_is_named(self):
        for stages, chunks, micro_batches in ((2, 2, 2), (2, 2, 4)):
            ranks, _ = megatron_frames.make(stages, chunks, micro_batches, steps=3)
            if micro_batches == 4:  # an order that is not Megatron's: two cells have changed places
                frames = [e for e in ranks[0] if 'forward_step' in e['name'] or 'backward_step' in e['name']]
                one, other = next((a, b) for a, b in zip(frames[6:], frames[7:]) if a['name'] != b['name'])
                one['name'], other['name'] = other['name'], one['name']
            path = self.save(ranks, 'gloo')
            self.assertIn('cells.chunk_unknown', flaws(info(path)))
            told = answer(path)
            self.assertIn('micro-batch', told['why_not'])
            self.assertEqual(told['findings'], [])

    def test_equal_stamps_keep_the_file_s_order(self):
        for stages, micro_batches, grain in ((2, 4, 1), (3, 6, 2)):
            for rank in range(stages):
                lines, at = [], 1_795_807_201_000
                for step in range(3):
                    for k, (kind, _, mb) in enumerate(megatron_frames.order(stages, 1, micro_batches, rank)):
                        for phase in 'BE':
                            lines.append(json.dumps({'name': f'{kind}{mb}', 'cat': 'pipeline timeline', 'ph': phase, 'pid': 0, 'tid': rank + 1, 'ts': at}))
                            at += grain if (k % 3 == 2 and phase == 'B') else 0
                    at += 10
                self.write(f'profile_record_tmp_file_for_rank_{rank}', '\n'.join(lines) + '\n')
            self.assertIn('100\u202f% of rank-steps', run('info', self.dir, check=0).out)


    def stamped(self, stages, micro_batches, steps, ms, offsets, seed):
        """Paddle's timestamps of 1F1B in which every cell starts as soon as its input is there: whole ms of clocks that are apart."""
        chance, free = random.Random(seed), [1_795_807_201_000.0] * stages
        lines = [[] for _ in range(stages)]
        for step in range(steps):
            ends, at = {}, [0] * stages
            orders = [megatron_frames.order(stages, 1, micro_batches, rank) for rank in range(stages)]
            while any(at[r] < len(orders[r]) for r in range(stages)):
                for r in range(stages):
                    if at[r] == len(orders[r]):
                        continue
                    kind, _, mb = orders[r][at[r]]
                    peer = r + (-1 if kind == 'F' else 1)
                    if 0 <= peer < stages and (kind, peer, mb) not in ends:
                        continue
                    start = max(free[r], ends.get((kind, peer, mb), 0))
                    free[r] = ends[kind, r, mb] = start + (ms if kind == 'F' else 2 * ms) * chance.uniform(0.95, 1.05)
                    for phase, time in (('B', start), ('E', free[r])):
                        lines[r].append(json.dumps({'name': f'{kind}{mb}', 'cat': 'pipeline timeline', 'ph': phase, 'pid': 0, 'tid': r + 1, 'ts': int(time + offsets[r])}))
                    at[r] += 1
            free = [max(free) + chance.uniform(2, 4)] * stages
        for rank in range(stages):
            self.write(f'profile_record_tmp_file_for_rank_{rank}', '\n'.join(lines[rank]) + '\n')

    def test_clocks_are_known_no_better_than_whole_milliseconds(self):
        for seed, offsets in enumerate(((0, 0.6, 0.3), (0, 40.6, -13.3), (0, -7.5, 0.9))):
            self.stamped(3, 8, 8, 1.3 if seed else 8, offsets, seed)
            told = run('align', self.dir, '--format', 'csv')
            self.assertNotIn('contradict', told.err)
            for rank, row in enumerate(csv.DictReader(io.StringIO(told.out))):
                self.assertLessEqual(abs(float(row['offset_ns']) / 1e6 - offsets[rank]), float(row['offset_half_ns']) / 1e6, (seed, rank))
            self.assertFalse({'host.pauses', 'launch.late', 'start.late', 'rank.late_launch', 'clock.causality'} & {f['id'] for f in answer(self.dir)['findings']}, seed)


class Unread(Case):
    def test_advice_for_torch_is_for_torch_s_traces(self):
        packets = [perfetto.process(1, 100, 'python train.py'), perfetto.thread(2, 100, 100, 'main', parent=1)]
        for k in range(4):
            packets += [perfetto.packet(perfetto.event(perfetto.BEGIN, 2, 'work', 'app'), time=10_000 * k + 1000), perfetto.packet(perfetto.event(perfetto.END, 2), time=10_000 * k + 4000)]
        path = self.dir / 'other.pftrace'
        perfetto.write(path, *packets)
        self.assertNotIn('ProfilerActivity', run('explain', path, check=0).out)
        told = answer(self.write('host.json', kineto([x('user_annotation', f'ProfilerStep#{k}', 1000 * k, 1000) for k in range(3)] + [x('cpu_op', 'aten::mm', 100 + 1000 * k, 500) for k in range(3)])))
        self.assertIn('ProfilerActivity', told['lead_en'])

    def test_a_trace_of_which_nothing_is_known_is_not_called_well(self):
        for names in (('work.f', 'time.sleep'), ('task::compute', 'ray.get')):
            events = [{'ph': 'X', 'name': names[0], 'pid': 1, 'tid': 1, 'ts': 0, 'dur': 3_000}, {'ph': 'X', 'name': names[1], 'pid': 1, 'tid': 1, 'ts': 100, 'dur': 1_000}]
            path = self.write('viztracer.json', json.dumps({'traceEvents': events, 'displayTimeUnit': 'us'}))
            done = run('explain', path, check=0)
            self.assertNotIn('No problem found', done.out)
            self.assertNotIn('ProfilerActivity', done.out)
            self.assertIn(f'{names[0]} (2.00 ms)', ' '.join(done.out.split()))
            self.assertIn('--fail-on', run('explain', path, '--fail-on', '3%', check=2).err)
            self.assertNotIn('No problem found', run('report', path, '-o', self.dir / 'r.html', check=0).out)

    def test_a_report_of_hosts_says_what_explain_says(self):
        events = [e for e in launches(40) if e['cat'] in ('cpu_op', 'user_annotation')]
        said = run('report', self.write('rank0.json', kineto(events)), '-o', self.dir / 'r.html', check=0).out
        self.assertNotIn('No stage, rank, link', said)
        self.assertIn('Devices were not recorded', said)

    def test_an_excerpt_of_xla_says_where_more_is(self):
        events = [{'ph': 'M', 'pid': 7, 'name': 'process_name', 'args': {'name': '/host:CPU'}}]
        events += [{'ph': 'X', 'pid': 7, 'tid': 1, 'ts': 100 * k, 'dur': 80, 'name': 'train', 'args': {'step_num': str(k)}} for k in range(5)]
        path = self.write('vm.trace.json.gz', gzip.compress(json.dumps({'displayTimeUnit': 'ns', 'metadata': {'highres-ticks': True}, 'traceEvents': events}).encode()))
        done = run('explain', path, check=0)
        self.assertIn('xplane.pb', done.err)
        self.assertNotIn('ProfilerActivity', done.out)


class Refusals(Case):
    def test_texts_are_named_with_what_to_type(self):
        deepspeed = '[2026-01-01 10:00:00,045] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 12.16 | bwd_microstep: 20.17 | step_microstep: 1.1\n'
        megatron = ' [2026-01-01 10:00:00] iteration       10/     100 | consumed samples:          640 | elapsed time per iteration (ms): 812.3 | lm loss: 1.0E+01 |\n'
        table = '-----\n Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n-----\n aten::mm  10.0%  1.0ms  20%  2ms  1us  10\n'
        report = 'FIT Profiler Report\n\n|  Action  |  Mean duration (s) |  Num calls |  Total time (s) | Percentage % |\n|  run_training_batch | 0.1 | 10 | 1.0 | 50 |\n'
        for name, text, words in (
                ('train.log', deepspeed, ('DeepSpeed', 'with_stack=True')), ('train.txt', megatron, ('Megatron', 'with_stack=True')),
                ('log.txt', '(min, max) time across ranks (ms):\n    forward-backward ....: (1.0, 2.0)\n    times across ranks (ms):\n', ('Megatron', 'with_stack', 'MEGATRON_OTEL_EXPORT_STRATEGY=all_ranks')),
                ('max.txt', 'max time across ranks (ms):\n    forward-backward ....: 15.13\n', ('Megatron', 'with_stack', 'MEGATRON_OTEL_EXPORT_STRATEGY=all_ranks')),
                ('profile_1_all.jsonl', json.dumps({'iteration': 1, 'elapsed_time_ms': 38.0, 'timer_optimizer_max_ms': 3.2}) + '\n', ('--rl-profile', 'with_stack', 'all_ranks')),
                ('summary_1_all.csv', 'timer_name,mean_ms,std_ms,min_ms,max_ms,p50_ms,p95_ms,p99_ms,count\noptimizer,1,0,1,1,1,1,1,3\n', ('--rl-profile', 'with_stack', 'all_ranks')),
                ('verl.jsonl', json.dumps({'step': 1, 'data': {'timing_s/gen': 39.8, 'timing_s/step': 77.1}}) + '\n', ('verl', 'export_chrome_trace')),
                ('timers.txt', 'time (ms) | forward_step: 12.16 | backward_step: 20.17 | recv_forward: 3.14\n', ('Paddle', 'FLAGS_profile_pipeline_details_steps')),
                ('timeline_run1_raw.log', '2026-11-27 13:10:31,613 - metric_name: forward-compute, elapsed: 0.01, recent_since_start_raw_parts: [1.25], tags: [{}]\n', ('ndtimeline', 'trace_step')),
                ('spans.json', json.dumps({'resourceSpans': [{'resource': {}, 'scopeSpans': []}]}), ('OpenTelemetry',)),
                ('metrics.prom', '# HELP step_seconds time\n# TYPE step_seconds gauge\nstep_seconds 1.2\n', ('Prometheus',)),
                ('fit-profiler.txt', report, ('Lightning', 'profiler="pytorch"')), ('table.txt', table, ('key_averages', 'export_chrome_trace')),
                ('flops.txt', '-------------------------- DeepSpeed Flops Profiler --------------------------\nProfile Summary at step 5:\n', ('flops', 'with_stack')),
                ('stacks.folded', 'main;step;forward 120\nmain;step;backward 240\n', ('folded',)),
                ('raw.txt', 'main (train.py:3);step (train.py:9) 17\nmain (train.py:3);load (data.py:2) 9\nmain (train.py:3) 2\n', ('folded',)),
                ('scalene.json', json.dumps({'elapsed_time_sec': 3.2, 'files': {'a.py': {'lines': [{'n_cpu_percent_c': 1.0}]}}}), ('Scalene',)),
                ('memray-train.bin', b'\x04\x22\x4d\x18\x40\x40\xc0\x40\x00\x00\x00\xf0\x1fmemray\x00\x0c\x00' + bytes(80), ('memray',)),
                ('memray.bin', b'memray\x00\x0c\x00' + bytes(80), ('memray',)),
                ('host_time.paddle_trace.pb', b'\x0a\x051.0.2' + bytes(range(60)), ('Paddle', 'load_profiler_result'))):
            with self.subTest(name=name):
                err = run('explain', self.write(name, text), check=2).err
                for word in words:
                    self.assertIn(word, err)
                self.assertNotIn('lz4 -d', err)
                self.assertNotIn('the readers are', err)

    def test_a_folder_whose_files_lie_deeper_says_where(self):
        for below in ('a/b/c', 'runs/today/3/out'):
            (self.dir / below).mkdir(parents=True)
            self.write(f'{below}/notes.txt', 'x')
            self.assertIn(str(self.dir / below), run('info', self.dir, check=2).err)
            (self.dir / below / 'notes.txt').unlink()


class Reports(Case):
    def test_a_report_of_runs_on_clocks_that_nothing_ties(self):
        for offset in (3_600_000, 86_400_000 * 7):
            for rank, shift in ((0, 0), (1, offset)):
                lines = [json.dumps({'name': f'F{mb}', 'cat': 'pipeline timeline', 'ph': phase, 'pid': 0, 'tid': rank + 1, 'ts': 1_795_807_201_000 + shift + 20 * (mb + rank) + (15 if phase == 'E' else 0)})
                         for mb in range(4) for phase in 'BE']
                self.write(f'profile_record_tmp_file_for_rank_{rank}', '\n'.join(lines) + '\n')
            command = run('explain', self.dir, check=0).out.strip().splitlines()[-1]
            self.assertIn('stageline report', command)
            done = run('report', self.dir, '-o', self.dir / 'r.html', check=0)
            self.assertTrue((self.dir / 'r.html').stat().st_size > 10_000)
            (self.dir / 'r.html').unlink()


class SameRows(Case):
    def test_two_recordings_with_other_base_times_are_no_copies(self):
        for apart in (5_000_000_000, 60_000_000_000):
            for k in (0, 1):
                trace = json.loads(kineto(launches(), distributedInfo={'backend': 'nccl', 'rank': 0, 'world_size': 1}))
                trace['baseTimeNanoseconds'] += k * apart
                self.write(f'rank0.{k}.pt.trace.json', json.dumps(trace))
            told = info(self.dir)
            self.assertNotIn('kineto.same_file_twice', flaws(told))
            self.assertEqual(told['slices_by_kind']['kernels'], 80)


if __name__ == '__main__':
    unittest.main()
