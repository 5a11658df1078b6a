"""Runs a composite action of GitHub's as its runner does: steps with their conditions, inputs, variables and outputs, each by bash.

Knows the part of YAML and of GitHub's expressions that action.yml uses; anything else is an error, not a guess."""
import os
import pathlib
import re
import subprocess


class Yaml:
    """Maps, lists and texts by their indentation; every value is a text."""

    def __init__(self, text):
        self.lines, self.at = text.split('\n'), 0

    def next(self):
        """(indentation, text) of the next line that has content; (-1, '') at the end."""
        while self.at < len(self.lines):
            text = self.lines[self.at].strip()
            if text and not text.startswith('#'):
                return len(self.lines[self.at]) - len(self.lines[self.at].lstrip()), text
            self.at += 1
        return -1, ''

    def block(self, indent=0):
        items, made = [], {}
        while (found := self.next())[0] == indent:
            text = found[1]
            if text.startswith('- '):
                self.lines[self.at] = ' ' * (indent + 2) + text[2:]
                items.append(self.block(indent + 2))
                continue
            key, colon, value = text.partition(':')
            if not colon or items or key in made:
                raise ValueError(f'line {self.at + 1}: {text}')
            self.at += 1
            made[key] = self.literal(indent) if value.strip() == '|' else self.scalar(value.strip()) if value.strip() else self.block(self.next()[0])
        return items or made

    def literal(self, indent):
        """A text of lines that are indented further."""
        begin = self.at
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or self.lines[self.at].startswith(' ' * (indent + 1))):
            self.at += 1
        lines = self.lines[begin:self.at]
        depth = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        return '\n'.join(line[depth:] for line in lines).rstrip('\n') + '\n'

    @staticmethod
    def scalar(text):
        if text[0] in '"\'':
            if text[-1] != text[0] or '\\' in text:
                raise ValueError(text)
            return text[1:-1]
        if text[0] in '[{&*!>%@`':
            raise ValueError(text)
        return text


def value_of(expression, contexts):
    """The value of `a.b.c`; what a context lacks is an empty text, as on GitHub."""
    expression = expression.strip()
    if not re.fullmatch(r'[a-z]+(\.[\w-]+)+', expression):
        raise ValueError(f'expression {expression}')
    first, *rest = expression.split('.')
    value = contexts[first]
    for name in rest:
        value = value.get(name, {}) if isinstance(value, dict) else {}
    return '' if value == {} else str(value)


def filled(text, contexts):
    return re.sub(r'\$\{\{(.*?)\}\}', lambda m: value_of(m[1], contexts), text)


def holds(condition, contexts):
    left, is_compared, right = condition.partition(" != ''")
    if not is_compared or right:
        raise ValueError(f'condition {condition}')
    return value_of(left, contexts) != ''


def run(action, workspace, given, temp, github=None, environment=None):
    """(exit status, {output: value}, summary, what the steps printed) of the action in the folder `action` with the inputs `given`.

    `workspace` is the checked out repository, `temp` a folder that is new for each job, `github` the context of that name."""
    action, temp = pathlib.Path(action).resolve(), pathlib.Path(temp)
    described = Yaml((action / 'action.yml').read_text()).block()
    unknown = set(given) - set(described['inputs'])
    missing = {name for name, one in described['inputs'].items() if one.get('required') == 'true'} - set(given)
    if unknown or missing or described['runs']['using'] != 'composite':
        raise ValueError(f'inputs that the action does not have: {unknown}; that it needs: {missing}')
    contexts = {'github': github or {}, 'steps': {}, 'inputs': {}}
    contexts['inputs'] = {name: str(given[name]) if name in given else filled(one['default'], contexts) for name, one in described['inputs'].items()}
    temp.mkdir(parents=True)
    env = {**{k: v for k, v in os.environ.items() if not k.startswith('GITHUB_')}, **(environment or {}), 'GITHUB_ACTIONS': 'true', 'GITHUB_WORKSPACE': str(workspace),
           'GITHUB_ACTION_PATH': str(action), 'RUNNER_TEMP': str(temp), 'GITHUB_STEP_SUMMARY': str(temp / 'summary')}
    (temp / 'summary').touch()
    code, printed = 0, ''
    for number, step in enumerate(described['runs']['steps']):
        if set(step) - {'if', 'id', 'shell', 'env', 'run'} or step['shell'] != 'bash':
            raise ValueError(f'step {number}: {sorted(step)}')
        if 'if' in step and not holds(step['if'], contexts):
            continue
        script, outputs, paths = temp / f'{number}.sh', temp / f'{number}.outputs', temp / f'{number}.path'
        script.write_text(filled(step['run'], contexts))
        outputs.touch()
        paths.touch()
        mine = {name: filled(value, contexts) for name, value in step.get('env', {}).items()}
        done = subprocess.run(['bash', '--noprofile', '--norc', '-e', '-o', 'pipefail', script], cwd=workspace, capture_output=True, text=True,
                              env={**env, **mine, 'GITHUB_OUTPUT': str(outputs), 'GITHUB_PATH': str(paths)})
        code, printed = done.returncode, printed + done.stdout + done.stderr
        contexts['steps'][step.get('id', str(number))] = {'outputs': dict(line.split('=', 1) for line in outputs.read_text().splitlines())}
        env['PATH'] = ':'.join([*reversed(paths.read_text().splitlines()), env['PATH']])
        if code != 0:
            break
    return code, {name: filled(one['value'], contexts) for name, one in described['outputs'].items()}, (temp / 'summary').read_text(), printed
