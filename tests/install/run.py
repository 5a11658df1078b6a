"""Tests the files of `cmake --install`, and programs that are built against them: record/examples by CMake and by
pkg-config, each run.

STAGELINE_BIN is the program in its build folder. MPI's example is skipped where there is no mpicc."""
import contextlib
import csv
import io
import json
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'packaging'))
import composite  # noqa: E402
import dist  # noqa: E402
import promises  # noqa: E402
import release  # noqa: E402

BIN = pathlib.Path(os.environ['STAGELINE_BIN']).resolve()
BUILD = BIN.parent
os.environ['CMAKE_GENERATOR'] = 'Ninja'  # what the product is built with; make may not be there


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f'{command}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}'
    return done.stdout


def recorded(folder):
    """(rank, kind, micro-batch) of the cells in a recording, in order of time."""
    rows = [row for row in csv.DictReader(io.StringIO(run(BIN, 'export', folder, '--to', 'csv', '-o', '-'))) if row['kind']]
    rows.sort(key=lambda row: int(row['start_ns']))
    return [(int(row['rank']), row['kind'], int(row['micro_batch'])) for row in rows]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.scratch.name)
        cls.tree = cls.dir / 'tree'
        run('cmake', '--install', BUILD, '--prefix', cls.tree)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def environment(self, name, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith('STAGELINE_')}
        return {**kept, 'LD_LIBRARY_PATH': str(self.tree / 'lib'), 'STAGELINE_DIR': str(self.dir / name), 'RANK': '0', **more}

    def test_the_tree(self):
        wanted = ['bin/stageline', 'include/stageline_record.h', 'include/stageline_record.hpp', 'lib/libstageline_record.so.1',
                  'lib/libstageline_record.a', 'lib/pkgconfig/stageline_record.pc', 'lib/cmake/stageline_record/stageline_record-config.cmake',
                  'share/man/man1/stageline.1.gz', 'share/bash-completion/completions/stageline', 'share/zsh/site-functions/_stageline',
                  'share/fish/vendor_completions.d/stageline.fish', 'share/doc/stageline/copyright', 'share/stageline/stageline_mstx.py']
        self.assertEqual([path for path in wanted if not (self.tree / path).exists()], [])
        self.assertIn('TH STAGELINE 1', run('gzip', '-dc', self.tree / 'share/man/man1/stageline.1.gz'))
        installed = run(self.tree / 'bin/stageline', 'version')
        self.assertEqual(installed, run(BIN, 'version'))

    def test_the_installed_program_finds_the_recorder(self):
        said = run(self.tree / 'bin/stageline', 'record', '-o', self.dir / 'rec', 'printenv', 'STAGELINE_RECORD_LIBRARY')
        self.assertTrue(said.startswith(f'{self.tree}/lib/'), said)

    def test_examples_by_cmake(self):
        run('cmake', '-S', ROOT / 'record/examples', '-B', self.dir / 'examples', f'-DCMAKE_PREFIX_PATH={self.tree}')
        run('cmake', '--build', self.dir / 'examples')
        micro_batches = [(0, 'F', m) for m in range(4)] + [(0, 'B', m) for m in range(4)]
        for name in ('pipeline_c', 'pipeline_cpp'):
            run(self.dir / 'examples' / name, env=self.environment(name))
            self.assertEqual(recorded(self.dir / name), micro_batches * 3, name)

    def test_the_cuda_example(self):
        fake = BUILD / 'tests/record/fake'
        if not (fake / 'libcuda.so.1').exists():
            self.skipTest('needs the stand-in for CUDA, which the tests of the recorder build')
        run('cc', ROOT / 'record/examples/cuda_stream.c', '-I', self.tree / 'include', '-L', self.tree / 'lib', '-lstageline_record', '-ldl', '-o',
            self.dir / 'cuda_stream')
        environment = self.environment('cuda', LD_LIBRARY_PATH=f'{self.tree}/lib:{fake}')
        self.assertEqual(run(self.dir / 'cuda_stream', env=environment), '12 ranges with the device\'s times\n')
        self.assertEqual(recorded(self.dir / 'cuda'), [(0, 'F', m) for m in range(4)] * 3)

    def test_the_c_example_by_pkg_config(self):
        flags = run('pkg-config', '--cflags', '--libs', 'stageline_record', env={**os.environ, 'PKG_CONFIG_PATH': f'{self.tree}/lib/pkgconfig'})
        run('cc', ROOT / 'record/examples/pipeline.c', *flags.split(), '-o', self.dir / 'by_pkg_config')
        run(self.dir / 'by_pkg_config', env=self.environment('pkg'))
        self.assertEqual(len(recorded(self.dir / 'pkg')), 24)

    @unittest.skipUnless(shutil.which('mpicc') and shutil.which('mpirun'), 'needs mpicc and mpirun')
    def test_the_mpi_example(self):
        run('mpicc', ROOT / 'record/examples/mpi_ring.c', '-I', self.tree / 'include', '-L', self.tree / 'lib', '-lstageline_record', '-o',
            self.dir / 'mpi_ring')
        environment = self.environment('mpi', OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
        del environment['RANK']
        run('mpirun', '--oversubscribe', '-n', '2', self.dir / 'mpi_ring', env=environment)
        forwards = [(rank, kind) for rank, kind, _ in recorded(self.dir / 'mpi') if kind == 'F']
        self.assertEqual(sorted(forwards), [(0, 'F')] * 8 + [(1, 'F')] * 8)


class Licences(unittest.TestCase):
    """NOTICE contains all foreign parts of the release, once, with their licences."""

    def setUp(self):
        self.notice = (ROOT / 'NOTICE').read_text()
        lines = re.findall(r'^== (.*?) \| (.*?) \| (.*)$', self.notice, re.M)
        self.works = {re.sub(r' [0-9][0-9.]*$', '', name).lower(): (name, licence) for name, licence, _ in lines}
        self.assertEqual(len(self.works), len(lines), 'a work stands twice')

    def test_libraries_and_their_versions(self):
        for name, library in json.loads((ROOT / 'packaging/libraries.json').read_text()).items():
            said = self.works[name][0]
            self.assertTrue(said.endswith(' ' + library['version']), f'NOTICE says {said}, libraries.json {library["version"]}')
            self.assertEqual(self.works[name][1], library['licence'])

    def test_the_page(self):
        lock = json.loads((ROOT / 'web/package-lock.json').read_text())['packages']
        bundled = {path.removeprefix('node_modules/'): entry for path, entry in lock.items() if path and not entry.get('dev')}
        for name, entry in bundled.items():
            self.assertEqual(self.works[name][0].split()[-1], entry['version'], name)

    def test_fonts(self):
        listed = re.search(r'foreach\(font ([^)]*)\)', (ROOT / 'cmake/embedded.cmake').read_text())[1].split()
        said = {'DejaVuSans.ttf': 'dejavu sans', 'DejaVuSans-Bold.ttf': 'dejavu sans', 'wqy-microhei.ttc': 'wenquanyi micro hei'}
        for path in listed:
            self.assertIn(said[pathlib.Path(path).name], self.works)

    def test_every_part_has_a_text(self):
        for part in re.split(r'^== ', self.notice, flags=re.M)[1:]:
            self.assertGreater(len(part.split('\n', 1)[1].strip()), 80, part[:40])

    def test_the_program_says_them(self):
        said = json.loads(run(BIN, 'version', '--json'))
        self.assertEqual(said['version'], re.search(r'VERSION (\d+\.\d+\.\d+)', (ROOT / 'CMakeLists.txt').read_text())[1])
        names = {library['name'].lower() for library in said['libraries']}
        self.assertLessEqual(names, set(self.works))
        everywhere = {'zlib', 'zstd', 'sqlite', 'simdjson', 'cairo', 'boost', 'preact', 'dejavu sans', 'wenquanyi micro hei'}
        self.assertLessEqual(everywhere, names)
        self.assertTrue(all(library['licence'] for library in said['libraries']))
        texts = run(BIN, 'version', '--licences')
        self.assertTrue(texts.startswith(self.notice) and (ROOT / 'LICENSE').read_text() in texts)

    def test_each_report_has_preacts(self):
        with tempfile.TemporaryDirectory() as folder:
            run(BIN, 'simulate', '1f1b', '--stages', '2', '--micro-batches', '4', '-o', f'{folder}/logs')
            run(BIN, 'report', f'{folder}/logs', '-o', f'{folder}/report.html', '--quiet')
            self.assertIn('Copyright (c) 2015-present Jason Miller', pathlib.Path(folder, 'report.html').read_text())


class MacOS(unittest.TestCase):
    """./dev dist --all checks the program for macOS by its load commands; these files have nothing else."""

    def held(self, libraries=('/usr/lib/libSystem.B.dylib',), oldest=13, signed=True, processor=0x0100000c):
        commands = []
        for library in libraries:
            name = library.encode() + b'\0'
            name += b'\0' * (-len(name) % 8)
            commands.append(struct.pack('<IIIIII', 0xc, 24 + len(name), 24, 0, 0, 0) + name)
        commands.append(struct.pack('<IIIIII', 0x32, 24, 1, oldest << 16, oldest << 16, 0))
        if signed:
            commands.append(struct.pack('<IIII', 0x1d, 16, 0, 0))
        body = b''.join(commands)
        with tempfile.TemporaryDirectory() as folder:
            stage = pathlib.Path(folder)
            (stage / 'bin').mkdir()
            (stage / 'bin/stageline').write_bytes(struct.pack('<IIIIIIII', 0xfeedfacf, processor, 0, 2, len(commands), len(body), 0, 0) + body)
            (stage / 'made.tar.gz').write_bytes(b'')
            held = promises.Held()
            promises.mach_o(held, stage, stage / 'made.tar.gz')
        return held.faults

    def test_load_commands(self):
        self.assertEqual(self.held(), [])
        self.assertIn('libpng', self.held(('/usr/lib/libSystem.B.dylib', '/opt/homebrew/lib/libpng16.16.dylib'))[0])
        self.assertIn('14.0', self.held(oldest=14)[0])
        self.assertIn('signed', self.held(signed=False)[0])
        self.assertIn('x86_64', self.held(processor=0x01000007)[0])

    def test_it_is_built_with_all(self):
        self.assertEqual([name for name, (_, system, _) in dist.TARGETS.items() if system != 'Linux'], ['macos-arm64'])


class Release(unittest.TestCase):
    """packaging/dist.py and packaging/release.py on the files of this build, which are not portable but are packed in the same way."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.scratch.name)
        cls.made = cls.dir / 'dist'
        cls.made.mkdir()
        if not (BUILD / 'python/stageline_record/_record.abi3.so').exists():
            raise unittest.SkipTest('needs the Python package, which the build makes where python3-dev is')
        for package in ('stageline', 'stageline_record'):  # links to the sources in the build tree
            shutil.copytree(BUILD / 'python' / package, cls.dir / 'stage/lib/stageline/python' / package, ignore=shutil.ignore_patterns('__pycache__'))
        (cls.dir / 'stage/bin').mkdir()
        run('strip', '-o', cls.dir / 'stage/bin/stageline', BIN)
        run('strip', *cls.dir.glob('stage/lib/stageline/python/*/*.so'))
        dist.wheels(cls.dir / 'stage', platform.machine(), cls.made)
        dist.sdist(cls.made)
        dist.sums(cls.made)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_one_version_everywhere(self):
        stated = release.versions()
        self.assertEqual(set(stated.values()), {dist.version()}, stated)
        self.assertIn(f'\n## {dist.version()}', (ROOT / 'CHANGELOG.md').read_text())

    def test_a_folder_to_upload(self):
        """The dry run: README's first block from the wheels alone, the same from an index, one folder for each place."""
        with contextlib.redirect_stdout(io.StringIO()):
            release.main(['--dist', str(self.made), '--out', str(self.dir / 'upload'), '--offline'])
        names = sorted(path.relative_to(self.dir / 'upload').parts[0] for path in (self.dir / 'upload').iterdir())
        self.assertEqual(names, ['CITATION.cff', 'README.md', 'conda', 'github', 'pypi'])
        self.assertEqual(len(list((self.dir / 'upload/pypi').iterdir())), 3)
        self.assertIn('Stage 2 is slow', (self.dir / 'upload/README.md').read_text())
        self.assertNotIn('path: ../..', (self.dir / 'upload/conda/recipe.yaml').read_text())

    def test_the_promises_of_a_program_and_of_wheels(self):
        """Runs the checks that ./dev dist makes at its end, of the program and of the wheels; no other test runs them."""
        held = promises.Held()
        program = [str(self.dir / 'stage/bin/stageline')]
        promises.runs(held, program, 'here')
        promises.installed(held, sys.executable, self.made, program)
        self.assertEqual(len(held.rows), 6)
        self.assertEqual(held.faults, [])

    def test_the_action_in_a_repository(self):
        """action.yml step by step as a runner takes it, from the installation of these wheels on, in a fresh repository."""
        repository = self.dir / 'repository'
        run('git', 'init', '--quiet', repository)
        for name, more in (('main', ()), ('branch', ('--seed', '5')), ('slow', ('--fault', 'slow-stage:2,1.3'))):
            run(BIN, 'simulate', '1f1b', '--cost', '10,20', '--jitter', '0.03', '--steps', '12', '-o', repository / name, *more)
        wheels = f'--no-index --find-links {self.made} stageline'
        nowhere = {'sha': 'abc', 'token': 'secret', 'event': {}}  # a push, which has no pull request to write to

        def job(number, **given):
            return composite.run(ROOT, repository, {name.replace('_', '-'): value for name, value in given.items()}, self.dir / f'job{number}', nowhere)
        code, outputs, summary, printed = job(1, run='branch', baseline='main', install=wheels)
        self.assertEqual((code, outputs['verdict']), (0, 'pass'), printed)
        self.assertLess(abs(float(outputs['change'])), 0.02)
        self.assertIn('Within the budget', summary)
        self.assertEqual((repository / outputs['comment']).read_text().strip(), summary.strip())
        self.assertTrue((repository / 'stageline-gate/report.html').exists())
        # A later step of the same job has the program on its PATH, and installs nothing.
        there = {'PATH': f'{self.dir}/job1/stageline/bin:{os.environ["PATH"]}'}
        code, outputs, summary, printed = composite.run(ROOT, repository, {'run': 'slow', 'baseline': 'main', 'install': ''}, self.dir / 'job2', nowhere, there)
        self.assertEqual((code, outputs['verdict']), (1, 'fail'), printed)
        self.assertIn('Stage 2 is slow', summary)
        self.assertFalse((self.dir / 'job2/stageline').exists())
        given = {'run': 'main', 'history': 'steps.sqlite', 'install': ''}
        code, outputs, summary, printed = composite.run(ROOT, repository, given, self.dir / 'job3', nowhere, there)
        self.assertEqual((code, outputs['verdict'], outputs['change']), (0, 'no-conclusion', ''), printed)
        self.assertIn('1 of at least 12 runs', summary)
        history = json.loads(run(BIN, 'history', 'list', '--db', repository / 'steps.sqlite', '--format', 'json'))
        self.assertIn('abc', json.dumps(history))
        # A package that cannot be installed ends the job before the check.
        code, outputs, summary, printed = job(4, run='main', baseline='main', install=f'--no-index --find-links {repository} stageline')
        self.assertNotEqual(code, 0)
        self.assertEqual((outputs['verdict'], summary), ('', ''))
        with self.assertRaises(ValueError):
            job(5, run='main', bugdet='3%')

    def test_a_damaged_file_stops_it(self):
        damaged = self.dir / 'damaged'
        damaged.mkdir()
        for path in self.made.iterdir():
            shutil.copy(path, damaged)
        wheel = next(damaged.glob('stageline_record-*.whl'))
        wheel.write_bytes(wheel.read_bytes()[:-9])
        with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stdout(io.StringIO()):
            release.main(['--dist', str(damaged), '--out', str(self.dir / 'no'), '--offline'])
        self.assertIn(f'sum of {wheel.name}: differs', str(stopped.exception))

    def test_the_archive_of_the_sources(self):
        """Unpacked, with no git: what is built is dated and listed as in the clone, and packed once more it is the same archive."""
        with tarfile.open(next(self.made.glob('*.tar.gz'))) as tar:
            tar.extractall(self.dir / 'unpacked', filter='data')
        root = self.dir / 'unpacked' / f'stageline-{dist.version()}'
        self.assertEqual(sorted(dist.source_files(root)), sorted({*dist.source_files(), pathlib.Path('pyproject.toml')}))
        code = 'import sys; sys.path.insert(0, "packaging"); import dist; print(dist.source_date(), repr(dist.commit()))'
        kept = {k: v for k, v in os.environ.items() if k != 'SOURCE_DATE_EPOCH'}
        self.assertEqual(run(sys.executable, '-c', code, cwd=root, env=kept), f'{dist.source_date()} \'\'\n')
        self.assertEqual(run(sys.executable, '-c', code, cwd=root, env={**kept, 'SOURCE_DATE_EPOCH': '77'}), '77 \'\'\n')
        (root / 'build').mkdir()
        (root / 'build/new').write_text('')
        again = self.dir / 'again'
        again.mkdir()
        run(sys.executable, '-c', f'import sys, pathlib; sys.path.insert(0, "packaging"); import dist; dist.sdist(pathlib.Path({str(again)!r}))', cwd=root, env=kept)
        one, two = next(self.made.glob('*.tar.gz')), next(again.glob('*.tar.gz'))
        self.assertEqual(dist.digest(one), dist.digest(two))
        import tomllib  # noqa: PLC0415
        described = tomllib.loads((root / 'pyproject.toml').read_text())
        self.assertEqual(described['project'].get('license-files'), ['LICENSE', 'NOTICE'])
        self.assertTrue((root / described['project']['readme']).exists())
        self.assertEqual(described['tool']['scikit-build']['cmake']['source-dir'], '.')

    def test_the_long_description(self):
        """Without an address of the sources it has neither pictures nor links into them; with one they are absolute."""
        inward = re.compile(r'\]\((?!https://)')
        self.assertIsNone(inward.search(dist.long_description({})))
        text = dist.long_description({'Repository': 'https://example.invalid/stageline/'})
        self.assertIsNone(inward.search(text))
        for kind, path in re.findall(r'example\.invalid/stageline/(raw|blob)/v[\d.]+/([^)]+)\)', text):
            self.assertTrue((ROOT / path).exists(), path)
        self.assertIn(f'![A report on a two-machine 1F1B run whose stage 2 is slow](https://example.invalid/stageline/raw/v{dist.version()}/docs/images/report.png)', text)


if __name__ == '__main__':
    result = unittest.main(exit=False, verbosity=1).result
    print(f'{result.testsRun - len(result.failures) - len(result.errors) - len(result.skipped)} passed, '
          f'{len(result.failures) + len(result.errors)} failed, {len(result.skipped)} skipped')
    for _, reason in result.skipped:
        print(f'skipped: {reason}')
    sys.exit(not result.wasSuccessful())
