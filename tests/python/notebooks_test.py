"""The example notebooks run from the first cell to the last, and show what they are to show. Skipped without nbclient and pandas."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engine_test import BIN, HAVE_ENGINE, PACKAGE, ROOT  # noqa: E402

try:
    import ipykernel  # noqa: F401
    import nbclient
    import nbformat
    import pandas  # noqa: F401
except ImportError:
    nbclient = None


@unittest.skipUnless(nbclient and HAVE_ENGINE, 'no nbclient, ipykernel or pandas, or the module was not built')
class Notebooks(unittest.TestCase):
    def outputs(self, name, **environment):
        book = nbformat.read(ROOT / 'docs/notebooks' / name, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(BIN, pathlib.Path(folder) / 'stageline')
            kept = dict(os.environ)
            os.environ.update(environment, PATH=folder + os.pathsep + kept['PATH'], PYTHONPATH=str(PACKAGE), JUPYTER_PLATFORM_DIRS='1')
            try:
                nbclient.NotebookClient(book, timeout=300, kernel_name='python3', resources={'metadata': {'path': folder}}).execute()
            finally:
                os.environ.clear()
                os.environ.update(kept)
        shown = [o for cell in book.cells if cell.cell_type == 'code' for o in cell.outputs]
        self.assertFalse([o for o in shown if o.output_type == 'stream' and o.name == 'stderr'], name)
        return [o.data.get('text/html', '') if 'data' in o else o.get('text', '') for o in shown]

    def test_pipeline(self):
        shown = self.outputs('pipeline.ipynb')
        self.assertTrue(any('data:image/svg+xml;base64,' in o for o in shown))
        self.assertTrue(any('<iframe sandbox="allow-scripts" srcdoc="' in o for o in shown))
        self.assertTrue(any('ms a step  ' in o for o in shown))
        for o in shown:
            self.assertNotIn('<script', o.split('srcdoc=')[0])

    def test_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / 'tests/gen/kineto.py', '--ranks', '8', '--events', '3000', '--format', 'json', '-o', folder], check=True, capture_output=True)
            shown = self.outputs('torch.ipynb', TRACES=folder)
        self.assertTrue(any('Self CPU' in o for o in shown))
        self.assertTrue(any('idle_time(us)' in o for o in shown))

    def test_ascend(self):
        shown = self.outputs('ascend.ipynb')
        self.assertTrue(any('data:image/svg+xml;base64,' in o for o in shown))


if __name__ == '__main__':
    unittest.main()
