"""Written by tools/hta_stubs.py."""
from typing import Any

def accelerate() -> Any: ...
