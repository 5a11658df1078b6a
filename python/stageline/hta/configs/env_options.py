"""Switches of HTA in the environment, read once, and one of ours."""
import os

HTA_DISABLE_NS_ROUNDING_ENV = 'HTA_DISABLE_NS_ROUNDING'
HTA_DISABLE_CG_DEPTH_ENV = 'HTA_DISABLE_CG_DEPTH'
CP_LAUNCH_EDGE_ENV = 'CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE'
CP_LAUNCH_EDGE_SHOW_ENV = 'CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE'
CP_STRICT_NEG_WEIGHT_CHECK_ENV = 'CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECK'
FAIL_AS_HTA_ENV = 'STAGELINE_FAIL_AS_HTA'  # without it questions that HTA's rounding makes fail answer, and its call graph loses no step

_SWITCHES = {'disable_ns_rounding': HTA_DISABLE_NS_ROUNDING_ENV, 'disable_call_graph_depth': HTA_DISABLE_CG_DEPTH_ENV,
             'critical_path_add_zero_weight_launch_edges': CP_LAUNCH_EDGE_ENV,
             'critical_path_show_zero_weight_launch_edges': CP_LAUNCH_EDGE_SHOW_ENV,
             'critical_path_strict_negative_weight_check': CP_STRICT_NEG_WEIGHT_CHECK_ENV, 'fail_as_hta': FAIL_AS_HTA_ENV}


class HTAEnvOptions:
    """options.NAME() says whether a switch is on, options.set_NAME(value) sets it in this process."""
    _instance = None

    def __init__(self):
        self._on = {name: os.environ.get(variable, '0') == '1' for name, variable in _SWITCHES.items()}

    @classmethod
    def instance(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def get_options_str(self):
        return '\n'.join(f'{name} = {on}' for name, on in self._on.items() if name != 'fail_as_hta')


def _switch(name):
    def get(self):
        return self._on[name]

    def put(self, value):
        self._on[name] = bool(value)
    setattr(HTAEnvOptions, name, get)
    setattr(HTAEnvOptions, f'set_{name}', put)
    return lambda: getattr(HTAEnvOptions.instance(), name)()


disable_ns_rounding, disable_call_graph_depth, critical_path_add_zero_weight_launch_edges, critical_path_show_zero_weight_launch_edges, \
    critical_path_strict_negative_weight_check, fail_as_hta = map(_switch, _SWITCHES)


def get_options():
    return HTAEnvOptions.instance().get_options_str()
