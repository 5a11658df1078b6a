#!/usr/bin/env python3
"""Builds the release into dist/, and checks it against its promises: `dist.py [--all] [--check]`, called by ./dev dist.

The program is compiled by zig's clang for glibc 2.17 and linked with static libraries, whose sources
packaging/libraries.json names with their digests: from Debian's source packages, and SQLite from npm. Downloads and
build results are kept in build/dist.
"""
import argparse
import base64
import contextlib
import functools
import glob
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import zipfile

import promises

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARIES = json.loads((ROOT / 'packaging/libraries.json').read_text())
ZIG = 'ziglang==0.17.1'
TOOLS = (ZIG, 'auditwheel==6.8.2')
DEBIANS = {'x86_64': 'amd64', 'aarch64': 'arm64'}
# Each system that is built, by the name in file names: zig's name of it, and CMake's names of system and processor.
TARGETS = {'x86_64': (f'x86_64-linux-gnu.{promises.GLIBC}', 'Linux', 'x86_64'), 'aarch64': (f'aarch64-linux-gnu.{promises.GLIBC}', 'Linux', 'aarch64'),
           'macos-arm64': (f'aarch64-macos.{promises.MACOS}', 'Darwin', 'arm64')}
# Bare systems that what was made is tried in, by debootstrap's names of them: from the oldest that can be had to the newest.
BARE_SYSTEMS = {'xenial': 'Ubuntu 16.04', 'bionic': 'Ubuntu 18.04', 'bullseye': 'Debian 11', 'bookworm': 'Debian 12', 'noble': 'Ubuntu 24.04', 'trixie': 'Debian 13'}
MADE = ('.npm-ci.lock', 'PKG-INFO')  # files that a build, or the archive for PyPI, adds to the sources
WITH_PYTHON = ('bullseye', 'bookworm', 'noble', 'trixie')  # whose own Python the wheels are for


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(*command, quiet=True, **options):
    """Runs a command; where it fails, what it said is shown, and the whole ends."""
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT if quiet else None, text=True, **options)
    if done.returncode != 0:
        sys.exit(f'{(done.stdout or "")[-6000:]}\ndist: this failed: {" ".join(command)}')
    return done.stdout


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- sources

def source_lists(work):
    """apt's options for the same archives as this machine's, with the sources that it may not have asked for."""
    apt = work / 'apt'
    for folder in ('parts', 'lists/partial', 'cache/archives/partial'):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    for listed in [pathlib.Path('/etc/apt/sources.list'), *map(pathlib.Path, glob.glob('/etc/apt/sources.list.d/*'))]:
        if listed.suffix in ('.list', '.sources') and listed.exists():
            lines = ['Types: deb-src' if line.startswith('Types:') else 'deb-src' + line[3:] if line.startswith('deb ') else line
                     for line in listed.read_text().splitlines()]
            (apt / 'parts' / listed.name).write_text('\n'.join(lines) + '\n')
    options = ['-o', 'Dir::Etc::sourcelist=/dev/null', '-o', f'Dir::Etc::sourceparts={apt}/parts', '-o', f'Dir::State::lists={apt}/lists',
               '-o', f'Dir::Cache={apt}/cache', '-o', 'APT::Sandbox::User=root']
    run('apt-get', *options, 'update')
    return options


def fetch(work):
    """The libraries' sources, each as its authors released it: checked by digest, unpacked to work/sources/NAME."""
    fetched, sources = work / 'fetched', work / 'sources'
    fetched.mkdir(parents=True, exist_ok=True)
    options = None
    for name, library in LIBRARIES.items():
        archive = fetched / library['file']
        if not archive.exists():
            say(f'fetching {library["file"]}')
            if 'npm' in library:
                run('npm', 'pack', '--silent', library['npm'], cwd=fetched)
            else:
                options = options or source_lists(work)
                # An update of the security archive names the same release of the authors, and need not have its file.
                for package in (f'{library["debian"]}/{platform.freedesktop_os_release().get("VERSION_CODENAME")}', library['debian']):
                    if not archive.exists():
                        subprocess.run(['apt-get', *options, 'source', '--download-only', '--tar-only', package], cwd=fetched, stdout=subprocess.DEVNULL)
        if not archive.exists():
            sys.exit(f'dist: {library["file"]} is not what this system\'s archive has of {name}: run on Debian 12, or put the file into {fetched}')
        if digest(archive) != library['sha256']:
            sys.exit(f'dist: {archive} is not the file that packaging/libraries.json names: remove it, or change the digest there if that is meant')
        to = sources / name
        if (to / '.from').exists() and (to / '.from').read_text() == library['sha256']:
            continue
        shutil.rmtree(to, ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(sources / 'unpacked', filter='data')
        unpacked = next((sources / 'unpacked').iterdir())
        shutil.move(unpacked / library.get('inside', ''), to)
        shutil.rmtree(sources / 'unpacked')
        (to / '.from').write_text(library['sha256'])
    return sources


# ---- compilers

def tools_environment(work):
    """A virtual environment with what PyPI has of the tools: zig, and what checks wheels."""
    home = work / 'tools'
    wanted = home / 'wanted'
    if not wanted.exists() or wanted.read_text() != ' '.join(TOOLS):
        say('fetching zig')
        shutil.rmtree(home, ignore_errors=True)
        run(sys.executable, '-m', 'venv', home)
        run(home / 'bin/pip', 'install', '--quiet', '--disable-pip-version-check', *TOOLS)
        wanted.write_text(' '.join(TOOLS))
    return home


def zig_of(tools):
    return next(tools.glob('lib/python3*/site-packages/ziglang/zig'))


def zig_tools(work, tools, arch):
    """Wrappers that CMake takes for a compiler and its tools."""
    zig = zig_of(tools)
    folder = work / arch / 'zig'
    folder.mkdir(parents=True, exist_ok=True)
    cache = shlex.quote(f'{work}/zig_cache')
    # Names of this machine's folders must not appear in the output.
    maps = ' '.join(shlex.quote(f'-ffile-prefix-map={path}={name}') for path, name in ((work, 'build'), (ROOT, '.')))
    # zig's clang writes debug information for every line by default, and the recorder's static archive is released as
    # compiled. The flag -O2 also applies where CMake tries things out: otherwise zig would build its C++ library once
    # more, for debugging.
    flags = f'-target {TARGETS[arch][0]} -O2 -g0 -fno-sanitize=undefined -Xclang -fno-pch-timestamp {maps}'
    for name in ('cc', 'c++', 'ar', 'ranlib'):
        wrapper = folder / name
        # The wrapper contains zig's version because the compiler cache identifies a compiler by its file.
        text = (f'#!/bin/sh\n# {ZIG}\nexport ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}\n'
                f'exec {shlex.quote(str(zig))} {name}{" " + flags if name[0] == "c" else ""} "$@"\n')
        if not wrapper.exists() or wrapper.read_text() != text:
            wrapper.write_text(text)
            wrapper.chmod(0o755)
    return folder


def cmake(work, arch, source, build, *options):
    folder = work / arch
    launcher = ['-DCMAKE_C_COMPILER_LAUNCHER=ccache', '-DCMAKE_CXX_COMPILER_LAUNCHER=ccache'] if shutil.which('ccache') else []
    # A base folder of the compiler cache would make paths relative before the compiler maps them, and __FILE__ another word.
    environment = dict(os.environ, CCACHE_BASEDIR='', CCACHE_SLOPPINESS='pch_defines,time_macros,include_file_mtime,include_file_ctime', CCACHE_COMPILERTYPE='clang',
                       CCACHE_COMPILERCHECK='content', SOURCE_DATE_EPOCH=str(source_date()))
    run('cmake', '-S', source, '-B', build, '-G', 'Ninja', f'-DCMAKE_TOOLCHAIN_FILE={ROOT}/packaging/zig.cmake',
        f'-DSTAGELINE_ZIG_TOOLS={folder}/zig', f'-DSTAGELINE_SYSTEM={TARGETS[arch][1]}', f'-DSTAGELINE_PROCESSOR={TARGETS[arch][2]}', f'-DSTAGELINE_PREFIX={folder}/prefix', '-DCMAKE_BUILD_TYPE=Release',
        '-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG', '-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG', *launcher, *options, env=environment)
    return environment


# ---- what is built: a clone, or an archive of the sources that was unpacked

def is_clone(root=ROOT):
    return (root / '.git').exists()


def source_files(root=ROOT):
    """Paths of the sources below `root`: those that git tracks; in an archive all that no build made."""
    if is_clone(root):
        return sorted(pathlib.Path(name) for name in run('git', '-C', root, 'ls-files', '-z').split('\0') if name and (root / name).is_file())
    found = []
    for folder, folders, names in os.walk(root):
        inside = pathlib.Path(folder).relative_to(root)
        folders[:] = [name for name in folders if name not in ('node_modules', '__pycache__', '.cache') and (inside / name).parts not in (('build',), ('dist',))]
        found += [inside / name for name in names if '.partial.' not in name and name not in MADE]
    return sorted(found)


@functools.cache
def source_date(root=ROOT):
    """Seconds since 1970 that everything made is dated with: SOURCE_DATE_EPOCH, else the commit's, else the newest file's."""
    if said := os.environ.get('SOURCE_DATE_EPOCH'):
        return int(said)
    if is_clone(root):
        return int(run('git', '-C', root, 'log', '-1', '--format=%ct'))
    return max(int((root / name).stat().st_mtime) for name in source_files(root))


def commit():
    return run('git', '-C', ROOT, 'describe', '--always', '--abbrev=12', '--dirty', '--exclude=*').strip() if is_clone() else ''


def libraries(work, arch, sources):
    build = work / arch / 'libraries'
    versions = [f'-D{name}_VERSION={library["version"]}' for name, library in LIBRARIES.items()]
    environment = cmake(work, arch, ROOT / 'packaging/libraries', build, f'-DSOURCES={sources}', *versions, f'-DCMAKE_INSTALL_PREFIX={work / arch / "prefix"}')
    say(f'building the libraries for {arch}')
    run('cmake', '--build', build, '-j', os.cpu_count(), env=environment)
    run('cmake', '--install', build)
    include = work / arch / 'prefix/include'
    if not (include / 'boost').exists():
        (include / 'boost').symlink_to('/usr/include/boost')  # headers alone; the rest of /usr/include is for another libc
    if not (include / 'python3').exists():
        shutil.copytree(sysconfig.get_path('include'), include / 'python3')


def program_elsewhere(work, arch):
    """The program alone, for a system that is not Linux."""
    build = work / arch / 'program'
    environment = cmake(work, arch, ROOT, build, '-DSTAGELINE_TESTS=OFF', '-DSTAGELINE_SELF_CONTAINED=ON', f'-DSTAGELINE_COMMIT={commit()}',
                        '-DCMAKE_CXX_FLAGS=-w', '-DCMAKE_C_FLAGS=-w', '-DCMAKE_EXE_LINKER_FLAGS=-s -Wl,-dead_strip')
    say(f'building the program for {arch}')
    run('cmake', '--build', build, '-j', os.cpu_count(), '--target', 'stageline', env=environment)
    return build


def program(work, tools, arch, host_program=''):
    build = work / arch / 'program'
    fold = f'{sys.executable};{ROOT}/packaging/fold.py;{zig_of(tools)};{work};{ROOT}'
    environment = cmake(work, arch, ROOT, build, '-DSTAGELINE_TESTS=OFF', '-DSTAGELINE_SELF_CONTAINED=ON', f'-DSTAGELINE_COMMIT={commit()}',
                        '-DCMAKE_CXX_FLAGS=-w', '-DCMAKE_C_FLAGS=-w', '-DCMAKE_EXE_LINKER_FLAGS=-pie -s -Wl,--gc-sections', '-DCMAKE_SHARED_LINKER_FLAGS=-s',
                        '-DCMAKE_MODULE_LINKER_FLAGS=-s', f'-DPython3_INCLUDE_DIR={work / arch / "prefix/include/python3"}',
                        f'-DSTAGELINE_HOST_PROGRAM={host_program}', f'-DCMAKE_CXX_LINKER_LAUNCHER={fold}')
    say(f'building the program for {arch}')
    run('cmake', '--build', build, '-j', os.cpu_count(), env=environment)
    return build


# ---- what is handed out

def version():
    return re.search(r'project\(stageline VERSION (\S+)', (ROOT / 'CMakeLists.txt').read_text())[1]


def mode_of(path):
    return 0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644


def files_below(folder):
    return sorted(path for path in folder.rglob('*') if path.is_file() or path.is_symlink())


def write_tar(folder, name, to, files=None, more=None):
    """The files of a folder, and `more`, {path: its bytes}, as NAME/… in a tar.gz that knows neither who made it nor when."""
    with open(to, 'wb') as raw, gzip.GzipFile('', 'wb', 9, raw, mtime=0) as packed, tarfile.open(fileobj=packed, mode='w', format=tarfile.GNU_FORMAT) as tar:
        for path in files or files_below(folder):
            if more and str(path.relative_to(folder)) in more:
                continue
            entry = tar.gettarinfo(path, f'{name}/{path.relative_to(folder)}')
            entry.mode = mode_of(path)
            with open(path, 'rb') if entry.isfile() else contextlib.nullcontext() as content:
                tar.addfile(anonymous(entry), content)
        for path, content in sorted((more or {}).items()):
            entry = tarfile.TarInfo(f'{name}/{path}')
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(anonymous(entry), io.BytesIO(content))


def anonymous(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = 'root'
    entry.mtime = source_date()
    return entry


def wheel_name(distribution, arch):
    return f'{distribution}-{version()}-cp39-abi3-manylinux_{promises.GLIBC.replace(".", "_")}_{arch}.manylinux2014_{arch}.whl'


def write_wheel(distribution, arch, contents, metadata, scripts, to):
    """Makes a wheel of `contents`, (name in it, bytes, executable or not), with the metadata that pip needs."""
    info = f'{distribution}-{version()}.dist-info'
    tags = ''.join(f'Tag: cp39-abi3-{platform}\n' for platform in wheel_name(distribution, arch).removesuffix('.whl').split('-')[-1].split('.'))
    contents = sorted(contents)
    contents += [(f'{info}/METADATA', metadata.encode(), False),
                 (f'{info}/WHEEL', f'Wheel-Version: 1.0\nGenerator: packaging/dist.py\nRoot-Is-Purelib: false\n{tags}'.encode(), False),
                 (f'{info}/licenses/LICENSE', (ROOT / 'LICENSE').read_bytes(), False), (f'{info}/licenses/NOTICE', (ROOT / 'NOTICE').read_bytes(), False)]
    if scripts:
        contents.append((f'{info}/entry_points.txt', f'[console_scripts]\n{scripts}'.encode(), False))
    rows = [f'{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")},{len(content)}' for name, content, _ in contents]
    contents.append((f'{info}/RECORD', '\n'.join([*rows, f'{info}/RECORD,,', '']).encode(), False))
    path = to / wheel_name(distribution, arch)
    date = time.gmtime(source_date())[:6]
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, content, is_run in contents:
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100755 if is_run else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)
    return path


def project():
    return tomllib.loads((ROOT / 'python/pyproject.toml').read_text())['project']


def long_description(urls):
    """python/README.md for a page that is not in the repository: with links to it where its address is known, else without pictures and links."""
    base = urls.get('Repository', '').rstrip('/')
    text = (ROOT / 'python/README.md').read_text()
    inside = lambda target: os.path.normpath(f'python/{target}')
    if not base:
        return re.sub(r'\[([^\]]+)\]\((?![a-z]+:)[^)]+\)', r'\1', re.sub(r'!\[[^\]]*\]\((?![a-z]+:)[^)]+\)\n*', '', text))
    text = re.sub(r'(!\[[^\]]*\]\()(?![a-z]+:)([^)]+)\)', lambda m: f'{m[1]}{base}/raw/v{version()}/{inside(m[2])})', text)
    return re.sub(r'((?<!!)\[[^\]]+\]\()(?![a-z]+:)([^)]+)\)', lambda m: f'{m[1]}{base}/blob/v{version()}/{inside(m[2])})', text)


def metadata(distribution, summary, requires):
    """The text of PEP 566 and 639, from python/pyproject.toml where it says it."""
    said = project()
    lines = ['Metadata-Version: 2.4', f'Name: {distribution}', f'Version: {version()}', f'Summary: {summary}', 'License-Expression: Apache-2.0',
             'License-File: LICENSE', 'License-File: NOTICE', f'Author: {said["authors"][0]["name"]}', f'Keywords: {",".join(said["keywords"])}',
             f'Requires-Python: {said["requires-python"]}', 'Description-Content-Type: text/markdown',
             *(f'Project-URL: {name}, {url}' for name, url in said.get('urls', {}).items()),
             *(f'Classifier: {one}' for one in said['classifiers']), *(f'Requires-Dist: {one}' for one in requires)]
    for extra, wanted in said.get('optional-dependencies', {}).items():
        if distribution == 'stageline':
            lines += [f'Provides-Extra: {extra}', *(f'Requires-Dist: {one}; extra == "{extra}"' for one in wanted)]
    return '\n'.join(lines) + '\n\n' + long_description(said.get('urls', {}))


# How pip builds the sources: the program and both Python packages in one wheel, with the libraries of the system (CONTRIBUTING.md).
SDIST = """
[tool.scikit-build]
minimum-version = "0.11"
cmake.version = ">=3.25"
cmake.source-dir = "."
cmake.build-type = "Release"
cmake.define.STAGELINE_TESTS = "OFF"
wheel.packages = []
wheel.py-api = "cp39"
build.targets = ["stageline", "stageline_python", "stageline_engine_module"]
install.components = ["python"]
"""


def sdist(to):
    """The sources as PyPI takes them: all files, with the description of how pip builds them at the top."""
    text = (ROOT / 'python/pyproject.toml').read_text()
    text = text.partition('[tool.scikit-build]')[0].replace('readme = "README.md"', 'readme = "python/README.md"')
    text = text.replace('license = "Apache-2.0"\n', 'license = "Apache-2.0"\nlicense-files = ["LICENSE", "NOTICE"]\n')
    name = f'stageline-{version()}'
    more = {'pyproject.toml': (text.rstrip() + '\n' + SDIST).encode(), 'PKG-INFO': metadata('stageline', project()['description'], project().get('dependencies', [])).encode()}
    write_tar(ROOT, name, to / f'{name}.tar.gz', [ROOT / path for path in source_files()], more)
    return to / f'{name}.tar.gz'


def wheels(stage, arch, to):
    packages = stage / 'lib/stageline/python'

    def package(name):
        return [(str(path.relative_to(packages)), path.read_bytes(), mode_of(path) == 0o755) for path in files_below(packages / name)]
    said = project()
    recorder = write_wheel('stageline_record', arch, package('stageline_record'), metadata(
        'stageline-record', 'Records when each job of a training pipeline ran, on its device\'s own clock', []), '', to)
    program = write_wheel('stageline', arch, [*package('stageline'), ('stageline/bin/stageline', (stage / 'bin/stageline').read_bytes(), True)],
                          metadata('stageline', said['description'], [f'stageline-record=={version()}', *said.get('dependencies', [])]),
                          ''.join(f'{name} = {target}\n' for name, target in said['scripts'].items()), to)
    return recorder, program


def packages(work, arch, to):
    """Everything of one processor, from its installed tree."""
    build, stage = work / arch / 'program', work / arch / 'stage'
    shutil.rmtree(stage, ignore_errors=True)
    run('cmake', '--install', build, '--prefix', stage, env=dict(os.environ, SOURCE_DATE_EPOCH=str(source_date())))
    for name in ('LICENSE', 'NOTICE', 'CHANGELOG.md', 'README.md'):
        shutil.copy(ROOT / name, stage / name)
    name = f'stageline-{version()}-linux-{arch}'
    write_tar(stage, name, to / f'{name}.tar.gz')
    wheels(stage, arch, to)
    run('cpack', '-G', 'DEB', cwd=build, env=dict(os.environ, SOURCE_DATE_EPOCH=str(source_date())))
    for path in build.glob('*.deb'):
        shutil.move(path, to / path.name)


def package_elsewhere(work, arch, to):
    """The program and what must be handed out with it, as one archive."""
    stage = work / arch / 'stage'
    shutil.rmtree(stage, ignore_errors=True)
    (stage / 'bin').mkdir(parents=True)
    shutil.copy(work / arch / 'program/stageline', stage / 'bin/stageline')
    for name in ('LICENSE', 'NOTICE', 'CHANGELOG.md', 'README.md'):
        shutil.copy(ROOT / name, stage / name)
    name = f'stageline-{version()}-{arch}'
    write_tar(stage, name, to / f'{name}.tar.gz')


def sums(to):
    (to / 'SHA256SUMS').write_text(''.join(f'{digest(path)}  {path.name}\n' for path in sorted(to.iterdir()) if path.name != 'SHA256SUMS'))


def interpreters():
    """Every Python of this machine that the wheels are for."""
    found = []
    for name in [sys.executable, *(shutil.which(f'python3.{minor}') for minor in range(9, 20))]:
        said = name and subprocess.run([name, '-c', 'import sys, ensurepip; print(sys.version_info[:2])'], capture_output=True, text=True)
        if said and said.returncode == 0 and said.stdout not in [version for _, version in found]:
            found.append((name, said.stdout))
    return [name for name, _ in found]


def bare_systems(work, held, included=''):
    """(root, name) of each bare system that can be had here, made once and kept; with `included`, packages, those alone that have them for a Python of ours."""
    if os.geteuid() != 0 or not shutil.which('debootstrap'):
        held.left_out.append('nothing was tried in a bare system: that needs root and debootstrap')
        return
    for suite, name in BARE_SYSTEMS.items():
        if included and suite not in WITH_PYTHON:
            continue
        tree, scripts = work / 'bare' / (f'{suite}_{included}' if included else suite), pathlib.Path('/usr/share/debootstrap/scripts')
        # A system that an older debootstrap does not know by name is made like its predecessors.
        script = next(one for one in (scripts / suite, scripts / ('gutsy' if name.startswith('Ubuntu') else 'sid')) if one.exists())
        if not (tree / 'made').exists():
            say(f'making a bare {name}{" with " + included if included else ""}')
            shutil.rmtree(tree, ignore_errors=True)
            tree.parent.mkdir(parents=True, exist_ok=True)
            # Where debootstrap has its own address of a distribution, that is said, for it takes Debian's for everything else.
            mirror = subprocess.run(['bash', '-c', 'default_mirror() { echo "$1"; exit; }; . "$0"', script], capture_output=True, text=True,
                                    env=dict(os.environ, ARCH=DEBIANS[platform.machine()], SUITE=suite)).stdout.split()
            more = [f'--include={included}', f'--components=main{",universe" if name.startswith("Ubuntu") else ""}'] if included else []
            done = subprocess.run(['unshare', '--mount', '--pid', '--ipc', '--fork', '--kill-child', 'debootstrap', '--variant=minbase', *more, suite, tree,
                                   *([mirror[0], script] if mirror else [])], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                held.left_out.append(f'{name} was not tried: {(done.stdout.strip().splitlines() or ["debootstrap failed"])[-1]}')
                continue
            (tree / 'made').touch()
        glibc = re.search(r'[0-9.]+$', promises.stated_by(['chroot', tree, 'ldd', '--version']).splitlines()[0])
        yield tree, f'bare {name}, glibc {glibc[0] if glibc else "?"}'


def hold(work, tools, to, processors, bare):
    """Holds what was made to what is promised (packaging/promises.py), in bare systems too where `bare` says so, and prints it."""
    held = promises.Held()
    for arch in processors:
        stage = work / arch / 'stage'
        if TARGETS[arch][1] == 'Darwin':
            promises.mach_o(held, stage, to / f'stageline-{version()}-{arch}.tar.gz')
            continue
        promises.libraries(held, stage)
        promises.sizes(held, stage, sorted(to.glob(f'*{arch}*')) + sorted(to.glob(f'*_{DEBIANS[arch]}.deb')))
        archive, deb = to / f'stageline-{version()}-linux-{arch}.tar.gz', next(to.glob(f'*_{DEBIANS[arch]}.deb'))
        promises.licences(held, ROOT, [work / arch / 'libraries', work / arch / 'program'])
        promises.archive(held, archive)
        promises.package(held, deb)
        promises.wheels(held, tools, sorted(to.glob(f'*_{arch}.whl')))
        if arch == platform.machine():
            promises.runs(held, [stage / 'bin/stageline'], arch)
            promises.goldens(held, ROOT, stage / 'bin/stageline', arch)
            for python in interpreters():
                promises.installed(held, python, to, [stage / 'bin/stageline'])
            for tree, system in bare_systems(work, held) if bare else ():
                promises.bare_system(held, tree, system, archive, deb)
            for tree, system in bare_systems(work, held, 'python3-venv') if bare else ():
                top = promises.unpacked(archive, tree)
                promises.installed(held, 'python3', to, [f'/opt/{top}/bin/stageline'], system, tree)
        elif (emulator := shutil.which(f'qemu-{arch}-static')) and os.path.exists(f'/usr/{arch}-linux-gnu/lib/libc.so.6'):
            words = [emulator, '-L', f'/usr/{arch}-linux-gnu', stage / 'bin/stageline']
            promises.runs(held, words, f'{arch}, under qemu')
            emulated = work / arch / 'emulated'
            emulated.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
            emulated.chmod(0o755)
            promises.goldens(held, ROOT, emulated, f'{arch}, under qemu')
        else:
            held.left_out.append(f'the program for {arch} was not run: that needs the packages qemu-user-static and libc6-{DEBIANS[arch]}-cross')
    print('| what | is | bar |\n| --- | --- | --- |')
    for row in held.rows:
        print('| ' + ' | '.join(row) + ' |')
    for text in held.left_out:
        say(f'dist: {text}')
    if held.faults:
        sys.exit('dist: ' + '\ndist: '.join(held.faults))


def make(work, to, processors):
    to.mkdir(parents=True, exist_ok=True)
    for old in to.iterdir():
        old.unlink()
    sources, tools = fetch(work), tools_environment(work)
    host_program = ''
    for arch in processors:
        zig_tools(work, tools, arch)
        libraries(work, arch, sources)
        if TARGETS[arch][1] != 'Linux':
            program_elsewhere(work, arch)
            package_elsewhere(work, arch, to)
            continue
        program(work, tools, arch, host_program)
        host_program = work / processors[0] / 'program/stageline'
        packages(work, arch, to)
    sdist(to)
    sums(to)
    return tools


def make_elsewhere(work, to, processors):
    """The same commit in another folder, without any cache: every file must be what lies in `to`, byte for byte."""
    clone = work / 'check/another_folder/stageline'
    shutil.rmtree(clone.parent, ignore_errors=True)
    if is_clone():
        run('git', 'clone', '--quiet', ROOT, clone)
    else:
        for path in source_files():
            (clone / path.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, clone / path)
    shutil.copytree(work / 'fetched', clone / 'build/dist/fetched')
    run(sys.executable, clone / 'packaging/dist.py', '--only-make', *(['--all'] if len(processors) > 1 else []), quiet=False, env=dict(os.environ, CCACHE_DISABLE='1'))
    made = [{path.name: digest(path) for path in folder.iterdir()} for folder in (to, clone / 'dist')]
    different = sorted(name for name in made[0].keys() | made[1].keys() if made[0].get(name) != made[1].get(name))
    if different:
        sys.exit(f'dist: two builds of one commit differ in {", ".join(different)}; they lie in {to} and {clone / "dist"}')
    print(f'{len(made[0])} files are the same from two builds in two folders')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--all', action='store_true', help='for aarch64 too, and the program for macOS')
    parser.add_argument('--check', action='store_true', help='try it in bare older systems; build this commit once more, in another folder and without caches, and compare')
    parser.add_argument('--work', type=pathlib.Path, default=ROOT / 'build/dist', help='where what is fetched and built is kept')
    parser.add_argument('--out', type=pathlib.Path, default=ROOT / 'dist')
    parser.add_argument('--only-make', action='store_true', help='and hold nothing to its promises')
    asked = parser.parse_args()
    processors = tuple(TARGETS) if asked.all else ('x86_64',)
    if asked.check and commit().endswith('-dirty'):
        sys.exit('dist: two builds of one commit are compared, and here are changes that are in none: commit them, or put them away')
    work, to = asked.work.resolve(), asked.out.resolve()
    tools = make(work, to, processors)
    if not asked.only_make:
        hold(work, tools, to, processors, bare=asked.check)
    if asked.check:
        make_elsewhere(work, to, processors)


if __name__ == '__main__':
    main()
