"""The outputs shown in docs/ are what the program prints: each command after "$ stageline" runs on the inputs that docs/README.md names."""
import os
import re
import shlex
import shutil
import subprocess
import unittest

from support import BIN, SOURCE, Case

WIDTH = 150  # pages cut longer lines and end them with "…"


def shown(line):
    return line.rstrip() if len(line) <= WIDTH else line[:WIDTH - 1].rstrip() + '…'


class SamplesTest(Case):
    def test_pages_show_what_the_program_prints(self):
        """A page may leave out rows ("…"), not change one."""
        (self.dir / 'stageline').symlink_to(BIN)
        (self.dir / 'tests').symlink_to(SOURCE / 'tests')
        environment = {**os.environ, 'PATH': f'{self.dir}:{os.environ["PATH"]}', 'LC_ALL': 'C.UTF-8'}
        environment.pop('COLUMNS', None)

        def printed(command):
            done = subprocess.run(['bash', '-c', command], cwd=self.dir, env=environment, capture_output=True, text=True, timeout=300, check=False)
            return done.returncode, done.stdout, done.stderr

        section = (SOURCE / 'docs/README.md').read_text().split('## Inputs of the samples', 1)[1]
        inputs = re.findall(r'^\| `([\w.-]+)` \| `([^`]+)` \|$', section, re.M)
        self.assertGreater(len(inputs), 7)
        for name, source in inputs:
            code, _, problem = printed(source if source.startswith('stageline') else f'ln -s {shlex.quote(source)} {name}')
            self.assertEqual(code, 0, (name, problem))
        samples = [(page.relative_to(SOURCE), *sample.split('\n', 1)) for page in sorted((SOURCE / 'docs').rglob('*.md'))
                   for block in re.findall(r'^```[a-z]*\n(.*?)^```', page.read_text(), re.M | re.S)
                   for sample in re.split(r'^\$ ', block, flags=re.M)[1:] if sample.startswith('stageline')]
        self.assertGreater(len(samples), 40)
        for page, command, output in samples:
            with self.subTest(page=str(page), command=command):
                if '| jq ' in command and not shutil.which('jq'):
                    self.skipTest('needs jq')
                code, text, problem = printed(command)
                self.assertIn(code, (0, 1), problem)
                real = {line for whole in text.split('\n') for line in (whole.rstrip(), shown(whole))}
                self.assertEqual([line for line in output.rstrip('\n').split('\n') if line not in ('', '…') and line not in real], [])


if __name__ == '__main__':
    unittest.main()
