"""Time breakdowns."""
from support import check, expect


@check('temporal_breakdown')
def temporal(case, name, record, match):
    return expect(case, record, name, 'temporal-breakdown', [], ['rank'], tolerance=1e-6)
