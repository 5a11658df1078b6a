"""Written by tools/hta_stubs.py."""
from typing import Any
from typing import Callable
from typing import Iterable

def get_test_data_dir(*subdirs: str) -> str: ...

def data_provider(data_function: Callable[[], Iterable[Any]]) -> Callable[[Callable[..., None]], Callable[..., None]]: ...
