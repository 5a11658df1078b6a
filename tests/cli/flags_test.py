"""Every flag that a sentence names is one of the command that says it, or of the command that the sentence names."""
import json
import re
import unittest

from contract_surface import commands, said
from support import SOURCE, Case, run

READERS = sorted(path for path in (SOURCE / 'tests/golden/readers').glob('*/input') if any(path.iterdir()))
FLAG = re.compile(r'(?<![\w-])--[a-z][a-z0-9-]*(?![a-z0-9_-])')


def known():
    """Command → its flags; those of analyses with the options of every analysis."""
    flags = {name: set(command['flags']) for name, command in commands().items()}
    for name in re.findall(r'^  (\S+)', said('help', 'analyses'), re.M):
        text = said('help', name)
        flags['analyze'] |= set(FLAG.findall(text[text.index(f'stageline analyze {name}'):]))
    return flags


def sentences():
    """(place, text) of every sentence of the program, in both languages."""
    def walk(place, value):
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield from walk(f'{place}: {key}', inner)
        if isinstance(value, str):
            yield place, value
    for path in sorted((SOURCE / 'src').rglob('words.json')):
        yield from walk(str(path.relative_to(SOURCE)), json.loads(path.read_text()))
    for path in sorted((SOURCE / 'src').rglob('*.cc')):
        text = re.sub(r'(?m)^\s*//.*$', '', path.read_text())
        for literals in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
            yield str(path.relative_to(SOURCE)), ''.join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literals))


class Flags(Case):
    @classmethod
    def setUpClass(cls):
        cls.flags = known()
        cls.all = set().union(*cls.flags.values())

    def test_commands_in_sentences_have_the_flags_beside_them(self):
        found, named = [], 0
        for place, text in sentences():
            for command, rest in re.findall(r'stageline ([a-z-]+)((?:(?!\bstageline\b|; |\. |\)).)*)', text):
                if command not in self.flags:
                    continue
                for flag in FLAG.findall(rest):
                    named += 1
                    if flag not in self.flags[command]:
                        found.append(f'{place}: stageline {command} has no {flag}: {text[:160]}')
        self.assertEqual(found, [])
        self.assertGreater(named, 10)

    def test_answers_name_flags_of_their_command(self):
        """The owner of a flag is named before it: `stageline COMMAND` or another program; else it is of the command that prints it."""
        others = r'nsys|rocprof\S*|rocpd|torchrun|Megatron|MindSpeed|torchtitan|msprof\S*|Record with|with'
        spoken, found = 0, set()
        for path in READERS:
            out = self.dir / path.parent.name
            for arguments in (['explain', path], ['info', path], ['align', path], ['what-if', path], ['diff', path, path], ['digest', path, '-o', out / 'd'],
                              ['report', path, '-o', out / 'r.html'], ['analyze', 'waterfall,schedule,stragglers,idle-time-breakdown,temporal-breakdown,operators', path]):
                out.mkdir(exist_ok=True)
                done = run(*arguments)
                text = ' '.join((done.out + ' ' + done.err).split())
                for match in FLAG.finditer(text):
                    before = re.findall(rf'stageline ([a-z-]+)|({others})', text[max(0, match.start() - 160):match.start()])
                    command = before[-1][0] if before and before[-1][0] in self.flags else arguments[0]
                    if match[0] not in self.all or before and before[-1][1]:
                        continue
                    spoken += 1
                    if match[0] not in self.flags[command]:
                        found.add(f'{path.parent.name}: {command} has no {match[0]}: …{text[max(0, match.start() - 80):match.end()]}')
        self.assertEqual(sorted(found), [])
        self.assertGreater(spoken, 10)


if __name__ == '__main__':
    unittest.main()
