"""stageline-mpi: the same bytes at any number of processes, and the next run goes on after one dies."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from support import BIN, Case, run

MPI = pathlib.Path(BIN).with_name('stageline-mpi')
MPIRUN = shutil.which('mpirun')
# A machine of few cores, perhaps as root in a container: Open MPI asks for both words, MPICH for neither.
VARIABLES = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1',
             'OMPI_MCA_rmaps_base_oversubscribe': '1', 'PRTE_MCA_rmaps_default_mapping_policy': ':oversubscribe', 'OMPI_MCA_btl_base_warn_component_unused': '0'}


def command(processes, *words):
    return [MPIRUN, '-n', str(processes), str(MPI), *map(str, words)]


@unittest.skipUnless(MPIRUN and MPI.exists(), 'needs an MPI')
class MpiTest(Case):
    def setUp(self):
        super().setUp()
        # A long path makes the names of Open MPI's sockets too long. Memory that an MPI's own libraries keep until the
        # end does not count as a leak of this program.
        sanitizer = ':'.join(filter(None, [os.environ.get('ASAN_OPTIONS', ''), 'detect_leaks=0']))
        self.env = {**os.environ, **VARIABLES, 'TMPDIR': str(self.dir), 'ASAN_OPTIONS': sanitizer}
        self.logs = self.dir / 'logs'
        run('simulate', '1f1b', '--stages', 4, '--dp', 8, '--machines', 2, '--micro-batches', 16, '--steps', 5, '--jitter', 0.05, '--seed', 3,
            '--fault', 'slow-stage:2,1.4', '-q', '-o', self.logs, check=0)
        (self.logs / 'truth.csv').unlink()

    def mpi(self, processes, *words, check=0, cwd=None):
        done = subprocess.run(command(processes, *words), capture_output=True, env=self.env, timeout=300, cwd=cwd or self.dir)
        self.assertEqual(done.returncode, check, done.stderr.decode()[-2000:])
        return done

    def test_the_same_bytes_at_one_two_and_four_processes(self):
        alone = self.dir / 'alone'
        alone.mkdir()
        run('digest', '../logs', '-o', 'digests', '-q', cwd=alone, check=0)
        wanted = {p.name: p.read_bytes() for p in (alone / 'digests').iterdir()}
        answers = [(run('explain', 'digests', '-q', cwd=alone, check=0).stdout,
                    run('analyze', 'waterfall,links', 'digests', '--format', 'json', '-q', cwd=alone, check=0).stdout)]
        pages = []
        for processes in (1, 2, 4):
            with self.subTest(processes=processes):
                there = self.dir / f'at{processes}'  # the same words in each, so that what names files is the same too
                there.mkdir()
                with_digests = ['../logs', '--digests', 'digests', '-q']
                explained = self.mpi(processes, 'explain', *with_digests, cwd=there).stdout
                self.assertEqual(wanted, {p.name: p.read_bytes() for p in (there / 'digests').iterdir()})
                answers.append((explained, self.mpi(processes, 'analyze', 'waterfall,links', *with_digests, '--format', 'json', cwd=there).stdout))
                self.mpi(processes, 'report', *with_digests, '-o', 'report.html', cwd=there)
                pages.append((there / 'report.html').read_bytes())
                count = json.loads(self.mpi(processes, 'digest', '../logs', '-o', 'digests', '--json', cwd=there).stdout)
                self.assertEqual((count['made'], count['kept']), (0, 32))
        self.assertEqual(len(set(answers)), 1)
        self.assertEqual(len(set(pages)), 1)

    def test_a_rank_that_fails_is_named_once(self):
        log = sorted(self.logs.rglob('workerlog.*'))[3]
        log.rename(log.with_name(log.name + '.gz'))
        log.with_name(log.name + '.gz').write_bytes(b'\x1f\x8b\x08\x00 no deflate stream')
        done = self.mpi(4, 'digest', 'logs', '-o', 'digests', check=2)
        self.assertEqual(done.stderr.decode().count(log.name), 1, done.stderr.decode())
        self.assertEqual(len(list((self.dir / 'digests').iterdir())), 31)

    def test_errors_are_said_once(self):
        for words, said in ((['explain', 'logs'], b'--digests DIR'), (['view', 'logs'], b'has the commands'), (['digest', 'nothing', '-o', 'x'], b'no such file')):
            self.assertEqual(self.mpi(4, *words, check=2).stderr.count(said), 1, words)

    def test_after_a_death_the_next_run_goes_on(self):
        folder = self.dir / 'digests'
        job = subprocess.Popen(command(2, 'digest', 'logs', '-o', 'digests'), env=self.env, cwd=self.dir, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
        while job.poll() is None and not (folder.is_dir() and any(folder.glob('*.sldigest'))):
            time.sleep(0.001)
        # The process of this job that makes digests, not mpirun: the job is then ended by mpirun itself.
        children = subprocess.run(['ps', '-o', 'pid=', '--ppid', str(job.pid)], capture_output=True, text=True).stdout.split()
        for pid in children[-1:]:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.wait(60)
        count = json.loads(self.mpi(2, 'digest', 'logs', '-o', 'digests', '--json').stdout)
        self.assertEqual((count['made'] + count['kept'], count['failed']), (32, 0))


if __name__ == '__main__':
    unittest.main()
