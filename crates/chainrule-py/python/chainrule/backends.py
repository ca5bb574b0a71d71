"""Switches of PyTorch's libraries. They can be set, and have no effect: results are the same bits
on every run already.
"""

from __future__ import annotations

from typing import Any


class Backend:
    """A library with switches, which is not there."""

    def __init__(self, **switches: Any) -> None:
        self.__dict__.update(switches)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"backends: there is no switch '{name}'; set it before it is read")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def is_available(self) -> bool:
        """No."""
        return False

    is_built = is_available

    def version(self) -> None:
        """None."""
        return None


cudnn = Backend(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = Backend(matmul=Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=False))
mps = Backend()
mkl = Backend()
mkldnn = Backend(enabled=False)
openmp = Backend()
