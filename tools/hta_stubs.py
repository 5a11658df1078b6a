#!/usr/bin/env python3
"""Writes the stubs of stageline.hta: its modules' own names and parameters, with the types that HTA itself declares.

  hta_stubs.py HTA      HTA: the folder `hta` of an installed Holistic Trace Analysis

A name that HTA does not have, or does not annotate, is Any. tests/python/hta_signatures_test.py holds the stubs to the modules.
"""
import ast
import pathlib
import re
import sys

OURS = pathlib.Path(__file__).resolve().parents[1] / 'python/stageline/hta'
# Not for users: the module that pytest loads, and what begins with _.
HIDDEN = {'overlay_plugin.py'}
ANY = ast.Name('Any', ast.Load())
# Types that HTA declares without their arguments, or by a place that type checkers do not see.
OPEN = {'dict': 'dict[str, Any]', 'list': 'list[Any]', 'Dict': 'Dict[int, str]', 're.Pattern': 're.Pattern[str]', 'networkx.DiGraph': 'networkx.DiGraph[Any]',
        'pd.core.series.Series': 'pd.Series'}
# networkx's graphs have a __new__ with one argument more.
OTHER_NEW = re.compile(r'(class \w+\(networkx\.DiGraph\[Any\]\):.*?def __init__\([^\n]*)', re.S)
# Properties of ours that are plain attributes of HTA's.
TYPES = {'TraceAnalysis.t': ast.Name('Trace', ast.Load())}


class Closing(ast.NodeTransformer):
    """Gives the types in OPEN their arguments; types in quotes are types, too."""

    def closed(self, node):
        text = ast.unparse(node)
        return ast.parse(OPEN[text], mode='eval').body if text in OPEN else None

    def visit_Name(self, node):
        return self.closed(node) or node

    def visit_Attribute(self, node):
        return self.closed(node) or self.generic_visit(node)

    def visit_Constant(self, node):
        return ast.Constant(OPEN[node.value]) if node.value in OPEN else node

    def visit_Subscript(self, node):
        node.slice = self.visit(node.slice)
        return node


def closed(annotation):
    return annotation and Closing().visit(annotation)


def functions_of(tree):
    """{'name' or 'Class.name': the function}, at any place of the module's first two levels."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.update({f'{node.name}.{m.name}': m for m in node.body if isinstance(m, ast.FunctionDef)})
    found.update({n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)})
    return found


def parameters(node):
    a = node.args
    return [x for x in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if x is not None]


def typed(name, node, theirs):
    """Returns the line of a function, with this package's parameters and HTA's types."""
    known = theirs.get(name)
    types = {p.arg: p.annotation for p in parameters(known)} if known else {}
    is_method = '.' in name and not any(getattr(d, 'id', '') == 'staticmethod' for d in node.decorator_list)
    for i, p in enumerate(parameters(node)):
        p.annotation = None if is_method and i == 0 else closed(p.annotation or types.get(p.arg) or ANY)
    node.args.defaults = [ast.Constant(...) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(...) for d in node.args.kw_defaults]
    short = name.split('.')[-1]
    node.returns = ast.Constant(None) if short == '__init__' else closed(node.returns or (known and known.returns) or TYPES.get(name, ANY))
    node.decorator_list = [ast.Name('property', ast.Load()) if ast.unparse(d) == 'functools.cached_property' else d for d in node.decorator_list
                           if ast.unparse(d) in ('property', 'functools.cached_property', 'classmethod', 'staticmethod') or ast.unparse(d).endswith('.setter')]
    node.body = [ast.Expr(ast.Constant(...))]
    return node


def is_public(name):
    return not name.startswith('_') or name in ('__init__', '__len__', '__getitem__', '__iter__', '__call__', '__contains__')


def attributes_of(tree):
    """{'Class.name': the type} of `self.name: T = …` and `self.name = T(…)`."""
    found = {}
    for node in (n for n in tree.body if isinstance(n, ast.ClassDef)):
        for place in ast.walk(node):
            target = place.target if isinstance(place, ast.AnnAssign) else place.targets[0] if isinstance(place, ast.Assign) else None
            if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != 'self':
                continue
            if isinstance(place, ast.AnnAssign):
                found[f'{node.name}.{target.attr}'] = place.annotation
            elif isinstance(place.value, ast.Call) and isinstance(place.value.func, ast.Name) and place.value.func.id[0].isupper():
                found.setdefault(f'{node.name}.{target.attr}', place.value.func)
    return found


def class_stub(node, theirs, attributes):
    own = {}
    for place in ast.walk(node):
        if isinstance(place, ast.Attribute) and isinstance(place.ctx, ast.Store) and ast.unparse(place.value) == 'self' and is_public(place.attr):
            own.setdefault(place.attr, attributes.get(f'{node.name}.{place.attr}', ANY))
    body, named = [], set()
    for m in node.body:
        if isinstance(m, ast.FunctionDef):
            named.add(m.name)
            if is_public(m.name):
                body.append(typed(f'{node.name}.{m.name}', m, theirs))
        elif isinstance(m, ast.AnnAssign) and is_public(m.target.id):
            body.append(ast.AnnAssign(m.target, closed(m.annotation), m.value and ast.Constant(...), 1))
            named.add(m.target.id)
        elif isinstance(m, ast.Assign):
            for target in m.targets:
                for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if is_public(name.id):
                        body.append(ast.Assign([name], ast.Constant(...), lineno=1) if any('num' in ast.unparse(b) for b in node.bases)
                                    else ast.AnnAssign(name, ANY, None, 1))
                        named.add(name.id)
    body = [ast.AnnAssign(ast.Name(name, ast.Store()), kind, None, 1) for name, kind in own.items() if name not in named] + body
    keep = [d for d in node.decorator_list if 'dataclass' in ast.unparse(d)]
    return ast.ClassDef(node.name, [closed(base) for base in node.bases], [], body or [ast.Expr(ast.Constant(...))], keep)


def imports_of(tree, package):
    """The imports of a module by the name they bind; HTA's own modules are ours."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if isinstance(node, ast.Import):
                    module = None
                    text = f'import {alias.name}' + (f' as {alias.asname}' if alias.asname else '')
                    if '.' in alias.name and not alias.asname:  # one name for all parts of a package
                        before = found.pop(alias.name.split('.')[0], None)
                        text = f'{before}\n{text}' if before else text
                else:
                    base = '.'.join(package.split('.')[:len(package.split('.')) - node.level + 1]) if node.level else ''
                    module = '.'.join(filter(None, [base, node.module])) or package
                    module = 'stageline.' + module if module.split('.')[0] == 'hta' else module
                    text = f'from {module} import {alias.name}' + (f' as {alias.asname}' if alias.asname else '')
                found.setdefault(alias.asname or alias.name.split('.')[0], text)
    return found


def defined(tree):
    out = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            out.add(node.name)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []:
            out |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return out


def stub(path, hta):
    place = path.relative_to(OURS)
    tree = ast.parse(path.read_text())
    rival = hta / place
    other = ast.parse(rival.read_text()) if rival.exists() else ast.Module([], [])
    theirs = functions_of(other)
    package = '.'.join(['stageline', 'hta', *place.parent.parts])
    lines = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and is_public(node.name):
            lines.append(typed(node.name, node, theirs))
        elif isinstance(node, ast.ClassDef):
            lines.append(class_stub(node, theirs, attributes_of(other)))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(name, ast.Name) and is_public(name.id):
                        lines.append(ast.AnnAssign(ast.Name(name.id, ast.Store()), ANY, None, 1))
    if not lines:
        return ''
    text = '\n\n'.join(ast.unparse(ast.fix_missing_locations(line)) for line in lines)
    text = re.sub(r':\n+ +\.\.\.', ': ...', re.sub(r'\n\n( +(?:def|@))', r'\n\1', text)).replace('=...', ' = ...')
    text = re.sub(r'(?m)^(\w+: Any)\n\n(?=\w+: Any$)', r'\1\n', text)
    text = OTHER_NEW.sub(r'\1  # pyright: ignore[reportInconsistentConstructor]', text)
    used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    # Types in quotes are names, too.
    used |= {n.id for c in ast.walk(ast.parse(text)) if isinstance(c, ast.Constant) and isinstance(c.value, str) and c.value.isidentifier()
             for n in ast.walk(ast.parse(c.value))if isinstance(n, ast.Name)}
    used -= defined(ast.parse(text))
    known = {**imports_of(other, '.'.join(['hta', *place.parent.parts])), **imports_of(tree, package), 'Any': 'from typing import Any'}
    here, missing = [], []
    for name in sorted(used):
        if name in known:
            # Named again, so that it can be had from here as from HTA's module.
            *parts, last = known[name].split('\n')
            here += [part for part in (*parts, last) if f'{part.split()[1]}.' in text] if parts else \
                [last + (f' as {name}' if last.startswith('from stageline') and ' as ' not in last else '')]
        elif name in defined(other):
            missing.append(f'{name} = Any')  # an alias of HTA's that we need not have
    # Returns the names that other modules import from here, as HTA's __init__ files do.
    public = [line for name, line in imports_of(ast.Module([n for n in tree.body if isinstance(n, ast.ImportFrom)], []), package).items()
              if name not in used and is_public(name) and line.startswith('from stageline') and '._' not in line]
    head = sorted(set(here)) + [f'{line} as {line.split()[-1]}' if ' as ' not in line else line for line in sorted(public)]
    if missing and 'from typing import Any' not in head:
        head.append('from typing import Any')
    return '"""Written by tools/hta_stubs.py."""\n' + '\n'.join(head) + '\n\n' + ''.join(f'{m}\n' for m in missing) + text + '\n'


def main():
    hta = pathlib.Path(sys.argv[1])
    for path in sorted(OURS.rglob('*.py')):
        if path.name in HIDDEN or (path.name.startswith('_') and path.name != '__init__.py'):
            continue
        text = stub(path, hta)
        if text:
            path.with_suffix('.pyi').write_text(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
