"""Keywords as the flags of the program: one declaration says what both take."""
import datetime
import functools
import os
import re
import shlex

from . import _engine

_flags = {}


def _flags_of(command):
    if command not in _flags:
        _flags[command] = {name: value for name, value, _, _ in _engine.flags(command)}
    return _flags[command]


def time_text(value):
    """A point or length of time as the program reads it: whole numbers are nanoseconds."""
    if value is None:
        return ''
    if isinstance(value, str):
        return value
    if isinstance(value, datetime.timedelta):
        value = (value.days * 86_400 + value.seconds) * 1_000_000_000 + value.microseconds * 1000
    return f'{int(value)}ns'


def _range_text(value, one):
    if isinstance(value, str):
        return value
    if isinstance(value, slice):
        if value.step is not None:
            raise _usage('a range of steps has no stride', 'steps=(3, 5) is steps 3 to 5')
        return f'{one(value.start)}:{one(value.stop)}'
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise _usage(f'{value!r} is no range', 'a range is (first, last), both included')
        return f'{one(value[0])}:{one(value[1])}'
    return one(value)


def _usage(what, hint):
    error = _engine.UsageError(what + (f'\n  hint: {hint}' if hint else ''))
    error.what, error.where, error.hint, error.code = what, '', hint, 'usage'
    return error


def _bad_input(what, file):
    error = _engine.BadInput(f'{file}: {what}')
    error.what, error.where, error.hint, error.code = what, os.fspath(file), '', 'bad_input'
    return error


def _mapping_text(value):
    """Writes {'stage': 3, 'by': 0.9} as stage=3,by=0.9."""
    return ','.join(f'{k}={v}' for k, v in value.items())


def _one(value):
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, dict):
        return _mapping_text(value)
    if isinstance(value, datetime.timedelta):
        return time_text(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


_REPEATED = {'scale', 'align-on', 'fault'}
_TIMES = {'latency'}


def words(command, keywords):
    """['--pp=4', '--steps=3:5', …] of {'pp': 4, 'steps': (3, 5)}; None leaves a flag out."""
    known = _flags_of(command)
    out = []
    for key, value in keywords.items():
        name = key.replace('_', '-').rstrip('-')
        if value is None:
            continue
        if known.get(name) == '':  # a switch
            if value not in (True, False):
                raise _usage(f'{key} is True or False, not {value!r}', '')
            if value:
                out.append(f'--{name}')
            continue
        if name == 'steps':
            value = _range_text(value, lambda v: '' if v is None else str(v))
        elif name == 'range':
            value = _range_text(value, time_text)
        elif name in _TIMES:
            value = time_text(value)
        elif name in _REPEATED:
            values = [value] if isinstance(value, (str, dict)) else list(value)
            out += [f'--{name}=' + (':'.join(map(str, v)) if isinstance(v, (tuple, list)) else _one(v)) for v in values]
            continue
        elif isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, '__iter__') and not isinstance(value, (str, bytes, dict))):
            value = ','.join(_one(v) for v in value)
            if not value:
                continue
        out.append(f'--{name}={_one(value)}')
    return out


# ---- texts of the program, for a Python user ----

# The program's commands, and the call that answers the same; commands that are not here have none, as a recording, whose program starts elsewhere.
METHODS = {
    'analyze': 'trace.analyze', 'explain': 'trace.findings', 'what-if': 'trace.what_if', 'report': 'trace.report', 'export': 'trace.export',
    'view': 'trace.view', 'sql': 'trace.sql', 'info': 'trace.info', 'diff': 'stageline.diff', 'schedule': 'stageline.schedule',
    'simulate': 'stageline.simulate', 'plan': 'stageline.plan', 'align': "stageline.open(…, align='always')",
}
_PROPERTIES = {'trace.findings', 'trace.info'}
_TOPICS = {'stageline help analyses': 'stageline.analyses()', 'stageline help schedules': 'help(stageline.schedule)',
           'stageline help plan': 'help(stageline.plan)', 'stageline analyze --help': 'help(stageline.open)',
           'stageline what-if --help': 'help(stageline.Trace.what_if)', 'stageline report --help': 'help(stageline.Trace.report)',
           '"analyze" has no flag': 'there is no option', 'has no flag': 'has no option'}
# Below tables: how to have all of them.
_TABLES = {'--rows 0': 'text(rows=0)', '--format csv or json': 'to_csv() and to_json()', '--format csv 或 json': 'to_csv() 与 to_json()',
           '--format csv': 'to_csv()'}
# Other programs' commands: their flags stay as they are to the end of the line.
_FOREIGN = ('nsys ', 'rocprofv3 ', 'msprof ', 'torchrun ', 'python ')
# Words that are values; others after a flag go on with the sentence.
_VALUE = (r'"[^"]*"|\'[^\']*\'|[0-9][^\s;)，。；）]*(?<![,.:])|[A-Z]+(?![\w])|'
          r'(?:hta|msprof|torch|rebuilt|json|csv|sqlite|never|always|auto|off|html|true|false|paddle-v3|perfetto|chrome|svg|png|pdf)(?![\w-])')
_FLAG = rf'--(?P<flag>[a-z][a-z0-9-]*)(?:[ =](?P<value>{_VALUE}))?'


@functools.lru_cache(None)
def _known_flags():
    return frozenset(name for command in ('analyze', 'explain', 'align', 'export', 'plan', 'pp-chart', 'report', 'schedule', 'simulate', 'what-if')
                     for name in _flags_of(command))


_analyses = set()


def _takes(command, word):
    """Whether a word behind a command is a name that it takes, and not the next word of the sentence."""
    if command == 'analyze':
        if not _analyses:
            _analyses.add('')  # help of options goes through here, too
            _analyses.update(analysis[0] for analysis in _engine.analyses())
        return word in _analyses
    return command in ('schedule', 'simulate') and re.search('[0-9-]', word) is not None


def _keyword(flag, value):
    """layers=2 of --layers 2; a flag alone is its name, as a sentence has it."""
    name = flag.replace('-', '_')
    if value is None:
        return name
    bare = value[0] in '"\'' or re.fullmatch(r'[0-9.]+|[A-Z]+', value)
    return f'{name}={value}' if bare else f"{name}='{value}'"


def _call(command, arguments):
    """trace.analyze('links', table='links') of the words of a command: names of analyses and schedules stay, files go."""
    method, given, tail, at = METHODS[command], [], '', 0
    while at < len(arguments):
        word, following = arguments[at], arguments[at + 1] if at + 1 < len(arguments) else None
        at += 1
        if word in ('-o', '--output') or (word == '--format' and command == 'schedule'):
            if word == '--format':
                given.append(f"format='{following}'")
            tail = '.to_csv()' if command == 'schedule' else tail
            at += 1
        elif word.startswith('--'):
            name, equals, value = word[2:].partition('=')
            if not equals and following is not None and not following.startswith('-') and _flags_of(command).get(name) != '':
                value, at = following, at + 1
            given.append(_keyword(name, value) if re.fullmatch('[0-9.]+', value) else f"{name.replace('-', '_')}={value!r}" if value
                         else name.replace('-', '_') + '=…')
        elif command in ('analyze', 'schedule', 'simulate') and not given:
            given.append(repr(word))
    if '(' in method:
        return method
    if method in _PROPERTIES:
        return f"stageline.open(…, {', '.join(given)}).{method.partition('.')[2]}" if given else method
    return f"{method}({', '.join(given)})" + tail


def call_of(command):
    """The call in Python of a whole command with its files; the command itself where there is none."""
    words_of = shlex.split(command) if command.startswith('stageline ') else []
    return _call(words_of[1], words_of[2:]) if len(words_of) > 1 and words_of[1] in METHODS else command


# A command in a sentence is followed by the name of an analysis or schedule, by flags with their values, and by files.
_COMMANDS = re.compile(rf'stageline\s+(?P<command>{"|".join(sorted(METHODS, key=len, reverse=True))})(?![\w-])(?P<name>\s+[a-z0-9][a-z0-9-]*(?![\w/]|\.\w))?'
                       rf'(?P<rest>(?:\s+(?:--[a-z][a-z-]*(?:[ =](?:{_VALUE}))?|-o \S+|[A-Z]+…?(?!\w)|\S*[/.]\w+))*)')
_FLAGS = re.compile(rf'(?<![\w-]){_FLAG}')


def table_in_python(text):
    """A table for people: its cells are the run's, so only the lines about the table itself change."""
    for said, python in _TABLES.items():
        text = text.replace(said, python)
    return text


def in_python(text, paths=()):
    """A text of the program in Python's terms: its commands are calls (METHODS), its flags keywords. Other programs' stay. `paths` are those of
    the opened run: behind a command they go, also where they look like words."""
    for path in map(os.fsdecode, paths):
        text = re.sub(rf'(stageline [a-z-]+) {re.escape(shlex.quote(path))}(?!\S)', r'\1 LOGS', text)
    for said, python in (*_TOPICS.items(), *_TABLES.items()):
        text = text.replace(said, python)

    def command(found):
        name, rest = found['name'] or '', found['rest']
        if name and not _takes(found['command'], name.strip()):
            return _call(found['command'], []) + name + rest
        words_of = name + rest
        end = re.search(r'[.,;:]?$', words_of).group()
        return _call(found['command'], words_of[:len(words_of) - len(end)].split()) + end

    def flag(found):
        line = found.string[found.string.rfind('\n', 0, found.start()) + 1:found.start()]
        if not line.endswith('no option ') and found['flag'] not in _known_flags() or any(name in line for name in _FOREIGN) or 'stageline ' in line:
            return found.group()
        return _keyword(found['flag'], found['value'])

    text = _COMMANDS.sub(command, text)
    return _FLAGS.sub(flag, text) if '--' in text else text


def all_in_python(value):
    """A value of JSON with its texts in Python's terms; the key `command` has a whole command."""
    if isinstance(value, str):
        return in_python(value)
    if isinstance(value, list):
        return [all_in_python(v) for v in value]
    if isinstance(value, dict):
        return {k: call_of(v) if k == 'command' else all_in_python(v) for k, v in value.items()}
    return value
