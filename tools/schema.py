#!/usr/bin/env python3
"""docs/schema/v1: a JSON Schema for every command's JSON, from the contract that the tests hold (tests/cli/contract.json). Writes them; --check
says whether they are as the contract says."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'docs/schema/v1'
VERSION = 1

# Maps a schema to the question of the contract, and its meaning. Schemas without a question are in BY_HAND.
ANSWERS = {
    'info': ('info --json', 'stageline info PATH… --format json: what was read, and what was wrong with it.'),
    'explain': ('explain --format json', 'stageline explain PATH… --format json: where the time of a step goes, findings and what their fixes save.'),
    'what-if': ('what-if --format json', 'stageline what-if PATH… --format json: fixes with their prices.'),
    'align': ('align --format json', 'stageline align PATH… --format json: the clock of every rank.'),
    'diff': ('diff --format json', 'stageline diff A B --format json: what a step of B takes longer, group by group.'),
    'schedule': ('schedule --format json', 'stageline schedule NAME --format json: span, bubbles and activations beside the published formulas.'),
    'plan': ('plan --format json', 'stageline plan MODEL --format json: the best plans with their step, memory by stage and bound, and what was searched.'),
    'tail': ('tail --format json', 'stageline tail PATH --format json: one object a line, a line a step.'),
    'export': ('export --to json', 'stageline export PATH… --to json: the run, findings and every table in one object.'),
}
MAPS = {'slices_by_kind'}  # whose keys are names
TEXT, WHOLE, REAL = {'type': 'string'}, {'type': ['integer', 'null']}, {'type': ['number', 'null']}
CELLS = {'text': {'type': ['string', 'null']}, 'integer': WHOLE, 'duration': WHOLE, 'time': WHOLE, 'real': REAL, 'share': REAL, 'ratio': REAL}
COLUMN = {'type': 'object', 'required': ['name', 'title', 'type', 'unit', 'help'],
          'properties': {'name': TEXT, 'title': TEXT, 'type': {'enum': sorted(CELLS)}, 'unit': {'enum': ['', 'ns']}, 'help': TEXT}}
TABLE = {'type': 'object', 'required': ['name', 'title', 'columns', 'rows'],
         'properties': {'name': TEXT, 'title': TEXT, 'columns': {'type': 'array', 'items': COLUMN}, 'rows': {'type': 'array', 'items': {'type': 'object'}}}}
NOTE = {'type': 'object', 'required': ['name', 'severity', 'count', 'message'],
        'properties': {'name': TEXT, 'severity': {'enum': ['info', 'warning', 'loss']}, 'count': {'type': 'integer'}, 'message': TEXT}}
BY_HAND = {
    'sql': {'description': 'stageline sql PATH… "SELECT …" --format json: rows as arrays in the order of the columns; null is NULL.', 'type': 'object',
            'required': ['columns', 'rows', 'row_count', 'truncated'],
            'properties': {'columns': {'type': 'array', 'items': {'type': 'object', 'required': ['name', 'unit'], 'properties': {'name': TEXT, 'unit': TEXT}}},
                           'rows': {'type': 'array', 'items': {'type': 'array', 'items': {'type': ['string', 'number', 'null']}}},
                           'row_count': {'type': 'integer'}, 'truncated': {'type': 'boolean'}}},
    'digest': {'description': 'stageline digest PATH… -o DIR --format json: what was written.', 'type': 'object',
               'required': ['folder', 'reader', 'made', 'remade', 'kept', 'failed', 'cells', 'bytes'],
               'properties': {'folder': TEXT, 'reader': TEXT, **{key: {'type': 'integer'} for key in ('made', 'remade', 'kept', 'failed', 'cells', 'bytes')}}},
    'history': {'description': 'stageline history list|check --format json: what steps took, run after run, and where that changed. parts_ns has the parts of the step and the stages by name.',
                'type': 'object', 'required': ['runs', 'changes'],
                'properties': {'runs': {'type': 'array', 'items': {'type': 'object', 'required': ['run', 'label', 'path', 'added_s', 'steps', 'step_ns', 'parts_ns'],
                                                                   'properties': {'run': {'type': 'integer'}, 'label': TEXT, 'path': TEXT, 'added_s': {'type': 'integer'}, 'steps': {'type': 'integer'},
                                                                                  'step_ns': REAL, 'parts_ns': {'type': 'object', 'additionalProperties': REAL}}}},
                               'changes': {'type': 'array', 'items': {'type': 'object', 'required': ['run', 'label', 'before_ns', 'after_ns', 'change_share', 'p', 'part', 'part_ns'],
                                                                      'properties': {'run': {'type': 'integer'}, 'label': TEXT, 'part': TEXT,
                                                                                     **{key: REAL for key in ('before_ns', 'after_ns', 'change_share', 'p', 'part_ns')}}}}}},
    'version': {'description': 'stageline version --json: the program, its compiler and the works of others in it.', 'type': 'object',
                'required': ['version', 'self_contained', 'compiler', 'licence', 'libraries'],
                'properties': {'version': TEXT, 'commit': TEXT, 'self_contained': {'type': 'boolean'}, 'compiler': TEXT, 'licence': TEXT,
                               'libraries': {'type': 'array', 'items': {'type': 'object', 'required': ['name', 'version', 'licence', 'purpose'],
                                                                        'properties': {'name': TEXT, 'version': TEXT, 'licence': TEXT, 'purpose': TEXT}}}}},
}


def table_of(name, columns):
    """A table whose rows have these columns."""
    row = {'type': 'object', 'required': list(columns), 'properties': {c: CELLS[kind.split(',')[0]] for c, kind in columns.items()}}
    return {'if': {'properties': {'name': {'const': name}}}, 'then': {'properties': {'rows': {'items': row}}}}


def of_paths(paths, columns):
    """Turns {"a[].b": "null or text"} into a schema. A number may always be unknown, which is null; new keys may come
    at any time."""
    kinds = {'': 'object', **paths}
    children = {}
    for path in paths:
        if path.endswith('[]'):
            continue
        children.setdefault(path.rpartition('.')[0], []).append(path)

    def make(path):
        types = set(kinds.get(path, 'object').split(' or ')) - {'absent'}
        if path.rpartition('.')[2] in ('line', 'byte', 'step', 'rank') or types & {'number', 'whole number'}:
            return REAL if 'number' in types and not path.endswith('_ns') else WHOLE
        if path in MAPS:
            return {'type': 'object', 'additionalProperties': REAL}
        if 'list' in types:
            inner = path + '[]'
            if path in ('tables',) or (path.endswith('.tables') and f'{inner}.columns' in paths):
                return {'type': 'array', 'items': {**TABLE, **({'allOf': [table_of(n, c) for n, c in columns.items()]} if columns else {})}}
            out = {'type': 'array', 'items': make(inner) if inner in kinds else {}}
        elif 'object' in types:
            if f'{path}.rows' in paths and f'{path}.columns' in paths:
                return TABLE
            below = children.get(path, [])
            out = {'type': 'object', 'properties': {p.rpartition('.')[2]: make(p) for p in below}}
            needed = [p.rpartition('.')[2] for p in below if 'absent' not in paths[p]]
            if needed:
                out['required'] = needed
        else:
            out = {'type': 'boolean'} if 'boolean' in types else dict(TEXT)
        if 'null' in types:
            out['type'] = [out['type'], 'null']
        return out

    return make('')


def schemas():
    contract = json.loads((ROOT / 'tests/cli/contract.json').read_text())
    found = {}
    for name, (question, words) in ANSWERS.items():
        answer = contract['answers'][question]
        found[name] = {'description': words, **of_paths(answer['paths'], answer.get('columns', {}))}
    tables = {}  # of all analyses, with the columns that they have by default and with --compat
    for key, one in contract['analyses']['columns'].items():
        tables.setdefault(key.split(' ')[0], []).append(one)
    by_name = []
    for analysis, forms in tables.items():
        names = sorted({t for form in forms for t in form})
        rows = []
        for table in names:
            ways = []
            for form in forms:
                if table in form and form[table] not in ways:
                    ways.append(form[table])
            if len(ways) == 1:  # an answer of --compat has the other tool's columns, which are not promised here
                rows.append(table_of(table, ways[0]))
        by_name.append({'if': {'properties': {'analysis': {'const': analysis}}},
                        'then': {'properties': {'tables': {'items': {'properties': {'name': {'enum': names}}, **({'allOf': rows} if rows else {})}}}}})
    answer = {'type': 'object', 'required': ['analysis', 'tables', 'notes'],
              'properties': {'analysis': {'enum': sorted(tables)}, 'tables': {'type': 'array', 'items': TABLE}, 'notes': {'type': 'array', 'items': NOTE}},
              'allOf': by_name}
    found['analyze'] = {'description': 'stageline analyze NAME PATH… --format json: one object; of several analyses (NAME,NAME) an array of them, in the order of asking.',
                        '$defs': {'answer': answer}, 'anyOf': [{'$ref': '#/$defs/answer'}, {'type': 'array', 'items': {'$ref': '#/$defs/answer'}}]}
    found.update(BY_HAND)
    return {name: {'$schema': 'https://json-schema.org/draft/2020-12/schema', '$id': f'urn:stageline:schema:{VERSION}:{name}', 'title': f'stageline {name}', **schema}
            for name, schema in sorted(found.items())}


def text_of(schema):
    """A member of the first two levels a line, the rest compact: small, and changes show in a diff."""
    compact = lambda v: json.dumps(v, ensure_ascii=False, separators=(',', ':'))

    def level(value, depth):
        if not isinstance(value, (dict, list)) or depth == 0 or len(compact(value)) < 140:
            return compact(value)
        pad = ' ' * (6 - depth)
        if isinstance(value, list):
            return '[\n' + ',\n'.join(pad + level(v, depth - 1) for v in value) + ']'
        return '{\n' + ',\n'.join(f'{pad}{json.dumps(k)}: {level(v, depth - 1)}' for k, v in value.items()) + '}'

    return level(schema, 5) + '\n'


def main(check):
    made = {f'{name}.json': text_of(schema) for name, schema in schemas().items()}
    there = {path.name: path.read_text() for path in FOLDER.glob('*.json')} if FOLDER.is_dir() else {}
    if check:
        stale = sorted(name for name in {*made, *there} if made.get(name) != there.get(name))
        if stale:
            print(f'not what tests/cli/contract.json says: {", ".join(stale)}; python3 tools/schema.py writes them')
        return bool(stale)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in there.keys() - made.keys():
        (FOLDER / name).unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text)
    return False


if __name__ == '__main__':
    sys.exit(main('--check' in sys.argv))
