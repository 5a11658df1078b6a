"""Inputs that are not one run are refused with a command to type. Folders of one run are read as one."""
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from support import SOURCE, Case, info
from support import run as run_exactly

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import profile_faults  # noqa: E402


def run(*words, **how):
    """Runs stageline, with plain blanks in what it says."""
    done = run_exactly(*words, **how)
    done.out, done.err = done.out.replace('\u202f', ' '), done.err.replace('\u202f', ' ')
    return done


class TwoRuns(Case):
    def made(self, name, *words, truth=False):
        folder = self.dir / name
        run('simulate', *(words or ['1f1b']), '-o', folder, check=0)
        for mark in () if truth else [*folder.glob('truth*'), *folder.glob('.stageline*')]:
            mark.unlink()
        return folder

    def later(self, folder, name, milliseconds):
        other = self.dir / name
        shutil.copytree(folder, other)
        for log in other.glob('workerlog.*'):
            log.write_text(re.sub(r'(_time = )(\d+)', lambda at: at[1] + str(int(at[2]) + milliseconds), log.read_text()))
        return other

    def refused(self, a, b, reason, *words, together=True):
        for command in ('explain', 'report'):
            said = run(command, a, b, *words, *(['-o', self.dir / 'r.html'] if command == 'report' else []), check=2).err
            self.assertRegex(said, 'are not one run|are two runs, or one on clocks that nothing connects')
            self.assertIn(reason, said)
            self.assertIn(f'stageline diff {a} {b}', said)
        if together:
            self.assertIn(reason, run('explain', self.parent(a, b), check=2).err)

    def parent(self, a, b):
        """A folder that holds both, with nothing else in it."""
        folder = self.dir / f'both-{a.name}-{b.name}'
        for one in (a, b):
            shutil.copytree(one, folder / one.name)
        return folder

    def test_two_simulations(self):
        self.refused(self.made('a', '1f1b', truth=True), self.made('b', '1f1b', '--fault', 'slow-stage:2,1.4', truth=True), 'simulate wrote each')

    def test_other_schedules_and_sizes(self):
        a = self.made('a')
        self.refused(a, self.made('chunks', 'vpp', '--chunks', 2), 'other chunks')
        self.refused(a, self.made('split', 'zb-h1'), 'other kinds of backwards')
        deep = self.made('deep', '1f1b', '--stages', 8)
        self.refused(a, deep, 'each is a pipeline of its own')
        self.refused(a, self.later(deep, 'hour', 3_600_000), 'each is a pipeline of its own')
        # One run of two machines that hold its halves.
        for schedule in ('1f1b', 'fthenb'):
            halves = self.made(schedule, schedule, '--stages', 8, '--machines', 2)
            self.assertEqual(info(*sorted(halves.glob('machine*')))['ranks'], 8)

    def test_the_same_job_at_another_time(self):
        a = self.made('a')
        later = self.later(a, 'hour', 3_600_000)
        self.refused(a, later, '3599 s lie between them', together=False)
        # In one folder, they look like the machines of a run whose clocks are an hour apart.
        said = run('explain', self.parent(a, later), check=0)
        self.assertIn('their steps are assumed to start with its steps', said.err)
        self.assertNotIn('late:', said.out)
        # Within the length of a run, clocks may differ.
        self.assertEqual(run('explain', a, self.later(a, 'near', 500), check=0).err.count('not one run'), 0)

    def test_one_rank_in_both(self):
        for name in ('a', 'b'):
            profile_faults.make('healthy-ranks' if name == 'a' else 'slow-rank', str(self.dir / name))
        self.assertIn('both hold rank 0', run('explain', self.dir / 'a', self.dir / 'b', check=2).err)
        tables = [self.made(name, '1f1b', '--format', 'cells', '--seed', ord(name)) for name in ('c', 'd')]
        self.assertIn('are not one run', run('explain', *tables, check=2).err)
        databases = [self.made(name, '1f1b', '--format', 'ascend', '--seed', ord(name)) for name in ('e', 'f')]
        self.assertIn('are not one run', run('explain', *databases, check=2).err)

    def test_folders_of_one_run(self):
        folder = self.made('run', '1f1b', '--machines', 2, '--dp', 2)
        machines = sorted(folder.glob('machine*'))
        self.assertEqual(len(machines), 2)
        self.assertEqual(info(*machines)['ranks'], info(folder)['ranks'])
        self.assertEqual(info(*[log for machine in machines for log in sorted(machine.glob('workerlog.*'))])['ranks'], 8)
        # A folder for each rank.
        flat, apart = self.made('flat', '1f1b', '--format', 'cells', '--messages'), self.dir / 'apart'
        rows = (flat / 'cells.csv').read_text().splitlines()
        at = rows[0].split(',').index(next(c for c in rows[0].split(',') if c in ('rank', 'stage')))
        for rank in range(4):
            self.write(f'apart/node{rank}/cells.csv', '\n'.join([rows[0], *(r for r in rows[1:] if r.split(',')[at] == str(rank))]) + '\n')
        self.assertEqual(info(*sorted(apart.iterdir()))['ranks'], 4)


class Named(Case):
    def setUp(self):
        super().setUp()
        self.logs = self.dir / 'logs'
        run('simulate', '1f1b', '-o', self.logs, check=0)

    def test_a_folder_of_which_nothing_is_read(self):
        profile_faults.make('healthy', str(self.dir / 'trace'))
        (self.dir / 'empty').mkdir()
        for other in ('trace', 'empty'):
            for paths in ((self.logs, self.dir / other), (self.dir / other, self.logs)):
                said = run('explain', *paths, check=2).err
                self.assertIn(f'{self.dir / other}: nothing of this folder was read as paddle-log', said)

    def test_two_kinds_of_which_both_are_certain(self):
        run('simulate', '1f1b', '--format', 'ascend', '-o', self.dir / 'profiles', check=0)
        said = run('explain', self.dir / 'profiles', self.logs, check=2).err
        self.assertIn(f'name one of {self.dir / "profiles"} {self.logs}', said)
        self.assertNotIn('looked at', said)

    def test_flags_that_leave_nothing_name_themselves_and_what_there_is(self):
        profile_faults.make('healthy-ranks', str(self.dir / 'trace'))
        for folder, ranks in ((self.logs, '0-3'), (self.dir / 'trace', '0-2')):
            said = run('explain', folder, '--ranks', '7', check=2).err
            self.assertIn('--ranks', said)
            self.assertIn(f'it has ranks {ranks}', said)
            self.assertIn('it has steps 0-', run('explain', folder, '--steps', '99', check=2).err)
            self.assertRegex(run('explain', folder, '--range', '900s:', check=2).err, r'--range counts from .*, which lasts [\d.]+ m?s')

    def test_values_out_of_range_name_their_flag(self):
        for flag, command in (('--ranks', 'explain'), ('--devices', 'info'), ('--file-ranks', 'explain')):
            for value in ('99999999999', '-1', 'x'):
                said = run(command, self.logs, f'{flag}={value}', check=2).err
                self.assertIn(f'{flag}: "{value}" is not a number from 0 to 2147483647', said)

    def test_a_number_of_stages_that_cannot_be(self):
        self.assertIn('--stages 3 does not divide the 4 ranks', run('explain', self.logs, '--stages', 3, check=2).err)
        said = re.sub(r'\s+', ' ', run('explain', self.logs, '--stages', 2, check=0).out)
        self.assertIn('What follows is doubtful: --stages 2 was taken, but the operation order of the ranks shows 4.', said)
        self.assertLess(said.index('doubtful'), said.index('1. '))
        self.assertNotIn('doubtful', run('explain', self.logs, '--stages', 4, check=0).out)

    def test_simulate_replaces_a_run_with_force_alone(self):
        before = info(self.logs)
        for words in (['vpp'], ['1f1b', '--format', 'cells']):
            self.assertIn('--force replaces it', run('simulate', *words, '-o', self.logs, check=2).err)
            self.assertEqual(info(self.logs), before)
        run('simulate', 'vpp', '--force', '-o', self.logs, check=0)
        self.assertNotEqual(info(self.logs)['schedule'], before['schedule'])

    def test_places_in_packed_files_say_what_they_count(self):
        self.write('cut/log.json', '')
        profile_faults.make('healthy-ranks', str(self.dir / 'whole'))
        folder = self.dir / 'packed'
        folder.mkdir()
        for path in sorted((self.dir / 'whole').glob('*.json')):
            data = gzip.compress(path.read_bytes(), mtime=0)
            (folder / (path.name + '.gz')).write_bytes(data[:len(data) * 6 // 10] if '1' in path.name else data)
        said = run('explain', folder).err
        self.assertIn('of the compressed file', said)
        for place in re.findall(r'\.gz, byte \d+[^:]*', said):
            self.assertIn('of the uncompressed text', place)


class OneNumberOneName(Case):
    def test_slow_transfers_are_found_out_first(self):
        subprocess.run([sys.executable, SOURCE / 'tests/gen/kineto.py', '-o', self.dir / 'slow', '--ranks', '4', '--events', '4000', '--steps', '6',
                        '--link-us', '3000', '--bucket', '2'], check=True, capture_output=True)
        said = re.sub(r'\s+', ' ', run('explain', self.dir / 'slow', check=0).out)
        rate, estimate = map(float, re.search(r'is ([\d.]+) GB/s, and NCCL estimates ([\d.]+) GB/s', said).groups())
        ratio = float(re.search(r'First find why transfers take ([\d.]+)× that estimate', said)[1])
        self.assertAlmostEqual(ratio, estimate / rate, delta=0.02 * ratio)

    def test_the_closing_sentence_has_the_numbers_of_the_bar(self):
        profile_faults.make('slow-rank', str(self.dir / 'slow'))
        said = run('explain', self.dir / 'slow', check=0).out
        closing = re.sub(r'\s+', ' ', said[said.index("The devices' time is"):])
        bar = dict(re.findall(r'^ +([\d.]+ %)  ([a-z ]+?)(?:  |$)', said, re.M))
        for share, name in bar.items():
            if float(share.split()[0]) >= 1:
                self.assertIn(f'{name.strip()} ({share}', closing)


if __name__ == '__main__':
    unittest.main()
