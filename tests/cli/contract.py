"""The contract with outsiders as contract.json keeps it, and what of it is broken; contract_surface.py reads off what there is."""
import json
import pathlib

KEPT = pathlib.Path(__file__).resolve().parent / 'contract.json'
HOW = ('What scripts of others stand on; contract_test.py fails where something of it is gone or of another type. '
       'python3 tests/cli/contract_test.py --update writes it anew, and review reads the diff.')
COLUMNS = 140  # of a line of contract.json


def kept():
    return {section: found for section, found in json.loads(KEPT.read_text()).items() if section != 'how'}


def breaks(was, now, place=''):
    """Sentences: what of `was` is gone from `now`, or is of another type there."""
    if type(was) is not type(now):
        return [f'{place}: is a {type(now).__name__} now and no {type(was).__name__}']
    if isinstance(was, dict):
        out = []
        for key, inner in was.items():
            here = f'{place} › {key}' if place else key
            out += breaks(inner, now[key], here) if key in now else [f'{here}: is gone']
        return out
    if isinstance(was, list):
        return [f'{place} › {word}: is gone' for word in was if word not in now]
    met, known = set(now.split(' or ')), set(was.split(' or '))
    if known == {'null'}:
        return []  # never met with a value: only that it is there was promised
    if 'number' in known:
        known.add('whole number')
    return [] if met <= known else [f'{place}: was "{was}", is "{now}"']


def additions(was, now, place=''):
    """Returns the names in `now` that `was` lacks."""
    if isinstance(was, dict):
        out = []
        for key, inner in now.items():
            here = f'{place} › {key}' if place else key
            out += additions(was[key], inner, here) if key in was else [here]
        return out
    return [f'{place} › {word}' for word in now if word not in was] if isinstance(was, list) else []


def text_of(node, depth=0):
    """JSON of which the innermost objects and lists are filled like paragraphs, so that people can read it and its diffs."""
    if isinstance(node, str):
        return json.dumps(node, ensure_ascii=False)
    named = isinstance(node, dict)
    entries = [(f'{json.dumps(key, ensure_ascii=False)}: ' if named else '') + text_of(inner, depth + 1)
               for key, inner in (node.items() if named else ((None, word) for word in node))]
    left, right = '{}' if named else '[]'
    filled = all(isinstance(inner, str) for inner in (node.values() if named else node))
    lines, pad = [], ' ' * (depth + 1)
    for entry in entries:
        if filled and lines and len(pad) + len(lines[-1]) + len(entry) + 3 <= COLUMNS:
            lines[-1] += f', {entry}'
        else:
            lines.append(entry)
    if filled and len(lines) <= 1:
        return left + ''.join(lines) + right
    return f'{left}\n{pad}' + f',\n{pad}'.join(lines) + f'\n{pad[1:]}{right}'


def write(found):
    KEPT.write_text(text_of({'how': HOW, **found}) + '\n')
