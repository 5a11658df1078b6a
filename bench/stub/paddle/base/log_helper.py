import logging


def get_logger(name, level, fmt=None):
    logger = logging.getLogger(name)
    logger.setLevel(level)
    return logger
