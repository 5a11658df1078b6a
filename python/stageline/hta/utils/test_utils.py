"""The helpers that tests written for HTA need."""
import copy
import functools
import os
import pathlib


def get_test_data_dir(*subdirs):
    """tests/data of the tree that STAGELINE_HTA_ROOT names (or TEST_DATA_PREFIX_PATH, as HTA's tests have it), and folders in it."""
    root = os.environ.get('TEST_DATA_PREFIX_PATH') or os.environ.get('STAGELINE_HTA_ROOT') or os.getcwd()
    folder = pathlib.Path(root, 'tests', 'data', *subdirs)
    if not folder.is_dir():
        raise FileNotFoundError(f'the folder of test data does not exist: {folder}')
    return str(folder)


def data_provider(data_function):
    """Runs a test once for each item of `data_function()`: of a dictionary as keywords, of a tuple as arguments, else as the one argument."""
    def decorate(test):
        @functools.wraps(test)
        def run(self):
            for item in data_function():
                item = copy.copy(item)
                if isinstance(item, dict):
                    test(self, **item)
                elif isinstance(item, tuple):
                    test(self, *item)
                else:
                    test(self, item)
        run.__dict__.pop('__wrapped__', None)  # else pytest looks for fixtures named as the test's arguments
        return run
    return decorate
