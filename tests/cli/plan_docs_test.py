"""The examples of docs/howto/plan.md, run as they stand: every printed line must come, in this order."""
import re
import shlex
import shutil
import unittest

from support import Case, SOURCE, run


class Docs(Case):
    def test_the_examples(self):
        page = (SOURCE / 'docs/howto/plan.md').read_text()
        shutil.copy(SOURCE / 'tests/plan/llama3-8b.json', self.dir)
        simulate = re.search(r'`stageline (simulate .*?)`', page, re.S)[1]
        run(*shlex.split(simulate), cwd=self.dir, check=0)
        blocks = re.findall(r'```text\n\$ stageline ([^\n]*)\n(.*?)```', page, re.S)
        self.assertEqual(len(blocks), 4)
        for command, printed in blocks:
            out = run(*shlex.split(command), cwd=self.dir).out.split('\n')
            for line in printed.rstrip('\n').split('\n'):
                if line == '…':
                    break
                self.assertEqual(out.pop(0), line, command)


if __name__ == '__main__':
    unittest.main()
