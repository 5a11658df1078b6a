"""stageline.record in a program: what is kept of each call, what is refused, and what happens in threads, coroutines, children."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

import slrec
from recorded import EXTENSION, PACKAGE, Recorded, clean_environment, flaws, info, needs_extension

BEGIN = 'from stageline import record\nassert record.init(), record.why_not()\n'


@needs_extension
class Record(Recorded):
    def rows(self):
        return [row for path in sorted(self.out.glob('*.slrec')) for row in slrec.rows(path)]

    def names(self):
        return [row.name for row in self.rows() if row.type == 'range']

    def test_every_kind_of_call(self):
        self.python(BEGIN + '''
record.step(7)
with record.job('F', micro_batch=3, chunk=1):
    pass
with record.job('B', 3, 1) as job:
    job.switch('W', mb=3, chunk=1)
record.push('load')
record.push('decode')
record.pop()
record.pop()
with record.range('outer'):
    with record.range('inner'):
        pass
handle = record.job('SF', 4, peer=2, bytes=1 << 40, sequence=5, stage=0, name='to 2').begin()
handle.end()
record.mark('an instant')
record.counter('loss', 2.5)
record.flush()
stats = record.stats()
assert stats['recording'] and stats['drops'] == 0, stats
''')
        self.assertEqual(self.cells(), {0: ['1F3', '1B3', '1W3', 'SF4']})
        self.assertEqual(self.names(), ['', '', '', 'decode', 'load', 'inner', 'outer', 'to 2'])
        others = [(row.type, row.name, row.value) for row in self.rows() if row.type != 'range']
        self.assertEqual(others, [('step', '', 7), ('mark', 'an instant', None), ('counter', 'loss', 2.5)])
        self.assertEqual({row.step for row in self.rows()}, {7})

    def test_off_everything_does_nothing(self):
        done = self.python('''
from stageline import record
with record.job('F', 1):
    record.push('a'); record.pop(); record.mark('m'); record.counter('c', 1); record.step(1)
assert not record.recording() and 'init' in record.why_not(), record.why_not()
assert record.path() == '' and record.flush()
@record.annotate
def f(): return 5
assert f() == 5
record.shutdown()
''')
        self.assertEqual(done.stderr, '')
        self.assertFalse(self.out.exists())

    def test_wrong_arguments_say_what_is_right(self):
        done = self.python(BEGIN + '''
for call in (lambda: record.job('X'), lambda: record.job(), lambda: record.job('F', 'three'), lambda: record.job('F', colour=1),
             lambda: record.job('F', 1, 2, 3, 4, 5), lambda: record.push(), lambda: record.push(2.5), lambda: record.lane(object()),
             lambda: record.job('F', stream='s'), lambda: record.counter('c', 'x'), lambda: record.annotate(kind='Z')(print),
             lambda: record.range(), lambda: record.push([]), lambda: record.job('F', 1, 0, -1)):
    try:
        call()
        print('nothing')
    except Exception as error:
        print(type(error).__name__, error)
''')
        lines = done.stdout.splitlines()
        self.assertNotIn('nothing', lines)
        self.assertIn("ValueError no kind of job 'X'; kinds: F, B, I, W", lines[0])
        self.assertIn("TypeError micro_batch is a whole number or None, not 'three'", lines[2])
        self.assertIn("job() has no argument 'colour'", lines[3])
        self.assertIn('no stream of torch, torch_npu, Paddle or CuPy', lines[7])

    def test_odd_values_are_kept_as_well_as_they_can_be(self):
        self.python(BEGIN + r'''
class Index:
    def __index__(self): return 5
with record.job('F', Index(), None): pass
with record.job('F', -7, 1 << 40): pass
record.push('\ud800 half'); record.pop()
record.push('x' * 5000); record.pop()
record.push(''); record.pop()
record.pop()
record.push(record.intern('interned')); record.pop()
''')
        self.assertEqual([c[-1] for c in self.cells()[0]][0], '5')
        self.assertIn('? half', self.names())
        self.assertIn('interned', self.names())
        self.assertEqual(sorted(flaws(info(self.out))), ['recording.bad_handle', 'recording.no_steps', 'recording.rank_unknown'])

    def test_exceptions_go_on_and_end_their_ranges(self):
        self.python(BEGIN + '''
import time
@record.annotate('wrapped')
def fails():
    raise KeyError('x')
for body in (fails, lambda: record.job('F', 1).__enter__().no_such):
    try:
        with record.range('around'):
            body()
    except (KeyError, AttributeError):
        pass
time.sleep(0.05)
''')
        self.assertEqual(self.names().count('around'), 2)
        self.assertEqual(self.names().count('wrapped'), 1)
        # job('F') was begun by hand, and was not ended.
        self.assertEqual([row.type for row in self.rows() if row.kind], [])

    def test_decorators_of_every_kind_of_function(self):
        done = self.python(BEGIN + '''
import asyncio, time
@record.annotate
def plain(a, b=2):
    "doc"
    return a + b
@record.annotate('gen')
def values():
    yield 1
    got = yield 2
    return got
@record.annotate('co')
async def co():
    await asyncio.sleep(0.01)
    return 3
@record.annotate('agen')
async def agen():
    yield 4
class C:
    @record.annotate(kind='F', chunk=0)
    def step(self): return 5
async def main():
    print(await co(), [v async for v in agen()])
print(plain(1), plain.__doc__, list(values()), C().step())
asyncio.run(main())
''')
        self.assertEqual(done.stdout.split('\n')[:2], ['3 doc [1, 2] 5', '3 [4]'])
        for name in ('plain', 'gen', 'co', 'agen'):
            self.assertIn(name, self.names())

    def test_coroutines_that_overlap(self):
        self.python(BEGIN + '''
import asyncio
async def one(name, seconds):
    with record.range(name):
        await asyncio.sleep(seconds)
async def main():
    await asyncio.gather(one('long', 0.2), one('short', 0.05))
asyncio.run(main())
''')
        rows = {row.name: row for row in self.rows()}
        self.assertLess(rows['long'].start_ns, rows['short'].start_ns)
        self.assertGreater(rows['long'].start_ns + rows['long'].dur_ns, rows['short'].start_ns + rows['short'].dur_ns)
        self.assertGreater(rows['short'].dur_ns, 49e6)

    def test_threads_have_lanes_of_their_own(self):
        self.python(BEGIN + '''
import threading
shared = record.range('shared')
def work(n):
    record.name_thread(f'worker {n}')
    for _ in range(200):
        with shared:
            record.push('p')
            record.pop()
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
''')
        names = self.names()
        self.assertEqual([names.count('shared'), names.count('p')], [1600, 1600])
        lanes = {row.lane for row in self.rows() if row.name == 'shared'}
        self.assertEqual(len(lanes), 8)

    def test_a_range_entered_again_while_open(self):
        self.python(BEGIN + '''
again = record.range('again')
def down(n):
    with again:
        if n: down(n - 1)
down(9)
again.end(); again.end()
''')
        self.assertEqual(self.names().count('again'), 10)

    def test_forked_children_record_nothing_and_disturb_nothing(self):
        self.python(BEGIN + '''
import os
with record.range('parent'):
    child = os.fork()
    if child == 0:
        with record.job('F', 1):
            record.push('child'); record.pop()
        os._exit(3 if record.recording() else 0)
    assert os.waitpid(child, 0)[1] == 0
with record.range('after'): pass
''')
        self.assertEqual(self.names(), ['parent', 'after'])

    def test_forked_children_that_are_asked_to(self):
        self.python(BEGIN + '''
import os
child = os.fork()
if child == 0:
    with record.job('F', 1): pass
    record.shutdown()
    os._exit(0)
os.waitpid(child, 0)
''', env={'STAGELINE_FORK': '1'})
        self.assertEqual(len(list(self.out.glob('*.slrec'))), 2)

    def test_what_ends_a_program(self):
        for end, code in (('sys.exit(3)', 3), ('os._exit(4)', 4), ('raise SystemError', 1), ('os.kill(os.getpid(), 9)', -9)):
            self.out = self.dir / re.sub(r'\W', '_', end)
            self.python(BEGIN + f'import os, sys\nwith record.job("F", 1): pass\n{end}', check=code)
            self.assertEqual(len(self.cells()[0 if 0 in self.cells() else -1]), 1, end)

    def test_where_nothing_can_be_recorded(self):
        blocked = self.write('file', '')
        done = self.python('from stageline import record\nprint(record.init(), record.why_not())\nprint(record.init(quiet=True))',
                           env={'STAGELINE_DIR': str(blocked / 'below')})
        self.assertEqual(done.stdout.split()[0], 'False')
        self.assertIn('file/below: its folder cannot be made or written', done.stdout)
        self.assertEqual(done.stderr.count('stageline: not recording'), 1)
        done = self.python('from stageline import record\nprint(record.init(), record.why_not())', env={'STAGELINE_OFF': '1'})
        self.assertEqual([done.stdout, done.stderr], ['False STAGELINE_OFF=1 is set\n', ''])
        done = self.python('from stageline import record\nwith record.job("F"): pass\nprint(record.init(), record.why_not())',
                           env={'STAGELINE_RECORD_LIBRARY': str(blocked)})
        self.assertIn('file', done.stdout)
        self.assertTrue(done.stdout.startswith('False'))

    def test_without_the_extension(self):
        bare = self.dir / 'bare' / 'stageline_record'
        bare.mkdir(parents=True)
        for part in (PACKAGE / 'stageline_record').glob('*.py'):
            (bare / part.name).symlink_to(part.resolve())
        (bare.parent / 'stageline').symlink_to((PACKAGE / 'stageline').resolve())
        done = self.python('''
from stageline import hooks, record
hooks.install()
with record.job('F', 1, 0, stage=2) as job:
    job.switch('B', 1)
record.push('a'); record.pop(); record.step(1); record.window(0, 1)
@record.annotate(kind='F')
def f(): return 1
print(f(), record.lane(name='x'), record.init(), record.stats()['recording'], record.why_not())
''', path=(bare.parent,))
        self.assertIn('1 0 False False the extension stageline_record._record is not there', done.stdout)

    def test_rank_and_place(self):
        self.python('''
from stageline import record
record.init(rank=3, world=8, stage=1, dp_rank=1, pp=2, tp=2, dp=2)
with record.job('F', 0): pass
''')
        self.assertEqual(list(self.cells()), [3])
        self.assertIn('.r00003.', os.listdir(self.out)[0])

    def test_paddles_window(self):
        """Every pattern of use that differs in Paddle: each profiles what was asked for."""
        for inside in (True, False):
            for start, end, stop, resumed, kept in ((3, 6, True, 0, [3, 4, 5]), (0, 1, True, 0, [0]), (3, 6, False, 0, [3, 4, 5]),
                                                    (8, 20, True, 0, [8, 9]), (3, 6, True, 8, []), (5, 5, True, 0, [])):
                self.out = self.dir / f'{inside}{start}{end}{stop}{resumed}'
                done = self.python(f'''
from stageline import record
for i in range({resumed}, 10):
    with record.job_schedule_profiler_range(i, {start}, {end}, {stop}) as profiled:
        assert profiled == ({start} <= i < {end})
        if {inside}:
            with record.job('F', i): pass
    if not {inside}:
        with record.job('F', i): pass
    last = i
print('went on')
''')
                self.assertEqual([row.micro_batch for row in self.rows() if row.kind], kept)
                self.assertEqual('went on' in done.stdout, not stop or end > 9 or start >= end)
        self.python('''
from stageline import record
for i in range(4):
    with record.job_schedule_profiler_range(i, 1, 3):
        if i == 2: raise ValueError('not masked')
''', check=1)

    def test_torchruns_name_of_every_run_is_none(self):
        for said, kept in (({'TORCHELASTIC_RUN_ID': 'none'}, None), ({'TORCHELASTIC_RUN_ID': 'none', 'SLURM_JOB_ID': '42'}, b'"job":"42"'),
                           ({'TORCHELASTIC_RUN_ID': 'mine', 'SLURM_JOB_ID': '42'}, b'"job":"mine"')):
            self.out = self.dir / ''.join(said.values())
            self.python(BEGIN + 'with record.job("F", 1): pass', env=said)
            data = next(self.out.glob('*.slrec')).read_bytes()
            self.assertTrue(kept in data if kept else b'"job"' not in data, said)

    def test_steps_that_are_wanted(self):
        for said, kept in (('2:3', [2, 3]), ('3:', [0, 1, 2, 3, 4]), ('x', [0, 1, 2, 3, 4]), ('3:2', [0, 1, 2, 3, 4]), ('4:99999999999', [4])):
            self.out = self.dir / said.replace(':', '-')
            done = self.python(BEGIN + 'for i in range(5):\n  record.step(i)\n  with record.job("F", i): pass', env={'STAGELINE_STEPS': said})
            self.assertEqual('all steps are recorded' in done.stderr, len(kept) == 5, said)
            self.assertEqual([row.micro_batch for row in self.rows() if row.kind], kept, said)

    def test_lanes_of_streams(self):
        self.python(BEGIN + '''
class Torch: cuda_stream = 0x7f00
class Npu: npu_stream = 5
class Paddle:
    class stream_base: raw_stream = 9
assert record.lane(Torch()) == record.lane(Torch()) != record.lane(Npu())
own = record.lane(name='queue')
with record.job('F', 1, 0, Torch()): pass
with record.job('F', 2, 0, stream=Npu()): pass
with record.job('F', 3, 0, lane=record.lane(Paddle(), 'compute')): pass
with record.job('F', 4, 0, own): pass
record.push('pushed', own); record.pop(own)
record.lane_close(own)
''')
        self.assertEqual([c for cells in self.cells().values() for c in cells], ['0F1', '0F2', '0F3', '0F4'])

    def test_exported_symbols_are_the_modules_own(self):
        done = subprocess.run(['nm', '-D', '--defined-only', str(EXTENSION)], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest('needs nm')
        self.assertEqual([line.split()[-1] for line in done.stdout.splitlines() if ' T ' in line], ['PyInit__record'])

    def test_other_interpreters(self):
        """The stable ABI: the build of one Python in every other that is here."""
        seen = set()
        elsewhere = [str(folder) for folder in pathlib.Path.home().glob('.pyenv/versions/3*/bin')]
        for folder in os.environ.get('PATH', '').split(os.pathsep) + ['/usr/bin', *elsewhere]:
            for minor in range(9, 16):
                program = os.path.join(folder, f'python3.{minor}')
                if not os.access(program, os.X_OK):
                    continue
                version = subprocess.run([program, '-c', 'import sys; print(sys.implementation.name, sys.version_info[:2], sys.abiflags)'],
                                         capture_output=True, text=True)
                if version.returncode or version.stdout in seen or not version.stdout.startswith('cpython') or 't' in version.stdout.split()[-1]:
                    continue
                seen.add(version.stdout)
                out = self.dir / f'v{minor}'
                done = subprocess.run([program, '-c', BEGIN + 'with record.job("F", mb=1, chunk=0): pass\nwith record.range("r"): pass'],
                                      capture_output=True, text=True,
                                      env=clean_environment(STAGELINE_DIR=str(out), PYTHONPATH=str(PACKAGE)))
                self.assertEqual([done.returncode, done.stderr], [0, ''], program)
                self.assertEqual(len(list(out.glob('*.slrec'))), 1)
        if len(seen) < 2:
            self.skipTest('needs a second Python')
        print(f'{len(seen)} interpreters', file=sys.stderr)


@needs_extension
class OtherPrograms(Recorded):
    def test_exec_loses_nothing_and_begins_anew(self):
        again = self.write('again.py', '''
import os, sys
from stageline import record
number = int(sys.argv[1])
assert record.init(rank=0), record.why_not()
for step in range(3):
    record.step(10 * number + step)
    for kind in 'FB':
        with record.job(kind, 0, 0):
            pass
if number < 2:
    os.execv(sys.executable, [sys.executable, __file__, str(number + 1)])  # no exit function runs
''')
        self.python(f'import os, sys; os.execv(sys.executable, [sys.executable, {str(again)!r}, "0"])', env={'STAGELINE_JOB': 'one'})
        report = info(self.out)
        self.assertEqual([report['ranks'], report['steps']], [1, 9])
        self.assertEqual(len(self.cells()[0]), 18)

    def test_a_forked_child_records_only_what_it_begins_itself(self):
        self.python('''
import os
from stageline import record
record.init(rank=0)
record.step(0)
job = record.job('F', 0, 0).begin()
child = os.fork()
if child == 0:
    assert not record.recording()
    job.end()                         # the parent's: nothing
    record.step(5)
    assert record.init(rank=1), record.why_not()
    record.step(1)
    with record.job('B', 1, 0):
        pass
    grandchild = os.fork()
    if grandchild == 0:
        with record.job('F', 7, 0):
            pass
        os._exit(0)
    assert os.waitpid(grandchild, 0)[1] == 0
    record.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
job.end()
with record.job('B', 0, 0):
    pass
''')
        self.assertEqual(self.cells(), {0: ['0F0', '0B0'], 1: ['0B1']})
        self.assertEqual(len(list(self.out.glob('*.slrec'))), 2)
        self.assertEqual(list(self.out.glob('*.slhot')), [])


if __name__ == '__main__':
    unittest.main()
