"""Exceptions that are what NumPy's users expect and what PyTorch's do.

NumPy raises ValueError and TypeError for arguments that an op does not take, PyTorch RuntimeError:
code written for either catches these.
"""

from __future__ import annotations


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


for _error in (ArgumentError, DTypeError, OutOfMemoryError):
    _error.__module__ = "chainrule"
LinAlgError.__module__ = "chainrule.linalg"

__all__ = ["ArgumentError", "DTypeError", "LinAlgError", "OutOfMemoryError"]
