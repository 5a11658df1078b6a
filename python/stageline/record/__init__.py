"""stageline.record is the package stageline_record under its name next to the program. There is one module and one
recorder."""
import importlib
import sys

import stageline_record

sys.modules[__name__] = stageline_record
for _part in ('_drop_in', 'mstx', 'nvtx'):
    sys.modules[f'{__name__}.{_part}'] = importlib.import_module(f'stageline_record.{_part}')
