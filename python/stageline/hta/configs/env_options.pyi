"""Written by tools/hta_stubs.py."""
from typing import Any

HTA_DISABLE_NS_ROUNDING_ENV: Any
HTA_DISABLE_CG_DEPTH_ENV: Any
CP_LAUNCH_EDGE_ENV: Any
CP_LAUNCH_EDGE_SHOW_ENV: Any
CP_STRICT_NEG_WEIGHT_CHECK_ENV: Any
FAIL_AS_HTA_ENV: Any

class HTAEnvOptions:
    def __init__(self) -> None: ...
    @classmethod
    def instance(cls) -> 'HTAEnvOptions': ...
    def get_options_str(self) -> str: ...

disable_ns_rounding: Any
disable_call_graph_depth: Any
critical_path_add_zero_weight_launch_edges: Any
critical_path_show_zero_weight_launch_edges: Any
critical_path_strict_negative_weight_check: Any
fail_as_hta: Any

def get_options() -> str: ...
