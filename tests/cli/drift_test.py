"""./dev drift compares two lists of outputs and writes its table. Nothing is fetched."""
import json
import pathlib
import sys
import tempfile
import unittest

from support import SOURCE

sys.path.insert(0, str(SOURCE / 'tests/compare'))
import drift  # noqa: E402
import drift_probe  # noqa: E402


class DriftTest(unittest.TestCase):
    def test_what_is_new_and_gone_is_named(self):
        self.assertEqual(drift.differences({'lines': ['a', 'b']}, {'lines': ['b', 'c']}), ['  gone  a', '  new   c'])

    def test_the_shape_of_a_trace_has_keys_and_arguments(self):
        trace = {'schemaVersion': 1, 'traceEvents': [{'ph': 'X', 'cat': 'kernel', 'name': 'k', 'args': {'stream': 7}}, {'ph': 'M', 'name': 'process_name', 'args': {'name': 'p'}}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'trace.json'
            path.write_text(json.dumps(trace))
            lines = drift_probe.shape_of_trace(path)
        self.assertLessEqual({'key schemaVersion: int', 'event X kernel: args.stream', 'event M - process_name: args.name'}, lines)

    def test_the_page_has_what_is_held(self):
        held = json.loads(drift.HELD.read_text())
        page = drift.PAGE.read_text()
        for name, one in held.items():
            self.assertIn(name, drift.PACKAGES)
            self.assertIn(f'| `{name}` | {one["version"]} | {one["date"]} | {len(one["lines"])} |', page)
            self.assertEqual(one['lines'], sorted(set(one['lines'])))

    def test_every_package_has_its_probe(self):
        for name in drift.PACKAGES:
            self.assertTrue(callable(getattr(drift_probe, name.replace('-', '_'))), name)


if __name__ == '__main__':
    unittest.main()
