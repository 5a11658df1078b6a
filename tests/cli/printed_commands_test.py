"""A command that an answer prints can be copied into a shell, whatever the run's folder is called."""
import json
import os
import shlex
import subprocess
import unittest

from support import BIN, Case, run

NAMES = ("a b's <run>", '-o', '$(touch made)', 'ein Lauf: "1"')


def commands(text):
    """The lines of a text that are a command, and what follows "Report: "; a command over two lines is one."""
    lines = [line.strip().removeprefix('Report: ') for line in text.splitlines()]
    return [line for line in lines if line.startswith('stageline ')]


class PrintedCommandsTest(Case):
    def setUp(self):
        super().setUp()
        (self.dir / 'bin').mkdir()
        os.symlink(BIN, self.dir / 'bin/stageline')

    def in_shell(self, command):
        done = subprocess.run(['sh', '-c', command], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, 'PATH': f'{self.dir}/bin:{os.environ["PATH"]}', 'LC_ALL': 'C.UTF-8'})
        self.assertEqual(done.returncode, 0, f'{command}\n{done.stderr}')
        self.assertFalse((self.dir / 'made').exists(), command)

    def test_commands_run_as_they_are_printed(self):
        for name in NAMES:
            run('simulate', '1f1b', '--fault', 'slow-stage:2,1.4', '-o', self.dir / name, check=0)
            with self.subTest(name=name):
                asked = './' + name if name.startswith('-') else name
                said = commands(run('explain', asked, check=0, cwd=self.dir).out)
                self.assertGreaterEqual(len(said), 3, said)
                told = [f['command'] for f in json.loads(run('explain', '--json', asked, check=0, cwd=self.dir).out)['findings']]
                for command in [*said, *filter(None, told)]:
                    words = shlex.split(command)
                    self.assertIn(name, [word.removeprefix('./') for word in words], command)
                    self.in_shell(command)

    def test_a_report_names_every_input(self):
        for name in ('one log', 'two'):
            run('simulate', '1f1b', '-o', self.dir / name, check=0)
        logs = sorted(p.name for p in (self.dir / 'one log').glob('workerlog.*'))
        inputs = [f'one log/{log}' for log in logs]
        said = [c for c in commands(run('explain', *inputs, check=0, cwd=self.dir).out) if ' report ' in c]
        self.assertEqual([shlex.split(c)[2:2 + len(inputs)] for c in said], [inputs])


if __name__ == '__main__':
    unittest.main()
