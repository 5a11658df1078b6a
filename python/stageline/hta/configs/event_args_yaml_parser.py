"""The arguments of a version: from a file of your own in HTA's YAML, else the list of default_event_args."""
import operator
import os

from .default_event_args import DEFAULT_EVENT_ARGS, INDEX_KEYS, event_args
from .default_values import AttributeSpec, EventArgs, ValueType, YamlVersion

def _chooser(choose):
    """A list of arguments of those that are available."""
    return lambda available_args: choose(event_args(available_args))


ARGS_INDEX_FUNC = lambda available_args: [available_args[key] for key in INDEX_KEYS if key in available_args]  # noqa: E731
(ARGS_INPUT_SHAPE_FUNC, ARGS_BANDWIDTH_FUNC, ARGS_SYNC_FUNC, ARGS_MINIMUM_FUNC, ARGS_COMPLETE_FUNC, ARGS_INFO_FUNC, ARGS_COMMUNICATION_FUNC,
 ARGS_TRITON_KERNELS_FUNC, ARGS_DEFAULT_FUNC) = (_chooser(operator.attrgetter(f'ARGS_{name}')) for name in (
     'INPUT_SHAPE', 'BANDWIDTH', 'SYNC', 'MINIMUM', 'COMPLETE', 'INFO', 'COMMUNICATION', 'TRITON_KERNELS', 'DEFAULT'))


def yaml_path(version):
    """Where the file of a version is looked for: STAGELINE_HTA_EVENT_ARGS names the folder."""
    return os.path.join(os.environ.get('STAGELINE_HTA_EVENT_ARGS', ''), f'event_args_{version.get_version_str()}.yaml')


def parse_event_args_yaml(version) -> EventArgs:
    """Returns the EventArgs of a version. The file has `AVAILABLE_ARGS: {key: {name, raw_name, value_type,
    default_value}}`; without one, or
    without PyYAML, the built-in list."""
    if not os.environ.get('STAGELINE_HTA_EVENT_ARGS') or not os.path.exists(yaml_path(version)):
        return DEFAULT_EVENT_ARGS
    try:
        import yaml
    except ImportError:
        return DEFAULT_EVENT_ARGS
    with open(yaml_path(version), encoding='utf-8') as file:
        listed = yaml.safe_load(file)['AVAILABLE_ARGS']
    return event_args({key: AttributeSpec(one['name'], one['raw_name'], ValueType[one['value_type']], one['default_value'],
                                          YamlVersion.from_string(one.get('min_supported_version', '1.0.0'))) for key, one in listed.items()})


def main():
    """Prints the arguments of the first version."""
    print(parse_event_args_yaml(YamlVersion(1, 0, 0)))
