"""Defines which arguments of events become columns when a trace is made a frame."""
import copy
import enum
import re

from .default_values import AttributeSpec, ValueType, YamlVersion
from .event_args_yaml_parser import parse_event_args_yaml

DEFAULT_PARSE_VERSION = YamlVersion(1, 0, 0)
DEFAULT_VER_EVENT_ARGS = parse_event_args_yaml(DEFAULT_PARSE_VERSION)
AVAILABLE_ARGS = DEFAULT_VER_EVENT_ARGS.AVAILABLE_ARGS
_SEVEN_DAYS_US = 7 * 24 * 3600 * 1_000_000


class ParserBackend(str, enum.Enum):
    """HTA's readers. All of them are one here; the ijson kinds pass over skip_event_types."""
    JSON = 'json'
    IJSON = 'ijson'
    IJSON_BATCHED = 'ijson_batched'
    IJSON_BATCH_AND_COMPRESS = 'ijson_batch_and_compress'


class ParserConfig:
    """The columns, and how the file is read."""
    ARGS_INPUT_SHAPE = DEFAULT_VER_EVENT_ARGS.ARGS_INPUT_SHAPE
    ARGS_BANDWIDTH = DEFAULT_VER_EVENT_ARGS.ARGS_BANDWIDTH
    ARGS_SYNC = DEFAULT_VER_EVENT_ARGS.ARGS_SYNC
    ARGS_MINIMUM = DEFAULT_VER_EVENT_ARGS.ARGS_MINIMUM
    ARGS_COMPLETE = DEFAULT_VER_EVENT_ARGS.ARGS_COMPLETE
    ARGS_INFO = DEFAULT_VER_EVENT_ARGS.ARGS_INFO
    ARGS_COMMUNICATION = DEFAULT_VER_EVENT_ARGS.ARGS_COMMUNICATION
    ARGS_TRITON_KERNELS = DEFAULT_VER_EVENT_ARGS.ARGS_TRITON_KERNELS
    ARGS_DEFAULT = DEFAULT_VER_EVENT_ARGS.ARGS_DEFAULT

    def __init__(self, args=None, user_provided_trace_type=None, *, parse_all_args=False, version=DEFAULT_PARSE_VERSION):
        self.args = list(args) if args is not None else self.get_default_args()
        self.selected_arg_keys = None
        self.user_provided_trace_type = user_provided_trace_type
        self.parse_all_args = parse_all_args
        self.parser_backend = ParserBackend.JSON
        self.trace_memory = False
        self.skip_event_types = {'python_function'}
        self.min_required_cols = ['ts', 'dur', 'name', 'pid', 'tid']
        self.drop_gpu_user_annotation = False
        self.convert_ts_to_integer = False
        self.max_event_duration_us = _SEVEN_DAYS_US
        self.version = version

    # ---- lists ----

    @classmethod
    def get_default_args(cls, version=None):
        return list(cls.ARGS_DEFAULT)

    @classmethod
    def get_minimum_args(cls, version=None):
        return list(cls.ARGS_MINIMUM)

    @classmethod
    def get_info_args(cls, version=None):
        return list(cls.ARGS_INFO)

    @classmethod
    def show_available_args(cls, version=None):
        for key, spec in AVAILABLE_ARGS.items():
            print(f'{key}: {spec.raw_name!r} as the column {spec.name}, {spec.default_value!r} where it is missing')

    # ---- the configuration that is used where none is given ----

    @classmethod
    def get_default_cfg(cls):
        return _default

    @classmethod
    def set_default_cfg(cls, config):
        """Applies from now on, for this process."""
        _default.__dict__.update(copy.deepcopy(config.__dict__))

    @classmethod
    def get_versioned_cfg(cls, version):
        return cls(parse_event_args_yaml(version).ARGS_DEFAULT, version=version)

    @classmethod
    def enable_communication_args(cls, config=None):
        made = copy.deepcopy(config) if config is not None else cls()
        made.add_args(cls.ARGS_COMMUNICATION)
        return made

    def set_global_parser_config_version(self, version):
        self.version = _default.version = version

    # ---- columns ----

    def set_args(self, args):
        self.args = list(args)

    def add_args(self, args):
        """Adds arguments that are missing."""
        known = {spec.name for spec in self.args}
        for spec in args:
            if spec.name not in known:
                known.add(spec.name)
                self.args.append(spec)

    def set_args_selector(self, names):
        """Only arguments of these names from now on; None for all."""
        self.selected_arg_keys = list(names) if names is not None else None
        return self

    def get_args(self):
        if self.selected_arg_keys is None:
            return self.args
        return [spec for spec in self.args if spec.name in self.selected_arg_keys]

    def set_parse_all_args(self, value):
        """A column for every argument that occurs."""
        self.parse_all_args = value
        return self

    @staticmethod
    def transform_arg_name(name):
        """An argument's name as a column's: lower case, parentheses away, runs of blanks and marks as one underscore."""
        made = re.sub(r'[\s\-/.%_]+', '_', re.sub(r'\([^)]*\)', '', name.lower()))
        made = made.strip('_')
        return 'arg_name' if made == 'name' else made

    @staticmethod
    def make_attribute_spec(name, value):
        """Derives the type of an argument from a value."""
        kind, default = ((ValueType.Int, 0) if isinstance(value, int) else (ValueType.Float, 0.0) if isinstance(value, float)
                         else (ValueType.String, '') if isinstance(value, str) else (ValueType.Object, None))
        return AttributeSpec(ParserConfig.transform_arg_name(name), name, kind, default, DEFAULT_PARSE_VERSION)

    @staticmethod
    def infer_attribute_specs(args, reference_specs=None):
        """{argument: AttributeSpec} of a series of dictionaries; what the reference knows is taken from it."""
        known = {spec.raw_name: spec for spec in (AVAILABLE_ARGS if reference_specs is None else reference_specs).values()}
        out = {}
        for one in args:
            for name, value in (one.items() if isinstance(one, dict) else ()):
                if name not in out:
                    out[name] = known.get(name) or ParserConfig.make_attribute_spec(name, value)
        return out

    # ---- reading ----

    def set_min_required_cols(self, columns):
        self.min_required_cols = list(columns)

    def get_min_required_cols(self):
        return self.min_required_cols

    def set_trace_memory(self, value):
        self.trace_memory = value

    def set_skip_event_types(self, types):
        self.skip_event_types = set(types)

    def set_parser_backend(self, backend):
        self.parser_backend = backend

    def get_fingerprint_key(self):
        """Equal for configurations that make the same frames."""
        return (tuple(spec.name for spec in self.get_args()), self.parse_all_args, self.parser_backend, tuple(sorted(self.skip_event_types)),
                self.version)

    def __repr__(self):
        return (f'ParserConfig(args={[spec.name for spec in self.get_args()]}, parse_all_args={self.parse_all_args}, '
                f'parser_backend={self.parser_backend.value}, version={self.version.get_version_str()})')


_default = ParserConfig()
