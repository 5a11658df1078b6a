"""Returns true if a folder can be used."""
import dataclasses
import os


@dataclasses.dataclass
class OperationOutcome:
    """Returns true if something can be done, and if not why."""
    success: bool
    reason: str


def is_valid_directory(path_to_directory, must_be_writable=False):
    """The folder exists, can be listed and, where asked, written to."""
    if not isinstance(path_to_directory, (str, os.PathLike)) or not str(path_to_directory):
        return OperationOutcome(False, 'the path of a folder is a non-empty string')
    if not os.path.exists(path_to_directory):
        return OperationOutcome(False, f'{path_to_directory} does not exist')
    if not os.path.isdir(path_to_directory):
        return OperationOutcome(False, f'{path_to_directory} is not a directory')
    if not os.access(path_to_directory, os.R_OK | os.X_OK):
        return OperationOutcome(False, f'{path_to_directory} is not readable')
    if must_be_writable and not os.access(path_to_directory, os.W_OK):
        return OperationOutcome(False, f'{path_to_directory} is not writable')
    return OperationOutcome(True, '')
