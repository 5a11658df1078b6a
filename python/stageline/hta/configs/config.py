"""HTA's settings in JSON: later files over earlier ones, values by dotted names."""
import json
import logging
import os
import pathlib

from .default_values import DEFAULT_CONFIG_FILENAME

logger = logging.getLogger('hta')
logger.setLevel(logging.INFO)


def setup_logger(config_file='logging.config'):
    """The logger of all modules; a file in logging's own form configures it."""
    if config_file and os.path.exists(config_file):
        import logging.config
        logging.config.fileConfig(config_file, disable_existing_loggers=False)
    return logger


class HtaConfig:
    """The settings of one file, and before it those of the usual places."""

    def __init__(self, config_file_path=None, load_default_paths=True):
        self.config_file_paths = ([str(p) for p in self.get_default_paths() if p.exists()] if load_default_paths else [])
        if config_file_path:
            self.config_file_paths.append(config_file_path)
        self.config = {}
        for path in self.config_file_paths:
            with open(path, encoding='utf-8') as file:
                self.config.update(json.load(file))

    @staticmethod
    def get_default_paths():
        """Looks next to the package, in the home, in the working folder."""
        return [pathlib.Path(__file__).parent / DEFAULT_CONFIG_FILENAME, pathlib.Path.home() / '.hta' / DEFAULT_CONFIG_FILENAME,
                pathlib.Path.cwd() / DEFAULT_CONFIG_FILENAME]

    def get_config_file_paths(self):
        return self.config_file_paths

    def get_config(self, dot_path=None, default_value=None):
        """All settings, or that of a name such as 'a.b.c'; `default` where there is none."""
        value = self.config
        for part in dot_path.split('.') if dot_path else ():
            if not isinstance(value, dict) or part not in value:
                return default_value
            value = value[part]
        return value

    def show(self):
        print(json.dumps(self.config, indent=4, sort_keys=True))

    @staticmethod
    def get_test_data_path(dataset):
        """The folder of a set of traces among HTA's test data, below STAGELINE_HTA_ROOT."""
        return os.path.join(os.environ.get('STAGELINE_HTA_ROOT', ''), 'tests/data', dataset)
