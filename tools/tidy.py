#!/usr/bin/env python3
"""The house rules as a test: who may include whom, what every registered part must have, sizes.

Prints one line per violation with what to do; exits 1 when there is any.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SRC = ROOT / 'src'

# Top rooms, each with those that it includes besides itself, base and model; ARCHITECTURE.md draws them. Siblings never include each
# other. To include one more room, add it here, if it is below.
MAY_INCLUDE = {
    'base': '',
    'model': '',
    'profile': '',
    'readers': '',
    'schedules': '',
    'exporters': 'profile',
    'pipeline': 'schedules',
    'facts': 'profile pipeline',
    'plan': 'schedules pipeline',
    'diagnosis': 'profile schedules pipeline facts plan',
    # Answers in other tools' ways: two rooms are below the analyses that offer them, two are commands and are above engine.
    'compat/hta': 'profile',
    'compat/torch_tables': 'profile',
    'compat/memory_estimates': 'plan',
    'analyses': 'profile pipeline facts plan diagnosis compat/hta compat/torch_tables',
    'engine': 'profile readers schedules exporters pipeline facts diagnosis analyses',
    'compat/msprof': 'readers engine',
    'compat/paddle_timeline': 'readers',
    # SQL over a run: what engine knows of it, as tables.
    'sql': 'profile pipeline facts diagnosis analyses engine',
    # Agents ask what engine and sql answer.
    'mcp': 'diagnosis analyses engine sql',
    # The viewer and the command line list what is registered and write tables.
    'server': 'profile readers exporters pipeline facts diagnosis analyses engine sql',
    'cli': 'profile readers schedules exporters pipeline facts plan diagnosis analyses engine sql mcp server compat/memory_estimates compat/msprof compat/paddle_timeline',
    # What-if for a report's page: a program of its own, in WebAssembly.
    'wasm': 'diagnosis server',
    # The cluster program: the commands, after digests that all processes made.
    'mpi': 'cli',
}
BELOW_ALL = ['base', 'model']
MAY_INCLUDE = {room: {*others.split(), *BELOW_ALL[:BELOW_ALL.index(room) if room in BELOW_ALL else None]} for room, others in MAY_INCLUDE.items()}
# Rooms inside: each includes those before it, never those after; '' is the top room itself.
ROOM_ORDER = {
    'pipeline': ['cells', 'clocks', 'order', 'sums', 'replay', 'measure', 'simulate'],
    'server': ['http', 'timeline', 'pipeline', 'live', 'page'],
    'diagnosis': ['causes', 'what_if', 'diff', 'profile', ''],
}
# Rooms of web/src/viewer: each imports those of earlier lines; those of one line never import each other. Files in viewer/ itself
# import all, and files next to viewer/ import none.
PAGE_ROOMS = [['shell'], ['file', 'answers'], ['evidence'], ['start', 'overview', 'timeline', 'pipeline', 'compare', 'flame', 'plan']]
# Folders inside these are siblings too: readers/kineto never includes readers/primus. Shared files are next to them or in common/.
SIBLING_FOLDERS = {'readers', 'analyses', 'diagnosis/causes'}
# Includes and circles that stand against these rules and are to go, a line each: tools/rooms_exceptions.txt.
EXCEPTIONS = ROOT / 'tools' / 'rooms_exceptions.txt'

REGISTRIES = {  # .def file → (layer, macro, folder of pages)
    'readers': ('readers/readers.def', 'READER', 'docs/formats'),
    'analyses': ('analyses/analyses.def', 'ANALYSIS', 'docs/analyses'),
    'exporters': ('exporters/exporters.def', 'EXPORTER', 'docs/exporters'),
    'schedules': ('schedules/schedules.def', 'SCHEDULE', 'docs/schedules'),
}

OPENERS = ('base/output_file', 'base/input_files', 'base/input', 'base/sqlite_pages', 'base/gzip_index', 'base/file_sample', 'base/sqlite_db', 'cli/confine', 'cli/cmd_history', 'cli/main', 'compat/msprof/in_place', 'compat/msprof/rank_tables')
STANDARD = '|'.join(re.findall(r'#include <(\w+)>', (SRC / 'base/std.h').read_text()))
VOCABULARY = 'base/vocabulary.h'
SPOKEN = set(re.findall(r'#include "([^"]+)"', (SRC / VOCABULARY).read_text()))  # what the vocabulary consists of
BANNED = [  # (pattern, where it does not apply, what to use)
    (f'#include <(?:{STANDARD})>', 'src/base/std.h', 'nothing: base/std.h has it'),
    (r'\bstd::(cout|cerr)\b|#include <iostream>', '', 'stdio or OutputFile; iostreams cost start-up time'),
    (r'\busing namespace std\b', '', 'spell std::'),
    (r'\b(strtod|atof|stod|atoi|stoi|strtol)\s*\(', 'src/wasm/alone.h src/wasm/alone.cc', 'base/number.h: parse_int, parse_double, parse_decimal_ns'),
    (r'\b(fopen|ofstream)\s*\(', '', 'base/output_file.h: files appear only when whole'),
    (r'\bifstream\b|<fstream>', '', 'base/input.h or own_file() of base/input_files.h: every file that is read is known to the gate'),
    (r'\bopen(at)?\s*\([^;{]*?\bO_[A-Z]', ' '.join(f'src/{name}.cc' for name in OPENERS), 'open_input_file() of base/input_files.h'),
    (r'\bthrow\b', 'src/base/give_up.h src/base/word_files.cc', 'Result<T>; exceptions stop at the Python edge'),
    (r'\bstd::thread\b', 'src/base/parallel.cc src/cli/cmd_mcp.cc src/cli/terminal.cc src/server/http/answer_desk.cc src/server/http/answer_desk.h src/server/live/live_run.h src/mpi/main.cc', 'base/parallel.h'),
]
MAX_LINES = 500
MAX_LINE_LENGTH = 140
MAX_BLOB_BYTES = 1 << 20
MAX_CLICKS = 3

problems, hints = [], []
permissions = {room: others - set(BELOW_ALL) for room, others in MAY_INCLUDE.items()}  # those that no include has used yet


def problem(path, line, text):
    problems.append(f'{path.relative_to(ROOT)}:{line}: {text}' if line else f'{path.relative_to(ROOT)}: {text}')


def code_only(text):
    """Comments and strings blanked, line structure kept."""
    blank = lambda m: re.sub(r'[^\n]', ' ', m[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def exceptions():
    lines = [line.split('#')[0].strip() for line in EXCEPTIONS.read_text().splitlines()] if EXCEPTIONS.exists() else []
    return {line: False for line in lines if line}  # → whether it was met


KNOWN = exceptions()


def known(line):
    if line in KNOWN:
        KNOWN[line] = True
    return line in KNOWN


def room_of(name):
    """('pipeline', 'cells') of 'pipeline/cells/cell_rules.h': the top room, and the room inside it or ''."""
    folders = name.split('/')[:-1]
    if folders and folders[0] == 'compat':
        return '/'.join(folders[:2]), ''
    return (folders or [''])[0], folders[1] if len(folders) > 1 else ''


def sibling_of(name, family):
    """Returns 'kineto' of 'readers/kineto/sniff.cc' in the family 'readers'; '' for other files and those in no folder of the family."""
    inside = name.removeprefix(family + '/')
    return inside.split('/')[0] if inside != name and '/' in inside else ''


def header_exists(name):
    """Returns whether a header is in src/, or made from the words.json of its room (cmake/chinese.cmake)."""
    path = SRC / name
    return path.exists() or path.name == 'problems.h' and path.with_name('words.json').exists()


def check_includes(path, text):
    name = str(path.relative_to(SRC))
    top, room = room_of(name)
    if top not in MAY_INCLUDE:
        problem(path, 0, f'unknown room "{top}"; add it to tools/tidy.py with what it may include')
        return
    if top in ROOM_ORDER and room not in ROOM_ORDER[top]:
        problem(path, 0, f'unknown room "{room}" in {top}/; its rooms are {", ".join(filter(None, ROOM_ORDER[top]))}')
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'#include "([^"]+)"', line)
        if not match or match[1].endswith('.def'):
            continue
        target = match[1]
        if not header_exists(target):
            problem(path, number, f'includes "{target}", which does not exist; paths start at src/')
            continue
        other, inner = room_of(target)
        permissions[top].discard(other)
        if known(f'{name} {target}'):
            continue
        if other != top and other not in MAY_INCLUDE[top]:
            problem(path, number, f'{top}/ may not include {other}/ (rooms point one way); sink what both need to '
                                  f'base/ or model/')
        elif other == top and top in ROOM_ORDER and ROOM_ORDER[top].index(inner) > ROOM_ORDER[top].index(room):
            problem(path, number, f'{top}/{room} may not include {top}/{inner}, which stands after it')
        for family in SIBLING_FOLDERS:
            own, their = sibling_of(name, family), sibling_of(target, family)
            if own and their not in ('', 'common', own):
                problem(path, number, f'siblings never include each other ({family}/{their}); sink what both need')


def circles_of(uses):
    """Returns the circles of a graph, node → nodes: the strongly connected components of several nodes (Tarjan)."""
    number, low, way, on_way, circles = {}, {}, [], set(), []

    def visit(node):
        number[node] = low[node] = len(number)
        way.append(node)
        on_way.add(node)
        for other in sorted(uses.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_way:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(way.pop())
                on_way.discard(circle[-1])
            if len(circle) > 1:
                circles.append(sorted(circle))

    for node in sorted(uses):
        if node not in number:
            visit(node)
    return circles


def check_circles():
    """Units (a header and its source) include each other one way, and so do folders of every depth: of a circle none can be
    understood, or moved, alone."""
    units, folders = {}, {}  # each → those that it includes
    for path in sorted([*SRC.rglob('*.h'), *SRC.rglob('*.cc')]):
        unit = str(path.relative_to(SRC).with_suffix(''))
        targets = {target for target in re.findall(r'^#include "([^"]+)\.h"', path.read_text(), re.M)
                   if target != unit and (SRC / f'{target}.h').exists()}
        units.setdefault(unit, set()).update(targets)
        folder = unit.rpartition('/')[0]
        folders.setdefault(folder, set()).update({target.rpartition('/')[0] for target in targets} - {folder})
    for kind, graph in (('units', units), ('folders', folders)):
        for circle in circles_of(graph):
            if not known('circle ' + ' '.join(circle)):
                problem(SRC / circle[0], 0, f'{kind} include each other in a circle: {", ".join(circle)}; move what they need to one place')


def check_permissions():
    """A room may include no more than it does: a new one is a decision, made in MAY_INCLUDE."""
    for room, others in permissions.items():
        for other in sorted(others):
            problem(SRC / room, 0, f'{room}/ includes nothing of {other}/; strike it in MAY_INCLUDE')


def check_named_headers(path, text):
    """A header that a comment names is there: what was moved is named by its new place."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r'//.*?\b((?:[a-z_0-9]+/)+[a-z_0-9]+\.h)\b', line):
            if name.split('/')[0] in {room.split('/')[0] for room in MAY_INCLUDE} and not header_exists(name):
                problem(path, number, f'names {name}, which does not exist')


def check_spare_includes(write):
    """Each include adds something: no part of the vocabulary is named, nor the vocabulary where another header includes it. A file
    does not repeat what another of its headers brings, unless it is of a third room. `tidy.py --write` strikes such lines."""
    texts = {str(path.relative_to(SRC)): path.read_text() for path in sorted([*SRC.rglob('*.cc'), *SRC.rglob('*.h')])}
    direct = {name: re.findall(r'^#include ["<]([^">]+(?<!\.def))[">]', text, re.M) for name, text in texts.items()}
    brought = {}

    def brings(name):
        """All that a header includes, itself or by others, once its parts of the vocabulary are the whole."""
        if name not in brought:
            brought[name] = {VOCABULARY if name not in SPOKEN and other in SPOKEN else other for other in direct.get(name, ())}
            brought[name].update(*map(brings, list(brought[name])))
        return brought[name]

    for name, text in texts.items():
        if {name, name.removesuffix('cc') + 'h'} & {*SPOKEN, VOCABULARY}:
            continue
        own = name.removesuffix('cc') + 'h' if name.endswith('.cc') else ''
        of_room = [header for header in direct[name] if room_of(header)[0] == room_of(name)[0]]
        given = {other for header in direct[name] if header != VOCABULARY for other in brings(header)
                 if room_of(other)[0] in (room_of(name)[0], room_of(header)[0], *BELOW_ALL)
                 or header in of_room and other in direct.get(header, ())}
        has_vocabulary = any(VOCABULARY in brings(other) for other in direct[name] if other not in {*SPOKEN, VOCABULARY})
        has_named = VOCABULARY in direct[name] and not has_vocabulary
        for other in direct[name]:
            line = re.compile(rf'^#include ["<]{re.escape(other)}[">]\n', re.M)
            if other == own or not (other in SPOKEN or other == VOCABULARY and has_vocabulary or other in given):
                continue
            needed = other in SPOKEN and not has_vocabulary and not has_named
            has_named = has_named or needed
            if write:
                text = line.sub(f'#include "{VOCABULARY}"\n' if needed else '', text, count=1)
            else:
                problem(SRC / name, texts[name].count('\n', 0, line.search(texts[name]).start()) + 1,
                        f'includes {other}, which {VOCABULARY if other in SPOKEN else "another of its headers"} has')
        if text != texts[name]:
            (SRC / name).write_text(re.sub(r'\n{3,}', '\n\n', text.lstrip('\n')))


def check_source(path):
    text = path.read_text()
    check_includes(path, text)
    check_named_headers(path, text)
    lines = text.splitlines()
    if len(lines) > MAX_LINES:  # a hint, no rule: one algorithm stays in one file
        hints.append(f'{path.relative_to(ROOT)}: {len(lines)} lines; past {MAX_LINES} look for a seam')
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_LENGTH:
            problem(path, number, f'{len(line)} columns; break it before {MAX_LINE_LENGTH}')
    code = code_only(text)
    for pattern, allowed, instead in BANNED:
        if str(path.relative_to(ROOT)) in allowed.split():
            continue
        for match in re.finditer(pattern, code):
            problem(path, code.count('\n', 0, match.start()) + 1, f'"{match[0].strip()}": use {instead}')
    if path.suffix == '.h' and '#pragma once' not in text:
        problem(path, 0, 'a header begins with a comment and #pragma once')
    if path.suffix == '.h' and not text.startswith('//'):
        problem(path, 0, 'a header opens with what it promises, in a comment')


def check_record():
    """The recorder is independent: its own headers and the system's, the same sizes as src/."""
    folders = [ROOT / 'record' / 'include', ROOT / 'record' / 'src']
    own = {path.name for folder in folders for path in folder.glob('*.h*')}
    for path in sorted(path for folder in folders for path in folder.iterdir() if path.suffix in ('.cc', '.h', '.hpp')):
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES:
            problem(path, 0, f'{len(lines)} lines; past {MAX_LINES} look for a seam')
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_LINE_LENGTH:
                problem(path, number, f'{len(line)} columns; break it before {MAX_LINE_LENGTH}')
            match = re.match(r'#include "([^"]+)"', line)
            if match and match[1] not in own:
                problem(path, number, f'record/ includes nothing but its own headers, not "{match[1]}"')
            if re.match(r'#include <(cuda|hip/|acl/|nvtx|string>|vector>|map>|memory>|thread>|mutex>)', line):
                problem(path, number, f'record/ stands on libc alone: {line}')


def check_types():
    """One name, one type: two types of one name in one namespace are merged by the linker without a word."""
    declared = {}  # qualified name → the files that define it
    for path in sorted(SRC.rglob('*.h')) + sorted(SRC.rglob('*.cc')):
        namespaces = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if opens := re.match(r'namespace\s*([\w:]*)\s*\{', line):
                namespaces.append(opens[1])
            elif namespaces and re.match(r'\}\s*//\s*namespace', line):
                namespaces.pop()
            elif (found := re.match(r'(?:template\s*<.*>\s*)?(?:struct|class|enum class|union)\s+(\w+)(?:\s+final)?\s*(?::(?!:)|{)', line)) \
                    and '' not in namespaces:
                declared.setdefault('::'.join([*namespaces, found[1]]), []).append((path, number))
    for name, places in declared.items():
        if len(places) > 1:
            path, number = places[1]
            problem(path, number, f'{name} is also defined in {places[0][0].relative_to(ROOT)}; rename one, or put it in a namespace')


def registered(layer):
    """(identifier, name) of every part of a registry."""
    definition, macro, _ = REGISTRIES[layer]
    for identifier, name in re.findall(rf'^{macro}\((\w+)(?:,\s*"([^"]+)")?', (SRC / definition).read_text(), re.M):
        yield identifier, name or identifier.replace('_', '-')


def check_registries():
    for layer, (_, _, pages) in REGISTRIES.items():
        folder = ROOT / pages
        covered = set()
        for page in folder.glob('*.md') if folder.is_dir() else []:
            covered.add(page.stem)
            for line in page.read_text().splitlines()[:12]:
                if line.startswith('Covers:'):
                    covered.update(re.findall(r'`([^`]+)`', line))
        goldens = ROOT / 'tests' / 'golden' / layer
        for _, name in registered(layer):
            if name not in covered:
                problem(folder, 0, f'no page for {name}: write {pages}/{name}.md, or name it in a line "Covers:" of another page')
            if not list(goldens.glob(f'{name}*')):
                problem(goldens, 0, f'no golden for {name}: add tests/golden/{layer}/{name}… (see tests/golden/run.py)')


def check_pages():
    """Every page of docs/ is at most MAX_CLICKS links away from README.md, and no link leads nowhere."""
    distance, queue = {ROOT / 'README.md': 0}, [ROOT / 'README.md']
    for page in queue:
        for target in re.findall(r'\]\(([^)#\s]+\.md)(?:#[^)]*)?\)', page.read_text()):
            if '://' in target:
                continue
            linked = (page.parent / target).resolve()
            if not linked.is_file():
                problem(page, 0, f'links to {target}, which does not exist')
            elif linked not in distance:
                distance[linked] = distance[page] + 1
                queue.append(linked)
    for page in sorted((ROOT / 'docs').rglob('*.md')):
        if distance.get(page, MAX_CLICKS + 1) > MAX_CLICKS:
            problem(page, 0, f'no link leads here within {MAX_CLICKS} clicks from README.md: name it in docs/README.md')


def line_of_page(folder, name):
    """The line of docs/FOLDER/NAME.md in docs/README.md, from the page's title: "# `links`: how long messages take", or the name behind."""
    title = (ROOT / 'docs' / folder / f'{name}.md').read_text().splitlines()[0].removeprefix('# ')
    title = re.sub(rf'^`[^`]+`: |: `?{name}`?$', '', title)
    return f'- [{name}]({folder}/{name}.md): {title[0].upper()}{title[1:]}'


def check_list_of_analyses(write):
    """docs/README.md lists every page of an analysis once, below the question that it answers, by its title; `tidy.py --write` renews titles."""
    path = ROOT / 'docs/README.md'
    lines = path.read_text().splitlines()
    pages = {page.stem for page in (ROOT / 'docs/analyses').glob('*.md')}
    listed = collections.Counter()
    for number, line in enumerate(lines):
        if (found := re.match(r'- \[([\w-]+)\]\(analyses/', line)) and found[1] in pages:
            listed[found[1]] += 1
            expected = line_of_page('analyses', found[1])
            if write:
                lines[number] = expected
            elif line != expected:
                problem(path, number + 1, 'another title than that of the page; python3 tools/tidy.py --write takes it')
    if write:
        path.write_text('\n'.join(lines) + '\n')
    for name in sorted(pages):
        if listed[name] != 1:
            problem(path, 0, f'lists analyses/{name}.md {listed[name]} times; name it once, below its question')


def check_routes(write):
    """docs/viewer-protocol.md lists the paths that the viewer's table of routes has (`tidy.py --write` makes the lists), and has one
    heading for each path that takes parameters, with those parameters in the table's order."""
    table = (SRC / 'server/page/routes.def').read_text()
    table = re.sub(r'(?<=[\w ])"\n\s*"', '', table)  # a long text is written as two
    routes = re.findall(r'^ROUTE\("([^"]+)",\s*"([^"]*)",\s*(k\w+),\s*[^"]*?"([^"]+)"\)$', table, re.M)
    if len(routes) != len(re.findall(r'^ROUTE\("', table, re.M)):
        problem(SRC / 'server/page/routes.def', 0, 'a row is not of the form ROUTE("path", "parameters", needs, handler, "summary")')
    path = ROOT / 'docs/viewer-protocol.md'
    text = path.read_text()
    lists = {'kRun': [], 'kShelf': []}  # of a run that goes on and of the start page; the rest is of any run
    for name, _, needs, summary in routes:
        kind = needs if needs in lists and name != '/api/events' else 'any'
        lists.setdefault(kind, []).append(f'| `{name}` | {summary} |')
    parts = re.split(r'(?<=^\| path \| answer \|\n\|---\|---\|\n)((?:\| `.*\n)+)', text, flags=re.M)
    expected = [text if i % 2 == 0 else '\n'.join(lists[('any', 'kRun', 'kShelf')[i // 2]]) + '\n' for i, text in enumerate(parts)]
    if len(parts) != 7:
        problem(path, 0, 'three lists "| path | answer |" are wanted: of a run, of one that goes on, of the start page')
    elif expected != parts and write:
        path.write_text(''.join(expected))
    elif expected != parts:
        problem(path, 0, 'the lists of paths are not those of src/server/page/routes.def; python3 tools/tidy.py --write makes them')
    headed = re.findall(r'`(?:PUT )?(/[\w./-]*)(?:\?([^`]*))?`', '\n'.join(re.findall(r'^### .*', text, re.M)))
    for name, parameters, _, _ in routes:
        wanted = '&'.join('OPTION=' if one == '*' else one + '=' for one in parameters.split())
        found = [query for one, query in headed if one == name]
        if (wanted or found) and found != [wanted]:
            problem(path, 0, f'one heading "### `{name}{"?" * bool(wanted)}{wanted}`" is wanted, as src/server/page/routes.def has it')
    for name in {one for one, _ in headed} - {one for one, *_ in routes}:
        problem(path, 0, f'has a heading for {name}, which src/server/page/routes.def does not have')


def check_tracked_files():
    listed = subprocess.run(['git', 'ls-files', '-z'], cwd=ROOT, capture_output=True)
    if listed.returncode != 0:
        return  # an unpacked archive has no index to check
    for name in filter(None, listed.stdout.decode().split('\0')):
        path = ROOT / name
        if path.is_file() and path.stat().st_size > MAX_BLOB_BYTES:
            problem(path, 0, f'{path.stat().st_size} bytes are tracked; generate large files instead')


def sentences_of(path):
    """Returns the sentences of a words.json by name; the titles and columns of an analysis are in the same file."""
    return {name: said for name, said in json.loads(path.read_text()).items() if isinstance(said, dict) and 'en' in said}


def check_words():
    """Checks that no key is given twice, in one file or in two: its first words would be lost without a message."""
    owner = {}
    for path in [*sorted((ROOT / 'web' / 'src' / 'i18n').glob('*.json')), *sorted(SRC.rglob('words.json'))]:
        def once(pairs, path=path):
            keys = [key for key, _ in pairs]
            for key in sorted({key for key in keys if keys.count(key) > 1}):
                problem(path, 0, f'"{key}" is given twice; keep one')
            return dict(pairs)
        json.loads(path.read_text(), object_pairs_hook=once)
        for name in sentences_of(path) if SRC in path.parents else ():
            if name in owner:
                problem(path, 0, f'"{name}" is in {owner[name].relative_to(ROOT)} too; keep one')
            owner[name] = path


def check_words_of_analyses():
    """An analysis has its title in both languages in its own folder, belongs to a family that the viewer has, and repeats no word that others share."""
    families = set(re.findall(r"{id: '(\w+)'", (ROOT / 'web/src/viewer/answers/families.ts').read_text()))
    shared = {'columns_zh': json.loads((ROOT / 'web/src/i18n/columns_zh.json').read_text()), 'sentences_zh': {}}
    titled = set()
    for path in sorted(SRC.glob('analyses/*/words.json')):
        own = json.loads(path.read_text())
        for name, said in own.get('answers', {}).items():
            titled.add(name)
            if len(said['title']) != 2 or not all(said['title']):
                problem(path, 0, f'the title of {name} needs both languages')
            if not said.get('summary'):
                problem(path, 0, f'{name} needs a summary, which the help shows')
            if 'family' in said and (said['family'] not in families or 'place' not in said):
                problem(path, 0, f'{name}: family is one of {", ".join(sorted(families))}, and place its number among them')
        for section, known in shared.items():
            for key in sorted(own.get(section, {}).keys() & known.keys()):
                problem(path, 0, f'"{key}" stands in another {section} too; keep one')
            known |= own.get(section, {})
    for _, name in registered('analyses'):
        if name not in titled:
            problem(SRC / 'analyses', 0, f'no title of {name}: add it under "answers" to the words.json of its folder')


def check_tables():
    """Code fills tables that a words.json declares (src/model/table.h), and every analysis has one."""
    declared = {f'{owner}/{table}' for path in SRC.rglob('words.json') for owner, tables in json.loads(path.read_text()).get('tables', {}).items() for table in tables}
    for path in sorted(SRC.rglob('*.cc')):
        for name in re.findall(r'declared_table\("([^"]+)"', path.read_text()):
            if name not in declared:
                problem(path, 0, f'no words.json declares the table "{name}"')
    for _, name in registered('analyses'):
        if not any(table.startswith(name + '/') for table in declared):
            problem(SRC / 'analyses', 0, f'the analysis {name} has no table: add it under "tables" to the words.json of its folder')


def check_sentences():
    """Logic holds no sentence: English and Chinese are side by side in words.json of the room, and each name there is used."""
    code = {path: path.read_text() for path in sorted([*SRC.rglob('*.cc'), *SRC.rglob('*.h'), *SRC.rglob('*.def')])}
    for path, text in code.items():
        if re.search(r'[\u4e00-\u9fff]', re.sub(r'//.*', '', text)):
            problem(path, 0, 'Chinese between code; write the sentence into words.json of the room (base/words.h)')
    literals = set(re.findall(r'"((?:[^"\\\n]|\\.)*)"', '\n'.join(code.values())))
    groups = {literal.rpartition('.')[0] for literal in literals}  # what to do about any of "foreign.run.…" is "foreign.run.do"
    for path in sorted(SRC.rglob('words.json')):
        for name in sentences_of(path):
            parts = name.split('.')
            stems = {'.'.join(parts[:i]) for i in range(1, len(parts) + 1)}
            if parts[-1] == 'do' and '.'.join(parts[:-1]) in groups:
                continue
            if parts[0] != 'problem' and not any(stem in literals or stem + '.' in literals for stem in stems):
                problem(path, 0, f'no source names "{name}"; delete it')


def problems_of(path):
    """Returns the problems of a words.json: (parts of the name, severity, English)."""
    return [(name.split('.')[1:], said.get('severity'), said['en']) for name, said in sentences_of(path).items() if name.startswith('problem.')]


def check_problems():
    """Each problem is reported, has a severity, and is in words.json of the room that includes its header."""
    used = set(re.findall(r'\bproblem::(\w+)', '\n'.join(path.read_text() for path in sorted(SRC.rglob('*.cc')) + sorted(SRC.rglob('*.h')))))
    for words in sorted(SRC.rglob('words.json')):
        for parts, severity, _ in problems_of(words):
            if severity not in ('info', 'warning', 'loss'):
                problem(words, 0, f'"problem.{".".join(parts)}" has no severity; give it info, warning or loss')
            if '_'.join(parts) not in used:
                problem(words, 0, f'nobody reports {"_".join(parts)}; delete it')


def shown_template(text):
    """A sentence as a page shows it: "{n} {n.one?row|rows} of {table}" is "⟨n⟩ row/rows of ⟨table⟩"."""
    def place(match):
        name, asks, texts = match[1].partition('?')
        return ' / '.join(one for one in texts.split('|') if one) if asks else f'⟨{name}⟩'
    while (shown := re.sub(r'\{([^{}]*)\}', place, text)) != text:
        text = shown
    return text.replace('|', '\\|').replace('<', '&lt;')


PROBLEM_ROOMS = {'readers': 'Reading', 'compat': 'Reading', 'base': 'Reading', 'model': 'Reading', 'pipeline': 'Pipelines and clocks'}


def check_page_of_problems(write):
    """docs/problems.md lists every problem, from words.json of the rooms; `tidy.py --write` does it."""
    page = ROOT / 'docs/problems.md'
    rows = {}
    for path in sorted(SRC.rglob('words.json')):
        chapter = PROBLEM_ROOMS.get(path.relative_to(SRC).parts[0], 'Answers and outputs')
        for parts, severity, said in problems_of(path):
            name = '.'.join(['FORMAT' if parts[0] == 'reader' else parts[0], parts[1]])
            rows.setdefault(chapter, []).append(f'| `{name}` | {severity} | {shown_template(said)} |')
    head = page.read_text().partition('\n## ')[0] if page.exists() else ''
    expected = head + ''.join(f'\n## {chapter}\n\n| problem | severity | what it says |\n|---|---|---|\n' + '\n'.join(sorted(lines)) + '\n' for chapter, lines in sorted(rows.items(), reverse=True))
    if not page.exists() or page.read_text() != expected:
        if write:
            page.write_text(expected)
        else:
            problem(page, 0, 'the list of problems is not that of the sources; python3 tools/tidy.py --write makes it')


def check_findings():
    """Every finding that is made is in model/findings.def, from which --fail-on takes its names, and every one there is made."""
    listed = set(re.findall(r'^FINDING\("([^"]+)"[,)]', (SRC / 'model/findings.def').read_text(), re.M))
    made = {}
    for path in sorted((SRC / 'diagnosis').rglob('*.cc')):
        if path.parent.name == 'what_if':
            continue  # fixes have names of their own
        text = path.read_text()
        for statement in re.findall(r'\bid = ([^;,]*);|\.id = ("[a-z_.]+")|\b(?:finding|of_share|say_cause)\(\s*("[a-z_.]+")|return \{\s*("[a-z_]+\.[a-z_]+")', text):
            made |= {name: path.relative_to(SRC) for part in statement for name in re.findall(r'"([a-z_.]+)"', part)}
    for name in sorted(set(made) - listed - {'none', 'offer.'}):
        problem(SRC / made[name], 0, f'makes the finding "{name}", which src/model/findings.def does not list')
    for name in sorted(listed - set(made)):
        problem(SRC / 'model/findings.def', 0, f'nothing in src/diagnosis makes "{name}"; take it out')


def check_page():
    """Files and rooms of the page import each other one way: of a circle no file can be understood, or moved, alone."""
    folder = ROOT / 'web' / 'src'
    imports = {}
    level = {room: n for n, rooms in enumerate(PAGE_ROOMS) for room in rooms}

    def room_of_page(path):  # 'timeline' of viewer/timeline/tiles.ts; '' for files next to viewer/
        parts = path.relative_to(folder).parts
        return parts[1] if parts[0] == 'viewer' else ''

    for path in sorted([*folder.rglob('*.ts'), *folder.rglob('*.tsx')]):
        text = path.read_text()
        if len(text.splitlines()) > MAX_LINES:
            hints.append(f'{path.relative_to(ROOT)}: {len(text.splitlines())} lines; past {MAX_LINES} look for a seam')
        names = re.findall(r"""\bfrom '(\.[^']*)'""", text)
        found = [(path.parent / f'{name}{end}').resolve() for name in names for end in ('.ts', '.tsx')]
        imports[path] = [other for other in found if other.is_file()]
        room = room_of_page(path)
        if room.endswith(('.ts', '.tsx')):
            continue
        if room and room not in level:
            problem(path, 0, f'unknown room "{room}" in viewer/; tools/tidy.py lists its rooms (PAGE_ROOMS)')
            continue
        for other in (room_of_page(other) for other in imports[path]):
            if other and other != room and path.parent.name != 'live' and (not room or level.get(other, 99) >= level[room]):
                problem(path, 0, f'{room or "what is shared"} may not import viewer/{other}, which does not stand before it')
    done, way = set(), []

    def follow(path):
        if path in way:
            circle = [str(one.relative_to(folder)) for one in [*way[way.index(path):], path]]
            problem(path, 0, f'imports in a circle, {" → ".join(circle)}; move what both need into a third file')
        if path in way or path in done:
            return
        way.append(path)
        for other in imports.get(path, []):
            follow(other)
        done.add(way.pop())

    for path in imports:
        follow(path)


def main():
    check_spare_includes('--write' in sys.argv)
    for path in sorted([*SRC.rglob('*.cc'), *SRC.rglob('*.h')]):
        check_source(path)
    check_record()
    check_circles()
    check_permissions()
    for line in (line for line, met in KNOWN.items() if not met):
        problem(EXCEPTIONS, 0, f'"{line}" is no exception any more; delete the line')
    check_types()
    check_registries()
    check_list_of_analyses('--write' in sys.argv)
    check_page_of_problems('--write' in sys.argv)
    check_pages()
    check_routes('--write' in sys.argv)
    check_tracked_files()
    check_words()
    check_words_of_analyses()
    check_tables()
    check_sentences()
    check_problems()
    check_findings()
    check_page()
    for line in [*hints, *problems]:
        print(line)
    print(f'tidy: {len(problems)} problems' if problems else 'tidy: in order')
    return 1 if problems else 0


sys.exit(main())
