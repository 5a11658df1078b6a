"""Recordings as users see them: a damaged one, the result of recover, files that are not recordings."""
import sys
import unittest

from support import SOURCE, Case, flaws, info, run

sys.path.insert(0, str(SOURCE / 'tests/gen'))
import recording  # noqa: E402


class Recording(Case):
    def setUp(self):
        super().setUp()
        self.folder = self.dir / 'rec'
        self.folder.mkdir()
        recording.make(self.folder)

    def test_damage_is_said_and_the_rest_is_read(self):
        report = info(self.folder)
        self.assertEqual(report['format'], 'recording')
        found = flaws(report)
        self.assertEqual(found['recording.lost_records']['count'], 6)
        self.assertEqual(found['recording.capture']['count'], 6)
        self.assertIn('recording.torn_tail', found)
        self.assertIn('recording.cut', found)

    def test_an_empty_folder_is_no_unknown_format(self):
        (self.dir / 'empty').mkdir()
        said = run('info', self.dir / 'empty', check=2).err
        self.assertIn('there is no file in this folder', said)
        self.assertIn('stageline tail waits', said)

    def test_recover_keeps_every_intact_part_and_overwrites_nothing(self):
        done = run('recover', self.folder, '-o', self.dir / 'out', check=0)
        self.assertEqual(len(done.out.splitlines()), 2)
        self.assertIn('damaged bytes left behind', done.out)
        before, after = info(self.folder), info(self.dir / 'out')
        self.assertEqual(before['cells'], after['cells'])
        self.assertNotIn('recording.damaged', flaws(after))
        self.assertNotIn('recording.torn_tail', flaws(after))
        self.assertIn('recording.lost_records', flaws(after))  # what is gone stays counted
        self.assertIn('is there already', run('recover', self.folder, '-o', self.dir / 'out', check=2).err)

    def test_one_file_of_a_rank_is_enough(self):
        first = sorted(self.folder.iterdir())[0]
        self.assertEqual(len(info(first)['ranks']) if isinstance(info(first)['ranks'], list) else info(first)['ranks'], 1)

    def test_what_is_no_recording(self):
        self.write('plain/notes.txt', 'nothing\n')
        self.assertIn('no recording', run('recover', self.dir / 'plain', check=2).err)


if __name__ == '__main__':
    unittest.main()
