"""Exceptions that are what NumPy's users expect and what PyTorch's do.

NumPy raises ValueError and TypeError for arguments that an op does not take, PyTorch RuntimeError:
code written for either catches these.
"""

from __future__ import annotations

import dis
from types import TracebackType


class ArgumentError(ValueError, RuntimeError):
    """An argument that an op does not take: its shape or its value."""


class DTypeError(TypeError, RuntimeError):
    """A dtype that an op does not take."""


class LinAlgError(ArgumentError):
    """A matrix that has no such decomposition: singular, not positive definite, or with values that
    are not finite."""


class OutOfMemoryError(MemoryError, RuntimeError):
    """A result for which there is no memory."""


class _NotInPrograms(ValueError):
    """An act of a function that a program could not do again: the function is run as it is."""


class _Raised(_NotInPrograms):
    """An exception that the function raised in its trace: it is run as it is, and raises again."""


def _origin(error: BaseException) -> TracebackType | None:
    """The innermost call that an exception came through."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def read_by_the_package(error: BaseException, package: str) -> bool:
    """Whether an op of this package, and not its caller, read elements that a trace does not know:
    one that is computed by NumPy, or by values.
    """
    trace = _origin(error)
    is_reading = isinstance(error, ArgumentError) and "are read inside a trace" in str(error)
    return is_reading and trace is not None and trace.tb_frame.f_code.co_filename.startswith(package)


def raised_by_the_function(error: BaseException, package: str) -> bool:
    """Whether a `raise` or an `assert` outside of this package is the origin of an exception."""
    trace = _origin(error)
    if trace is None or isinstance(error, (ArgumentError, DTypeError)) or trace.tb_frame.f_code.co_filename.startswith(package):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


for _error in (ArgumentError, DTypeError, OutOfMemoryError):
    _error.__module__ = "chainrule"
LinAlgError.__module__ = "chainrule.linalg"

__all__ = ["ArgumentError", "DTypeError", "LinAlgError", "OutOfMemoryError"]
