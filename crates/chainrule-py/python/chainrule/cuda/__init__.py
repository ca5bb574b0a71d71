"""PyTorch's questions for graphics processors, of which there are none here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import amp as amp
from . import nvtx as nvtx
from .._errors import OutOfMemoryError as OutOfMemoryError
from .._legacy import typed as _typed

if TYPE_CHECKING:
    from .._legacy import BFloat16Tensor as BFloat16Tensor
    from .._legacy import BoolTensor as BoolTensor
    from .._legacy import ByteTensor as ByteTensor
    from .._legacy import CharTensor as CharTensor
    from .._legacy import DoubleTensor as DoubleTensor
    from .._legacy import FloatTensor as FloatTensor
    from .._legacy import HalfTensor as HalfTensor
    from .._legacy import IntTensor as IntTensor
    from .._legacy import LongTensor as LongTensor
    from .._legacy import ShortTensor as ShortTensor
else:
    globals().update(_typed(True))


def is_available() -> bool:
    """No."""
    return False


def is_bf16_supported() -> bool:
    """No."""
    return False


def is_initialized() -> bool:
    """No."""
    return False


def device_count() -> int:
    """None."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator of a graphics processor to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing: there is no generator of a graphics processor to seed."""


def empty_cache() -> None:
    """Nothing: there is no memory of a graphics processor."""


def memory_allocated(device: Any = None) -> int:
    """0 bytes."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0 bytes."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """0 bytes."""
    return 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing: there is no memory of a graphics processor."""


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """0 bytes free, of 0."""
    return 0, 0


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Nothing to say."""
    return ""


def get_rng_state_all() -> list[Any]:
    """No states: there are no graphics processors."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Nothing: there is no generator of a graphics processor."""


seed = seed_all = ipc_collect = init = reset_max_memory_allocated = empty_cache
max_memory_reserved = memory_cached = max_memory_cached = memory_allocated


def _absent(name: str) -> Any:
    def function(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"cuda.{name}: there is one device, the processor; ask cuda.is_available() first")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "An error: there is one device, the processor."
    return function


synchronize = _absent("synchronize")
current_device = _absent("current_device")
set_device = _absent("set_device")
get_device_name = _absent("get_device_name")
get_device_properties = _absent("get_device_properties")
get_device_capability = _absent("get_device_capability")
get_rng_state = _absent("get_rng_state")
set_rng_state = _absent("set_rng_state")
current_stream = _absent("current_stream")
default_stream = _absent("default_stream")
stream = _absent("stream")
Event = _absent("Event")
Stream = _absent("Stream")
device = _absent("device")
initial_seed = _absent("initial_seed")
graph = _absent("graph")
CUDAGraph = _absent("CUDAGraph")
can_device_access_peer = _absent("can_device_access_peer")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """No statistics: there is no memory of a graphics processor."""
    return {}


def get_arch_list() -> list[str]:
    """No architectures."""
    return []
