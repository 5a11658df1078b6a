"""The C example of docs/howto/record.md, compiled by the command on that page, must make the described records."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from recorded import BIN, Recorded, clean_environment, info

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(BIN).resolve().parent / 'record'


@unittest.skipUnless(shutil.which('cc') and (LIBRARY / 'libstageline_record.so').exists(), 'needs cc and the build tree')
class Example(Recorded):
    def test_it_compiles_and_records(self):
        page = (SOURCE / 'docs/howto/record.md').read_text()
        include, body = re.search(r'```c\n(#include [^\n]*\n)(.*?)```', page, re.S).groups()
        self.write('train.c', include + 'int main(void) {\n  void *stream = 0;\n  int64_t steps = 3;\n  int micro_batch = 1, chunk = 0;\n'
                   + body + '  return 0;\n}\n')
        command = re.search(r'^    (cc train\.c .*)$', page, re.M).group(1)
        (self.dir / 'build').mkdir()
        (self.dir / 'build/record').symlink_to(LIBRARY)
        (self.dir / 'record').symlink_to(SOURCE / 'record')
        subprocess.run(['sh', '-c', command], check=True, cwd=self.dir)
        subprocess.run(['./train'], check=True, cwd=self.dir, env=clean_environment(STAGELINE_DIR=str(self.out), RANK='0', **{
            name: os.environ[name] for name in ('LSAN_OPTIONS',) if name in os.environ}))
        said = info(self.out)
        self.assertEqual([said['cells'], said['steps']], [3, 3])


if __name__ == '__main__':
    unittest.main()
