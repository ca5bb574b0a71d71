"""Methods of `Tensor` that are written in Python; they are attached to the native class when the
package is imported.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple, cast

from . import _chainrule as _c
from . import _repr
from ._chainrule import Tensor
from ._errors import ArgumentError

Axes = int | Sequence[int] | None


class ValuesIndices(NamedTuple):
    """Values and where they were found."""

    values: Tensor
    indices: Tensor


def one_name(op: str, dim: Any, axis: Any) -> Any:
    """The axis under whichever of its two names it was given."""
    if dim is not None and axis is not None:
        raise TypeError(f"{op}: dim and axis are two names of one argument; give one")
    return axis if dim is None else dim


def _max(self: Tensor, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Any:
    if isinstance(dim, Tensor):
        return self.maximum(dim)
    dim = one_name("max", dim, axis)
    if dim is None:
        return self._max()
    return ValuesIndices(*self._max_axis(dim, keepdim or keepdims))


def _min(self: Tensor, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool = False) -> Any:
    if isinstance(dim, Tensor):
        return self.minimum(dim)
    dim = one_name("min", dim, axis)
    if dim is None:
        return self._min()
    return ValuesIndices(*self._min_axis(dim, keepdim or keepdims))


def _spread(name: str) -> Any:
    def method(
        self: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        axis: Axes = None,
        keepdims: bool = False,
    ) -> Tensor:
        if isinstance(dim, bool):  # x.var(False): PyTorch's older form
            dim, unbiased = None, dim
        if correction is None:
            correction = 0 if unbiased is False else 1
        at, keep = one_name(name, dim, axis), keepdim or keepdims
        if correction >= 0 and float(correction).is_integer():
            return getattr(self, "_" + name)(at, float(correction), keep)  # type: ignore[no-any-return]
        spread = (self - self.mean(at, True)).square().sum(at, keep)
        spread = spread / max(0.0, self.numel() / max(1, spread.numel()) - correction)
        return spread.sqrt() if name == "std" else spread

    method.__name__ = method.__qualname__ = name
    return method


def median(self: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Any:
    dim = one_name("median", dim, axis)
    return self._median_all() if dim is None else ValuesIndices(*self._median(dim, keepdim))


def norm(self: Tensor, p: float | str = 2.0, dim: Axes = None, keepdim: bool = False, *, axis: Axes = None) -> Tensor:
    dim = one_name("norm", dim, axis)
    if p == "nuc":
        from .linalg import matrix_norm

        return matrix_norm(self, p, range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim, keepdim)
    return self._norm(2.0 if p == "fro" else float(p), dim, keepdim)


def unique(self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    if dim is None:
        values, inverse, counts = self._unique()
        inverse = inverse.reshape(self.shape)
    else:
        values, inverse, counts = _unique_slices(self, dim)
    if not (return_inverse or return_counts):
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


def _unique_slices(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """The different slices along an axis, in the order of their elements. Without a gradient."""
    import numpy as np

    values, inverse, counts = np.unique(x.detach().numpy(), axis=dim, return_inverse=True, return_counts=True)
    return _c.tensor(values), _c.tensor(inverse.reshape(-1)), _c.tensor(counts)


def nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    if as_tuple:
        return tuple(self._nonzero_axes()) if self.ndim else (self.reshape(1)._nonzero_axes()[0],)
    return self._nonzero()


def split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    if isinstance(split_size, int):
        return tuple(self._split_size(split_size, dim))
    return tuple(self._split(list(split_size), dim))


def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(self._chunk(chunks, dim))


def allclose(self: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(self.isclose(other, rtol, atol, equal_nan).all())


def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    first = self if dim == 0 else self.movedim(dim, 0)
    return tuple(first[i] for i in range(len(first)))


def select(self: Tensor, dim: int, index: int) -> Tensor:
    at = dim if dim >= 0 else dim + self.ndim
    return self[(slice(None),) * at + (index,)]


def movedim(self: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    one = isinstance(source, int)
    return self._movedim([source] if one else list(source), [destination] if one else list(destination))  # type: ignore[arg-type]


def repeat_interleave(self: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    x = self.flatten() if dim is None else self
    at = 0 if dim is None else dim
    if isinstance(repeats, Tensor) and repeats.numel() != 1:
        return x._repeat_interleave_with(repeats, at)
    return x._repeat_interleave(int(repeats), at)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another tensor, to which axes of size 1 are stretched."""
    return self.expand(other.shape)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another tensor, with as many elements."""
    return self.view(other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in row-major order in the shape of another tensor."""
    return self.reshape(other.shape)


def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one axis."""
    return self.shape if dim is None else self.shape[dim]


def to(self: Tensor, *args: Any, dtype: Any = None, copy: bool = False, device: Any = None, **_: Any) -> Tensor:
    """Another dtype. Devices are accepted and ignored where they are the processor."""
    from ._devices import dtype_of

    flags = [a for a in args if isinstance(a, bool)]
    args = tuple(a for a in args if not isinstance(a, bool))
    if len(flags) > 2 or len(args) > 2:
        raise TypeError(f"to: a device, a dtype, non_blocking and copy, not {(*args, *flags)}")
    copy = copy or (len(flags) == 2 and flags[1])
    dtype = dtype_of("to", args, {"dtype": dtype, "device": device})
    try:
        out = self if dtype is None else self._to_dtype(dtype)
    except TypeError:
        return _complex_of(self, dtype)  # type: ignore[no-any-return]
    return self.clone() if copy and out is self else out


def _complex_of(self: Tensor, dtype: Any) -> Any:
    """The tensor in a complex dtype; the error that is being handled, if it is another."""
    from ._complex import _dtype
    from ._complex._making import of_real

    d = _dtype.named(dtype)
    if d is None:
        raise
    return of_real(self, d)


def _as_complex(name: str, to: str) -> Any:
    def method(self: Tensor) -> Any:
        return self.to(dtype=to)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The tensor as {to}, with imaginary parts of 0."
    return method


def _imag(self: Tensor) -> Tensor:
    raise TypeError(f"imag: {self.dtype.name} has no imaginary parts; x.to(chainrule.complex64) has")


def type_(self: Tensor, dtype: Any = None) -> Any:
    """The name of the dtype, or the tensor in another dtype."""
    from ._legacy import dtype_of_name

    return f"chainrule.{self.dtype.name}" if dtype is None else self.to(dtype=dtype_of_name(dtype))


def _iter(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise TypeError("a tensor without axes cannot be iterated over")
    return (self[i] for i in range(len(self)))


def _contains(self: Tensor, x: Any) -> bool:
    return bool((self == x).any())


def _reduce(self: Tensor) -> Any:
    # NumPy has no bfloat16; every one is a float32.
    low = self.dtype.name == "bfloat16"
    value = (self.detach().float() if low else self.detach()).numpy().copy()
    rebuilt = _rebuild_bfloat16 if low else _rebuild
    return rebuilt, (value, self.requires_grad and self.is_leaf, getattr(self, "_is_parameter", False)), _attributes(self)


def _attributes(x: Tensor) -> dict[str, Any]:
    """The attributes that a program gave the tensor."""
    return {name: value for name, value in x.__dict__.items() if not name.startswith("_")}


def _rebuild(value: Any, requires_grad: bool, is_parameter: bool = False) -> Tensor:
    new = _c.tensor(value, None, requires_grad)
    if is_parameter:
        new._is_parameter = True
    return new


def _rebuild_bfloat16(value: Any, requires_grad: bool, is_parameter: bool = False) -> Tensor:
    return _rebuild(_c.tensor(value, "bfloat16"), requires_grad, is_parameter)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise _c.GradientError("deepcopy: only leaves can be copied deeply; use x.detach().clone(), or x.clone() to keep the tape")
    is_parameter = getattr(self, "_is_parameter", False)
    base, path = self._shown()
    if path is not None and not self.requires_grad:
        # Views of one tensor in what is copied are views of one copy of it.
        # A parameter's copy has memory of its own, as in PyTorch.
        if base.is_leaf and not getattr(base, "_is_parameter", False):
            copied = copy.deepcopy(base, memo)
        else:
            copied = _kept(memo, id(base), base)
        new = path.of(copied)
    elif not is_parameter and (place := cast(Any, self._shared_place())) is not None:
        # So are leaves of one memory.
        number, whole, start, strides = place
        whole = _kept(memo, number, whole)
        is_whole = start == 0 and whole.shape == self.shape and tuple(strides) == tuple(whole.stride())
        new = whole.detach() if is_whole else whole.as_strided(tuple(self.shape), strides, start)
        new._as_leaf(self.requires_grad)
    else:
        new = _rebuild(self, self.requires_grad, is_parameter)
    memo[id(self)] = new
    # A parameter's copy has no gradient, as in PyTorch, and no attributes.
    if not is_parameter:
        if self.is_leaf and self.requires_grad and not new._used_up_as(self) and self.grad is not None:
            new.grad = copy.deepcopy(self.grad, memo)
        new.__dict__.update(copy.deepcopy(_attributes(self), memo))
    return new


def _kept(memo: dict[Any, Any], number: int, memory: Tensor) -> Tensor:
    """The one copy of some memory in what is copied deeply."""
    # The memory stays until the end, so that no other one has its number.
    found, _ = memo.setdefault(("memory", number), (memory.detach().clone(), memory))
    return found  # type: ignore[no-any-return]


def _copy(self: Tensor) -> Tensor:
    if _c._session_on():
        return self.clone()
    is_parameter = getattr(self, "_is_parameter", False)
    new = self.detach()
    if is_parameter or self.requires_grad:
        new._as_leaf(self.requires_grad)
    if is_parameter:
        new._is_parameter = True
    new.__dict__.update(_attributes(self))
    return new


def _format(self: Tensor, spec: str) -> str:
    return format(self.item(), spec) if self.ndim == 0 else object.__format__(self, spec) if spec else str(self)


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    from . import array_api

    if api_version not in (None, *array_api.VERSIONS):
        raise ArgumentError(f"there is no version {api_version} of the array API here; there are {', '.join(array_api.VERSIONS)}")
    return array_api


def _in_place(name: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self._assign(getattr(self, name)(*args, **kwargs))

    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"`{name}`, and the handle takes the result as its value."
    return method


def zero_(self: Tensor) -> Tensor:
    """Writes 0 to all elements."""
    return self._assign(False)


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number to the diagonal of a matrix."""
    if self.ndim != 2 or wrap:
        raise ArgumentError(f"fill_diagonal_: shape {tuple(self.shape)}: a matrix is filled, and wrap=True is not there; use x.diagonal().fill_(v)")
    self.diagonal().fill_(fill_value)
    return self


def _new(name: str) -> Any:
    def method(self: Tensor, *args: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
        from . import _making

        return getattr(_making, name)(*args, dtype=dtype or self.dtype, requires_grad=requires_grad, device=device)  # type: ignore[no-any-return]

    method.__name__ = method.__qualname__ = "new_" + name
    method.__doc__ = f"As the function `{name}`, with the dtype of this tensor unless another is given."
    return method


def new_tensor(self: Tensor, data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of these data, with the dtype of this one unless another is given."""
    return _c.tensor(data, dtype or self.dtype, requires_grad)


def _cast(name: str, to: str) -> Any:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return self._to_dtype(to)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The tensor as {to}."
    return method


def cpu(self: Tensor) -> Tensor:
    """The same: there is one device, the processor."""
    return self


def logdet(self: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative."""
    return self.det().log()


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    return _c._addmm(self, mat1, mat2, float(beta), float(alpha))


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor:
    return self + (tensor1 * tensor2 if value == 1 else value * (tensor1 * tensor2))


def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1.0) -> Tensor:
    return self + (tensor1 / tensor2 if value == 1 else value * (tensor1 / tensor2))


class Storage(list[Any]):
    """The elements of a tensor in the order of its memory, as a list; it cannot be written through.
    """

    def __repr__(self) -> str:
        return "\n".join(f" {x}" for x in self) + f"\n[storage of size {len(self)}]"


def storage(self: Tensor) -> list[Any]:
    """The elements in the order of memory."""
    return Storage(self.detach().numpy().ravel(order="K").tolist())


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """An error: there is one device, the processor."""
    return self.to("cuda")


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The same: there is one device, the processor."""
    return self.to(device)


def _complex(self: Tensor) -> complex:
    return complex(self.item())


def _of_functions(name: str) -> Any:
    def method(self: Tensor, *args: Any, **options: Any) -> Any:
        from . import _functions

        return getattr(_functions, name)(self, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As the function `{name}`, with the tensor as its first argument."
    return method


def equal(self: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are the same."""
    return self.shape == other.shape and bool((self == other).all())


def _html(self: Tensor) -> str:
    from . import display

    return display.html(self)


def attach() -> None:
    """Gives the native class the methods of this module."""
    methods: dict[str, Any] = {
        "max": _max, "min": _min, "var": _spread("var"), "std": _spread("std"), "type": type_,
        "__iter__": _iter, "__contains__": _contains, "__reduce__": _reduce, "__deepcopy__": _deepcopy, "__copy__": _copy,
        "__format__": _format, "__complex__": _complex, "__array_namespace__": _array_namespace, "_repr_html_": _html,
        "__repr__": _repr.text, "__str__": _repr.text,
        "nelement": Tensor.numel, "cfloat": _as_complex("cfloat", "complex64"), "cdouble": _as_complex("cdouble", "complex128"),
        "real": property(lambda self: self, doc="The real part: the tensor itself."),
        "imag": property(_imag, doc="The imaginary part: an error, for real numbers have none."),
        "float": _cast("float", "float32"), "double": _cast("double", "float64"), "long": _cast("long", "int64"), "int": _cast("int", "int32"),
        "bool": _cast("bool", "bool"), "half": _cast("half", "float16"), "bfloat16": _cast("bfloat16", "bfloat16"),
        "byte": _cast("byte", "uint8"), "char": _cast("char", "int8"), "short": _cast("short", "int16"),
        "device": property(lambda self: "cpu", doc="Device of the elements: there is one, the processor."),
        "grad_fn": property(lambda self: self._op, doc="The name of the op that made the tensor, or None for a leaf."),
        "_grad": property(lambda self: self.grad, lambda self, grad: setattr(self, "grad", grad), doc="The gradient, as `grad`."),
        "itemsize": property(lambda self: self.element_size(), doc="The size of an element in bytes."),
        "nbytes": property(lambda self: self.numel() * self.element_size(), doc="The size of all elements in bytes."),
    }
    for name, value in list(globals().items()):
        if callable(value) and getattr(value, "__module__", None) == __name__ and not name.startswith("_"):
            if name not in ("attach", "one_name", "set_methods", "ValuesIndices", "Storage", "type_"):
                methods[name] = value
    for name in "histogram histc logit dist cross bucketize multinomial".split():
        methods[name] = _of_functions(name)
    for name in ("zeros", "ones", "full", "empty"):
        methods["new_" + name] = _new(name)
    for op, text, aliases, in_place in _c._by_hand():
        method = methods.get(op) or getattr(Tensor, op)
        if isinstance(method, FunctionType) and method.__doc__ is None:
            method.__doc__ = text
        methods |= dict.fromkeys(aliases, method)
        if in_place:
            methods[op + "_"] = _in_place(op)
    set_methods(methods, ())


def set_methods(methods: dict[str, Any], in_place: Sequence[str]) -> None:
    """Gives the native class methods, and of those with these names the ones that write their
    result.
    """
    for name, value in methods.items():
        if value is not None:
            setattr(Tensor, name, value)
    for name in in_place:
        setattr(Tensor, name + "_", _in_place(name))
