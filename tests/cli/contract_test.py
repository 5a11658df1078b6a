"""Tests the contract with users: commands, flags, JSON, columns, files and links that a script may depend on.

  contract_test.py            fails when something that contract.json lists is gone or has another type; additions are printed
  contract_test.py --update   writes contract.json again
"""
import copy
import pathlib
import shutil
import sys
import tempfile
import unittest

import contract
import contract_surface as surface
from support import Case, run

UPDATE = 'python3 tests/cli/contract_test.py --update'


class ContractTest(Case):
    def setUp(self):
        super().setUp()
        self.kept = contract.kept()

    def hold(self, section, found):
        """Fails with all that is broken. Additions are only printed, and run.py passes that line on."""
        broken = contract.breaks(self.kept[section], found, section)
        if broken:
            self.fail('\n'.join(['scripts may depend on this:', *broken, f'if the change is intended, run {UPDATE}']))
        new = contract.additions(self.kept[section], found, section)
        if new:
            shown = '; '.join(new[:5]) + ('; …' if len(new) > 5 else '')
            print(f'\nnote: {len(new)} additions to the contract ({shown}): {UPDATE} adds them', file=sys.stderr)

    def test_commands_and_flags(self):
        self.hold('commands', surface.commands())

    def test_every_spelling_is_taken(self):
        refused = [line for name, kept in self.kept['commands'].items() for line in surface.refused_spellings(name, kept)]
        self.assertEqual(refused, [], 'the parser must take --a-flag VALUE, --a-flag=VALUE and --a_flag of every flag that is listed')

    def test_readers_analyses_exporters_schedules(self):
        self.hold('lists', surface.lists())

    def test_names_of_hta_methods(self):
        """Checks that analyze knows HTA's name, get_NAME, of each analysis; it fails for want of an input, not of a name."""
        for name in self.kept['lists']['analyses']:
            with self.subTest(name):
                self.assertNotIn('no analysis', run('analyze', 'get_' + name.replace('-', '_')).err)

    def test_answers_in_json(self):
        surface.make_runs(self.dir)
        self.hold('answers', surface.answers(self.dir))

    def test_columns_of_analyses(self):
        surface.make_runs(self.dir)
        self.hold('analyses', surface.analyses(self.dir, self.kept['lists']['analyses']))

    def test_columns_of_files(self):
        surface.make_runs(self.dir)
        self.hold('files', surface.files(self.dir, self.kept['lists']['analyses']))

    def test_deep_links(self):
        self.hold('page', surface.page())


class ComparisonTest(unittest.TestCase):
    """Tests the comparison itself: a contract with one more entry must be found broken, in every section."""

    def test_one_entry_more_is_missed(self):
        found = contract.kept()
        self.assertEqual(contract.breaks(found, found), [])
        self.assertEqual(contract.additions(found, found), [])
        wanted, changed, added = with_more(found)
        self.assertGreater(changed, 1000)
        broken, new = contract.breaks(wanted, found), contract.additions(found, wanted)
        self.assertEqual((len([line for line in broken if 'was "another type"' in line]), len(new)), (changed, added))
        self.assertEqual(len(broken), changed + added)

    def test_every_entry_is_asked_for(self):
        """Removes one thing of each kind: a command, a flag, a choice, a key, a column, a parameter of a link."""
        found = contract.kept()
        for path in (['commands', 'tail'], ['commands', 'diff', 'flags', '--fail-on'], ['commands', 'export', 'choices', '--to', 'svg'],
                     ['lists', 'schedules', 'zb-v'], ['answers', 'explain --format json', 'paths', 'findings[].rank'],
                     ['answers', 'diff --format json', 'paths', 'changes[]'], ['analyses', 'columns', 'links', 'links', 'median_ns'],
                     ['files', 'export --to csv', 'dur_ns'], ['page', 'parameters of timeline', 'sel']):
            *way, last = path
            now = copy.deepcopy(found)
            node = now
            for step in way:
                node = node[step]
            node.remove(last) if isinstance(node, list) else node.pop(last)
            self.assertEqual(contract.breaks(found, now), [' › '.join(path) + ': is gone'])

    def test_another_type_is_missed(self):
        self.assertEqual(contract.breaks({'a': 'text'}, {'a': 'number or text'}), ['a: was "text", is "number or text"'])
        self.assertEqual(contract.breaks({'a': 'whole number'}, {'a': 'number'}), ['a: was "whole number", is "number"'])
        self.assertEqual(contract.breaks({'a': 'list'}, {'a': 'absent or list'}), ['a: was "list", is "absent or list"'])
        self.assertEqual(contract.breaks({'a': 'null or number'}, {'a': 'whole number'}), [])

    def test_shapes(self):
        shape = surface.Shape().take({'a': [{'b': 1, 'c': 'x'}, {'b': None}], 'd_ns': 5, 'columns': [], 'rows': [{'x': 1}]})
        self.assertEqual(shape.paths(), {'a': 'list', 'a[]': 'object', 'a[].b': 'null or number', 'a[].c': 'absent or text',
                                         'columns': 'list', 'd_ns': 'whole number', 'rows': 'list'})
        self.assertEqual(surface.Shape().take({'a_ns': 1.5}).take({'a_ns': 1}).paths(), {'a_ns': 'number'})


def with_more(node):
    """Returns a copy with one more entry in every object and list, and another type at every leaf; and the counts of types and entries."""
    if isinstance(node, str):
        return ('another type', 1, 0) if node != 'null' else (node, 0, 0)
    if isinstance(node, list):
        return [*node, 'was here'], 0, 1
    out, changed, added = {'was here': 'text'}, 0, 1
    for key, inner in node.items():
        out[key], types, entries = with_more(inner)
        changed, added = changed + types, added + entries
    return out, changed, added


def update():
    folder = pathlib.Path(tempfile.mkdtemp(prefix='stageline-test-'))
    try:
        contract.write(surface.collect(folder))
    finally:
        shutil.rmtree(folder)


if __name__ == '__main__':
    if '--update' in sys.argv:
        update()
    else:
        unittest.main()
