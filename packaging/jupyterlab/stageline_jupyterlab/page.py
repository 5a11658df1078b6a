"""Writes the page of a run: page.py PATH OUTPUT LANG. Runs as a process of its own, so that a large trace does not stay in the
server's memory, and the server can stop it when the tab is closed."""
import sys
import warnings

import stageline


def main(path, output, lang):
    warnings.simplefilter('ignore')  # the page itself lists what the run lacks
    try:
        stageline.open(path).report(output, lang=lang, force=True)
    except stageline.Error as error:
        sys.exit(str(error))


if __name__ == '__main__':
    main(*sys.argv[1:])
