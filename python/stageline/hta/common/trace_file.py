"""Files of traces: which rank each is, reading and writing whole ones."""
import gzip
import json
import os
import re

from ..configs.config import logger

_RANK = re.compile(r'"rank":\s+(\d+)')


def _open(path, mode):
    if path.endswith('.gz'):
        return gzip.open(path, mode + 't', encoding='utf-8', errors='surrogateescape' if mode == 'r' else 'strict')
    if path.endswith('.json'):
        return open(path, mode, encoding='utf-8', errors='surrogateescape' if mode == 'r' else 'strict')
    raise ValueError(f'{path}: a trace file ends in .gz or .json')


def get_trace_rank(path):
    """The first `"rank": N` of the file's text, -1 without one."""
    with _open(path, 'r') as file:
        for line in file:
            found = _RANK.search(line)
            if found:
                return int(found.group(1))
    return -1


def create_rank_to_trace_dict(files):
    """Returns (good, {rank: path}). If two files have one rank, the later stays; a file without a rank is rank 0."""
    out = {}
    for path in files:
        if not os.path.isfile(path):
            logger.error('%s: there is no such trace file', path)
            return False, {}
        rank = get_trace_rank(path)
        if rank < 0:
            logger.warning('%s: the trace file does not have the rank; it is taken for rank 0', path)
            rank = 0
        if rank in out:
            logger.warning('%s has the same rank as %s: %d; the earlier is passed over', path, out[rank], rank)
        out[rank] = path
    return bool(out), out


def create_rank_to_trace_dict_from_dir(folder):
    """Does so for all files of a folder that end in .gz or .json."""
    if not os.path.isdir(folder):
        logger.error('%s: there is no such folder', folder)
        return False, {}
    files = [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(('.gz', '.json'))]
    if not files:
        logger.error('%s: no file in it ends in .gz or .json', folder)
    return create_rank_to_trace_dict(files)


def read_trace(path):
    """Reads the whole file as JSON."""
    with _open(path, 'r') as file:
        return json.load(file)


def write_trace(trace, path):
    """The whole trace as JSON; folders that are missing are made."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with _open(path, 'w') as file:
        json.dump(trace, file, indent=2)


def update_trace_rank(path, rank):
    """Rewrites the file with this rank."""
    trace = read_trace(path)
    trace.setdefault('distributedInfo', {})['rank'] = rank
    write_trace(trace, path)
