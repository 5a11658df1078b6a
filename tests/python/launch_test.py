"""`stageline record -- COMMAND`: exit codes, signals, the state on the way, and the messages at the end."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

from recorded import BIN, PACKAGE, STAND_IN, Recorded, clean_environment, needs_extension

TRAIN = '''
import os, sys
from torch.distributed import pipelining
plan = pipelining.Schedule1F1B(pipelining.PipelineStage(0, 1, 0, 1), 2)
plan.step()
'''
ALONE = {'RANK': '0', 'WORLD_SIZE': '1', 'PYTHONPATH': str(STAND_IN)}


class Launch(Recorded):
    def test_exit_codes_are_passed_on(self):
        for code in (0, 1, 7, 255):
            self.record('sh', '-c', f'exit {code}', check=code)

    def test_output_and_input_are_the_programs(self):
        done = subprocess.run([BIN, 'record', '-o', self.out, '--', 'sh', '-c', 'cat; echo word >&2'], input='in\n', capture_output=True,
                              text=True, env=clean_environment(), cwd=self.dir)
        self.assertEqual(done.stdout, 'in\n')
        self.assertTrue(done.stderr.startswith('word\n'))

    def test_signals_that_end_the_program_end_us(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            self.record('sh', '-c', f'kill -{int(number)} $$', check=-number)

    def test_signals_to_us_reach_the_program(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
            code = ('import signal, sys\n'
                    f'signal.signal({int(number)}, lambda *_: sys.exit(5))\n'
                    'print("ready", flush=True)\nsignal.pause()')
            child = subprocess.Popen([BIN, 'record', '-o', self.out, sys.executable, '-c', code], stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, env=clean_environment(), cwd=self.dir)
            self.assertEqual(child.stdout.readline(), b'ready\n')
            child.send_signal(number)
            self.assertEqual(child.wait(timeout=60), 5, number)
            child.stdout.close()

    def test_the_programs_signals_are_as_they_were(self):
        # But 32 and 33, which the C library sets up in each process as it needs them.
        code = ('import signal\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []), '
                'int(open("/proc/self/status").read().split("SigIgn:")[1].split()[0], 16) & 0x7fffffff)')
        python = [sys.executable, '-c', code]
        bare = subprocess.run(python, capture_output=True, text=True, env=clean_environment())
        self.assertEqual(self.record(*python).stdout, bare.stdout)

    def test_no_such_program(self):
        done = self.record('no-such-program', check=127)
        self.assertIn('no program "no-such-program" on the PATH', done.stderr)
        self.assertFalse(self.out.exists())
        self.record('/no/such', check=127)
        plain = self.write('plain', 'text')
        self.assertIn('Permission denied', self.record(plain, check=126).stderr)

    def test_usage(self):
        for words, said in (([], 'something is missing'), (['--steps', 'x', 'true'], 'not a range of steps'),
                            (['--bogus', 'true'], 'no flag --bogus'), (['--steps', '-3', 'true'], 'steps count from 0'),
                            (['--steps', '99999999999', 'true'], 'steps count from 0'), (['-o', '', 'true'], '-o wants a folder')):
            done = subprocess.run([BIN, 'record', *words], capture_output=True, text=True, env=clean_environment(), cwd=self.dir)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
        self.assertEqual(list(self.dir.iterdir()), [])  # nothing was begun

    def test_a_folder_that_cannot_be_written(self):
        self.write('file', '')
        done = self.record('touch', self.dir / 'ran', out=self.dir / 'file' / 'below', check=2)
        self.assertIn('cannot write to', done.stderr)
        self.assertFalse((self.dir / 'ran').exists())

    def test_without_its_parts_and_with_them_installed(self):
        program = self.dir / 'there' / 'bin' / 'stageline'
        program.parent.mkdir(parents=True)
        shutil.copy(BIN, program)
        done = subprocess.run([program, 'record', 'true'], capture_output=True, text=True, env=clean_environment(), cwd=self.dir)
        self.assertEqual(done.returncode, 2)
        self.assertIn('libstageline_record.so.1 is not in the folder of this program', done.stderr)
        library = self.dir / 'there/lib/libstageline_record.so.1'
        library.parent.mkdir()
        shutil.copy(PACKAGE / 'stageline_record/lib/libstageline_record.so.1', library)
        done = subprocess.run([program, 'record', 'printenv', 'STAGELINE_RECORD_LIBRARY'], capture_output=True, text=True,
                              env=clean_environment(), cwd=self.dir)
        self.assertEqual(done.stdout, f'{library}\n')
        self.assertIn('without Python hooks', done.stderr)
        package = self.dir / 'there/lib/stageline/python/stageline'
        shutil.copytree(pathlib.Path(__file__).parents[2] / 'python/stageline', package)
        done = subprocess.run([program, 'record', 'printenv', 'PYTHONPATH'], capture_output=True, text=True, env=clean_environment(),
                              cwd=self.dir)
        self.assertEqual(done.stdout, f'{package}/launch\n')

    def test_flags_behind_the_program_are_its_own(self):
        done = subprocess.run([BIN, 'record', 'echo', '--steps', '-o', '--', '--help'], capture_output=True, text=True,
                              env=clean_environment(), cwd=self.dir)
        self.assertEqual([done.returncode, done.stdout], [0, '--steps -o -- --help\n'])
        self.assertTrue((self.dir / 'stageline-rec').is_dir())

    def test_what_the_flags_set(self):
        names = ('STAGELINE_DIR', 'STAGELINE_STEPS', 'NVTX_INJECTION64_PATH', 'MSTX_INJECTION_PATH', 'STAGELINE_CHAIN_NVTX')
        code = f'import os\nfor name in {names}: print(os.environ.get(name, ""))'
        plain = self.record(sys.executable, '-c', code).stdout.split('\n')
        self.assertEqual(plain, [str(self.out), '', '', '', '', ''])
        done = self.record(sys.executable, '-c', code, flags=['--nvtx', '--steps', '3:'], env={'NVTX_INJECTION64_PATH': '/opt/nsys.so'})
        said = done.stdout.split('\n')
        self.assertEqual([said[1], said[4]], ['3:2147483647', '/opt/nsys.so'])
        self.assertTrue(said[2] == said[3] and said[2].endswith('libstageline_record.so.1'), said)
        again = self.record(sys.executable, '-c', code, flags=['--nvtx'], env={'NVTX_INJECTION64_PATH': said[2]}).stdout.split('\n')
        self.assertEqual([again[2], again[4]], [said[2], ''])  # ours is not chained to itself

    def test_kernels_put_the_library_where_the_driver_looks_and_keep_who_was_there(self):
        code = "import os\nprint(os.environ['CUDA_INJECTION64_PATH'], os.environ.get('STAGELINE_CHAIN_CUDA'), sep='\\n')"
        said = self.record(sys.executable, '-c', code, flags=['--kernels'], env={'CUDA_INJECTION64_PATH': '/opt/other.so'}).stdout.splitlines()
        self.assertTrue(said[0].endswith('libstageline_record.so.1'))
        self.assertEqual(said[1], '/opt/other.so')
        self.assertEqual(self.record(sys.executable, '-c', code, flags=['--kernels']).stdout.splitlines()[1], 'None')

    def test_nothing_recorded_is_known(self):
        done = self.record('true')
        self.assertIn('nothing was recorded', done.stderr)
        self.assertEqual(self.record('true', flags=['--quiet']).stderr, '')


@needs_extension
class Python(Recorded):
    def train(self, *flags, check=0, env=None, code=TRAIN, program=sys.executable, record=()):
        return self.record(program, *flags, '-c', code, check=check, env={**ALONE, **(env or {})}, flags=record)

    def test_the_last_words(self):
        done = self.train()
        self.assertIn('1 file, ', done.stderr)
        self.assertIn('1 rank, 4 jobs in 1 step, none dropped', done.stderr)
        self.assertIn(f'stageline report {self.out}', done.stderr)

    def test_only_what_is_new_is_counted(self):
        self.train()
        self.assertIn('1 file, ', self.train().stderr)
        done = self.record(sys.executable, '-c', 'import os\nos.environ.update(RANK="0", WORLD_SIZE="1")' + TRAIN, env={'PYTHONPATH': str(STAND_IN)})
        self.assertIn('has 2 files of earlier runs', done.stderr)
        self.assertIn('1 file, ', done.stderr)

    def test_a_killed_program_keeps_what_it_did(self):
        done = self.train(code=TRAIN + 'os.kill(os.getpid(), 9)', check=-9)
        self.assertIn('4 jobs in 1 step', done.stderr)

    def test_pythons_that_do_not_look(self):
        for flags in (['-S'], ['-I'], ['-E']):
            code = f'import sys; sys.path.insert(0, {str(STAND_IN)!r})\n' + TRAIN
            done = self.train(*flags, code=code)
            self.assertIn('nothing was recorded', done.stderr, flags)

    def test_the_path_is_as_it_would_be(self):
        code = 'import sys; print(sys.path, "stageline" in sys.modules)'
        bare = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, env=clean_environment(PYTHONPATH=str(STAND_IN)),
                              cwd=self.dir)
        done = self.train(code=code)
        self.assertEqual(done.stdout.split(']')[0], bare.stdout.split(']')[0])

    def test_a_sitecustomize_of_the_users(self):
        self.write('own/sitecustomize.py', 'import sys\nprint("own", __file__.endswith("own/sitecustomize.py"))\nsys.mine = 1\n')
        done = self.train(code='import sys, sitecustomize\nprint(sys.mine, sitecustomize.sys.mine)\n' + TRAIN,
                          env={'PYTHONPATH': f'{self.dir / "own"}:{STAND_IN}'})
        self.assertEqual(done.stdout, 'own True\n1 1\n')
        self.assertIn('4 jobs', done.stderr)
        self.write('own/sitecustomize.py', 'raise RuntimeError("mine")')
        self.assertIn('mine', self.train(env={'PYTHONPATH': f'{self.dir / "own"}:{STAND_IN}'}).stderr)

    def test_pythons_that_are_too_old(self):
        old = [path for path in pathlib.Path.home().glob('.pyenv/versions/*/bin/python') if path.parts[-3].startswith(('2.', '3.6', '3.8'))]
        old += [pathlib.Path(found) for found in (shutil.which('python2'), shutil.which('python3.8')) if found and '.pyenv' not in found]
        if not old:
            self.skipTest('needs a Python before 3.9')
        self.write('own/sitecustomize.py', 'import sys\nsys.mine = 1\n')
        for program in old:
            done = self.record(program, '-c', 'import sys; print(sys.mine, [p for p in sys.path if "launch" in p])',
                               env={'PYTHONPATH': str(self.dir / 'own'), 'PYENV_VERSION': program.parts[-3]})
            self.assertIn(done.stdout, ('(1, [])\n', '1 []\n'), program)
            self.assertNotIn('sitecustomize', done.stderr)

    def test_inside_another_recording(self):
        inner = self.dir / 'inner'
        done = self.record(BIN, 'record', '-o', inner, '--', sys.executable, '-c', TRAIN + 'print(os.environ["PYTHONPATH"].count("launch"))',
                           env=ALONE)
        self.assertEqual(done.stdout, '1\n')
        self.assertIn('4 jobs in 1 step', done.stderr)
        self.assertEqual(len(list(inner.iterdir())), 1)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_off(self):
        done = self.train(env={'STAGELINE_OFF': '1'})
        self.assertIn('STAGELINE_OFF=1 is set', done.stderr)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_a_broken_package_stops_nothing(self):
        done = self.train(env={'STAGELINE_RECORD_LIBRARY': ''}, code=TRAIN + 'print("ran")')
        self.assertIn('ran', done.stdout)  # the launcher's own variable goes first
        code = f'import sys\nsys.modules["stageline.record"] = None\n{TRAIN}\nprint("ran")'
        done = self.train(code=code)
        self.assertIn('ran', done.stdout)
        self.assertIn('is not recorded', done.stderr)

    def test_one_launcher_for_each_rank(self):
        children = [subprocess.Popen([BIN, 'record', '-o', self.out, sys.executable, '-c', TRAIN], stderr=subprocess.PIPE, text=True,
                                     cwd=self.dir, env=clean_environment(PYTHONPATH=str(STAND_IN), SLURM_PROCID=str(r), RANK=str(r),
                                                                         WORLD_SIZE='2')) for r in (1, 0)]
        said = [child.communicate(timeout=60)[1] for child in children]
        self.assertEqual(said[0], '')
        self.assertIn('so far (this rank is done; others may not be)\n  stageline report', said[1])
        self.assertEqual(len(list(self.out.glob('*.slrec'))), 2)

    def test_the_folder_is_found_from_elsewhere(self):
        (self.dir / 'else').mkdir()
        subprocess.run([BIN, 'record', '-o', 'here', sys.executable, '-c', 'import os; os.chdir("else")\n' + TRAIN], check=True,
                       capture_output=True, cwd=self.dir, env=clean_environment(**ALONE))
        self.assertEqual(len(list((self.dir / 'here').glob('*.slrec'))), 1)


RANKS_PROGRAM = '''
from stageline import record
record.init()
for step in range(3):
    record.step(step)
    for micro_batch in range(4):
        for kind in 'FB':
            with record.job(kind, micro_batch, 0):
                pass
'''
# Launchers as they are installed, and what makes them start four processes here.
LAUNCHERS = {'mpirun': ['mpirun', '--allow-run-as-root', '--oversubscribe', '-n', '4'], 'srun': ['srun', '--overcommit', '-n', '4']}
PASSED_ON = [word for name in ('STAGELINE_DIR', 'PYTHONPATH', 'STAGELINE_RECORD_LIBRARY') for word in ('-x', name)]


@needs_extension
@unittest.skipUnless(os.environ.get('STAGELINE_SLOW_TESTS'), 'real launchers are a part of ./dev slow')
class Launchers(Recorded):
    def launcher(self, name):
        """Its words; skips where there is none, or none that can start a process (no Slurm daemon)."""
        if not shutil.which(name):
            self.skipTest(f'needs {name}')
        tried = subprocess.run([*LAUNCHERS[name], 'true'], capture_output=True, text=True, env=clean_environment(), timeout=120)
        if tried.returncode != 0:
            self.skipTest(f'{name} starts nothing here: {tried.stderr.strip()[-200:]}')
        return LAUNCHERS[name]

    def check_ranks(self):
        files = sorted(path.name.split('.')[1] for path in self.out.glob('*.slrec'))
        self.assertEqual(files, ['r00000', 'r00001', 'r00002', 'r00003'])
        self.assertEqual(sorted(self.cells()), [0, 1, 2, 3])
        self.assertEqual({len(cells) for cells in self.cells().values()}, {24})

    def test_around_mpirun(self):
        self.record(*self.launcher('mpirun'), *PASSED_ON, sys.executable, '-c', RANKS_PROGRAM)
        self.check_ranks()

    def test_inside_mpirun(self):
        self.inside(self.launcher('mpirun'))

    def test_around_srun(self):
        self.record(*self.launcher('srun'), sys.executable, '-c', RANKS_PROGRAM)
        self.check_ranks()

    def test_inside_srun(self):
        self.inside(self.launcher('srun'))

    def inside(self, launcher):
        done = subprocess.run([*launcher, BIN, 'record', '-o', self.out, '--', sys.executable, '-c', RANKS_PROGRAM], capture_output=True,
                              text=True, env=clean_environment(), timeout=120, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count('stageline report'), 1, done.stderr)  # of the first rank alone
        self.check_ranks()


if __name__ == '__main__':
    unittest.main()
