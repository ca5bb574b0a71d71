"""The tensor of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _chainrule as _c
from .._chainrule import Tensor
from .._errors import ArgumentError
from .._size import Size
from . import _dtype
from ._base import Array, Base, as_array, of_array, refused
from ._matrices import Matrices


class ComplexTensor(Matrices):
    """A tensor of complex numbers, complex64 or complex128.

    The elements are a real tensor with a last axis of real and imaginary parts, which
    `view_as_real` gives; so there are at most 7 axes. Views alias, and gradients are PyTorch's: for
    a real loss `z.grad` holds its derivatives by the real parts, and by the imaginary parts as
    imaginary ones.

    ```
    z = cr.complex(cr.tensor([3.0]), cr.tensor([4.0])).requires_grad_()
    (z * z.conj()).real.sum().backward()
    assert z.abs().item() == 5 and z.grad.tolist() == [6 + 8j]
    ```
    """

    __array_ufunc__ = None
    __array_priority__ = 1000.0
    is_cuda = False
    is_sparse = False

    def __init__(self, pairs: Tensor) -> None:
        if not isinstance(pairs, Tensor) or pairs.dtype.name not in ("float32", "float64"):
            raise TypeError(f"view_as_complex: a tensor of float32 or float64 is needed, not {getattr(pairs, 'dtype', type(pairs).__name__)}")
        if not pairs.ndim or pairs._dims[-1] != 2:
            raise ArgumentError(f"view_as_complex: shape {pairs._dims}: the last axis has the two parts")
        self._data = pairs

    # Size and memory

    @property
    def shape(self) -> Size:
        """The sizes of the axes."""
        return Size(self._dims)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self._dims)

    nelement = numel

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.numel() * self.itemsize

    @property
    def device(self) -> str:
        """Device of the elements: there is one, the processor."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._data.data_ptr()

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order in memory."""
        return self._data.is_contiguous()

    def is_complex(self) -> bool:
        """True."""
        return True

    def is_floating_point(self) -> bool:
        """False, as in PyTorch: the parts are floats."""
        return False

    # Gradients

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for it."""
        return self._data.requires_grad

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self._data.requires_grad = on

    def requires_grad_(self, requires_grad: bool = True) -> ComplexTensor:
        """Switches the computation of gradients for it."""
        self._data.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made it."""
        return self._data.is_leaf

    @property
    def grad(self) -> ComplexTensor | None:
        """The gradient: derivatives by the real parts, and by the imaginary parts as imaginary
        ones.
        """
        g = self._data.grad
        return None if g is None else ComplexTensor._of(g)

    @grad.setter
    def grad(self, value: ComplexTensor | None) -> None:
        self._data.grad = None if value is None else value._data

    @property
    def grad_fn(self) -> str | None:
        """The name of the op that made it, or None for a leaf."""
        return self._data.grad_fn

    @property
    def data(self) -> ComplexTensor:
        """The elements, apart from the tape."""
        return ComplexTensor._of(self._data.data)

    def detach(self) -> ComplexTensor:
        """The elements, apart from the tape."""
        return ComplexTensor._of(self._data.detach())

    def _apart(self) -> ComplexTensor:
        return ComplexTensor._of(self._data._apart())

    def retain_grad(self) -> None:
        """Keeps the gradient, though it is no leaf."""
        self._data.retain_grad()

    def register_hook(self, hook: Callable[[ComplexTensor], Any]) -> _c.Handle:
        """Calls the hook with the gradient; what it gives takes its place."""

        def run(g: Tensor) -> Any:
            new = hook(ComplexTensor._of(g))
            return None if new is None else new._data

        return self._data.register_hook(run)

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Adds the gradients to those of the leaves; `gradient` is that of the loss by this tensor.
        """
        if gradient is None:
            raise _c.GradientError(f"backward: a loss of {self.dtype.name} has no gradient: take a real number of it, as z.abs(), or give a gradient")
        upstream = self._lifted(gradient)._to_dtype(self.dtype)
        self._data.backward(upstream._data, retain_graph, create_graph, None if inputs is None else _pairs_of(inputs))

    # Other forms

    def to(self, *args: Any, dtype: Any = None, copy: bool = False, device: Any = None, **_: Any) -> ComplexTensor:
        """Another dtype of complex numbers; a real one is an error."""
        from .._devices import device as named_device

        for a in args:
            if isinstance(a, bool):
                continue
            if isinstance(a, (Tensor, Base)) or _dtype.named(a) is not None or isinstance(a, _c.dtype):
                dtype = a.dtype if isinstance(a, (Tensor, Base)) else a
            else:
                named_device(a)
        if device is not None:
            named_device(device)
        out = self if dtype is None else self._to_dtype(dtype)
        return out.clone() if copy and out is self else out

    def type(self, dtype: Any = None) -> Any:
        """The name of the dtype, or the tensor in another dtype."""
        return repr(self.dtype) if dtype is None else self._to_dtype(dtype)

    def cfloat(self, memory_format: Any = None) -> ComplexTensor:
        """The tensor as complex64."""
        return self._to_dtype(_dtype.complex64)

    def cdouble(self, memory_format: Any = None) -> ComplexTensor:
        """The tensor as complex128."""
        return self._to_dtype(_dtype.complex128)

    def cpu(self) -> ComplexTensor:
        """The same: there is one device, the processor."""
        return self

    def to_device(self, device: Any, /, *, stream: Any = None) -> ComplexTensor:
        """The same: there is one device, the processor."""
        return self.to(device)

    def numpy(self, *, force: bool = False) -> Array:
        """The elements as an array of NumPy's, over the same memory where it can."""
        pairs = np.asarray(self._data.numpy(force=force))
        same: Array = np.ascontiguousarray(pairs).view(self.dtype.name)[..., 0]
        return same

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return as_array(self._data).tolist()

    def item(self) -> complex:
        """The only element as a number of Python."""
        if self.numel() != 1:
            raise ArgumentError(f"item: shape {self._dims}: a tensor of one element is needed")
        return complex(as_array(self._data).reshape(-1)[0])

    def __complex__(self) -> complex:
        return self.item()

    def __bool__(self) -> bool:
        return self.item() != 0

    def __float__(self) -> float:
        raise refused("float", self.dtype)

    def __int__(self) -> int:
        raise refused("int", self.dtype)

    def __index__(self) -> int:
        raise refused("index", self.dtype)

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        a = self.numpy()
        return np.array(a, dtype) if copy or (dtype is not None and a.dtype != dtype) else a

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from .._methods import _array_namespace

        return _array_namespace(self, api_version=api_version)  # type: ignore[arg-type]

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("stream", None)
        a = as_array(self._data).copy() if not self.requires_grad else self.numpy()
        return a.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __reduce__(self) -> Any:
        return _rebuild, (as_array(self._data).copy(), self.requires_grad and self.is_leaf)

    def __copy__(self) -> ComplexTensor:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> ComplexTensor:
        import copy

        return ComplexTensor._of(copy.deepcopy(self._data, memo))

    def __repr__(self) -> str:
        from ._repr import text

        return text(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.ndim else str(self)

    # Writes

    def copy_(self, src: Any, non_blocking: bool = False) -> ComplexTensor:
        """Writes the elements of another tensor, which are broadcast."""
        return self._written(self._lifted(src))

    def fill_(self, value: Any) -> ComplexTensor:
        """Writes a number to all elements."""
        return self._written(self._lifted(value))

    def zero_(self) -> ComplexTensor:
        """Writes 0 to all elements."""
        return self.fill_(0.0)

    def __getattr__(self, name: str) -> Any:
        """Methods that write their result, and an error for what real tensors only have."""
        if not name.startswith("_") and name.endswith("_") and name[:-1] in _WRITTEN:
            return lambda *args, **options: self._written(getattr(self, name[:-1])(*args, **options))
        if name.startswith("__") or not hasattr(Tensor, name):
            raise AttributeError(f"ComplexTensor has no attribute '{name}'")
        return _Refused(name.strip("_"), self)


_WRITTEN = {
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow", "neg", "negative", "conj_physical", "square", "sgn",
    "masked_fill", "tril", "triu", *"exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sigmoid sin cos tan asin acos atan".split(),
    *"sinh cosh tanh asinh acosh atanh".split(),
}


class _Refused:
    """A method of real tensors that complex ones do not have."""

    def __init__(self, name: str, z: Base) -> None:
        self._name, self._dtype = name, z.dtype

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise refused(self._name, self._dtype)


def _pairs_of(x: Any) -> Any:
    """The real tensors of one tensor, or of several."""
    if isinstance(x, Base):
        return x._data
    return x if isinstance(x, Tensor) else [_pairs_of(y) for y in x]


def gradients(ys: list[Any], xs: list[Any], ups: list[Any], create_graph: bool) -> list[Any]:
    """`autograd.grad` where some are complex; the error that is being handled, if none is."""
    if not any(isinstance(t, ComplexTensor) for t in (*ys, *xs, *ups)):
        raise
    for y, up in zip(ys, ups):
        if isinstance(y, ComplexTensor) and up is None:
            raise _c.GradientError(f"grad: an output of {y.dtype.name} has no gradient: take a real number of it, as z.abs(), or give grad_outputs")
    given = [y._lifted(up)._to_dtype(y.dtype)._data if isinstance(y, ComplexTensor) else up for y, up in zip(ys, ups)]
    found = _c._grad([_pairs_of(y) for y in ys], [_pairs_of(x) for x in xs], given, create_graph)
    return [ComplexTensor._of(g) if isinstance(x, ComplexTensor) and g is not None else g for x, g in zip(xs, found)]


def _rebuild(value: Array, requires_grad: bool) -> ComplexTensor:
    return ComplexTensor._of(of_array(value)).requires_grad_(requires_grad)
