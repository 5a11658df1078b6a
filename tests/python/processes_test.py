"""Python programs that fork, spawn, exec and end in mid-training under `stageline record`: they end as they would, and each process has its own file."""
import signal
import subprocess
import sys
import unittest

from recorded import BIN, STAND_IN, Recorded, clean_environment, info, needs_extension

PLAN = '''
import multiprocessing, os, signal, subprocess, sys, threading, time
from torch.distributed import pipelining
def train(steps):
    plan = pipelining.Schedule1F1B(pipelining.PipelineStage(0, 1, 0, 1), 2)
    for _ in range(steps):
        plan.step()
'''
ALONE = {'RANK': '0', 'WORLD_SIZE': '1', 'PYTHONPATH': str(STAND_IN)}


@needs_extension
class Processes(Recorded):
    def train(self, code, check=0, name='job.py'):
        return self.record('python3', self.write(name, PLAN + code), check=check, env=ALONE)

    def files(self, ending='.slrec'):
        return sorted(p for p in self.out.iterdir() if p.name.endswith(ending))

    def steps_of(self, path):
        return info(path)['steps']

    def test_children_that_train_have_files_of_their_own(self):
        self.train('''
def child():
    os.environ['RANK'] = '1'
    train(5)
if __name__ == '__main__':
    train(2)
    for way in ('fork', 'spawn', 'forkserver'):
        process = multiprocessing.get_context(way).Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0, way
    train(1)
''')
        self.assertEqual(sorted(self.steps_of(f) for f in self.files()), [3, 5, 5, 5])
        # multiprocessing ends what it forked with os._exit: their last records lie in hot files, where they are read.
        self.assertEqual(len(self.files('.slhot')), 2)

    def test_children_that_do_not_train_have_none_while_threads_record(self):
        done = self.train('''
stop = threading.Event()
def record_on():
    from stageline import record
    while not stop.is_set():
        for _ in range(10):
            with record.range('thread'):
                pass
        time.sleep(0.001)
train(1)
threads = [threading.Thread(target=record_on) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(20):
    child = os.fork()
    if child == 0:
        if i % 2:
            os._exit(i)
        raise SystemExit(i)          # with everything that Python and the recorder do at exit
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == i
    assert subprocess.run([sys.executable, '-c', f'raise SystemExit({i})']).returncode == i
    child = os.posix_spawn('/bin/sh', ['sh', '-c', f'exit {i}'], os.environ)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == i
stop.set()
for thread in threads:
    thread.join()
train(1)
''')
        self.assertIn('none dropped', done.stderr)
        self.assertEqual(len(self.files()), 1)
        self.assertEqual([d['name'] for d in info(self.out)['diagnostics'] if d['severity'] != 'info'], [])
        self.assertEqual(len(self.cells()[0]), 8)

    def test_every_end_is_the_programs_own_and_keeps_what_was_recorded(self):
        for end, code in (('raise SystemExit(3)', 3), ('os._exit(4)', 4), ('1 / 0', 1), ('os.abort()', -signal.SIGABRT),
                          ('os.kill(os.getpid(), signal.SIGTERM)', -signal.SIGTERM), ('os.kill(os.getpid(), signal.SIGKILL)', -signal.SIGKILL),
                          ('threading.Thread(target=lambda: time.sleep(60), daemon=True).start(); sys.exit(5)', 5),
                          ('threading.Thread(target=train, args=(10**9,), daemon=True).start(); time.sleep(0.05); sys.exit(6)', 6)):
            self.out = self.dir / f'rec{code}'
            self.train(f'train(3)\n{end}\n', check=code)
            self.assertGreaterEqual(self.steps_of(self.out), 3, end)

    def test_programs_end_as_they_would_while_all_of_the_recorder_is_at_work(self):
        # Threads record, flush, begin and end recordings while the interpreter is taken down around them; what is left
        # is recorded by what Python runs last. No thread is joined, and the writer is woken a thousand times a second.
        busy = '''
import atexit, random, weakref
from stageline import record
class Late:
    def __init__(self):
        self.range = record.range('late').begin()
        self.me = self
    def __del__(self):
        self.range.end()
        with record.job('F', 1, 0):
            record.mark('late')
lates = [Late() for _ in range(100)]
weakref.finalize(lates[0], record.flush, 100)
atexit.register(record.flush, 1)
def record_on():
    while True:
        with record.range('thread'):
            record.counter('n', 1.0)
def flush_on():
    while True:
        record.flush(50)
def begin_and_end():
    while True:
        record.shutdown()
        record.init(quiet=True)
def name_on():
    for i in range(10**9):
        record.lane(name=f'lane {i % 50}')
        record.push(f'name {i % 5000}')
        record.pop()
train(2)
for work in (record_on, record_on, flush_on, name_on) + MORE:
    threading.Thread(target=work, daemon=True).start()
time.sleep(random.random() * 0.02)
'''
        ends = (('pass', 0), ('sys.exit(3)', 3), ('1 / 0', 1), ('os._exit(4)', 4), ('record.shutdown(); sys.exit(5)', 5),
                ('os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)', -signal.SIGTERM),
                ('signal.signal(signal.SIGTERM, lambda *_: sys.exit(6)); os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)', 6),
                ('threading.Thread(target=train, args=(2,)).start()', 0), ('os.fork() or sys.exit(8); os.wait(); sys.exit(7)', 7))
        for number, (end, code) in enumerate(end for end in ends for _ in range(2)):
            for more in ('()', '(begin_and_end,)'):
                self.out = self.dir / f'busy{number}{more}'
                program = self.write('busy.py', PLAN + busy.replace('MORE', more) + end + '\n')
                done = self.record(sys.executable, program, check=None, env={**ALONE, 'STAGELINE_FLUSH_MS': '1'})
                self.assertEqual(done.returncode, code, f'{end}: {done.stderr[-2000:]}')
                self.assertNotIn('Fatal', done.stderr)

    def test_a_launcher_that_ends_its_ranks_in_mid_training(self):
        job = self.write('job.py', PLAN + '''
train(3)
print('ready', flush=True)
while True:
    train(1)
''')
        child = subprocess.Popen([BIN, 'record', '-o', self.out, '--', sys.executable, job], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=clean_environment(**ALONE), cwd=self.dir)
        self.assertEqual(child.stdout.readline(), b'ready\n')
        child.send_signal(signal.SIGTERM)
        said = child.communicate(timeout=600)[1].decode()
        self.assertEqual(child.returncode, -signal.SIGTERM, said)
        self.assertIn('none dropped', said)
        self.assertGreaterEqual(self.steps_of(self.out), 3)


if __name__ == '__main__':
    unittest.main()
