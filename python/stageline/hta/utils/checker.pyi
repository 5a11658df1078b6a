"""Written by tools/hta_stubs.py."""
import dataclasses

@dataclasses.dataclass
class OperationOutcome:
    success: bool
    reason: str

def is_valid_directory(path_to_directory: str, must_be_writable: bool = ...) -> OperationOutcome: ...
