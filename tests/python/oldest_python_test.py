"""The package's modules can be imported by the oldest Python that the wheels are for, 3.9. Without that Python, two things are
checked: they parse as its language, and no annotation that is evaluated at import joins types by |, which came with 3.10."""
import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDEST = tuple(map(int, re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / 'python/pyproject.toml').read_text()).groups()))


def annotations_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            yield node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            of = node.args
            yield from (one.annotation for one in of.posonlyargs + of.args + of.kwonlyargs + [of.vararg, of.kwarg] if one and one.annotation)
            if node.returns:
                yield node.returns


def joined_types(text):
    """Lines with an annotation that Python 3.9 fails to evaluate."""
    tree = ast.parse(text, feature_version=OLDEST)
    if any(isinstance(node, ast.ImportFrom) and node.module == '__future__' for node in tree.body):
        return []
    return sorted(one.lineno for one in annotations_of(tree) if any(isinstance(part, ast.BinOp) for part in ast.walk(one)))


class OldestPython(unittest.TestCase):
    def test_the_check_sees_what_it_is_for(self):
        self.assertEqual(joined_types('class A:\n    a: int | None\n    b: "int | None"\ndef f(x: str | None = None) -> int: ...\n'), [2, 4])
        self.assertEqual(joined_types('from __future__ import annotations\nx: int | None = 1\n'), [])
        self.assertRaises(SyntaxError, joined_types, 'match x:\n    case 1: pass\n')

    def test_every_module(self):
        modules = sorted((ROOT / 'python').rglob('*.py'))
        self.assertGreater(len(modules), 50)
        for path in modules:
            with self.subTest(str(path.relative_to(ROOT))):
                self.assertEqual(joined_types(path.read_text()), [])


if __name__ == '__main__':
    unittest.main()
