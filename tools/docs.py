#!/usr/bin/env python3
"""The documentation as a site: `docs.py OUT_FOLDER`, called by ./dev docs. Every link is checked; a dead one ends it with an error.

The pages are in the repository as GitHub shows them. They are laid out below OUT_FOLDER/pages in the same folders, so
that relative links hold. A link to a folder becomes one to its README, and README is the first page. mkdocs-material
makes the site, which loads nothing from other hosts.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'packaging'))
import dist  # noqa: E402

GENERATOR = 'mkdocs-material==9.8.2'
LINK = re.compile(r'(\]\()([^)\s#]+)(#[^)\s]*)?(\))')
CONFIG = """site_name: Stageline
site_description: Where the time of a distributed training run goes
docs_dir: pages
site_dir: site
use_directory_urls: false
theme:
  name: material
  font: false
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
  features: [navigation.indexes, navigation.top, navigation.sections, search.suggest, search.highlight, content.code.copy, toc.follow]
markdown_extensions: [tables, admonition, fenced_code, {toc: {permalink: true, slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}}}]
plugins: [{search: {lang: [en, zh]}}]
validation:
  links: {not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}
nav:
"""


def tracked():
    """Returns pages, and the files next to them that they may show or name."""
    if not dist.is_clone():
        return dist.source_files()
    said = subprocess.run(['git', '-C', ROOT, 'ls-files', '--cached', '--others', '--exclude-standard'], check=True, capture_output=True, text=True)
    return [pathlib.Path(line) for line in said.stdout.splitlines() if (ROOT / line).exists()]


def title_of(path):
    found = re.search(r'^# (.+)$', (ROOT / path).read_text(), re.M)
    return found[1].replace('`', '') if found else path.stem


def lay_out(pages):
    """Copies every page, and every file that a page links to; returns the pages."""
    all_files = tracked()
    markdown = [p for p in all_files if p.suffix == '.md' and (p.parts[0] in ('docs', 'bench', 'record', 'python', 'collect') or len(p.parts) == 1)]
    wanted = set()
    for path in markdown:
        def retarget(found, path=path):
            before, target, anchor, after = found[1], found[2], found[3] or '', found[4]
            if re.match(r'[a-z]+:', target):
                return found[0]
            there = (ROOT / path.parent / target).resolve()
            if there.is_dir() and (there / 'README.md').exists():
                target, there = target.rstrip('/') + '/README.md', there / 'README.md'
            if there.is_file() and there.is_relative_to(ROOT) and there.relative_to(ROOT) not in markdown:
                wanted.add(there.relative_to(ROOT))
            return f'{before}{target}{anchor}{after}'
        text = LINK.sub(retarget, (ROOT / path).read_text())
        (pages / path).parent.mkdir(parents=True, exist_ok=True)
        (pages / path).write_text(text)
    for path in wanted:
        (pages / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, pages / path)
    return markdown


def nav(markdown):
    """README first, then the paths of each world and the gallery, how-tos, and the other folders as they stand."""
    groups = {}
    for path in sorted(markdown):
        if path.parts[0] == 'docs' and len(path.parts) > 2:
            groups.setdefault(path.parts[1], []).append(path)
        elif path.parts[0] == 'docs':
            groups.setdefault('gallery' if path.stem.startswith('gallery') else 'model', []).append(path)
        elif path != pathlib.Path('README.md'):
            groups.setdefault('project', []).append(path)
    names = {'start': 'Start here', 'gallery': 'Gallery', 'howto': 'How to', 'reference': 'Reference', 'analyses': 'Analyses', 'formats': 'Formats', 'exporters': 'Exporters', 'schedules': 'Schedules', 'model': 'Model and promises',
             'decisions': 'Decisions', 'project': 'Project'}
    lines = ['  - README.md']
    for group in [*names, *sorted(groups.keys() - names.keys())]:
        if group in groups:
            lines.append(f'  - "{names.get(group, group)}":')
            for path in groups[group]:
                quoted = ('中文说明' if path.name == 'README.zh.md' else title_of(path)).replace('"', "'")
                lines.append(f'      - "{quoted}": {path}')
    return '\n'.join(lines) + '\n'


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
        print('usage: docs.py OUT_FOLDER', file=sys.stderr)
        return 2
    out = pathlib.Path(sys.argv[1]).resolve()
    pages = out / 'pages'
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    (out / 'mkdocs.yml').write_text(CONFIG + nav(lay_out(pages)))
    tools = out / 'venv'
    wanted = tools / 'wanted'
    if not wanted.exists() or wanted.read_text() != GENERATOR:
        shutil.rmtree(tools, ignore_errors=True)
        subprocess.run([sys.executable, '-m', 'venv', tools], check=True)
        subprocess.run([tools / 'bin/pip', 'install', '--quiet', '--disable-pip-version-check', GENERATOR], check=True)
        wanted.write_text(GENERATOR)
    # Its message about a successor is known (docs/decisions/README.md).
    # Not --quiet, under which --strict counts no warnings, so that a dead link ends nothing.
    done = subprocess.run([tools / 'bin/mkdocs', 'build', '--strict', '-f', out / 'mkdocs.yml'], env={**os.environ, 'NO_MKDOCS_2_WARNING': '1'}, capture_output=True, text=True)
    for line in (done.stdout + done.stderr).splitlines():
        if re.match('WARNING|ERROR|Aborted', line):
            print(line, file=sys.stderr)
    # The theme has one language for all pages; browsers choose letters, and screen readers a voice, by that of each.
    for page in (out / 'site').rglob('*.zh.html'):
        page.write_text(page.read_text().replace('<html lang="en"', '<html lang="zh-CN"', 1))
    if done.returncode == 0:
        print(out / 'site/README.html' if (out / 'site/README.html').exists() else out / 'site/index.html')
    return done.returncode


if __name__ == '__main__':
    sys.exit(main())
