"""Whether the arguments of a trace's events are of the kinds that columns are made of."""
import collections

from ..configs.default_values import ValueType
from ..configs.parser_config import ParserConfig

_KINDS = {ValueType.Int: int, ValueType.Float: (int, float), ValueType.String: str}


def get_argument_spec(level='default'):
    """The arguments of a level: minimal, standard or complete."""
    return {'minimal': ParserConfig.ARGS_MINIMUM, 'standard': ParserConfig.ARGS_DEFAULT, 'default': ParserConfig.ARGS_DEFAULT,
            'complete': ParserConfig.ARGS_COMPLETE}[level]


def get_expected_arguments(attribute_specs):
    """A frame: arg_keys, arg_value_types, arg_default_values, trace_df_column_name."""
    import pandas
    return pandas.DataFrame([(s.raw_name, s.value_type, s.default_value, s.name) for s in attribute_specs],
                            columns=['arg_keys', 'arg_value_types', 'arg_default_values', 'trace_df_column_name'])


def validate_trace_format(trace_file_path, level='standard', ignore_missing_arguments=True):
    """(good, {what: details}): events of the file, arguments of another kind than expected, and those that do not occur."""
    from ..common.trace_parser import parse_trace_dict
    specs = {s.raw_name: s.value_type for s in get_argument_spec(level)}
    try:
        whole = parse_trace_dict(trace_file_path)
    except (OSError, ValueError) as error:
        return False, {'error': str(error)}
    events = whole.get('traceEvents') if isinstance(whole, dict) else whole
    if not events:
        return False, {'error': f'{trace_file_path} has no events'}
    seen, wrong, others = set(), {}, collections.Counter()
    for arguments in (e['args'] for e in events if isinstance(e.get('args'), dict)):
        for name, value in arguments.items():
            if name not in specs:
                others[name] += 1
                continue
            seen.add(name)
            kind = _KINDS.get(specs[name])
            if kind is not None and not isinstance(value, kind) and not (kind is str and isinstance(value, (list, dict))):
                wrong[name] = f'{value!r} is no {specs[name].name}'
    missing = sorted(set(specs) - seen)
    return not wrong and (ignore_missing_arguments or not missing), {
        'type_violations': wrong, 'missing_arguments': missing, 'skipped_arguments': dict(others)}
