"""msprof-analyze whose Level_none communication ranges are joined with tasks by connectionId alone, as before its
commit 2c51f1c7, like `--compat msprof`. It runs with msprof-analyze's Python and takes its arguments."""
import sys

from msprof_analyze.cli.entrance import msprof_analyze_cli
from msprof_analyze.prof_exports import mstx2commop_export

BEGIN, END = '\n    OR (', '\nWHERE'  # of the condition on the stream
query = mstx2commop_export.QUERY
if BEGIN in query:
    mstx2commop_export.QUERY = query[:query.index(BEGIN)] + query[query.index(END, query.index(BEGIN)):]
if __name__ == '__main__':  # its processes import this file too, and so have the query
    sys.exit(msprof_analyze_cli())
