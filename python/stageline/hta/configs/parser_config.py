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


def _arguments(version):
    return DEFAULT_VER_EVENT_ARGS if version == DEFAULT_PARSE_VERSION else parse_event_args_yaml(version)


class ParserBackend(str, enum.Enum):
    """HTA's readers. All of them are one here; the ijson kinds pass over skip_event_types."""
    JSON = 'json'
    IJSON = 'ijson'
    IJSON_BATCHED = 'ijson_batched'
    IJSON_BATCH_AND_COMPRESS = 'ijson_batch_and_compress'


class TraceType(str, enum.Enum):
    """Names the traced work."""
    Training = 'training'
    TrainingWoProfilerstepAnnot = 'training_wo_profilerstep_annot'
    Inference = 'inference'


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

    def __init__(self, args=None, user_provide_trace_type=None, version=DEFAULT_PARSE_VERSION, parse_all_args=False, selected_arg_keys=None,
                 skip_event_types=None, convert_ts_to_integer=True):
        self.args = list(args) if args is not None else self.get_default_args(version)
        self.selected_arg_keys = selected_arg_keys
        self.user_provide_trace_type = user_provide_trace_type
        self.parse_all_args = parse_all_args
        self.parser_backend = ParserBackend.JSON
        self.trace_memory = False
        self.skip_event_types = {'python_function'} if skip_event_types is None else set(skip_event_types)
        self.min_required_cols = ['ts', 'dur', 'name', 'pid', 'tid']
        self.drop_gpu_user_annotation = False
        self.convert_ts_to_integer = convert_ts_to_integer
        self.max_event_duration_us = _SEVEN_DAYS_US
        self.version = version

    # ---- lists ----

    @classmethod
    def get_default_args(cls, version=DEFAULT_PARSE_VERSION):
        return list(_arguments(version).ARGS_DEFAULT)

    @classmethod
    def get_minimum_args(cls, version=DEFAULT_PARSE_VERSION):
        return list(_arguments(version).ARGS_MINIMUM)

    @classmethod
    def get_info_args(cls, version=DEFAULT_PARSE_VERSION):
        return list(_arguments(version).ARGS_INFO)

    @classmethod
    def get_all_available_args(cls):
        return AVAILABLE_ARGS

    @classmethod
    def show_available_args(cls):
        for key, spec in AVAILABLE_ARGS.items():
            print(f'{key}: {spec.raw_name!r} as the column {spec.name}, {spec.default_value!r} where it is missing')

    # ---- the configuration that is used where none is given ----

    @classmethod
    def get_default_cfg(cls):
        return _default

    @classmethod
    def set_default_cfg(cls, cfg):
        """Applies from now on, for this process."""
        _default.__dict__.update(copy.deepcopy(cfg.__dict__))

    @classmethod
    def get_versioned_cfg(cls, version):
        return cls(parse_event_args_yaml(version).ARGS_DEFAULT, version=version)

    @classmethod
    def enable_communication_args(cls, cfg=None, version=DEFAULT_PARSE_VERSION):
        made = copy.deepcopy(cfg) if cfg is not None else cls(version=version)
        made.add_args(_arguments(version).ARGS_COMMUNICATION)
        return made

    @staticmethod
    def set_global_parser_config_version(version):
        """Uses the arguments of another version from now on."""
        global AVAILABLE_ARGS
        listed = parse_event_args_yaml(version)
        AVAILABLE_ARGS = listed.AVAILABLE_ARGS
        for name in ('INPUT_SHAPE', 'BANDWIDTH', 'SYNC', 'MINIMUM', 'COMPLETE', 'INFO', 'COMMUNICATION', 'TRITON_KERNELS', 'DEFAULT'):
            setattr(ParserConfig, f'ARGS_{name}', getattr(listed, f'ARGS_{name}'))
        _default.__dict__.update(ParserConfig(version=version).__dict__)

    def clone(self):
        return copy.deepcopy(self)

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

    def set_args_selector(self, selected_arg_keys=None):
        """Only arguments of these names from now on; None for all."""
        self.selected_arg_keys = list(selected_arg_keys) if selected_arg_keys is not None else None
        return self

    def get_args(self):
        if self.selected_arg_keys is None:
            return self.args
        return [spec for spec in self.args if spec.name in self.selected_arg_keys]

    def set_parse_all_args(self, parse_all_args):
        """A column for every argument that occurs."""
        self.parse_all_args = parse_all_args
        return self

    @classmethod
    def transform_arg_name(cls, arg):
        """An argument's name as a column's: lower case, parentheses away, runs of blanks and marks as one underscore."""
        made = re.sub(r'[\s\-/.%_]+', '_', re.sub(r'\([^)]*\)', '', arg.lower()))
        made = made.strip('_')
        return 'arg_name' if made == 'name' else made

    @classmethod
    def make_attribute_spec(cls, raw_name, value, min_supported_version=DEFAULT_PARSE_VERSION):
        """Derives the type of an argument from a value."""
        kind, default = ((ValueType.Int, 0) if isinstance(value, int) else (ValueType.Float, 0.0) if isinstance(value, float)
                         else (ValueType.String, '') if isinstance(value, str) else (ValueType.Object, None))
        return AttributeSpec(ParserConfig.transform_arg_name(raw_name), raw_name, kind, default, min_supported_version)

    @classmethod
    def infer_attribute_specs(cls, args, reference_specs=None):
        """{argument: AttributeSpec} of a series of dictionaries; what the reference knows is taken from it."""
        known = {spec.raw_name: spec for spec in (AVAILABLE_ARGS if reference_specs is None else reference_specs).values()}
        out = {}
        for one in args:
            for name, value in (one.items() if isinstance(one, dict) else ()):
                if name not in out:
                    out[name] = known.get(name) or ParserConfig.make_attribute_spec(name, value)
        return out

    # ---- reading ----

    def set_min_required_cols(self, cols):
        self.min_required_cols = list(cols)

    def get_min_required_cols(self):
        return self.min_required_cols

    def set_drop_gpu_user_annotation(self, should_drop):
        self.drop_gpu_user_annotation = should_drop

    def set_trace_memory(self, trace_memory):
        self.trace_memory = trace_memory

    def set_skip_event_types(self, skip_event_types=None):
        self.skip_event_types = set(skip_event_types or ())

    def set_parser_backend(self, parser_backend):
        self.parser_backend = parser_backend

    def get_fingerprint_key(self):
        """Equal for configurations that make the same frames."""
        return (tuple(spec.name for spec in self.get_args()), self.parse_all_args, self.parser_backend, tuple(sorted(self.skip_event_types)),
                self.version)

    def __repr__(self):
        return (f'ParserConfig(args={[spec.name for spec in self.get_args()]}, parse_all_args={self.parse_all_args}, '
                f'parser_backend={self.parser_backend.value}, version={self.version.get_version_str()})')


_default = ParserConfig()
