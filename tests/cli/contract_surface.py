"""The interface that other people's scripts depend on, read from the program and the page: commands and flags, lists,
JSON, files, deep links."""
import contextlib
import json
import re
import shutil
import sqlite3
import sys

from support import SOURCE, run

HERE = 'tests/cli/contract_surface.py'
READERS = SOURCE / 'tests/golden/readers'
PLANNED = SOURCE / 'tests/plan/llama3-8b.json'
TOPICS = ('readers', 'analyses', 'exporters', 'schedules')


def said(*args):
    return run(*args, check=0).out


# ---- commands ------------------------------------------------------------------------------------------------------------


def commands():
    """Every command with its operands, its flags with the form of their values, and what may be chosen."""
    plain = lambda text: text.replace('\\-', '-').replace('\\e', '\\').replace('\\&', '').strip()
    manual, shell = said('man').split('.SH COMMANDS', 1)[1], said('completion', 'fish')
    pages, _, rest = manual.partition('.SH COMMON FLAGS')
    flags_in = lambda text: {plain(name): plain(value or '') for name, value in
                             re.findall(r'^\.TP\n\\fB(\\-\\-.*?)\\fR(?: (?:\\fI)?(.*?)(?:\\fR)?)?$', text, re.M)}
    found = {}
    for page in pages.split('.SS "')[1:]:
        title, _, text = page.partition('"\n')
        name, _, operands = plain(title).partition(' ')
        flags = {**flags_in(text), **flags_in(rest.split('.SH readers')[0])}
        choices = dict(re.findall(rf"^complete -c stageline -n '__fish_seen_subcommand_from {re.escape(name)}' -l (\S+) .* -a '([^']*)'$",
                                  shell, re.M))
        found[name] = {'operands': operands, 'flags': flags,
                       'choices': {f'--{flag}': words.split() for flag, words in choices.items()},
                       'short': short_flags(name, flags)}
    return found


def short_flags(command, flags, letters='dhmoq'):
    """Returns the one-letter flags that the command accepts; its help does not show all of them."""
    value = [] if command == 'help' else ['x']
    return [f'-{letter}' for letter in letters if run(command, f'-{letter}', *value, '--help').returncode == 0]


def refused_spellings(command, kept):
    """Flags that the parser of this command does not take, in any of the ways that a flag can be spelled."""
    words = []
    for flag, value in kept['flags'].items():
        words += [flag, flag.replace('-', '_').replace('__', '--', 1)] if not value else [f'{flag}=1', flag, '1']
        if value and '-' in flag[2:]:
            words.append('--' + flag[2:].replace('-', '_') + '=1')
    done = run(command, *words, '--help')
    return [] if done.returncode == 0 else [f'{command}: {done.err.strip()}']


def lists():
    """Returns the names of everything that is registered, analyses with their tables, options and --compat tools."""
    found = {topic: re.findall(r'^  (\S+)', said('help', topic), re.M) for topic in TOPICS}
    about = {name: said('help', name) for name in found['analyses']}
    for name, text in about.items():
        text = text[text.index(f'stageline analyze {name}'):]  # a command may have the same name
        tables, _, options = text.partition('\nOptions:\n')
        about[name] = {'tables': re.findall(r'^  (\S+)', tables.split('Tables:\n')[1], re.M),
                       'options': re.findall(r'^  (--(?:compat \w+|format \w+|[\w-]+))', options, re.M)}
    return {**found, 'analyses': about}


# ---- JSON ----------------------------------------------------------------------------------------------------------------


class Shape:
    """The key paths of JSON values and the types that were met at each: "findings[].rank": "null or number"."""

    def __init__(self):
        self.types, self.objects, self.seen = {}, {}, {}

    def take(self, value, path=''):
        if isinstance(value, dict):
            self.note(path, 'object')
            self.objects[path] = self.objects.get(path, 0) + 1
            for key, inner in value.items():
                below = f'{path}.{key}' if path else key
                self.seen[below] = self.seen.get(below, 0) + 1
                if key == 'rows' and 'columns' in value:  # what is in them stands among the columns
                    self.note(below, 'list')
                else:
                    self.take(inner, below)
        elif isinstance(value, list):
            self.note(path, 'list')
            for inner in value:
                self.take(inner, path + '[]')
        else:
            self.note(path, self.type_of(path, value))
        return self

    @staticmethod
    def type_of(path, value):
        if value is None or isinstance(value, (bool, str)):
            return {type(None): 'null', bool: 'boolean', str: 'text'}[type(value)]
        # A number without a fraction may get one another time; only nanoseconds are promised to have none.
        return 'whole number' if isinstance(value, int) and path.endswith('_ns') else 'number'

    def note(self, path, kind):
        if path:
            self.types.setdefault(path, set()).add(kind)

    def paths(self):
        """A key that some objects lack may also be absent."""
        for path, count in self.seen.items():
            if count < self.objects.get(path.rpartition('.')[0], 0):
                self.types[path].add('absent')
        for kinds in self.types.values():
            if 'number' in kinds:
                kinds.discard('whole number')
        return {path: ' or '.join(sorted(kinds)) for path, kinds in sorted(self.types.items())}


def columns_of(tables):
    """Of tables as JSON: {table: {column: "type, unit"}}; a row must have just these keys."""
    found = {}
    for table in tables:
        found[table['name']] = {column['name']: ', '.join(filter(None, (column['type'], column['unit']))) for column in table['columns']}
        for row in table['rows']:
            if list(row) != list(found[table['name']]):
                raise AssertionError(f'a row of {table["name"]} has the keys {list(row)}, its columns are {list(found[table["name"]])}')
    return found


# Runs that are made on the spot; faults make findings, and what a healthy run does not say.
USUAL = '--stages 4 --micro-batches 8 --dp 2 --steps 5 --cost 10,20 --latency 0.2 --jitter 0.03 --optimizer 8 --machines 2'
MADE = {
    'slow-stage': f'1f1b {USUAL} --fault slow-stage:2,1.4 --seed 7',
    'healthy': f'1f1b {USUAL} --seed 8',
    'slow-rank': 'vpp --stages 2 --micro-batches 4 --dp 4 --steps 5 --fault slow-rank:5,1.5 --fault slow-step:1,1.5 --reduce 1 --messages '
                 '--format cells',
    'slow-link': 'zb-v --stages 4 --steps 4 --machines 2 --clock-skew 20ms --latency 0.5 --messages --fault slow-link:1,2,+6ms '
                 '--fault gc:40ms,0.01',
}
# A profile with a step that one rank's data loader makes long: a finding that names a rank and a step.
LATE_HOST = ['--model', 'mlp', '--layers', 1, '--steps', 7, '--ranks', 2, '--no-shapes', '--old-nccl', '--link-us', 4000,
             '--fault', 'host-delay:1,30,5']
# Questions, and the inputs that each is asked on; names with a slash are folders of tests/golden/readers.
ON_CELLS = ['slow-stage', 'slow-rank', 'slow-link', 'op-table/input']
ON_SLICES = ['late-host', 'kineto/input', 'kineto-pipeline/input', 'kineto-modules/input', 'ascend/input', 'ascend-helper/input']
QUESTIONS = {
    'info --json': [['info', '--json']],
    'explain --format json': [['explain', '--format', 'json']],
    'what-if --format json': [['what-if', '--format', 'json'], ['what-if', '--format', 'json', '--scale', 'stage=1,kind=F,by=0.5']],
    'align --format json': [['align', '--format', 'json', '--trust-clocks']],
    'export --to json': [['export', '--to', 'json', '-o', '-']],
}
# Options without which an analysis has nothing to say of these inputs.
OPTIONS = {'frequent-cuda-kernel-sequences': ['--operator-name', 'aten::linear', '--min-pattern-len', '1'], 'packing': ['--lengths', str(READERS.parent / 'files/lengths.csv')]}
PAIRS = [('healthy', 'slow-stage'), ('slow-stage', 'healthy'), ('slow-rank', 'slow-link')]
FILES = {'expert-load': 'readers/kineto-experts/input', 'flight-recorder': 'readers/flight-recorder/input', 'xla-steps': 'readers/xplane/input', 'allocator-snapshot': 'readers/memory-snapshot/input', 'execution-trace': 'files/execution_trace', 'memory-timeline': 'files/memory_timeline.raw.gz', 'memory-analysis': 'files/memory_timeline.raw.gz'}


def make_runs(folder):
    for name, options in MADE.items():
        said('simulate', *options.split(), '--force', '-o', folder / name, '-q')
    # A recording whose parts were all closed, so that `tail` waits for nothing.
    shutil.copytree(READERS / 'recording-kernels/input', folder / 'recording')
    sys.path.insert(0, str(SOURCE / 'tests/gen'))
    import kineto
    kineto.generate([*LATE_HOST, '-o', folder / 'late-host'])
    (folder / 'late-host/truth.json').unlink(missing_ok=True)


def place(folder, name):
    return READERS / name if '/' in name else folder / name


def tables_within(value):
    return value['tables'] if isinstance(value, dict) and isinstance(value.get('tables'), list) else []


def answers(folder):
    """{question: {"paths": …, "columns": …}} of what can be asked as JSON, without the analyses."""
    asked = {}
    for question, calls in QUESTIONS.items():
        asked[question] = [[command, place(folder, name), *flags] for command, *flags in calls for name in [*ON_CELLS, *ON_SLICES]]
    asked['diff --format json'] = [['diff', folder / a, folder / b, '--format', 'json'] for a, b in PAIRS]
    asked['schedule --format json'] = [['schedule', name, '--format', 'json'] for name in ('1f1b', 'vpp', 'zb-v', 'dualpipe')]
    asked['plan --format json'] = [['plan', PLANNED, '--gpus', '16', '--memory', '80GiB', '--format', 'json']]
    asked['tail --format json'] = [['tail', folder / 'recording', '--format', 'json']]
    stacks = ['--aggregate', '--format', 'speedscope', '-o', '-']
    asked['export-stacks --format speedscope'] = [['export-stacks', READERS / 'kineto-modules/input', *stacks]]
    found = {}
    for question, calls in asked.items():
        shape, columns, answered = Shape(), {}, 0
        for call in calls:
            done = run(*call, '-q')
            if done.returncode not in (0, 1) or not done.out:
                continue  # a run without a pipeline has no answer to some of them
            answered += 1
            for line in (done.out.splitlines() if question.startswith('tail') else [done.out]):
                value = json.loads(line)
                shape.take(value)
                merge(columns, columns_of(tables_within(value)))
        if not answered:
            raise AssertionError(f'{question}: no input is answered')
        found[question] = {'paths': shape.paths()}
        if question == 'export --to json':  # all analyses' at once; analyses() has their columns
            found[question]['tables'] = list(columns)
        elif columns:
            found[question]['columns'] = columns
    return found


def merge(into, found):
    for table, columns in found.items():
        into.setdefault(table, {}).update(columns)


def analyses(folder, names):
    """Returns {analysis, or analysis --compat TOOL: {table: {column: "type, unit"}}}, and the structure of such an
    answer."""
    shape, found = Shape(), {}
    for name, about in names.items():
        if 'options' in about and {'--control', '--test'} <= set(about['options']):
            inputs = [['--control', READERS / 'kineto/input', '--test', READERS / 'kineto-us/input']]
        elif name in FILES:
            inputs = [[READERS.parent / FILES[name]]]
        elif call := re.match(rf'\$ analyze {name} (\S*/\S*)', (READERS.parent / f'analyses/{name}.txt').read_text()):
            inputs = [[READERS.parent / call[1]]]  # its golden says what it is asked on
        else:
            inputs = [[place(folder, one)] for one in ('slow-link', 'op-table/input', *ON_SLICES)]
        for rival in ['', *(option.split()[1] for option in about['options'] if option.startswith('--compat '))]:
            key = f'{name} --compat {rival}' if rival else name
            columns = {}
            for words in inputs:
                words = [*words, *OPTIONS.get(name, []), *(['--compat', rival] if rival else [])]
                done = run('analyze', name, *words, '--format', 'json', '-q')
                if done.returncode == 0:
                    merge(columns, columns_of(tables_within(json.loads(done.out))))
                    shape.take(json.loads(done.out))
            if not columns:
                raise AssertionError(f'analyze {key}: no input is answered; {HERE} has inputs, and OPTIONS that some need')
            found[key] = columns
    return {'paths': shape.paths(), 'columns': found}


# ---- files ---------------------------------------------------------------------------------------------------------------


def header(text):
    return text.splitlines()[0].split(',')


def tables_of_database(path, answers=()):
    """{table: {column: type}}; of tables that answer an analysis, whose columns analyses() has, the names alone."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        found = {name: {row[1]: row[2] or 'any' for row in db.execute(f'PRAGMA table_info("{name}")')} for name in names}
    known = [name for name in found if re.sub(r'_\d+$', '', name) in answers]
    return {**{name: columns for name, columns in found.items() if name not in known}, **({'tables of analyses': known} if known else {})}


def files(folder, names):
    """Columns of what is written: CSV by its first line, databases by their tables."""
    answers = {table for about in names.values() for table in about['tables']}
    found = {'export --to csv': header(said('export', folder / 'slow-link', '--to', 'csv', '-o', '-', '-q')),
             'simulate: truth.csv': header((folder / 'slow-link/truth.csv').read_text()),
             'simulate --format cells: cells.csv': header((folder / 'slow-rank/cells.csv').read_text()),
             'schedule --format csv': header(said('schedule', 'zb-v', '--format', 'csv'))}
    for what, source in (('cells', folder / 'slow-link'), ('a profile', READERS / 'kineto/input')):
        name = f'export --to sqlite, of {what}'
        path = folder / f'{len(found)}.sqlite'
        said('export', source, '-o', path, '-q')
        found[name] = tables_of_database(path, answers)
    said('pp-chart', READERS / 'ascend-1f1b/input', '--tables-only', '-o', folder / 'chart', '-q')
    chart = {}
    for path in sorted((folder / 'chart').rglob('*.db')):
        chart.update(tables_of_database(path))
    return {**found, 'pp-chart --tables-only': chart}


# ---- the page ------------------------------------------------------------------------------------------------------------

WEB = SOURCE / 'web/src'
# Which files read and write the parameters of an address; "address" is what stands before the #.
ADDRESS_FILES = {
    'address': ['viewer/main.tsx', 'i18n/i18n.ts'],
    'timeline': ['viewer/timeline/url.ts', 'viewer/timeline/timeline_page.tsx'],
    'pipeline': ['state.ts', 'viewer/pipeline/address.ts', 'viewer/pipeline/page.tsx'],
    'answers': ['viewer/answers/page.ts', 'viewer/answers/section.ts', 'viewer/answers/sql.ts'],
}
LISTS = {'pages': ('viewer/shell/route.ts', 'PAGES'), 'families': ('viewer/answers/families.ts', 'FAMILY_IDS')}
READ = r"\.(?:get|has)\('(\w+)'\)|\bids\('(\w+)'\)"


def source(name):
    path = WEB / name
    if not path.is_file():
        raise AssertionError(f'web/src/{name} is gone: {HERE} says in ADDRESS_FILES and LISTS who reads addresses; name there who does now')
    return path.read_text()


def page():
    """Pages and families that a link can name, and the parameters that each page looks for in one."""
    found = {}
    for what, (name, constant) in LISTS.items():
        declared = re.search(rf'\b{constant} = \[(.*?)\] as const', source(name), re.S)
        if not declared:
            raise AssertionError(f'web/src/{name} does not declare {constant} = […] as const: LISTS of {HERE} says where {what} are')
        found[what] = re.findall(r"'([\w-]+)'", declared[1])
    for where, names in ADDRESS_FILES.items():
        read = set()
        for name in names:
            here = {a or b for a, b in re.findall(READ, source(name))}
            if not here:
                raise AssertionError(f'web/src/{name} looks for no parameter of an address: correct ADDRESS_FILES, or READ, of {HERE}')
            read |= here
        found[f'parameters of {where}'] = sorted(read)
    return found


def collect(folder):
    make_runs(folder)
    registered = lists()
    return {'commands': commands(), 'lists': registered, 'answers': answers(folder),
            'analyses': analyses(folder, registered['analyses']), 'files': files(folder, registered['analyses']), 'page': page()}
