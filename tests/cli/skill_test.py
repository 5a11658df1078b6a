"""The skill for agents: it is installed whole, its pages are those in the program, and every command in it runs."""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

from support import BIN, SOURCE, Case, run

SKILL = SOURCE / 'skills/stageline'
GOLDEN = SOURCE / 'tests/golden/readers'
PROFILE, PIPELINE = GOLDEN / 'kineto/input', GOLDEN / 'kineto-pipeline/input'
PLACES = {'PROFILE': PROFILE, 'PIPELINE': PIPELINE, 'RUN': PIPELINE, 'A': PIPELINE, 'B': PIPELINE, 'NAME': 'pipeline-summary'}
TOOLS = re.compile(r'`(\w+) \{([^}]*)\}`')


def commands(page):
    for text in re.findall(r'`(stageline [^`]+)`', page):
        words = shlex.split(text)
        yield text, [str(PLACES.get(w, w)) for w in words[1:]]


class SkillTest(Case):
    def test_installed_is_what_stands_here(self):
        run('skill', '--install', self.dir / 'skills', check=0)
        for page in SKILL.rglob('*.md'):
            self.assertEqual((self.dir / 'skills/stageline' / page.relative_to(SKILL)).read_bytes(), page.read_bytes())
        self.assertEqual(len(list((self.dir / 'skills').rglob('*.*'))), len(list(SKILL.rglob('*.md'))))
        self.assertEqual(run('skill', check=0).stdout, (SKILL / 'SKILL.md').read_bytes())
        run('skill', '--install', self.dir / 'skills', check=0)  # again, over itself
        (self.dir / 'file').write_text('x')
        self.assertIn('file', run('skill', '--install', self.dir / 'file', check=2).err)

    def test_front_matter_and_links(self):
        text = (SKILL / 'SKILL.md').read_text()
        front = dict(line.split(': ', 1) for line in text.split('---\n')[1].splitlines())
        self.assertEqual(front['name'], SKILL.name)
        self.assertLessEqual(len(front['description']), 1024)
        self.assertLessEqual(len(text.splitlines()), 120)
        linked = {SKILL / 'SKILL.md'}
        for page in SKILL.rglob('*.md'):
            for target in re.findall(r'\]\(([^)]+)\)', page.read_text()):
                self.assertTrue((page.parent / target).is_file(), f'{page.name}: {target}')
                linked.add((page.parent / target).resolve())
        self.assertEqual(linked, set(SKILL.rglob('*.md')), 'SKILL.md leads to every page')

    def test_references_are_what_the_program_says(self):
        done = subprocess.run([sys.executable, SOURCE / 'tools/skill.py', BIN, '--check'], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ''), done.stderr)

    def test_every_command_runs(self):
        asked = 0
        for page in SKILL.rglob('*.md'):
            for text, words in commands(page.read_text()):
                with self.subTest(page=page.name, command=text):
                    if words[0] == 'mcp':  # a server: ends with its input
                        self.assertEqual(run(*(str(GOLDEN) if w == 'DIR' else w for w in words), stdin=b'').returncode, 0)
                    elif words[0] == 'help':
                        run(*words, check=0)
                    else:
                        done = run(*words, '-q', cwd=self.dir)
                        self.assertEqual(done.returncode, 0, done.err)
                        if 'json' in words:
                            reported = json.loads(done.out)
                            if words[0] == 'sql' and words[1] == str(PROFILE):
                                self.assertTrue(reported['rows'] or 'WHERE' in text, 'it answers nothing on the fixture')
                asked += 1
        self.assertGreater(asked, 40)

    def test_tools_are_there_with_these_arguments(self):
        listing = subprocess.run([BIN, 'mcp', '--root', GOLDEN, '--allow-write', self.dir], input=b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', capture_output=True, check=True).stdout
        tools = {t['name']: set(t['inputSchema']['properties']) for t in json.loads(listing)['result']['tools']}
        named = set()
        for page in SKILL.rglob('*.md'):
            for tool, arguments in TOOLS.findall(page.read_text()):
                if tool == 'cannot_answer':
                    continue
                self.assertIn(tool, tools, page.name)
                self.assertLessEqual({a.split(':')[0].strip() for a in arguments.split(',')}, tools[tool], f'{page.name}: {tool}')
                named.add(tool)
        self.assertLessEqual({'open', 'explain', 'ask', 'sql', 'diff', 'what_if', 'verify'}, named)


if __name__ == '__main__':
    unittest.main()
