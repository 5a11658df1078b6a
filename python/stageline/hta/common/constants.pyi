"""Written by tools/hta_stubs.py."""
from typing import Any

CUDA_MAX_LAUNCH_QUEUE_PER_STREAM: Any
NON_EXISTENT_NODE_INDEX: Any
NULL_NODE_INDEX: Any
