"""Files of traces: which rank each is, reading and writing whole ones."""
import gzip
import json
import os
import re
import shutil

from ..configs.config import logger

_RANK = re.compile(rb'"rank":[^\S\n]+(\d+)')


def _open(path, mode):
    how = {} if 'b' in mode else {'encoding': 'utf-8', 'errors': 'surrogateescape' if mode == 'rt' else 'strict'}
    if path.endswith('.gz'):
        return gzip.open(path, mode, **how)
    if path.endswith('.json'):
        return open(path, mode, **how)
    raise ValueError(f'{path}: a trace file ends in .gz or .json')


def get_trace_rank(path):
    """The first `"rank": N` of the file's text, with white space before N as HTA demands it; -1 without one."""
    with _open(path, 'rb') as file:
        kept = b''
        while chunk := file.read(1 << 20):
            text = kept + chunk
            found = _RANK.search(text)
            if found and found.end() == len(text):  # the number may go on
                found = _RANK.search(text + file.read(32))
            if found:
                return int(found.group(1))
            kept = chunk[-64:]
    return -1


def create_rank_to_trace_dict(file_list):
    """Returns (good, {rank: path}). If two files have one rank, the later stays; a file without a rank is rank 0."""
    out = {}
    for path in file_list:
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


def create_rank_to_trace_dict_from_dir(trace_dir):
    """Does so for all files of a folder that end in .gz or .json."""
    if not os.path.isdir(trace_dir):
        logger.error('%s: there is no such folder', trace_dir)
        return False, {}
    files = [os.path.join(trace_dir, n) for n in os.listdir(trace_dir) if n.endswith(('.gz', '.json'))]
    if not files:
        logger.error('%s: no file in it ends in .gz or .json', trace_dir)
    return create_rank_to_trace_dict(files)


def get_trace_files(trace_path):
    """{rank: path} of a folder; empty, and a line in the log, where there are none."""
    good, found = create_rank_to_trace_dict_from_dir(trace_path)
    return found if good else {}


def read_trace(file_path):
    """Reads the whole file as JSON."""
    with _open(file_path, 'rt') as file:
        return json.load(file)


def write_trace(trace_data, file_path):
    """The whole trace as JSON; folders that are missing are made. The file is replaced when all of it is written."""
    folder, name = os.path.split(os.path.realpath(file_path))
    os.makedirs(folder, exist_ok=True)
    target, part = os.path.join(folder, name), os.path.join(folder, f'.{os.getpid()}.{name}')
    try:
        with _open(part, 'wt') as file:
            json.dump(trace_data, file, indent=2)
        if os.path.exists(target):
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def update_trace_rank(file_path, rank):
    """Rewrites the file with this rank."""
    trace = read_trace(file_path)
    trace.setdefault('distributedInfo', {})['rank'] = rank
    write_trace(trace, file_path)
