#!/usr/bin/env python3
"""Groups sources into units that are compiled together: `unity.py OUT_FOLDER LINES SOURCE_FOLDER GROUP...`.

Shared headers and templates cost a file of 200 lines more to compile than its own
text. So files of one GROUP (folders and files below SOURCE_FOLDER, "plan+mcp") are compiled as one text of at most LINES lines.

A file may use any names. A private name of a file (in an unnamed namespace, or `static`) may occur in a
neighbour too, or in a header that only a neighbour includes. In the unit such a name is another one, `make` in zb_v.cc is `make_of_zb_v`:
a #define around the file does it, behind the file's headers. A name that the file also uses in another sense (a member, a name of
`std`) is not renamed; files in conflict about one are put into different units. `using namespace` of a file holds for its
neighbours too, so files share a unit where none uses a name that a neighbour's namespace has. A file that declares nothing for others,
as tests do, is in a separate namespace, behind its headers, and has no conflicts.

Writes OUT_FOLDER/<folder>_<n>.cc, after the first folder of the group, where its content changed, removes units that are no longer made, and
prints the units' paths, one a line.
"""
import pathlib
import re
import sys

# Comments and literals; 65'536 is none.
STRINGS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\d)\'(?:\\.|[^\'\\\n])+\'', re.S)
NAMESPACE = re.compile(r'\bnamespace\s*([\w:]*)\s*$')
TYPE = re.compile(r'(?:template\s*<.*>\s*)?(?:struct|class|enum\s+class|enum|union)\s+(?:\[\[\w+\]\]\s*)?(\w+)', re.S)
ALIAS = re.compile(r'using\s+(\w+)\s*=|using\s+(?:\w+::)+(\w+)$')
VARIABLE_OR_FUNCTION = re.compile(r'.*?([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=|\(|$)', re.S)


def declared_names(declaration):
    """The (name, kind) that a declaration at namespace scope makes; kind is the text of a `using`, '()' of a function, else ''."""
    text = re.sub(r'^\s*#[^\n]*', '', declaration, flags=re.M).strip()
    if not text or re.match(r'enum\s*(:|$)', text) or re.match('extern|friend|static_assert|namespace|using namespace', text):
        return []
    if found := TYPE.match(text):
        return [(found[1], '')]
    if found := ALIAS.match(text):
        return [(found[1] or found[2], text)]
    while (flat := re.sub(r'<[^<>]*>', '', text)) != text:  # template arguments hold names of other things
        text = flat
    text = re.sub(r'\b(noexcept|alignas|decltype)\s*\([^()]*\)', '', text)
    found = VARIABLE_OR_FUNCTION.match(text)
    if not found or text.startswith('operator'):
        return []
    if text[found.end() - 1] == '(':
        return [(found[1], '()')]
    while (flat := re.sub(r'\([^()]*\)', '', text)) != text:  # commas in calls separate no names
        text = flat
    return [(name, '') for name in [found[1], *re.findall(r',\s*(\w+)\s*(?==|$)', text)]]


def with_rows(text):
    """The text with the first argument of every row in place of a list (.def) that an enum includes."""
    def rows(found):
        path = pathlib.Path(__file__).resolve().parents[1] / 'src' / found[1]
        return ''.join(f'{name},\n' for name in re.findall(r'^ *[A-Z_]+\((\w+)', path.read_text(), re.M)) if path.is_file() else found[0]
    return re.sub(r'\benum\b[^;{}]*{[^}]*}', lambda m: re.sub(r'^#include "(.*\.def)"$', rows, m[0], flags=re.M), text)


def scan(text):
    """Returns the declarations at namespace scope, as (namespaces, name) → kind: private ones, and those for others."""
    text = STRINGS.sub(lambda m: '\n' * m[0].count('\n') or ' ', with_rows(text))
    own, shared = {}, {}
    # A scope: the name of a namespace, '' for an unnamed one, 'body' of a function or type, 'value' within parentheses.
    scopes, declaration = [], ''
    enumerators = None  # where the names of an enum without `class` go while it is read
    for token in re.split(r'([{};])', text):
        if token not in '{};' or token == '':
            if enumerators is not None:
                space = '::'.join(filter(None, scopes[:-1]))
                for name in re.findall(r'(\w+)\s*(?:=[^,]*)?(?:,|$)', token.strip()):
                    enumerators[space, name] = ''
            if not {'body', 'value'} & set(scopes):
                declaration += token
            continue
        at_namespace_scope = not {'body', 'value'} & set(scopes)
        if token == '{' and (found := NAMESPACE.search(declaration)) and at_namespace_scope:
            scopes.append(found[1])
            declaration = ''
            continue
        if token == '{' and at_namespace_scope and declaration.count('(') > declaration.count(')'):
            scopes.append('value')  # of a parameter: the declaration goes on behind it
            continue
        if token == '}':
            closed, enumerators = scopes.pop() if scopes else 'body', None
            if closed == 'body' and not {'body', 'value'} & set(scopes) and not declaration.rstrip().endswith('='):
                declaration = ''
            continue
        if at_namespace_scope:
            names = own if '' in scopes or declaration.lstrip().startswith('static ') else shared
            for name, kind in declared_names(declaration):
                names['::'.join(filter(None, scopes)), name] = kind
            enumerators = names if token == '{' and re.match(r'(\s*#[^\n]*\n)*\s*enum\b(?!\s+(class|struct))', declaration) else None
            declaration = ''
        if token == '{':
            scopes.append('body')
    return own, shared


def differ(kind, other):
    """Whether one name may not mean both: two functions differ, for one may take the other's calls; equal aliases do not."""
    return kind != other or not kind.startswith('using')


def clash(these, those):
    """Returns whether a name in both means something else in each."""
    return any(differ(kind, those[name]) for name, kind in these.items() if name in those)


def stands_alone(text, shared):
    """Whether a namespace may stand around all of a file but its headers: it declares nothing for others, and includes headers alone."""
    code = STRINGS.sub(' ', text)
    return (all(name == 'TEST_CASE' or kind.startswith('using') for (_, name), kind in shared.items()) and
            not re.search(r'^\s*#\s*(if|define)|\bextern\b|\bnamespace\s+[\w:]+\s*{|^template <>', code, re.M) and
            not re.search(r'^#include .*(?<!\.h)"$', text, re.M))


class Headers:
    """The headers of the folders: what each declares, and which ones a file includes, itself or through others."""

    def __init__(self, folders):
        self.folders, self.included, self.declaring, self.said, self.scope = folders, {}, {}, {}, {}
        for folder in folders:
            for header in folder.rglob('*.h'):
                for names in scan(header.read_text()):
                    for name, kind in names.items():
                        self.declaring.setdefault(name, {})[header.resolve()] = kind
                        self.scope.setdefault(header.resolve(), set()).add(name[1])

    def direct(self, path):
        for name in re.findall(r'^\s*#\s*include "([^"]+)"', path.read_text(), re.M):
            for folder in [path.parent, *self.folders]:
                if (folder / name).is_file():
                    yield (folder / name).resolve()
                    break

    def at_scope(self, path):
        """The names that a header declares outside of types."""
        return self.scope.get(path, set())

    def names_in(self, space):
        """The names that headers declare in a namespace."""
        return {name for where, name in self.declaring if ('::' + where).endswith('::' + space)}

    def words(self, path):
        """All names that a header says."""
        if path not in self.said:
            self.said[path] = set(re.findall(r'\w+', STRINGS.sub(' ', path.read_text())))
        return self.said[path]

    def of(self, path):
        """All headers that a file sees."""
        if path not in self.included:
            found, wait = set(), [path]
            while wait:
                for header in self.direct(wait.pop()):
                    if header not in found:
                        found.add(header)
                        wait.append(header)
            self.included[path] = found
        return self.included[path]


class Source:
    """A file, and what its neighbours in a unit have to know of it."""

    def __init__(self, path, headers):
        self.text = path.read_text()
        own, shared = scan(self.text)
        own = {key: kind for key, kind in own.items() if not key[1].isupper()}  # TEST_CASE is a macro, not a private name
        self.path, self.lines, self.headers = path, self.text.count('\n'), headers.of(path)
        self.alone = stands_alone(self.text, shared)
        self.own, self.names = ({}, {}) if self.alone else (own, own | shared)
        self.said = set(re.findall(r'(?<![\w.>:])[A-Za-z_]\w*', STRINGS.sub(' ', self.text)))
        # Names of `using namespace` join the names of the file, and of its neighbours unless it is alone.
        spaces = frozenset(re.findall(r'^using namespace ([\w:]+);', self.text, re.M))
        self.spaces = frozenset() if self.alone else spaces - {'stageline'}
        seen = own | {(space, name): kind for space in spaces for (_, name), kind in own.items() if kind != '()'}
        if self.alone:  # its names hide a neighbour's, except those of functions, which are also found by their arguments
            seen = {(space, name): kind for space in spaces for (_, name), kind in own.items() if kind == '()'}
        # The headers that this file does not see and that mean something else by a name of its own, with these names.
        self.foreign = {}
        for key, kind in seen.items():
            for header, other in headers.declaring.get(key, {}).items():
                if header not in self.headers and differ(kind, other):
                    self.foreign.setdefault(header, set()).add(key[1])
        wanted = {name for _, name in own}
        self.renamable = {name for name in wanted if self.says_in_one_sense(name, headers)}
        # Names that neighbours must not use: names that stay, and the headers that give them to something else.
        self.fixed = {key: kind for key, kind in self.own.items() if key[1] not in self.renamable}
        self.quarrels = {header for header, names in self.foreign.items() if names - self.renamable}

    def says_in_one_sense(self, name, headers):
        """Whether each place of the text that has the name means what this file calls so."""
        code = STRINGS.sub(' ', self.text)
        if re.search(r'^\s*#\s*(if|define)', code, re.M) or re.search(rf'(\.|->|::)\s*{name}\b', code):
            return False
        if re.search(rf'\b{name}\b[^;{{]*\boverride\b', code):
            return False
        # A header's function of this name may be called here too, and in a member's body its class's own.
        members = re.search(r'^[\w:<>,&* ]*\b\w+::~?\w+\(', code, re.M)
        return not any(name in headers.at_scope(header) or members and name in headers.words(header) for header in self.headers)


def lets_in(files, spaces, headers):
    """Returns whether names of these namespaces would join names that a file uses."""
    return any(file.said & headers.names_in(space) for file in files for space in spaces - file.spaces)


def fits(source, unit, max_lines, headers):
    return (unit['lines'] + source.lines <= max_lines and
            not lets_in([source], unit['spaces'], headers) and not lets_in(unit['files'], source.spaces, headers) and
            not source.quarrels & unit['headers'] and not unit['quarrels'] & source.headers and
            not clash(source.fixed, unit['names']) and not clash(unit['fixed'], source.names))


def grouped(files, max_lines, headers):
    """Files in units: first fit by name, so that a new file moves few others."""
    units = []
    for path in files:
        source = Source(path, headers)
        for unit in units:
            if fits(source, unit, max_lines, headers):
                break
        else:
            unit = {'lines': 0, 'fixed': {}, 'names': {}, 'files': [], 'spaces': frozenset(), 'headers': set(), 'quarrels': set()}
            units.append(unit)
        unit['lines'] += source.lines
        unit['spaces'] |= source.spaces
        unit['fixed'] |= source.fixed
        unit['names'] |= source.names
        unit['headers'] |= source.headers
        unit['quarrels'] |= source.quarrels
        unit['files'].append(source)
    return units


def renamed(source, unit):
    """The names of a file's own that are something else to a neighbour in the unit, or to a header of a neighbour."""
    names = {name for header, found in source.foreign.items() if header in unit['headers'] for name in found}
    for other in unit['files']:
        if other is not source:
            names |= {key[1] for key, kind in source.own.items() if key in other.names and differ(kind, other.names[key])}
    return sorted(names & source.renamable)


def text_of(unit, source_folder):
    """The includes that make the unit."""
    lines = []
    for source in unit['files']:
        names = renamed(source, unit)
        stem = re.sub(r'\W', '_', str(source.path.relative_to(source_folder).with_suffix('')))
        if names or source.alone:  # its headers come first, where the names are not private yet
            lines += re.findall(r'^#include (?:<.*>|".*\.h")', source.text, re.M)
        lines += [f'#define {name} {name}_of_{stem}' for name in names]
        include = f'#include "{source.path.relative_to(source_folder)}"'
        lines += [f'namespace of_{stem} {{', include, '}'] if source.alone else [include]
        lines += [f'#undef {name}' for name in names]
    return ''.join(f'{line}\n' for line in lines)


def sources_of(path):
    return [path] if path.is_file() else [found for found in sorted(path.rglob('*.cc')) if found.name != 'main.cc']


def main():
    out, max_lines, source, groups = pathlib.Path(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:]
    out.mkdir(parents=True, exist_ok=True)
    headers = Headers([source.resolve(), pathlib.Path(__file__).resolve().parents[1] / 'src'])
    made = []
    for group in groups:
        folders = group.split('+')
        files = [path for folder in folders for path in sources_of(source / folder)]
        for number, unit in enumerate(grouped(files, max_lines, headers)):
            path = out / f'{folders[0].removesuffix(".cc").replace("/", "_")}_{number}.cc'
            content = text_of(unit, source)
            if not path.exists() or path.read_text() != content:
                path.write_text(content)
            made.append(path)
    for stale in set(out.glob('*.cc')) - set(made):
        stale.unlink()
    print('\n'.join(map(str, made)))


if __name__ == '__main__':
    main()
