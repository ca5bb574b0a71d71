"""Matrices of which few elements are not 0, by their places: products with dense matrices, as graph
networks take them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _chainrule as _c
from . import _making as _m
from ._chainrule import Tensor
from ._errors import ArgumentError
from ._size import Size

__all__ = ["SparseTensor", "addmm", "mm", "sum", "to_sparse"]


class SparseTensor:
    """Elements at `indices [axes, n]` with `values [n]`, zeros elsewhere. Elements at the same
    place are added. Gradients flow to the values and to what it is multiplied with.

    ```
    a = cr.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
    assert (a @ cr.ones(2, 1)).tolist() == [[2], [3]] and a.to_dense()[1, 0].item() == 3
    ```
    """

    is_sparse = True
    layout = "chainrule.sparse_coo"
    device = "cpu"
    is_leaf = True

    def __init__(self, indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool = False) -> None:
        self._at, self._given, self._size, self._is_coalesced = indices, values, Size(size), is_coalesced

    @property
    def shape(self) -> Size:
        """The sizes of the axes."""
        return self._size

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one axis."""
        return self._size if dim is None else self._size[dim]

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._given.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._size)

    def dim(self) -> int:
        """The number of axes."""
        return len(self._size)

    sparse_dim = dim

    @property
    def requires_grad(self) -> bool:
        """Whether the values require a gradient."""
        return self._given.requires_grad

    def _nnz(self) -> int:
        return self._given.shape[0]

    def is_coalesced(self) -> bool:
        """Whether each place is there once, in order."""
        return self._is_coalesced

    def coalesce(self) -> SparseTensor:
        """Each place once, in row-major order; elements at the same place are added."""
        if self._is_coalesced:
            return self
        flat, inverse = self._flat().unique(return_inverse=True)
        values = _c._full((flat.shape[0], *self._given.shape[1:]), 0.0, self.dtype).index_add(0, inverse, self._given)
        rows, rest = [], flat
        for n in reversed(self._size):
            rows.append(rest % n)
            rest = rest // n
        return SparseTensor(_c._stack(rows[::-1], 0), values, self._size, True)

    def _flat(self) -> Tensor:
        """The places as numbers, in row-major order."""
        at = self._at[0]
        for axis in range(1, len(self._size)):
            at = at * self._size[axis] + self._at[axis]
        return at

    def indices(self) -> Tensor:
        """The places, `[axes, n]`."""
        self._need()
        return self._at

    def values(self) -> Tensor:
        """The elements, `[n]`."""
        self._need()
        return self._given

    def _need(self) -> None:
        if not self._is_coalesced:
            raise RuntimeError("sparse: places may be there more than once; call coalesce() first")

    def _indices(self) -> Tensor:
        return self._at

    def _values(self) -> Tensor:
        return self._given

    def to_dense(self) -> Tensor:
        """The tensor with its zeros."""
        n = 1
        for size in self._size:
            n *= size
        zeros = _c._full((n,), 0.0, self.dtype)
        if self.dtype.name == "bool":
            at = self._flat()[self._given]
            dense = zeros.index_put((at,), _c._full((at.shape[0],), 1.0, self.dtype))
        else:
            dense = zeros.index_add(0, self._flat(), self._given)
        return dense.reshape(tuple(self._size))

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        return self.transpose(0, 1)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """The same with two axes exchanged."""
        order = list(range(self.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return SparseTensor(self._at[order], self._given, [self._size[i] for i in order])

    def _with(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._at, values, self._size, self._is_coalesced)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Another dtype of the values."""
        return self._with(self._given.to(*args, **kwargs))

    def type(self, dtype: Any = None) -> Any:
        """The name of the dtype, or another dtype."""
        return self._given.type() if dtype is None else self._with(self._given.type(dtype))

    def float(self) -> SparseTensor:
        """The values in float32."""
        return self._with(self._given.float())

    def double(self) -> SparseTensor:
        """The values in float64."""
        return self._with(self._given.double())

    def cpu(self) -> SparseTensor:
        """The same: there is one device, the processor."""
        return self

    def cuda(self, *_: Any, **__: Any) -> SparseTensor:
        """An error: there is one device, the processor."""
        self._given.cuda()
        return self

    def clone(self) -> SparseTensor:
        """A copy."""
        return self._with(self._given.clone())

    def detach(self) -> SparseTensor:
        """The same without the tape."""
        return self._with(self._given.detach())

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Sets whether the values require a gradient."""
        self._given.requires_grad_(requires_grad)
        return self

    def sum(self, dim: Any = None) -> Tensor:
        """The sum of all elements, or along an axis, as a dense tensor."""
        return self._given.sum() if dim is None else self.to_dense().sum(dim)

    def matmul(self, other: Tensor) -> Tensor:
        """The product with a dense matrix or vector."""
        if self.ndim != 2 or other.ndim not in (1, 2) or self._size[1] != other.shape[0]:
            raise ArgumentError(f"sparse: shapes {tuple(self._size)} and {tuple(other.shape)}: [m, n] and [n, k] or [n] are multiplied")
        rows = other[self._at[1]]
        values = self._given if other.ndim == 1 else self._given.unsqueeze(1)
        zeros = _c._full((self._size[0], *other.shape[1:]), 0.0, _c._promoted(self.dtype, other.dtype))
        return zeros.index_add(0, self._at[0], (values * rows)._to_dtype(zeros.dtype))

    mm = spmm = mv = __matmul__ = matmul

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return self.t().matmul(other.t()).t()

    def __mul__(self, other: Any) -> SparseTensor:
        if isinstance(other, SparseTensor) or (isinstance(other, Tensor) and other.ndim):
            raise TypeError("sparse: multiplied by a number; x.to_dense() multiplies element by element")
        return self._with(self._given * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._with(self._given / other)

    def __neg__(self) -> SparseTensor:
        return self._with(-self._given)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Tensor):
            return self.to_dense() + other
        if not isinstance(other, SparseTensor) or other.shape != self.shape:
            raise TypeError("sparse: a tensor of the same shape is added")
        return SparseTensor(_c._cat([self._at, other._at], 1), _c._cat([self._given, other._given], 0), self._size)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __repr__(self) -> str:
        return f"tensor(indices={self._at!r},\n       values={self._given!r},\n       size={tuple(self._size)}, nnz={self._nnz()}, layout=sparse_coo)"

    @staticmethod
    def _takes_over(name: str, args: Sequence[Any], named: Any) -> Any:
        """A function of dense tensors that was given a sparse one."""
        if name in ("mm", "matmul", "mv", "spmm") and len(args) == 2 and not named:
            return args[0] @ args[1]
        if name == "addmm" and len(args) == 3:
            return addmm(*args, **named)
        if name == "sum" and len(args) < 3 and not named:
            return args[0].sum(*args[1:])
        raise TypeError(f"{name}: a sparse tensor is not taken; x.to_dense() is")


def sparse_coo_tensor(
    indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor of elements at places.

    ```
    a = cr.sparse_coo_tensor(cr.tensor([[0, 1, 1], [2, 0, 2]]), cr.tensor([3.0, 4.0, 5.0]), (2, 3))
    assert a.to_dense().tolist() == [[0, 0, 3], [4, 0, 5]]
    ```
    """
    _m._on(device)
    at = indices if isinstance(indices, Tensor) else _c.tensor(indices, "int64")
    given = values if isinstance(values, Tensor) else _c.tensor(values)
    given = given if dtype is None else given.to(dtype)
    if at.ndim != 2 or at.shape[1] != given.shape[0]:
        raise ArgumentError(f"sparse_coo_tensor: shapes {tuple(at.shape)} and {tuple(given.shape)}: places [axes, n] and values [n] are needed")
    at = at.long()
    largest = [int(n) + 1 for n in at.amax(1).tolist()] if at.shape[1] else [0] * at.shape[0]
    sizes = largest if size is None else [int(n) for n in size]
    if len(sizes) != at.shape[0] or any(n > m for n, m in zip(largest, sizes)) or (at.numel() and int(at.min()) < 0):
        raise ArgumentError(f"sparse_coo_tensor: a place is outside of the shape {tuple(sizes)}")
    return SparseTensor(at, given.detach().requires_grad_() if requires_grad else given, sizes, bool(is_coalesced))


def to_sparse(self: Tensor, *_: Any, **__: Any) -> SparseTensor:
    """The elements that are not 0, as a sparse tensor."""
    places = self.nonzero()
    return SparseTensor(places.t(), self[tuple(places.unbind(1))], self.shape, True)


def mm(mat1: Any, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix; also under the name `spmm`."""
    return mat1 @ mat2  # type: ignore[no-any-return]


spmm = mm


def addmm(mat: Tensor, mat1: SparseTensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta mat + alpha mat1 @ mat2` for a sparse `mat1`."""
    product: Tensor = beta * mat + alpha * (mat1 @ mat2)
    return product


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or along an axis."""
    out: Tensor = input.sum(dim)
    return out if dtype is None else out.to(dtype)


def _typed(dtype: str) -> Any:
    def make(indices: Any, values: Any, size: Any = None) -> SparseTensor:
        return sparse_coo_tensor(indices, values, size, dtype=dtype)

    make.__doc__ = f"A sparse tensor of {dtype}."
    return make


FloatTensor, DoubleTensor, LongTensor = _typed("float32"), _typed("float64"), _typed("int64")


def _dense(self: Tensor) -> Tensor:
    """The same: the tensor is dense."""
    return self


def attach() -> None:
    """Gives dense tensors the methods of this module."""
    setattr(Tensor, "to_sparse", to_sparse)
    setattr(Tensor, "to_sparse_coo", to_sparse)
    setattr(Tensor, "to_dense", _dense)
