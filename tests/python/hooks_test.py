"""Frameworks under `stageline record`, with stand-ins that have the field's names: what becomes of their pipelines."""
import unittest

from recorded import STAND_IN, Recorded, info, launch_ranks, needs_extension, run


def kinds(cells, *wanted):
    return [c for c in cells if c.strip('-0123456789') in wanted]


@needs_extension
class Hooks(Recorded):
    def train(self, code, ranks=1, check=0, flags=(), **env):
        program = launch_ranks(code, ranks, **env) if ranks > 1 else code
        more = {} if ranks > 1 else {'RANK': '0', 'WORLD_SIZE': '1', 'PADDLE_TRAINER_ID': '0', 'PADDLE_TRAINERS_NUM': '1'}
        return self.record('python3', '-c', program, check=check, flags=flags, env={'PYTHONPATH': str(STAND_IN), **more, **env})

    def schedule(self):
        report = info(self.out)
        self.assertEqual([d['name'] for d in report['diagnostics'] if d['severity'] != 'info'], [])
        return report['schedule']['name'] if isinstance(report['schedule'], dict) else report['schedule']

    def test_torch_1f1b(self):
        done = self.train('''
import os, sys
from torch.distributed import pipelining
from torch.optim import Optimizer
rank = int(os.environ['RANK'])
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(rank, 4, rank, 4), 6)
optimizer = Optimizer()
optimizer.step()                 # before the first step: of nobody
for _ in range(3):
    plan.step()
    optimizer.step()
plan.eval()
''', 4)
        self.assertIn('4 ranks, 156 jobs in 3 steps, none dropped', done.stderr)
        cells = self.cells()
        self.assertEqual(cells[3][:4], ['0F0', '0B0', '0F1', '0B1'])
        self.assertEqual(cells[0][:5], ['0F0', '0F1', '0F2', '0F3', '0B0'])
        self.assertEqual(len(kinds(cells[0], 'F')), 18)
        self.assertEqual(len(kinds(cells[0], 'O')), 3)
        self.assertIn('1f1b', str(self.schedule()).lower())

    def test_torch_waits_for_the_batches_of_a_pipeline(self):
        self.train('''
import os
from torch.distributed import pipelining
from torch.utils.data import DataLoader
rank = int(os.environ['RANK'])
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(rank, 2, rank, 2), 3)
for _ in DataLoader(4):
    plan.step()
for _ in DataLoader(2):
    plan.eval()
plan.step()
''', 2)
        counted = run('sql', self.out, "select rank, count(*) n from cells where kind = 'other' group by 1", '--format', 'csv', check=0)
        self.assertEqual(counted.out.split()[-2:], ['0,4', '1,4'])

    def test_torch_fsdp2_forward_is_the_roots(self):
        self.train('''
from torch.distributed.fsdp._fully_shard import _fsdp_state as fsdp
import torch.autograd
from stageline import record
from torch.optim import Optimizer

def block():
    record.push('block')
    record.pop()

model = fsdp.wrap(fsdp.wrap(block), fsdp.wrap(block))
optimizer = Optimizer()
for _ in range(2):
    model()
    torch.autograd.backward(None)
    optimizer.step()
''')
        self.assertEqual(kinds(self.cells()[0], 'F'), ['0F0', '0F0'])
        outside = run('sql', self.out, "select count(*) n from slices s where s.name = 'block' and not exists "
                      "(select 1 from cells c where c.kind = 'F' and c.start_ns <= s.start_ns and s.end_ns <= c.end_ns)", '--format', 'csv', check=0)
        self.assertEqual(outside.out.split()[-1], '0')

    def test_torch_interleaved_and_replicas(self):
        self.train('''
import os, sys
from torch.distributed import pipelining
rank = int(os.environ['RANK']) // 2  # two replicas, which turn faster
stages = [pipelining.PipelineStage(rank + 2 * c, 4, rank, 2) for c in range(2)]
plan = pipelining.ScheduleInterleaved1F1B(stages, 4)
for _ in range(2):
    plan.step()
''', 4, PP='2')
        cells = self.cells()
        self.assertEqual(cells[0], cells[1])
        self.assertEqual(cells[2][:5], ['0F0', '0F1', '1F0', '1B0', '1F1'])
        report = info(self.out)
        self.assertEqual([report['stages'], report['replicas'] if 'replicas' in report else 2], [2, 2])

    def test_torch_halves_of_backwards_and_a_v(self):
        self.train('''
from torch.distributed import pipelining
stages = [pipelining.PipelineStage(i, 4, 0, 2) for i in (0, 3)]
for s in stages:
    s.stage_index_to_group_rank = {0: 0, 1: 1, 2: 1, 3: 0}
pipelining.schedules.ScheduleSplit(stages, 1).step()
''')
        self.assertEqual(self.cells()[0], ['0F0', '1F0', '1I0', '1W0', '0B0'])

    def test_steps(self):
        self.train('''
from torch.distributed import pipelining
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(0, 1, 0, 1), 2)
for _ in range(6):
    plan.step()
''', flags=['--steps', '2:3'])
        self.assertEqual(len(self.cells()[0]), 8)
        self.assertEqual(info(self.out)['steps'], 2)

    def test_the_programs_own_steps_go_first(self):
        self.train('''
from stageline import record
from torch.distributed import pipelining
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(0, 1, 0, 1), 2)
record.init()
for number in (100, 200):
    record.step(number)
    plan.step()
''')
        self.assertEqual(sorted(self.cells('--steps', '200')[0]), ['0B0', '0B1', '0F0', '0F1'])

    def test_a_recording_that_others_began_learns_its_stages(self):
        self.train('''
import os
from stageline import record
record.init()
from torch.distributed import pipelining
rank = int(os.environ['RANK'])
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(rank, 2, rank, 2), 3)
for _ in range(2):
    plan.step()
''', 2)
        report = info(self.out)
        self.assertEqual([report['stages'], report['steps']], [2, 2])
        self.assertEqual(self.cells()[1][:4], ['0F0', '0B0', '0F1', '0B1'])

    def test_what_fails_in_the_program_fails_as_it_would(self):
        done = self.train('''
from torch.distributed import pipelining
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(0, 1, 0, 1), 2)
try:
    plan.step('fail')
except ValueError as error:
    print('caught', error)
try:
    plan._stage.forward_one_chunk()
except TypeError as error:
    print(error)
plan.step()
''')
        self.assertIn('caught forward failed', done.stdout)
        self.assertIn("missing 2 required positional arguments: 'fwd_chunk_id' and 'args'", done.stdout)
        self.assertEqual(len(self.cells()[0]), 5)  # the forward that failed, too

    def test_a_framework_that_is_not_as_known(self):
        (self.dir / 'torch/distributed/pipelining').mkdir(parents=True)
        for name in ('torch', 'torch/distributed', 'torch/distributed/pipelining'):
            (self.dir / name / '__init__.py').write_text('')
        (self.dir / 'torch/distributed/pipelining/stage.py').write_text('other = 1\n')
        done = self.record('python3', '-c', 'import torch.distributed.pipelining.stage as s; print(s.other, s.__spec__.loader, s.__loader__)',
                           env={'PYTHONPATH': str(self.dir)})
        self.assertIn('torch.distributed.pipelining.stage is not recorded: AttributeError', done.stderr)
        self.assertTrue(done.stdout.startswith('1 <_frozen_importlib_external.SourceFileLoader'), done.stdout)

    def test_megatron(self):
        self.train('''
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
run = get_forward_backward_func()
for _ in range(2):
    run(forward_step_func=None, data_iterator=None, model=[None], num_microbatches=6)
run(forward_step_func=None, data_iterator=None, model=[None], num_microbatches=6, forward_only=True)
''', 4)
        cells = self.cells()
        self.assertEqual(kinds(cells[2], 'F', 'B')[:6], ['0F0', '0F1', '0B0', '0F2', '0B1', '0F3'])
        # The ends of the pipeline call the functions too, and neither send nor receive there.
        self.assertEqual([len(kinds(cells[0], k)) for k in ('F', 'B', 'RF', 'SF', 'RB', 'SB')], [12, 12, 0, 6, 6, 0])
        self.assertEqual([len(kinds(cells[3], k)) for k in ('F', 'B', 'RF', 'SF', 'RB', 'SB')], [12, 12, 12, 0, 0, 0])
        self.assertEqual(kinds(cells[0], 'SF'), ['0SF3', '0SF4', '0SF5'] * 2)  # both halves of a combined call, each with what it sends
        self.assertEqual(kinds(cells[1], 'SB'), ['0SB4', '0SB5'] * 2)
        self.assertIn('1f1b', str(self.schedule()).lower())

    def test_megatron_combined_steps(self):
        self.train('''
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
get_forward_backward_func(pipeline=False)(forward_step_func=None, data_iterator=None, model=object(), num_microbatches=3, combined=True)
''')
        self.assertEqual(self.cells()[0], ['0F0', '0F&B1', '0F&B2', '0B2'])

    def test_megatron_sends_and_receives_both_ways_at_once(self):
        self.train('''
import megatron.core.pipeline_parallel.schedules as schedules
from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator
def both(output, rank):
    for gradient, previous, following in ((schedules.Tensor(), True, True), (None, False, True), (None, False, False)):
        P2PCommunicator().send_forward_backward_recv_forward_backward(output, gradient, previous, following, None)
        output = None
plain = schedules.forward_step
def step(*args, **kwargs):
    output = plain(*args, **kwargs)
    both(output[0], 1)
    return output
schedules.forward_step = step
schedules.forward_backward_no_pipelining(forward_step_func=None, data_iterator=None, model=[None], num_microbatches=2)
''', 4)
        messages = kinds(self.cells()[1], 'RF', 'RB', 'SF', 'SB')
        self.assertEqual(sorted(m for m in messages if 'SF' in m), ['0SF0', '0SF1'])
        self.assertEqual([len([m for m in messages if kind in m]) for kind in ('RF', 'RB', 'SB')], [2, 4, 2])

    def test_megatron_chunks_by_either_way_and_no_pipeline(self):
        self.train('''
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
get_forward_backward_func(virtual=True)(forward_step_func=None, data_iterator=None, model=[None, None], num_microbatches=2)
get_forward_backward_func(pipeline=False)(forward_step_func=None, data_iterator=None, model=[None], num_microbatches=2)
''')
        self.assertEqual(self.cells()[0], ['0F0', '0F1', '1F0', '1F1', '1B0', '1B1', '0B0', '0B1', '0F0', '0B0', '0F1', '0B1'])

    def test_mindspeed_dualpipev(self):
        self.train('''
from mindspeed.core.pipeline_parallel.dualpipev import dualpipev_schedules
dualpipev_schedules.forward_backward_pipelining_with_cutinhalf(forward_step_func=None, data_iterator=None, model=[None, None],
                                                               num_microbatches=4)
''')
        cells = self.cells()[0]
        self.assertEqual([c for c in cells if not c.startswith(('W', '-1W', '0W'))], ['0F0', '1F0', '0F&B1', '1B0', '0B0'])
        self.assertEqual(len(cells), 6)  # and one W: the empty pop is none

    def test_deepspeed(self):
        self.train('''
from deepspeed.runtime.pipe.engine import PipelineEngine
engine = PipelineEngine(6)
for _ in range(2):
    engine.train_batch()
''', 4)
        cells = self.cells()
        self.assertEqual(kinds(cells[1], 'F', 'B')[:6], ['0F0', '0F1', '0F2', '0B0', '0F3', '0B1'])
        self.assertEqual(len(kinds(cells[1], 'O')), 2)
        self.assertEqual(kinds(cells[3], 'RB'), [f'0RB{i}' for i in range(6)] * 2)
        self.assertIn('1f1b', str(self.schedule()).lower())

    def test_paddle(self):
        self.train('''
from paddle.distributed.fleet.meta_parallel.pipeline_parallel import PipelineParallel
engine = PipelineParallel(6)
for _ in range(2):
    engine.train_batch(None)
    engine.eval_batch(None)
''', 4)
        cells = self.cells()
        self.assertEqual(len(cells[0]), 24)
        self.assertEqual(cells[3][:4], ['0F0', '0B0', '0F1', '0B1'])
        self.assertIn('1f1b', str(self.schedule()).lower())

    def test_paddle_chunks(self):
        self.train('''
from paddle.distributed.fleet.meta_parallel.pipeline_parallel import PipelineParallelWithInterleaveFthenB
PipelineParallelWithInterleaveFthenB(2, chunks=2).train_batch(None)
''')
        self.assertEqual(self.cells()[0], ['0F0', '0F1', '1F0', '1F1', '1B0', '1B1', '0B0', '0B1'])

    def test_training_without_a_pipeline(self):
        self.train('''
import gc, weakref
import torch, torch.autograd
from torch import distributed
from torch.distributed.distributed_c10d import Tensor
from torch.nn.parallel.distributed import DistributedDataParallel
from torch.optim import Optimizer
from torch.utils.data import DataLoader
model, first, second = DistributedDataParallel(lambda x: x), Optimizer(), Optimizer()
distributed.all_reduce(Tensor())              # before training: of nobody
for _ in DataLoader(2):
    pass
def evaluate():
    model.training = False
    with torch.no_grad():
        for x in DataLoader(3):
            model(x)
    model.training = True
for number, x in enumerate(DataLoader(4)):    # two micro-batches a step
    model.require_backward_grad_sync = number % 2 == 1
    model(x)
    torch.autograd.backward(x)
    if number % 2 == 1:
        work = distributed.all_reduce(Tensor(), async_op=True)
        work.wait()
        distributed.all_reduce(Tensor())
        left = weakref.ref(distributed.all_reduce(Tensor(), async_op=True))  # nobody waits for it, and nobody keeps it
        gc.collect()
        assert left() is None
        first.step()
        second.step()
        evaluate()
''', 2)
        cells = self.cells()
        # DDP's own lies in the second backward: on a lane of its own, and on the thread what was waited for it.
        step = ['0F0', '0B0', '0F1', '0B1', '0C1', '0C1', '0C2', '0C2', '0C2', '0C2', 'O', 'O']
        # Waits for data: two before training, four of it; those of the evaluations are of no step.
        waits = 4 * ['0other0'] + 2 * ['0other1']
        for rank in range(2):
            self.assertEqual(sorted(cells[rank]), sorted(2 * step + waits))
        counted = run('sql', self.out, "select count(*) n from slices where name = 'data wait' and rank = 0", '--format', 'csv', check=0)
        self.assertEqual(counted.out.split()[-1], '6')
        report = info(self.out)
        self.assertEqual([report['steps'], report['stages']], [2, 1])

    def test_forked_workers_and_spawned_ones_write_no_files(self):
        self.train('''
import multiprocessing, os
from torch.distributed import pipelining
from stageline import record
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(0, 1, 0, 1), 2)

def work(n):
    with record.job('F', n):
        record.push('x')
        record.pop()
    return record.recording()

if __name__ == '__main__':
    plan.step()
    for way in ('fork', 'forkserver'):
        context = multiprocessing.get_context(way)
        child = context.Process(target=work, args=(1,)) if way == 'fork' else context.Process(target=os.getpid)
        child.start()
        child.join()
        assert child.exitcode == 0, way
    plan.step()
''')
        self.assertEqual(len(list(self.out.iterdir())), 1)
        self.assertEqual(len(self.cells()[0]), 8)


if __name__ == '__main__':
    unittest.main()
