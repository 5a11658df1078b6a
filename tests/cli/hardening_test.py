"""The program must have the properties requested from the linker: code at no fixed address, nothing writable that is
executed, no late binding."""
import shutil
import subprocess
import unittest

from support import BIN


@unittest.skipUnless(shutil.which('readelf'), 'needs readelf')
class Hardening(unittest.TestCase):
    def test_the_program(self):
        said = subprocess.run(['readelf', '-hldW', BIN], capture_output=True, text=True, check=True).stdout
        self.assertRegex(said, r'Type:\s+DYN')
        self.assertRegex(said, r'FLAGS_1.*NOW')
        self.assertIn('GNU_RELRO', said)
        stack = next(line for line in said.splitlines() if 'GNU_STACK' in line)
        self.assertNotIn('RWE', stack)
        for line in said.splitlines():
            if line.split()[:1] == ['LOAD']:
                self.assertNotRegex(line, r'\bRWE\b|W ?E')


if __name__ == '__main__':
    unittest.main()
