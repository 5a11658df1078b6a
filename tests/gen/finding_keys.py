"""The places of a finding (src/model/place.h) as keys that tests name: "stage:2", "link:1-2", "host:3", "cell:1.B13"."""


def place_keys(place):
    kind, stage, name = place['kind'], place.get('stage'), place.get('name', '')
    ranks, numbers = place.get('ranks', []), []
    dashed = name.replace('_', '-')
    if 'first' in place:
        numbers = range(place['first'], place.get('last', place['first']) + 1)
    if kind == 'link':
        if stage is None:
            return {'messages'}
        ends = (place['from_stage'], stage)
        return {f'link:{a}-{b}' for a, b in ([ends, ends[::-1]] if place.get('both_ways') else [ends])}
    out = {f'rank:{rank}' for rank in ranks} | ({f'stage:{stage}'} if stage is not None else set())
    if kind == 'host':
        out |= {'host'} | {f'host:{rank}' for rank in ranks}
    elif kind == 'replicas':
        out |= {'replicas', f'replica:{place["replica"]}'}
    elif kind == 'ranks' and name:
        out.add(f'node:{name}')
    elif kind == 'micro_batches':
        out |= {f'micro-batch:{n}' for n in numbers} or {'micro-batches'}
    elif kind == 'cells':
        out |= {f'cell:{stage}.{place.get("cells", "")}{n}' for n in numbers} | {f'micro-batch:{n}' for n in numbers}
    elif kind == 'between_steps':
        out |= {'between-steps'} | ({f'between-steps:{dashed}'} if name else set())
    elif kind in ('collective', 'optimizer'):
        out |= {f'tail:{kind}'} | ({f'tail:{dashed}'} if name else set())
    elif kind in ('call', 'frame', 'operator', 'stream'):
        out.add(f'{kind}:{name}')
    return out


def keys_of(finding):
    """Returns all its keys: those of its places, of the other possible ones, and of the finding."""
    return set().union(finding['key'].split(), *map(place_keys, finding['places'] + finding['or_else']))
