"""Checks the output of ./dev dist against its promises. Each function returns rows of the table in bench/README.md; a
bar that is missed is a failure. They are called by dist.py. A check whose tool is not installed is skipped and
reported."""
import email
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import time
import urllib.request
import zipfile

GLIBC = '2.17'
MACOS = '13.0'  # Ventura, 2022
GLIBCS_OWN = {'libc.so.6', 'libm.so.6', 'libpthread.so.0', 'libdl.so.2', 'librt.so.1', 'libutil.so.1', 'libresolv.so.2'}
PROGRAM_MB, FILE_MB = 20, 25
# These complaints of lintian are intended. A program without dependencies carries its libraries and fonts, comes from
# no source package of Debian's, and has no entry in Debian's list of bugs to close.
LINTIAN_MEANT = ('embedded-library', 'initial-upload-closes-no-bugs')
RUN = ['simulate', '1f1b', '--stages', '4', '--micro-batches', '8', '--dp', '2', '--steps', '24', '--cost', '10,20', '--latency', '0.2', '--jitter', '0.03',
       '--optimizer', '8', '--machines', '2', '--fault', 'slow-stage:2,1.4', '--seed', '7']  # as ./dev demo


class Held:
    """The rows of the table so far, and what of it was missed."""

    def __init__(self):
        self.rows, self.faults, self.left_out = [], [], []

    def bar(self, name, value, good, promise):
        self.rows.append((name, value, promise))
        if not good:
            self.faults.append(f'{name}: {value}, and {promise} is promised')


def version_of(text):
    return tuple(map(int, text.split('.')))


def elf_files(folder):
    return [path for path in sorted(folder.rglob('*')) if path.is_file() and not path.is_symlink() and path.open('rb').read(4) == b'\x7fELF']


def symbols_of(path):
    """(libraries that are needed, the newest version of glibc's that a symbol asks for)"""
    said = subprocess.run(['readelf', '-dVW', path], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r'Shared library: \[(.*?)\]', said)
    versions = [version_of(found) for found in re.findall(r'Name: GLIBC_([0-9.]+)', said)]
    return needed, '.'.join(map(str, max(versions, default=(0,))))


def libraries(held, stage):
    """Nothing is needed but glibc, and none that is younger than GLIBC."""
    for path in elf_files(stage):
        needed, newest = symbols_of(path)
        strange = [one for one in needed if one not in GLIBCS_OWN and not one.startswith('ld-linux')]
        name = path.relative_to(stage)
        held.bar(f'`{name}`: libraries needed', ', '.join(needed), not strange, 'glibc\'s own')
        held.bar(f'`{name}`: newest symbol of glibc', newest, version_of(newest) <= version_of(GLIBC), f'≤ {GLIBC}')


def load_commands(path):
    """{what it is: value} of a Mach-O file: its processor, the libraries that it loads, the oldest macOS, whether it is signed."""
    content = path.read_bytes()
    magic, processor, _, kind, count = struct.unpack_from('<IIIII', content)
    found, at = {'is program': (magic, kind) == (0xfeedfacf, 2), 'processor': {0x0100000c: 'arm64', 0x01000007: 'x86_64'}.get(processor, '?'), 'libraries': []}, 32
    for _ in range(count):
        command, size = struct.unpack_from('<II', content, at)
        if command & 0x7fffffff in (0xc, 0x18, 0x1f):  # LC_LOAD_DYLIB and its weak and re-exported forms
            begin = at + struct.unpack_from('<I', content, at + 8)[0]
            found['libraries'].append(content[begin:at + size].split(b'\0')[0].decode())
        elif command == 0x32:  # LC_BUILD_VERSION
            oldest = struct.unpack_from('<I', content, at + 12)[0]
            found['macOS'] = f'{oldest >> 16}.{oldest >> 8 & 0xff}'
        elif command == 0x1d:  # LC_CODE_SIGNATURE, without which no program starts on arm64
            found['signed'] = True
        at += size
    return found


def mach_o(held, stage, archive):
    """The program for macOS is looked at, not run: there is no macOS here."""
    found = load_commands(stage / 'bin/stageline')
    held.bar(f'`{archive.name}`: a program for', found['processor'], found['is program'] and found['processor'] == 'arm64', 'arm64')
    strange = [name for name in found['libraries'] if not name.startswith('/usr/lib/')]
    held.bar(f'`{archive.name}`: libraries needed', ', '.join(found['libraries']), found['libraries'] and not strange, 'of macOS itself')
    held.bar(f'`{archive.name}`: oldest macOS', found.get('macOS', 'none'), found.get('macOS') == MACOS, MACOS)
    held.bar(f'`{archive.name}`: signed for this processor', str(found.get('signed', False)), found.get('signed', False), 'True')
    held.bar(f'`{archive.name}`', f'{archive.stat().st_size / 1e6:.1f} MB', archive.stat().st_size <= FILE_MB * 1e6, f'≤ {FILE_MB} MB')


def sizes(held, stage, files):
    megabytes = (stage / 'bin/stageline').stat().st_size / 1e6
    held.bar('the program', f'{megabytes:.1f} MB', megabytes <= PROGRAM_MB, f'≤ {PROGRAM_MB} MB')
    for path in files:
        megabytes = path.stat().st_size / 1e6
        held.bar(f'`{path.name}`', f'{megabytes:.1f} MB', megabytes <= FILE_MB, f'≤ {FILE_MB} MB')


def wheels(held, tools, found):
    """auditwheel says on which systems what is inside can run; metadata and licences are there; no file belongs to two wheels."""
    owners = {}
    for path in found:
        said = subprocess.run([tools / 'bin/auditwheel', 'show', path], capture_output=True, text=True)
        runs_on = re.search(r'"manylinux_(\d+_\d+)_', said.stdout)
        tag = runs_on[1].replace('_', '.') if runs_on else 'none'
        held.bar(f'`{path.name}`: manylinux by auditwheel', tag, runs_on and version_of(tag) <= version_of(GLIBC), f'≤ {GLIBC}')
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
            info = next(name for name in names if name.endswith('.dist-info/METADATA')).rpartition('/')[0]
            metadata = email.message_from_bytes(packed.read(f'{info}/METADATA'))
        missing = [field for field in ('Name', 'Version', 'Summary', 'License-Expression', 'Requires-Python', 'Classifier') if not metadata[field]]
        missing += [file for file in metadata.get_all('License-File', ['LICENSE']) if f'{info}/licenses/{file}' not in names]
        held.bar(f'`{path.name}`: metadata missing', ', '.join(missing) or 'none', not missing, 'none')
        for name in names:
            owners.setdefault(name, []).append(path.name)
    twice = [name for name, by in owners.items() if len(by) > 1]
    held.bar('files that two wheels own', str(len(twice)), not twice, '0')


def package(held, deb):
    """lintian's complaints of a .deb, less those that are meant."""
    if not shutil.which('lintian'):
        held.left_out.append(f'lintian is not installed: {deb.name} was not looked at')
        return
    said = subprocess.run(['lintian', '--allow-root', '--fail-on', 'none', '--suppress-tags', ','.join(LINTIAN_MEANT), deb], capture_output=True, text=True)
    complaints = [line for line in said.stdout.splitlines() if re.match('[EW]: ', line)]
    held.bar(f'`{deb.name}`: complaints of lintian', '; '.join(complaints) or 'none', not complaints, 'none')


# How terms begin that want to be handed on with the work: MIT's and its forebears', BSD's, zlib's.
TERMS = re.compile(r'permission is hereby granted|permission to use, copy|redistributions? (?:and use in source|in binary form)|permission is granted to anyone')


def plain(text):
    """A text without what comments, lines and quotes put between its words."""
    return re.sub(r'[\s*/#;"\'`\\]+', ' ', text).lower()


def licences(held, root, builds):
    """Checks that NOTICE contains the licence terms of every foreign file that is compiled into the program, headers
    too: many a library has files that
    its own licence does not speak for."""
    notice, missing, seen = plain((root / 'NOTICE').read_text()), {}, set()
    for build in builds:
        listed = subprocess.run(['ninja', '-t', 'deps'], cwd=build, capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            path = (build / line.strip()) if line.startswith('    ') else None
            if path is None or path in seen or not re.search('/dist/sources/|/include/boost/', str(path)) or not path.exists():
                continue
            seen.add(path)
            text = plain(path.read_text(errors='replace'))
            for found in TERMS.finditer(text):
                begun = text[found.start():found.start() + 120]
                if begun not in notice:
                    missing.setdefault(begun, path.name)
    text = '; '.join(f'{name}: {begun[:60]}…' for begun, name in missing.items())
    held.bar(f'terms of {len(seen)} files of others that NOTICE lacks', text or 'none', seen and not missing, 'none')


def archive(held, path):
    """Returns the required content of the tar.gz, below one folder."""
    with tarfile.open(path) as tar:
        names = tar.getnames()
    top = path.name.removesuffix('.tar.gz')
    wanted = ['bin/stageline', 'LICENSE', 'NOTICE', 'README.md', 'CHANGELOG.md', 'share/man/man1/stageline.1.gz', 'share/bash-completion/completions/stageline',
              'share/zsh/site-functions/_stageline', 'share/fish/vendor_completions.d/stageline.fish', 'lib/libstageline_record.so.1', 'include/stageline_record.h']
    missing = [name for name in wanted if f'{top}/{name}' not in names] + [name for name in names if not name.startswith(top + '/')]
    held.bar(f'`{path.name}`: missing or out of place', ', '.join(missing) or 'nothing', not missing, 'nothing')


def stated_by(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, **options)
    return done.stdout if done.returncode == 0 else f'[status {done.returncode}] {done.stdout[-500:]}{done.stderr[-1500:]}'


def answered_by_view(program, logs, environment):
    """Reads the answer of the viewer's server for its page, requested as a browser would."""
    with subprocess.Popen([*program, 'view', str(logs), '--port', '0', '--no-open'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment) as server:
        try:
            for line in server.stdout:
                if address := re.search(r'http://127\.0\.0\.1:\d+\S*', line):
                    with urllib.request.urlopen(address[0], timeout=60) as page:
                        return page.read()
            return b''
        finally:
            server.terminate()


def runs(held, program, name, root=pathlib.Path('/')):
    """The program, `program` being the words that start it, with nothing in its environment: a run made, explained, reported, drawn, shown.

    `root` is the folder that it takes for the whole file system."""
    bare = {'PATH': '/nonexistent', 'LC_ALL': 'C'}
    with tempfile.TemporaryDirectory(dir=None if root == pathlib.Path('/') else root / 'tmp') as scratch:
        scratch = pathlib.Path(scratch)
        within = pathlib.Path('/') / scratch.relative_to(root)
        logs = within / 'logs'
        stated_by([*program, *RUN, '-o', logs], env=bare)
        reported = stated_by([*program, 'explain', logs, '--format', 'json', '--quiet'], env=bare)
        first = json.loads(reported)['findings'][0] if reported.startswith('{') else {'key': reported}
        held.bar(f'{name}: first finding of a run whose stage 2 is slow', first['key'], first['key'] == 'stage:2', 'stage:2')
        made = []
        for output, command in (('report.html', ['report', logs, '-o']), ('run.png', ['export', logs, '-o']), ('run.pdf', ['export', logs, '-o']),
                                ('zh.png', ['export', logs, '--lang', 'zh', '-o'])):
            stated_by([*program, *command, within / output], env=bare)
            if (scratch / output).exists() and (scratch / output).stat().st_size > 1000:
                made.append(output)
        held.bar(f'{name}: drawn', ', '.join(made), len(made) == 4, 'report.html, run.png, run.pdf, zh.png')
        page = answered_by_view(program, logs, bare)
        held.bar(f'{name}: `view` answers', f'{len(page)} B', b'<html' in page[:2000] or b'<!doctype' in page[:2000].lower(), 'its page')


def unpacked(archive, tree):
    """Unpacks an archive into the folder opt of a system, `tree` being its root; returns the name of what is then there."""
    top = archive.name.removesuffix('.tar.gz')
    shutil.rmtree(tree / 'opt' / top, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(tree / 'opt', filter='data')
    return top


def bare_system(held, tree, system, archive, deb):
    """Runs archive and package in a system that has nothing else, with `tree` as its root: their programs must run
    there, and report a missing libcurl."""
    inside = [shutil.which('chroot'), tree]
    program = [*inside, f'/opt/{unpacked(archive, tree)}/bin/stageline']
    runs(held, program, system, tree)
    if not list(tree.glob('usr/lib/*/libcurl*.so.4')):
        asked = subprocess.run([*program, 'info', 'https://127.0.0.1:1/run.json'], capture_output=True, text=True)
        reported = asked.stderr.strip().splitlines() or ['nothing']
        held.bar(f'{system}: an address, without libcurl', reported[0], asked.returncode == 2 and 'libcurl' in asked.stderr, 'says what is missing')
    shutil.copy(deb, tree / 'tmp')
    stated_by([*inside, 'dpkg', '--install', f'/tmp/{deb.name}'])
    installed = stated_by([*inside, '/usr/bin/stageline', 'version']).strip()
    held.bar(f'{system}: installed by dpkg', installed, installed == stated_by([*program, 'version']).strip(), 'the same program')
    stated_by([*inside, 'dpkg', '--purge', 'stageline'])
    left = [str(path.relative_to(tree)) for path in tree.glob('usr/**/*stageline*')]
    held.bar(f'{system}: left when the package is gone', ', '.join(left) or 'nothing', not left, 'nothing')


def goldens(held, root, program, name):
    """Runs the goldens of the source tree with the released program."""
    said = subprocess.run(['python3', root / 'tests/golden/run.py'], capture_output=True, text=True, env=dict(os.environ, STAGELINE_BIN=str(program)))
    last = (said.stdout.strip() or said.stderr.strip()).splitlines()[-1]
    held.bar(f'{name}: goldens', last, said.returncode == 0, 'all')


def installed(held, python, folder, simulate, system='', root=pathlib.Path('/')):
    """Installs both wheels with pip, as README describes it, into an empty environment; the module and the program must
    give the same answers.

    `simulate` are the words that start a program that makes a run, `root` is the folder that all of it takes for the whole file system, `system` its name."""
    inside = [] if root == pathlib.Path('/') else [shutil.which('chroot'), root]
    with tempfile.TemporaryDirectory(dir=root / 'tmp' if inside else None) as scratch:
        for wheel in folder.glob('*.whl'):
            (pathlib.Path(scratch) / 'dist').mkdir(exist_ok=True)
            shutil.copy(wheel, pathlib.Path(scratch) / 'dist')
        within = pathlib.Path('/') / pathlib.Path(scratch).relative_to(root)
        logs, recorded = within / 'logs', within / 'recorded'
        clean = {'PATH': f'{within}/venv/bin:/usr/bin:/bin', 'HOME': str(within), 'LC_ALL': 'C.UTF-8'}

        def said(*command, **more):
            return stated_by([*inside, *command], env=dict(clean, **more), cwd=scratch)
        said(*simulate, *RUN, '-o', logs)
        said(python, '-m', 'venv', within / 'venv')
        begin = time.monotonic()
        done = said('pip', 'install', '--quiet', '--disable-pip-version-check', '--no-index', '--find-links', within / 'dist', 'stageline')
        reported = said('stageline', 'explain', logs, '--format', 'json', '--quiet')
        took = time.monotonic() - begin
        name = f'{system}{": " if system else ""}%s, Python {said(python, "--version").split()[-1]}'
        held.bar(name % 'pip install and `explain`', f'{took:.1f} s' if reported.startswith('{') else done + reported, reported.startswith('{'), 'a finding; ≤ 10 s')
        code = ('import stageline, stageline_record, stageline.record, json\n'
                'assert stageline.record is stageline_record\n'
                f'print(stageline.open("{logs}").findings[0].key)\n'
                'stageline_record.init(rank=0)\n'
                'assert stageline_record.recording(), stageline_record.why_not()\n'
                'with stageline_record.job("F", micro_batch=0): pass\n'
                'stageline_record.shutdown()\n')
        module = said('python', '-c', code, STAGELINE_DIR=str(recorded)).strip()
        first = json.loads(reported)['findings'][0]['key'] if reported.startswith('{') else '?'
        held.bar(name % '`stageline.open(…)`, `stageline_record`', module, module == first, 'the same finding, a recording')
        read = said('python', '-m', 'stageline', 'info', recorded)
        held.bar(name % '`python -m stageline` reads that recording', read.split('\n')[0], 'status' not in read[:8], 'yes')
