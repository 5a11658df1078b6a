"""Every command that README and the how-tos name runs: each line of a block that begins with "stageline", with inputs for its placeholders.

samples_test.py runs those after "$ " and compares what they print."""
import os
import re
import shlex
import subprocess
import unittest

from support import BIN, SOURCE, Case

SLOW = 'stageline simulate 1f1b --dp 2 --steps 4 --cost 10,20 --jitter 0.03 --messages --fault slow-stage:2,1.3'
READERS, TORCH = 'tests/golden/readers', 'tests/torch/recorded'
INPUTS = {
    'logs': f'{SLOW} -o logs', 'before': f'{SLOW} --seed 2 -o before', 'run42': f'{SLOW} --machines 2 -o run42',
    'PROFILES': 'stageline simulate vpp --format ascend --level 1 -o PROFILES', 'digests': 'stageline digest logs -o digests',
    'trace': f'{READERS}/kineto/input', 'pipeline': f'{TORCH}/pipelines/zbv', 'stacks': f'{TORCH}/stack.trace.json.gz', 'recording': f'{READERS}/recording/input',
    'dumps': f'{READERS}/flight-recorder/input', 'collectives': f'{READERS}/op-table/input',
}
# What a placeholder stands for; the first row that fits a command has its word.
WORDS = (
    ('--by class', 'A', 'trace'), ('--by class', 'B', 'pipeline'), (r'export TRACES|event TRACES', 'TRACES', 'pipeline'), (r'export-stacks', 'TRACES', 'stacks'), ('', 'TRACES', 'trace'), ('', 'LOGS', 'logs'), ('kind=C', 'RUN', 'collectives'), ('', 'RUN', 'logs'),
    ('', 'PATH…', 'logs'), (r' A\b', 'A', 'logs'), (r' B\b', 'B', 'before'), ('', 'OTHER-LOGS', 'before'), ('', 'RECORDINGS', 'recording'), ('', 'nccl_trace_rank_*', 'dumps'),
    (r'^stageline (explain|report) DIR', 'DIR', 'digests'), ('pp-chart', '-d DIR', '-d PROFILES'), ('paddle-timeline', 'DIR', 'logs'), ('', 'NAME', 'profiler-steps'),
    ('', '"SELECT …"', '"SELECT count(*) FROM slices"'),
)
# Commands that other tests run, and why not here: they serve until they are stopped, need a launcher, or a network.
ELSEWHERE = (
    (r'^stageline (view|serve|tail|mcp)\b', 'serves until it is stopped: tests/web, tests/server, live_test.py'),
    (r'^stageline record\b', 'needs a launcher: tests/record, tests/python/launch_test.py'),
    (r'^stageline (explain|info) .*(s3|https)://', 'needs a network: remote_test.py'),
    (r'^stageline (sql LOGS --file|history check$)', 'needs a file of its user: sql_test.py, history_test.py'),
)
UNEQUAL = (0, 1)  # diff, --fail-on: 1 is an answer


def commands(path):
    """The commands of a page, without what a line says about them."""
    found = []
    for block in re.findall(r'^```[a-z]*\n(.*?)^```', path.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line.startswith('stageline '):
                command = re.split(r'\s{2,}(?![-\[ ])|\s+#|\s{2,}…', line)[0]
                found.append(re.sub(r'\s+', ' ', re.sub(r'\[.*?\]', '', command)).strip())
    return found


def pages():
    return [SOURCE / 'README.md', *sorted((SOURCE / 'docs/howto').glob('*.md')), *sorted((SOURCE / 'docs/start').glob('*.md'))]


class PageCommands(Case):
    def test_every_command_runs(self):
        environment = {**os.environ, 'PATH': f'{self.dir}/bin:{os.environ["PATH"]}', 'LC_ALL': 'C.UTF-8'}
        (self.dir / 'bin').mkdir()
        (self.dir / 'bin/stageline').symlink_to(BIN)

        def told(command, folder):
            done = subprocess.run(['bash', '-c', command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
            return done.returncode, done.stdout + done.stderr
        inputs = self.dir / 'inputs'
        inputs.mkdir()
        for name, source in INPUTS.items():
            code, text = told(source if source.startswith('stageline') else f'ln -s {shlex.quote(str(SOURCE / source))} {name}', inputs)
            self.assertEqual(code, 0, (name, text))
        ran, used = set(), set()
        for page in pages():
            for command in commands(page):
                passed_on = [pattern for pattern, _ in ELSEWHERE if re.search(pattern, command)]
                used.update(passed_on)
                if passed_on or command in ran:
                    continue
                ran.add(command)
                folder = self.dir / f'{len(ran)}'
                folder.mkdir()
                for name in INPUTS:
                    (folder / name).symlink_to(inputs / name)
                typed = command
                for pattern, word, stands_for in WORDS:
                    is_output = re.search(rf'-o {re.escape(word)}$', typed)
                    if re.search(pattern, command) and not is_output:
                        typed = re.sub(rf'(?<![\w-]){re.escape(word)}(?![\w.])', lambda _, by=stands_for: by, typed, count=1)
                for name in re.findall(r'-o (\w+)$', typed):
                    (folder / name).unlink(missing_ok=True)
                with self.subTest(page=page.name, command=command, typed=typed):
                    code, text = told(typed, folder)
                    self.assertIn(code, UNEQUAL if 'fail-on' in command or ' diff ' in command else (0,), text[-800:])
        self.assertGreater(len(ran), 60)
        self.assertEqual(used, {pattern for pattern, _ in ELSEWHERE})

    def test_chinese_pages_name_the_same_commands(self):
        for page in [SOURCE / 'README.zh.md', *sorted((SOURCE / 'docs').rglob('*.zh.md'))]:
            plain = [re.sub(r' --lang zh', '', command) for command in commands(page)]
            english = [re.sub(r' --lang zh', '', command) for command in commands(page.with_name(page.name.replace('.zh', '')))]
            with self.subTest(page=page.name):
                self.assertEqual(list(dict.fromkeys(plain)), list(dict.fromkeys(english)))


if __name__ == '__main__':
    unittest.main()
