"""Switches of PyTorch's libraries. They can be set, and have no effect: results are the same bits
on every run already.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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


def _chosen(enabled: bool) -> None:
    """Nothing: there is one kernel of attention."""


@contextlib.contextmanager
def _as_it_is(*_: Any, **__: Any) -> Iterator[None]:
    """A block as it is."""
    yield


def _no() -> bool:
    """No."""
    return False


_attention = {f"enable_{name}_sdp": _chosen for name in ("flash", "mem_efficient", "math", "cudnn")}
_asked = {f"{name}_sdp_enabled": _no for name in ("flash", "mem_efficient", "math", "cudnn")}

cudnn = Backend(enabled=False, benchmark=False, deterministic=True, allow_tf32=False, flags=_as_it_is)
cuda = Backend(
    matmul=Backend(allow_tf32=False, allow_fp16_reduced_precision_reduction=False, allow_bf16_reduced_precision_reduction=False), sdp_kernel=_as_it_is, **_attention, **_asked
)
mps = Backend()
mkl = Backend()
mkldnn = Backend(enabled=False, flags=_as_it_is)
openmp = Backend()
mha = Backend()
opt_einsum = Backend(enabled=False, strategy=None)
cpu = Backend()
