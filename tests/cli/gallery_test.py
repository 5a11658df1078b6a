"""docs/gallery.md and its Chinese page say what the program says of their ten runs today."""
import subprocess
import sys
import unittest

from support import BIN, SOURCE


class Gallery(unittest.TestCase):
    def test_the_pages_say_what_the_program_says(self):
        done = subprocess.run([sys.executable, SOURCE / 'tools/gallery.py', BIN, '--check'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == '__main__':
    unittest.main()
