"""Files: tensors by name in the safetensors format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import _chainrule as _c
from ._chainrule import Tensor


def save(obj: Any, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors by name (a `state_dict`), or one tensor, to a safetensors file; whole or not at all."""
    tensors = {"tensor": obj} if isinstance(obj, Tensor) else dict(obj)
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise TypeError(f"save: '{name}' is no tensor but {type(t).__name__}")
    _c._safetensors_save(os.fspath(path), list(tensors.items()), dict(metadata or {}))


def load(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Reads tensors by name from a safetensors file."""
    return dict(_c._safetensors_load(os.fspath(path)))


def from_torch(state_dict: Mapping[str, Any]) -> dict[str, Tensor]:
    """PyTorch's `state_dict` as ours."""
    return {name: _c.tensor(t.detach().cpu().numpy(), None, False) for name, t in state_dict.items()}


def to_torch(state_dict: Mapping[str, Tensor]) -> dict[str, Any]:
    """Our `state_dict` as PyTorch's."""
    import torch

    return {name: torch.from_numpy(t.detach().numpy().copy()) for name, t in state_dict.items()}
